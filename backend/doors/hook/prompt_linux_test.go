package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
	"bridge/backend/testing/testkit"
)

// asking is a claude that asks for permission by its hook, and what its owner sees.
type asking struct {
	*testing.T
	brokertest.Running
	ctx    context.Context
	folder string // of claude's own store
	ended  chan string
}

// conversation is the session of every stand-in here.
const conversation = "11111111-2222-4333-8444-555555555555"

// newAsking is a session whose owner answers prompts from the page, which is open.
func newAsking(t *testing.T, mode prompt.Mode) *asking {
	b := brokertest.Serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	if _, err := b.Home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts = mode; return nil }); err != nil {
		t.Fatal(err)
	}
	b.Page.Store(true)
	session := brokertest.Dial(t, b.Target, api.RoleSession)
	if _, err := session.Register(ctx, api.Register{Kind: bridge.Claude, Name: "claude-shop", Cwd: "/src/shop", SessionID: conversation}); err != nil {
		t.Fatal(err)
	}
	return &asking{T: t, Running: b, ctx: ctx, folder: t.TempDir(), ended: make(chan string, 1)}
}

// ask starts the hook as claude does; what it wrote comes to ended.
func (a *asking) ask(more string) { a.askOf("", more) }

func (a *asking) askOf(child, more string) {
	a.Helper()
	a.askFor(child, `"Bash","tool_input":{"command":"make clean","description":"tidy up"}`+more)
}

