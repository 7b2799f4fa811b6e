package models

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// Codex has the queries of codex.
var Codex = Queries{Models: codexModels, Usage: codexUsage}

// codexAnswers queries codex's server; take gets its answer to each method.
func codexAnswers(ctx context.Context, program string, env []string, methods []string, take func(method string, result json.RawMessage) error) error {
	says := []string{
		`{"id":"initialize","method":"initialize","params":{"clientInfo":{"name":"bridge","title":"Bridge","version":"1"},"capabilities":{"experimentalApi":true}}}`,
		`{"method":"initialized"}`,
	}
	for _, method := range methods {
		says = append(says, `{"id":"`+method+`","method":"`+method+`","params":{}}`)
	}
	var failed error
	waits := len(methods)
	err := talk(ctx, []string{program, "app-server", "--disable", "hooks"}, env, says, func(line []byte) bool {
		var said struct {
			ID     string          `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(line, &said) != nil || said.ID == "" || said.ID == "initialize" && said.Error == nil {
			return false
		}
		if said.Error != nil {
			failed = errors.New(said.Error.Message)
		} else if err := take(said.ID, said.Result); err != nil {
			failed = err
		}
		waits--
		return waits == 0
	})
	return errors.Join(err, failed)
}

// codexModels returns codex's own list. The list is complete only for an account of
// the vendor: accounts by key, and other providers that the owner configured, have
// other models.
func codexModels(ctx context.Context, program string, env []string) (list, error) {
	var told struct {
		Data []struct {
			ID      string `json:"id"`
			Model   string `json:"model"`
			Name    string `json:"displayName"`
			Hidden  bool   `json:"hidden"`
			Default bool   `json:"isDefault"`
			Efforts []struct {
				Effort string `json:"reasoningEffort"`
			} `json:"supportedReasoningEfforts"`
		} `json:"data"`
		Next *string `json:"nextCursor"`
	}
	var account struct {
		Account *struct {
			Type string `json:"type"`
		} `json:"account"`
	}
	var settings struct {
		Config struct {
			Provider *string `json:"model_provider"`
			Catalog  *string `json:"model_catalog_json"`
			BaseURL  *string `json:"openai_base_url"`
		} `json:"config"`
	}
	into := map[string]any{"model/list": &told, "account/read": &account, "config/read": &settings}
	err := codexAnswers(ctx, program, env, []string{"account/read", "config/read", "model/list"}, func(method string, result json.RawMessage) error {
		return json.Unmarshal(result, into[method])
	})
	c := settings.Config
	usual := (c.Provider == nil || *c.Provider == "openai") && c.Catalog == nil && c.BaseURL == nil
	found := list{whole: err == nil && usual && told.Next == nil && account.Account != nil && account.Account.Type == "chatgpt"}
	for _, m := range told.Data {
		model := api.Model{ID: m.Model, Name: m.Name, Default: m.Default}
		if model.ID == "" {
			model.ID = m.ID
		}
		for _, effort := range m.Efforts {
			model.Efforts = append(model.Efforts, effort.Effort)
		}
		found.models = append(found.models, model)
	}
	return found, err
}

// codexUsage returns the limits of codex's account.
func codexUsage(ctx context.Context, program string, env []string) (account, error) {
	type window struct {
		Used     float64 `json:"usedPercent"`
		ResetsAt int64   `json:"resetsAt"` // seconds since 1970
		Minutes  int64   `json:"windowDurationMins"`
	}
	var told struct {
		Limits struct {
			Plan      string  `json:"planType"`
			Primary   *window `json:"primary"`
			Secondary *window `json:"secondary"`
		} `json:"rateLimits"`
	}
	err := codexAnswers(ctx, program, env, []string{"account/rateLimits/read"}, func(_ string, result json.RawMessage) error {
		return json.Unmarshal(result, &told)
	})
	found := account{plan: told.Limits.Plan}
	for i, w := range []*window{told.Limits.Primary, told.Limits.Secondary} {
		if w == nil {
			continue
		}
		name := []string{"primary", "secondary"}[i]
		if w.Minutes > 0 {
			name = bridge.Span(time.Duration(w.Minutes) * time.Minute)
		}
		found.limits = append(found.limits, api.Limit{Name: name, UsedPercent: w.Used, ResetsAt: w.ResetsAt * 1000})
	}
	if len(found.limits) == 0 && err == nil {
		found.note = notTold + " for this account"
	}
	return found, err
}
