package models

import (
	"context"
	"strings"

	"bridge/backend/platform/ipc/api"
)

// Antigravity has the queries of Antigravity.
var Antigravity = Queries{Models: antigravityModels}

// antigravityModels parses one model per line: its id, a tab, its name. It was not
// tested with the real program, so its list never refuses a model.
func antigravityModels(ctx context.Context, program string, env []string) (list, error) {
	var found list
	err := talk(ctx, []string{program, "models"}, env, nil, func(line []byte) bool {
		id, name, _ := strings.Cut(strings.TrimSpace(string(line)), "\t")
		if id != "" && !strings.Contains(id, " ") {
			found.models = append(found.models, api.Model{ID: id, Name: strings.TrimSpace(name)})
		}
		return false
	})
	return found, err
}
