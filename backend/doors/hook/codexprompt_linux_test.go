package hook

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
	"bridge/backend/testing/testkit"
)

// codexTells runs codex's hook to its end, as the program is called.
func codexTells(t *testing.T, home config.Home, event, more string) (output string) {
	t.Helper()
	var out, problems bytes.Buffer
	code := Program{
		Name: "bridge-hook", Args: []string{"codex", event, "--home", home.Dir()}, Stdout: &out, Stderr: &problems, Now: time.Now, Version: "test",
		Stdin:  strings.NewReader(fmt.Sprintf(`{"session_id":%q,"hook_event_name":%q,"cwd":"/src/shop"%s}`, conversation, event, more)),
		Getenv: func(string) string { return "" },
	}.Run(t.Context())
	if code != 0 || problems.Len() != 0 {
		t.Errorf("%s: exit code %d, %s", event, code, &problems)
	}
	return out.String()
}

func newCodex(t *testing.T, threads bool) *asking {
	t.Helper()
	b := brokertest.Serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	if _, err := b.Home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts = prompt.Always; return nil }); err != nil {
		t.Fatal(err)
	}
	b.Page.Store(true)
	if err := os.WriteFile(filepath.Join(b.Home.Dir(), "token"), []byte(b.Target.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	session := brokertest.Dial(t, b.Target, api.RoleSession)
	args := api.Register{Kind: bridge.Codex, Name: "codex-shop", Cwd: "/src/shop", SessionID: conversation, Threads: threads, HostKnown: threads, AgentPID: os.Getpid()}
	if _, err := session.Register(ctx, args); err != nil {
		t.Fatal(err)
	}
	return &asking{T: t, Running: b, ctx: ctx}
}

const codexCall = `,"tool_name":"Bash","tool_input":{"command":"make clean","description":"tidy up"}`

// The hook says nothing to codex, whose dialog decides; what codex says later ends the
// card.
func TestNED_02_ACodexAloneIsOnlyTold(t *testing.T) {
	for _, tt := range []struct {
		event, more string
		how         job.Elsewhere
	}{
		{"PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"make clean"}`, prompt.WasAllowed},
		{hooks.InterruptEvent, "", prompt.WasStopped},
		{"Stop", "", prompt.WasAnswered},
		{"UserPromptSubmit", `,"prompt":"else"`, prompt.WasGone},
		{"SessionEnd", "", prompt.WasGone},
	} {
		t.Run(tt.event, func(t *testing.T) {
			a := newCodex(t, false)
			if output := codexTells(t, a.Home, hooks.PermissionEvent, codexCall); output != "" {
				t.Errorf("the hook wrote %s", output)
			}
			card := a.state(job.ApprovalAsked, "")
			if card.OnlyTold == "" || card.Session != "codex-shop" || card.What != "Bash" || card.Detail != "make clean" || card.Why != "tidy up" {
				t.Errorf("the card is %+v", card)
			}
			if _, err := a.Prompts.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict {
				t.Errorf("answering gives %v", err)
			}
			codexTells(t, a.Home, "PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"make all"}`)
			a.state(job.ApprovalAsked, "")
			codexTells(t, a.Home, tt.event, tt.more)
			a.state(job.ApprovalWithdrawn, tt.how)
		})
	}
}

// A background server tells of its prompts itself: its hook's would be a second card.
func TestNED_02_TheHookOfABackgroundServerTellsNothing(t *testing.T) {
	a := newCodex(t, true)
	output := codexTells(t, a.Home, hooks.PermissionEvent, codexCall)
	if cards := a.Prompts.Approvals(); output != "" || len(cards) != 0 {
		t.Errorf("the hook wrote %q; the cards are %+v", output, cards)
	}
	if !a.Prompts.Shows(bridge.Codex) {
		t.Error("no prompt would be shown at all")
	}
}

func TestNED_02_WithoutABrokerCodexWaitsForNothing(t *testing.T) {
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if output := codexTells(t, home, hooks.PermissionEvent, codexCall); output != "" {
		t.Errorf("the hook wrote %s", output)
	}
}