// askFor is askOf for another tool, which is named first.
func (a *asking) askFor(child, tool string) {
	a.Helper()
	input := fmt.Sprintf(`{"session_id":%q,"hook_event_name":"PermissionRequest","cwd":"/src/shop","tool_name":%s}`, conversation, tool)
	if child != "" {
		input = strings.Replace(input, `"cwd"`, `"agent_id":"`+child+`","cwd"`, 1)
	}
	token := filepath.Join(a.Home.Dir(), "token")
	if err := os.WriteFile(token, []byte(a.Target.Token), 0o600); err != nil {
		a.Fatal(err)
	}
	options := Options{Home: a.Home, Version: "test", CLIDataDir: a.folder, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	go func() {
		var out bytes.Buffer
		RunPrompt(a.ctx, options, bridge.Claude, os.Getpid(), strings.NewReader(input), &out)
		a.ended <- out.String()
	}()
}

// registry is what claude says of itself.
func (a *asking) registry(status string) {
	a.Helper()
	entry, err := json.Marshal(map[string]any{"pid": os.Getpid(), "sessionId": conversation, "status": status})
	if err != nil {
		a.Fatal(err)
	}
	file := filepath.Join(a.folder, "sessions", strconv.Itoa(os.Getpid())+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		a.Fatal(err)
	}
	if err := os.WriteFile(file+".new", entry, 0o600); err != nil {
		a.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		a.Fatal(err)
	}
}

// card waits until the newest prompt is as it should be.
func (a *asking) card(what string, matches func(job.Approval) bool) job.Approval {
	a.Helper()
	for {
		list := a.Prompts.Approvals()
		if len(list) > 0 && matches(list[len(list)-1]) {
			return list[len(list)-1]
		}
		if !ipc.Pause(a.ctx, time.Millisecond) {
			a.Fatalf("no card came that is %s: %+v", what, list)
		}
	}
}

func (a *asking) state(state job.ApprovalState, how job.Elsewhere) job.Approval {
	a.Helper()
	return a.card(fmt.Sprint(state, " ", how), func(card job.Approval) bool { return card.State == state && card.Elsewhere == how })
}

// said is what the hook wrote at its end.
func (a *asking) said() string {
	a.Helper()
	select {
	case out := <-a.ended:
		return out
	case <-a.ctx.Done():
		a.Fatal("the hook does not end")
		return ""
	}
}

// hears is a later hook call of the same session.
func (a *asking) hears(event, more string) {
	a.Helper()
	call, err := hooks.For(bridge.Claude).ParseHook(event, fmt.Appendf(nil, `{"session_id":%q,"hook_event_name":%q%s}`, conversation, event, more))
	if err != nil {
		a.Fatal(err)
	}
	client, err := ipc.Dial(a.ctx, a.Target, ipc.Hello{Role: api.RoleHook, PID: os.Getpid()})
	if err != nil {
		a.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Hook(a.ctx, call); err != nil {
		a.Fatal(err)
	}
}

const sameCall = `,"tool_name":"Bash","tool_input":{"description":"tidy up","command":"make clean"}`

func TestNED_02_TheOwnersYesReachesClaudeAndIsAppliedWhenTheCallRan(t *testing.T) {
	a := newAsking(t, prompt.Always)
	a.ask("")
	card := a.state(job.ApprovalAsked, "")
	if card.Session != "claude-shop" || card.Job != "" || card.What != "Bash" || card.Detail != "make clean" || card.Why != "tidy up" || card.Cwd != "/src/shop" || card.ExpiresAt != 0 {
		t.Errorf("the card is %+v", card)
	}
	if _, err := a.Prompts.Answer(card.ID, job.Allow, ""); err != nil {
		t.Fatal(err)
	}
	if got, want := a.said(), `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`; got != want {
		t.Errorf("the hook wrote %s, want %s", got, want)
	}
	a.state(job.ApprovalDelivered, "")
	a.hears("PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"make all"}`)
	a.state(job.ApprovalDelivered, "")
	a.hears("PostToolUse", sameCall)
	card = a.state(job.ApprovalApplied, "")
	var approval job.Approval
	data, err := os.ReadFile(filepath.Join(a.Home.Dir(), "approvals", card.ID+".json"))
	if err != nil || json.Unmarshal(data, &approval) != nil || approval.State != job.ApprovalApplied || approval.AnsweredBy != bridge.OwnerName {
		t.Errorf("on the disk it is %s, %v", data, err)
	}
}

func TestNED_02_TheOwnersNoReachesClaudeWithItsReason(t *testing.T) {
	a := newAsking(t, prompt.Always)
	a.ask("")
	card := a.state(job.ApprovalAsked, "")
	if _, err := a.Prompts.Answer(card.ID, job.Deny, `not <this> "folder"`); err != nil {
		t.Fatal(err)
	}
	if got, want := a.said(), `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"not <this> \"folder\""},"hookEventName":"PermissionRequest"}}`; got != want {
		t.Errorf("the hook wrote %s, want %s", got, want)
	}
	a.state(job.ApprovalDelivered, "")
	a.hears("Stop", "")
	a.state(job.ApprovalApplied, "")
	if approval, err := a.Prompts.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict || approval.Decision != job.Deny {
		t.Errorf("a second answer gives %+v, %v", approval, err)
	}
}

// Whatever ends a prompt at the terminal ends the hook without a word, and the card.
func TestNED_02_WhatIsAnsweredAtTheTerminalEndsHookAndCard(t *testing.T) {
	tests := []struct {
		name string
		end  func(a *asking)
		how  job.Elsewhere
	}{
		{"claude's dialog is gone", func(a *asking) { a.registry("busy") }, prompt.WasAnswered},
		{"the call ran", func(a *asking) { a.hears("PostToolUse", sameCall) }, prompt.WasAllowed},
		{"the turn ended", func(a *asking) { a.hears("Stop", "") }, prompt.WasAnswered},
		{"the session ended", func(a *asking) { a.hears("SessionEnd", "") }, prompt.WasGone},
		{"another prompt of the user", func(a *asking) { a.hears("UserPromptSubmit", `,"prompt":"else"`) }, prompt.WasGone},
		{"claude ends the hook", func(*asking) { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }, prompt.WasStopped},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAsking(t, prompt.Always)
			a.registry("waiting")
			a.ask("")
			card := a.state(job.ApprovalAsked, "")
			a.looked()
			tt.end(a)
			if got := a.said(); got != "" {
				t.Errorf("the hook wrote %s", got)
			}
			a.state(job.ApprovalWithdrawn, tt.how)
			if _, err := a.Prompts.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict {
				t.Errorf("a late answer gives %v", err)
			}
			if _, err := os.Stat(filepath.Join(a.Home.Dir(), "approvals", card.ID+".json")); err == nil {
				t.Error("an answer that nobody gave is on the disk")
			}
		})
	}
}

// looked waits until the dialog was seen: only then can it be seen to have gone.
func (a *asking) looked() {
	a.Helper()
	for a.Dialogs.Load() < 2 { // the second look knows of the first
		if !ipc.Pause(a.ctx, time.Millisecond) {
			a.Fatal("claude's own word is not looked at")
		}
	}
}

func TestNED_02_WithNobodyWatchingTheHookEndsAtOnce(t *testing.T) {
	tests := []struct {
		name string
		set  func(a *asking)
		want bool // a card
	}{
		{"off", func(a *asking) { a.set(prompt.Off, true) }, false},
		{"away, and he is not", func(a *asking) { a.set(prompt.Away, false) }, false},
		{"away, and he is", func(a *asking) { a.set(prompt.Away, true); a.Page.Store(false) }, true},
		{"always, and no page is open", func(a *asking) { a.Page.Store(false) }, false},
		{"always", func(*asking) {}, true},
		{"settings that cannot be read", func(a *asking) { a.damage() }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAsking(t, prompt.Always)
			tt.set(a)
			a.ask("")
			if tt.want {
				a.state(job.ApprovalAsked, "")
				return
			}
			if got := a.said(); got != "" || len(a.Prompts.Approvals()) != 0 {
				t.Errorf("the hook wrote %q, and there are cards: %+v", got, a.Prompts.Approvals())
			}
		})
	}
}

