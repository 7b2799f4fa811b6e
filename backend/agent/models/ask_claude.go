package models

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"bridge/backend/platform/ipc/api"
)

// Claude has the queries of Claude Code.
var Claude = Queries{Models: claudeModels, Usage: claudeUsage}

// claudeAnswers queries Claude Code without starting a conversation.
func claudeAnswers(ctx context.Context, program string, env []string, requests []string, take func(id string, response json.RawMessage)) error {
	argv := []string{program, "-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose", "--setting-sources=", "--strict-mcp-config"}
	var says []string
	for _, request := range requests {
		says = append(says, `{"type":"control_request","request_id":"`+request+`","request":{"subtype":"`+request+`"}}`)
	}
	var refused error
	waits := len(requests)
	err := talk(ctx, argv, env, says, func(line []byte) bool {
		var said struct {
			Type     string `json:"type"`
			Response struct {
				Subtype  string          `json:"subtype"`
				ID       string          `json:"request_id"`
				Response json.RawMessage `json:"response"`
				Error    string          `json:"error"`
			} `json:"response"`
		}
		if json.Unmarshal(line, &said) != nil || said.Type != "control_response" {
			return false
		}
		if said.Response.Subtype == "error" {
			refused = errors.New(said.Response.Error)
		}
		take(said.Response.ID, said.Response.Response)
		waits--
		return waits == 0
	})
	return errors.Join(err, refused)
}

// claudeModels returns the names in Claude Code's own menu. It also accepts full
// names of models, and any name that the owner's gateway knows.
func claudeModels(ctx context.Context, program string, env []string) (list, error) {
	var told struct {
		Models []struct {
			Value   string   `json:"value"`
			Name    string   `json:"displayName"`
			Efforts []string `json:"supportedEffortLevels"`
		} `json:"models"`
	}
	err := claudeAnswers(ctx, program, env, []string{"initialize"}, func(_ string, response json.RawMessage) {
		json.Unmarshal(response, &told) //nolint:errcheck // it told nothing then
	})
	found := list{note: "full names of models, too"}
	for _, m := range told.Models {
		found.models = append(found.models, api.Model{ID: m.Value, Name: m.Name, Efforts: m.Efforts, Default: m.Value == "default"})
	}
	return found, err
}

// claudeUsage returns the usage that Claude Code shows. Only an account with a
// subscription has limits.
func claudeUsage(ctx context.Context, program string, env []string) (account, error) {
	var told struct {
		Plan      string                     `json:"subscription_type"`
		Available bool                       `json:"rate_limits_available"`
		Limits    map[string]json.RawMessage `json:"rate_limits"`
	}
	err := claudeAnswers(ctx, program, env, []string{"initialize", "get_usage"}, func(id string, response json.RawMessage) {
		if id == "get_usage" {
			json.Unmarshal(response, &told) //nolint:errcheck // it told nothing then
		}
	})
	found := account{plan: told.Plan}
	for _, name := range slices.Sorted(maps.Keys(told.Limits)) {
		var window struct {
			Used     *float64 `json:"utilization"`
			ResetsAt any      `json:"resets_at"`
		}
		if json.Unmarshal(told.Limits[name], &window) == nil && window.Used != nil {
			found.limits = append(found.limits, api.Limit{Name: name, UsedPercent: *window.Used, ResetsAt: moment(window.ResetsAt)})
		}
	}
	if len(found.limits) == 0 {
		found.note = notTold + " for this account"
	}
	return found, err
}

// moment parses a time as text or in seconds since 1970 into Unix milliseconds; it
// returns 0 for anything else.
func moment(raw any) int64 {
	switch at := raw.(type) {
	case string:
		if parsed, err := time.Parse(time.RFC3339, at); err == nil {
			return parsed.UnixMilli()
		}
	case float64:
		return int64(at) * 1000
	}
	return 0
}
