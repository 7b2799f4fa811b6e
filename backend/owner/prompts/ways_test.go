package prompts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
	"bridge/backend/testing/testkit"
)

const conversation = "11111111-2222-4333-8444-555555555555"

// held is a prompt that a hook holds.
type held struct {
	*testing.T
	brokertest.Running
	hook    *ipc.Client
	id      string
	answers chan api.PromptAnswer
}

func holds(t *testing.T) *held {
	t.Helper()
	b := brokertest.ServeJobs(t, func(string) (int, error) { return 0, bridge.Errorf(bridge.Unsupported, "not in this test") })
	if _, err := b.Home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts = prompt.Always; return nil }); err != nil {
		t.Fatal(err)
	}
	b.Page.Store(true)
	s := brokertest.Dial(t, b.Target, api.RoleSession)
	if _, err := s.Register(t.Context(), api.Register{Kind: bridge.Claude, Name: "claude-shop", Cwd: "/src/shop", SessionID: conversation}); err != nil {
		t.Fatal(err)
	}
	h := &held{T: t, Running: b, hook: brokertest.Dial(t, b.Target, api.RoleHook), id: "prompt-1", answers: make(chan api.PromptAnswer, 1)}
	h.ask(h.hook, h.id)
	return h
}

// ask has a hook ask, and waits for its card.
func (h *held) ask(hook *ipc.Client, id string) {
	h.Helper()
	go func() {
		answer, err := hook.Prompt(context.WithoutCancel(h.Context()), api.PromptArgs{
			ID: id, Kind: "command", What: "Bash", Detail: "make " + id, Call: session.HookCall{Kind: bridge.Claude, Event: session.EventAsk, SessionID: conversation, Cwd: "/src/shop"},
		})
		if err == nil && id == h.id {
			h.answers <- answer
		}
	}()
	h.until(id, func(approval job.Approval) bool { return approval.State == job.ApprovalAsked })
}

func (h *held) until(id string, matches func(job.Approval) bool) {
	h.Helper()
	for ends := time.Now().Add(testkit.Patience); ; {
		for _, approval := range h.Prompts.Approvals() {
			if approval.ID == id && matches(approval) {
				return
			}
		}
		if time.Now().After(ends) || !ipc.Pause(h.Context(), time.Millisecond) {
			h.Fatalf("%s does not come so: %+v", id, h.Prompts.Approvals())
		}
	}
}

// No way that an agent has answers a prompt: every role but the owner's is refused, and
// so is what says to be the owner from within an agent.
func TestNED_02_NobodyButTheOwnerAnswersByTheLink(t *testing.T) {
	h := holds(t)
	approve := api.ApproveArgs{Approval: h.id, Decision: job.Allow}
	on := true
	call := func(role api.Role, op string, args any) error {
		var answer json.RawMessage
		return brokertest.Dial(t, h.Target, role).Call(t.Context(), op, args, &answer)
	}
	ways := map[string]func() error{}
	for _, role := range []api.Role{api.RoleSession, api.RolePlugin, api.RoleHook, api.RoleMod, api.RoleRunner, api.RoleDashboard} {
		ways["approve as "+string(role)] = func() error { return call(role, api.OpApprove.Name, approve) }
		ways["away mode as "+string(role)] = func() error { return call(role, api.OpAway.Name, api.AwayArgs{On: &on}) }
	}
	for _, event := range []api.PromptEvent{api.PromptDelivered, api.PromptAllowed, api.PromptRefused, api.PromptStopped, api.PromptGone} {
		for _, role := range []api.Role{api.RoleHook, api.RolePlugin, api.RoleSession, api.RoleOwner} {
			ways[fmt.Sprint(event, " of another's prompt as ", role)] = func() error {
				return call(role, api.OpPromptReport.Name, api.PromptReport{ID: h.id, Event: event})
			}
		}
	}
	ways["delivered before there is an answer"] = func() error {
		return h.hook.PromptReport(t.Context(), api.PromptReport{ID: h.id, Event: api.PromptDelivered})
	}
	ways["an answer instead of what was seen"] = func() error {
		return h.hook.PromptReport(t.Context(), api.PromptReport{ID: h.id, Event: "allow"})
	}
	ways["the same id again"] = func() error {
		_, err := h.hook.Prompt(t.Context(), api.PromptArgs{ID: h.id, What: "Bash", Call: session.HookCall{Kind: bridge.Claude, Event: session.EventAsk, SessionID: conversation}})
		return err
	}
	ways["a supervisor's tool"] = func() error {
		s := brokertest.Dial(t, h.Target, api.RoleSession)
		if _, err := s.Register(t.Context(), api.Register{Kind: bridge.Codex, Cwd: "/src/shop", SessionID: "other"}); err != nil {
			t.Fatal(err)
		}
		args := job.MessageArgs{Job: "claude-job-0a1b2c3d", ApprovalID: h.id, Decision: "allow"}
		_, err := api.OpJobMessage.Call(t.Context(), s, api.JobMessageArgs{ID: "m-1", Args: args})
		return err
	}
	for name, way := range ways {
		if err := way(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	// The very process of this test is the agent's from here on.
	agent := brokertest.Dial(t, h.Target, api.RoleSession)
	if _, err := agent.Register(t.Context(), api.Register{Kind: bridge.Codex, Cwd: "/src/x", AgentPID: os.Getppid(), HostKnown: true, SessionID: "agent"}); err != nil {
		t.Fatal(err)
	}
	for _, op := range []struct {
		name string
		args any
	}{{api.OpApprove.Name, approve}, {api.OpAway.Name, api.AwayArgs{On: &on}}} {
		if err := call(api.RoleOwner, op.name, op.args); bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("%s by the owner's command within an agent: %v, want it denied", op.name, err)
		}
	}
	h.until(h.id, func(approval job.Approval) bool {
		return approval.State == job.ApprovalAsked && approval.Decision == ""
	})
	if config, err := h.Home.Config(); err != nil || config.Away {
		t.Errorf("away mode is %t, %v", config.Away, err)
	}
	select {
	case answer := <-h.answers:
		t.Errorf("the hook was told %+v", answer)
	default:
	}
}

func TestNED_02_TheOwnersCommandAnswersAndSwitchesAwayMode(t *testing.T) {
	h := holds(t)
	owner := brokertest.Dial(t, h.Target, api.RoleOwner)
	after, err := owner.Approve(t.Context(), api.ApproveArgs{Approval: h.id, Decision: job.Deny, Reason: "not now"})
	if err != nil || after.State != job.ApprovalAnswered || after.Session != "claude-shop" || after.AnsweredBy != bridge.OwnerName {
		t.Fatalf("approve gives %+v, %v", after, err)
	}
	if answer := <-h.answers; answer.Decision != job.Deny || answer.Reason != "not now" {
		t.Errorf("the hook was told %+v", answer)
	}
	if _, err := owner.Approve(t.Context(), api.ApproveArgs{Approval: h.id, Decision: job.Allow}); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second answer gives %v", err)
	}
	if _, err := owner.Approve(t.Context(), api.ApproveArgs{Approval: "nothing", Decision: job.Allow}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("an answer to nothing gives %v", err)
	}
	for _, on := range []bool{true, false} {
		now, err := owner.Away(t.Context(), api.AwayArgs{On: &on})
		if stored, _ := h.Home.Config(); err != nil || now.Away != on || stored.Away != on || now.AnswerPrompts != prompt.Always {
			t.Errorf("away %t gives %+v, %v", on, now, err)
		}
	}
}

