package models

import (
	"context"
	"strings"

	"bridge/backend/platform/ipc/api"
)

// OpenCode has the queries of opencode.
var OpenCode = Queries{Models: openCodeModels}

// openCodeModels returns all models configured in opencode, which accepts no others.
func openCodeModels(ctx context.Context, program string, env []string) (list, error) {
	found := list{whole: true}
	err := talk(ctx, []string{program, "models"}, env, nil, func(line []byte) bool {
		if id := strings.TrimSpace(string(line)); strings.Contains(id, "/") && !strings.ContainsAny(id, " \t") {
			found.models = append(found.models, api.Model{ID: id})
		}
		return false
	})
	found.whole = err == nil && len(found.models) > 0
	return found, err
}