func (a *asking) set(mode prompt.Mode, away bool) {
	a.Helper()
	if _, err := a.Home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts, c.Away = mode, away; return nil }); err != nil {
		a.Fatal(err)
	}
}

func (a *asking) damage() {
	a.Helper()
	if err := os.WriteFile(a.Home.ConfigFile(), []byte(`{"answerPrompts":`), 0o600); err != nil {
		a.Fatal(err)
	}
}

func TestNED_02_WithoutABrokerTheHookEndsAtOnce(t *testing.T) {
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	began := time.Now()
	RunPrompt(t.Context(), Options{Home: home, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, bridge.Claude, 0,
		strings.NewReader(`{"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}`), &out)
	testkit.Within(t, 10*time.Second, time.Since(began), "it ended")
	if out.Len() != 0 {
		t.Errorf("it wrote %q", &out)
	}
}

// A background child's dialog comes only after the hook has ended.
func TestNED_02_ABackgroundChildsDialogIsNotKeptAway(t *testing.T) {
	t.Run("its dialog does not show", func(t *testing.T) {
		a := newAsking(t, prompt.Always)
		a.registry("busy")
		a.askOf("child-1", "")
		if got := a.said(); got != "" {
			t.Errorf("the hook wrote %s", got)
		}
		card := a.state(job.ApprovalAsked, "")
		if card.OnlyTold == "" {
			t.Errorf("the card is %+v, want it told only", card)
		}
		if _, err := a.Prompts.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("answering gives %v", err)
		}
		a.hears("PostToolUse", sameCall) // of the session itself: another call
		a.state(job.ApprovalAsked, "")
		a.hears("PostToolUse", `,"agent_id":"child-1"`+sameCall)
		a.state(job.ApprovalWithdrawn, prompt.WasAllowed)
	})
	t.Run("its dialog shows", func(t *testing.T) {
		a := newAsking(t, prompt.Always)
		a.registry("waiting")
		a.askOf("child-1", "")
		card := a.state(job.ApprovalAsked, "")
		if card.OnlyTold != "" {
			t.Fatalf("it is told only: %s", card.OnlyTold)
		}
		if _, err := a.Prompts.Answer(card.ID, job.Allow, ""); err != nil {
			t.Fatal(err)
		}
		if got := a.said(); !strings.Contains(got, "allow") {
			t.Errorf("the hook wrote %s", got)
		}
	})
	t.Run("another dialog shows", func(t *testing.T) {
		a := newAsking(t, prompt.Always)
		a.registry("waiting")
		a.ask("")
		a.state(job.ApprovalAsked, "")
		a.askOf("child-1", "")
		a.card("told only", func(card job.Approval) bool { return card.OnlyTold != "" })
	})
}

