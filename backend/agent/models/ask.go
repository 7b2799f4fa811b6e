package models

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

const (
	// leaveTime is the time that a CLI has to end after its last answer.
	leaveTime = 3 * time.Second
	maxLine   = 8 << 20
)

// environment is that of the owner's terminal, with what keeps the CLIs to themselves.
func (b *Book) environment() []string {
	environ := os.Environ()
	if b.Where.Environ != nil {
		environ = b.Where.Environ()
	}
	return append(environ, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_PURE=1", "DISABLE_AUTOUPDATER=1")
}

// talk starts a CLI, sends it the lines, and passes on each line of its output,
// until each returns true or the CLI ends. The CLI has ended when talk returns.
func talk(ctx context.Context, argv, env, says []string, each func(line []byte) (enough bool)) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = env, agent.AskFolder(), leaveTime
	cmd.Cancel = func() error { return proc.KillTree(cmd.Process.Pid) }
	var stderr tail
	cmd.Stderr = &stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return bridge.Errorf(bridge.Unavailable, "start %s: %w", argv[0], err)
	}
	for _, line := range says {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			break // it has ended; its output shows why
		}
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	enough := false
	for !enough && lines.Scan() {
		enough = each(lines.Bytes())
	}
	in.Close()
	end := time.AfterFunc(leaveTime, func() { proc.KillTree(cmd.Process.Pid) }) //nolint:errcheck // it may be at its end
	defer end.Stop()
	io.Copy(io.Discard, out) //nolint:errcheck // its end is how it ends
	err := cmd.Wait()
	switch {
	case enough:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("it did not answer within %v", askTime)
	case len(says) == 0 && err == nil:
		return nil // all that it had to say
	}
	if words := strings.TrimSpace(stderr.String()); words != "" {
		return errors.New(words)
	}
	return errors.New("it ended without an answer")
}

// tail keeps the last line that is written to it.
type tail struct{ text string }

func (t *tail) Write(data []byte) (int, error) {
	const most = 500
	t.text += string(data)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(data), nil
}

func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(t.text, "")), "\n")
	return lines[len(lines)-1]
}

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
func claudeUsage(ctx context.Context, program string, env []string) (api.AgentUsage, error) {
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
	found := api.AgentUsage{Plan: told.Plan}
	for _, name := range slices.Sorted(maps.Keys(told.Limits)) {
		var window struct {
			Used     *float64 `json:"utilization"`
			ResetsAt any      `json:"resets_at"`
		}
		if json.Unmarshal(told.Limits[name], &window) == nil && window.Used != nil {
			found.Limits = append(found.Limits, api.Limit{Name: name, UsedPercent: *window.Used, ResetsAt: moment(window.ResetsAt)})
		}
	}
	if len(found.Limits) == 0 {
		found.Note = notTold + " for this account"
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
func codexUsage(ctx context.Context, program string, env []string) (api.AgentUsage, error) {
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
	found := api.AgentUsage{Plan: told.Limits.Plan}
	for i, w := range []*window{told.Limits.Primary, told.Limits.Secondary} {
		if w == nil {
			continue
		}
		name := []string{"primary", "secondary"}[i]
		if w.Minutes > 0 {
			name = bridge.Span(time.Duration(w.Minutes) * time.Minute)
		}
		found.Limits = append(found.Limits, api.Limit{Name: name, UsedPercent: w.Used, ResetsAt: w.ResetsAt * 1000})
	}
	if len(found.Limits) == 0 && err == nil {
		found.Note = notTold + " for this account"
	}
	return found, err
}

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