// A hook that is gone before its answer was handed over leaves it unknown.
func TestNED_02_AnAnswerThatNobodyTookIsNotShownAsDone(t *testing.T) {
	h := holds(t)
	if _, err := h.Prompts.Answer(h.id, job.Allow, ""); err != nil {
		t.Fatal(err)
	}
	<-h.answers
	if err := h.hook.Close(); err != nil {
		t.Fatal(err)
	}
	h.until(h.id, func(approval job.Approval) bool {
		return approval.State == job.ApprovalWithdrawn && approval.Elsewhere == prompt.WasUnclear
	})
}

func TestNED_02_AHookThatIsKilledLeavesItToTheTerminal(t *testing.T) {
	h := holds(t)
	if err := h.hook.Close(); err != nil {
		t.Fatal(err)
	}
	h.until(h.id, func(approval job.Approval) bool {
		return approval.State == job.ApprovalWithdrawn && approval.Elsewhere == prompt.WasUnheld
	})
}

// An answer that cannot be written down is not given.
func TestNED_02_AnAnswerIsOnTheDiskBeforeItLeaves(t *testing.T) {
	h := holds(t)
	answers := filepath.Join(h.Home.Dir(), "approvals")
	if err := os.RemoveAll(answers); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(answers, nil, 0o600); err != nil { // no folder can be made there
		t.Fatal(err)
	}
	if _, err := h.Prompts.Answer(h.id, job.Allow, ""); bridge.CodeOf(err) != bridge.Storage {
		t.Fatalf("it answers %v", err)
	}
	h.until(h.id, func(approval job.Approval) bool {
		return approval.State == job.ApprovalAsked && approval.Decision == ""
	})
	if err := os.Remove(answers); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Prompts.Answer(h.id, job.Allow, ""); err != nil {
		t.Fatal(err)
	}
	if answer := <-h.answers; answer.Decision != job.Allow {
		t.Errorf("the hook was told %+v", answer)
	}
	if _, err := os.Stat(filepath.Join(answers, h.id+".json")); err != nil {
		t.Error(err)
	}
}

// Of one session at most 20 are open; the terminal decides the rest.
func TestNED_02_TwentyPromptsOfASessionAreKept(t *testing.T) {
	h := holds(t)
	for i := 2; i <= 20; i++ {
		h.ask(h.hook, fmt.Sprintf("prompt-%d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience) // it would wait for an answer
	defer cancel()
	answer, err := h.hook.Prompt(ctx, api.PromptArgs{
		ID: "prompt-21", Kind: "command", What: "Bash", Detail: "make", Call: session.HookCall{Kind: bridge.Claude, Event: session.EventAsk, SessionID: conversation},
	})
	if err != nil || answer.Decision != "" || len(h.Prompts.Approvals()) != 20 {
		t.Errorf("the 21st: %+v, %v; %d are shown", answer, err, len(h.Prompts.Approvals()))
	}
}