// What only the terminal can answer is told and not held.
func TestNED_02_QuestionsOfTheModelAreToldOnly(t *testing.T) {
	for tool, input := range map[string]string{"ExitPlanMode": `{}`, "AskUserQuestion": `{"questions":[{"question":"Which color?","new":1}]}`} {
		a := newAsking(t, prompt.Always)
		options := Options{Home: a.Home, CLIDataDir: a.folder, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		a.ask("")
		a.state(job.ApprovalAsked, "") // its token is there
		var out bytes.Buffer
		RunPrompt(a.ctx, options, bridge.Claude, os.Getpid(), strings.NewReader(fmt.Sprintf(`{"session_id":%q,"hook_event_name":"PermissionRequest","tool_name":%q,"tool_input":%s}`, conversation, tool, input)), &out)
		if out.Len() != 0 {
			t.Errorf("%s: the hook wrote %s", tool, &out)
		}
		card := a.card("of "+tool, func(card job.Approval) bool { return card.What == tool })
		if card.OnlyTold == "" || card.State != job.ApprovalAsked {
			t.Errorf("%s: the card is %+v", tool, card)
		}
	}
}

const asksColour = `{"questions":[{"question":"Which colour?","header":"C","options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}],"multiSelect":false}]`

// What claude's model asks is answered by a choice, which is proven by the call that ran
// with it.
func TestNED_02_TheOwnersChoiceReachesClaude(t *testing.T) {
	a := newAsking(t, prompt.Always)
	a.askFor("", `"AskUserQuestion","tool_input":`+asksColour+`}`)
	card := a.state(job.ApprovalAsked, "")
	if card.OnlyTold != "" || card.Kind != "question" || len(card.Choices) != 1 || card.Choices[0].Options[1].Label != "Blue" {
		t.Fatalf("the card is %+v", card)
	}
	if _, err := a.Prompts.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("merely allowed: %v", err)
	}
	a.state(job.ApprovalAsked, "")
	if _, err := a.Prompts.Choose(card.ID, [][]string{{"Blue"}}); err != nil {
		t.Fatal(err)
	}
	want := `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{"answers":{"Which colour?":"Blue"},` + asksColour[1:] + `}},"hookEventName":"PermissionRequest"}}`
	if got := a.said(); got != want {
		t.Errorf("the hook wrote %s, want %s", got, want)
	}
	a.state(job.ApprovalDelivered, "")
	a.hears("PostToolUse", `,"tool_name":"AskUserQuestion","tool_input":`+asksColour+`,"answers":{"Which colour?":"Blue"}}`)
	a.state(job.ApprovalApplied, "")
}

// What proves an answer, and what does not: the turn goes on after each.
func TestNED_02_AnAnswerIsProvenBeforeTheTurnEnds(t *testing.T) {
	const call = `{"tool_name":"Bash","tool_input":{"command":"make clean","description":"tidy up"},"tool_use_id":"t1","tool_response":%s}`
	batch := func(result string) string { return `,"tool_calls":[` + fmt.Sprintf(call, result) + `]` }
	tests := []struct {
		name     string
		decision job.Decision // "" for none
		event    string
		more     string
		state    job.ApprovalState
		how      job.Elsewhere
	}{
		{"denied, and the model reads the reason", job.Deny, hooks.BatchEvent, batch(`"not this <one>"`), job.ApprovalApplied, ""},
		{"denied, and it reads what was said at the terminal", job.Deny, hooks.BatchEvent, batch(`"The user said: not this <one>"`), job.ApprovalWithdrawn, prompt.WasUnclear},
		{"denied, and it reads no text", job.Deny, hooks.BatchEvent, batch(`[{"type":"text","text":"not this <one>"}]`), job.ApprovalWithdrawn, prompt.WasUnclear},
		{"denied, and other calls are over", job.Deny, hooks.BatchEvent, strings.Replace(batch(`"not this <one>"`), "make clean", "make", 1), job.ApprovalDelivered, ""},
		{"denied, and a child's calls are over", job.Deny, hooks.BatchEvent, `,"agent_id":"child-1"` + batch(`"not this <one>"`), job.ApprovalDelivered, ""},
		{"denied, and it ran and failed", job.Deny, hooks.FailedEvent, sameCall, job.ApprovalWithdrawn, prompt.WasAllowed},
		{"allowed, and it failed", job.Allow, hooks.FailedEvent, sameCall + `,"error":"Exit code 1"`, job.ApprovalApplied, ""},
		{"allowed, and another failed", job.Allow, hooks.FailedEvent, strings.Replace(sameCall, "clean", "all", 1), job.ApprovalDelivered, ""},
		{"allowed, and nobody heard that it ran", job.Allow, hooks.BatchEvent, batch(`"done"`), job.ApprovalDelivered, ""},
		{"not answered, and it is over", "", hooks.BatchEvent, batch(`"The user said: no"`), job.ApprovalWithdrawn, prompt.WasAnswered},
		{"not answered, and it failed", "", hooks.FailedEvent, sameCall, job.ApprovalWithdrawn, prompt.WasAllowed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAsking(t, prompt.Always)
			a.ask("")
			card := a.state(job.ApprovalAsked, "")
			if tt.decision != "" {
				reason := ""
				if tt.decision == job.Deny {
					reason = "not this <one>"
				}
				if _, err := a.Prompts.Answer(card.ID, tt.decision, reason); err != nil {
					t.Fatal(err)
				}
				a.said()
				a.state(job.ApprovalDelivered, "")
			}
			a.hears(tt.event, tt.more)
			a.state(tt.state, tt.how)
		})
	}
}

// The hooks that tell of prompts alone ask nobody while no prompt is open.
func TestNED_02_WithoutAnOpenPromptItsHooksAskNobody(t *testing.T) {
	a := newAsking(t, prompt.Always)
	token := filepath.Join(a.Home.Dir(), "token")
	if err := os.WriteFile(token, []byte(a.Target.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	entrypoint := ""
	large := `,"tool_response":"` + strings.Repeat("x", 1<<20) + `"`
	run := func(event, more string) string {
		t.Helper()
		stdin := strings.NewReader(fmt.Sprintf(`{"session_id":%q,"hook_event_name":%q%s}`, conversation, event, more))
		var out bytes.Buffer
		env := map[string]string{"BRIDGE_HOME": a.Home.Dir(), "CLAUDE_CODE_ENTRYPOINT": entrypoint}
		program := Program{Name: "bridge-hook", Args: []string{"claude", event}, Stdin: stdin, Stdout: &out, Stderr: &out, Getenv: func(key string) string { return env[key] }, Now: time.Now}
		if code := program.Run(a.ctx); code != 0 || stdin.Len() != 0 {
			t.Errorf("%s: exit code %d, and %d bytes are not read", event, code, stdin.Len())
		}
		return out.String()
	}
	isOpen := func() bool {
		_, err := os.Stat(filepath.Join(a.Home.Dir(), config.PromptsOpen))
		return err == nil
	}
	entrypoint = "sdk-cli" // claude -p: nobody is asked, and all the same its words are read (RWM-20)
	for _, event := range []string{hooks.WakeEvent, hooks.WakeStandbyEvent, hooks.PermissionEvent} {
		if output := run(event, large); output != "" {
			t.Errorf("%s of a claude without a person says %q", event, output)
		}
	}
	entrypoint = ""
	if isOpen() || run(hooks.BatchEvent, large) != "" || run(hooks.FailedEvent, sameCall) != "" {
		t.Error("with no prompt open something is said")
	}
	a.ask("")
	card := a.state(job.ApprovalAsked, "")
	if !isOpen() {
		t.Error("a prompt is open, and its hooks are not told")
	}
	if _, err := a.Prompts.Answer(card.ID, job.Deny, "no"); err != nil {
		t.Fatal(err)
	}
	a.said()
	a.state(job.ApprovalDelivered, "")
	run(hooks.BatchEvent, `,"tool_calls":[{"tool_name":"Bash","tool_input":{"command":"make clean","description":"tidy up"},"tool_response":"no"}]`)
	a.state(job.ApprovalApplied, "")
	if isOpen() {
		t.Error("no prompt is open, and its hooks are told that one is")
	}
}
