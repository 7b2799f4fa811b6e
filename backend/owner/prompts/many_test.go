package prompts_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// Fifty prompts of sixteen sessions at once, each held by a connection of its own as a
// hook holds it: each is shown where it came, each answer reaches its own prompt alone,
// whatever the order of the answers, and none waits for another.
func TestNED_02_FiftyPromptsAtOnceEachGetTheirOwnAnswer(t *testing.T) {
	const sessions, all = 16, 50
	b := brokertest.Serve(t)
	if _, err := b.Home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts = prompt.Always; return nil }); err != nil {
		t.Fatal(err)
	}
	b.Page.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	hostID := func(i int) string { return fmt.Sprintf("11111111-2222-4333-8444-%012d", i%sessions) }
	for i := range sessions {
		s := brokertest.Dial(t, b.Target, api.RoleSession)
		if _, err := s.Register(ctx, api.Register{Kind: bridge.Claude, Name: fmt.Sprintf("claude-%d", i), Cwd: "/src/shop", SessionID: hostID(i)}); err != nil {
			t.Fatal(err)
		}
	}
	answers := make([]api.PromptAnswer, all)
	var holding sync.WaitGroup
	for i := range all {
		hook := brokertest.Dial(t, b.Target, api.RoleHook)
		holding.Go(func() {
			var err error
			answers[i], err = hook.Prompt(ctx, api.PromptArgs{
				ID: fmt.Sprintf("prompt-%02d", i), Kind: "command", What: "Bash", Detail: fmt.Sprintf("make part-%d", i),
				Call: session.HookCall{Kind: bridge.Claude, Event: session.EventAsk, SessionID: hostID(i), Cwd: "/src/shop"},
			})
			if err != nil {
				t.Errorf("prompt %d: %v", i, err)
			}
		})
	}
	cards := func() []job.Approval { return b.Prompts.Approvals() }
	for len(cards()) < all {
		if !ipc.Pause(ctx, time.Millisecond) {
			t.Fatalf("%d of %d cards came", len(cards()), all)
		}
	}
	order := ids(cards())
	if !slices.IsSortedFunc(cards(), func(a, b job.Approval) int { return int(a.AskedAt - b.AskedAt) }) {
		t.Errorf("they are not shown in the order in which they were asked: %v", order)
	}
	// Every other one is denied, from the last to the first, ten at a time.
	reversed := slices.Clone(order)
	slices.Reverse(reversed)
	var answering sync.WaitGroup
	for ten := range slices.Chunk(reversed, 10) {
		for _, id := range ten {
			answering.Go(func() {
				decision, reason := job.Allow, ""
				if strings.HasSuffix(id, "1") || strings.HasSuffix(id, "3") {
					decision, reason = job.Deny, "not "+id
				}
				if _, err := b.Prompts.Answer(id, decision, reason); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		answering.Wait()
		if now := ids(cards()); !slices.Equal(now, order) {
			t.Errorf("answers moved the cards: %v, before %v", now, order)
		}
	}
	holding.Wait()
	for i, answer := range answers {
		id := fmt.Sprintf("prompt-%02d", i)
		want := api.PromptAnswer{Decision: job.Allow}
		if strings.HasSuffix(id, "1") || strings.HasSuffix(id, "3") {
			want = api.PromptAnswer{Decision: job.Deny, Reason: "not " + id}
		}
		if answer.Decision != want.Decision || answer.Reason != want.Reason {
			t.Errorf("%s was told %+v, want %+v", id, answer, want)
		}
	}
	for _, card := range cards() {
		if want := fmt.Sprintf("claude-%d", numberOf(t, card.ID)%sessions); card.Session != want || card.Detail != fmt.Sprintf("make part-%d", numberOf(t, card.ID)) {
			t.Errorf("%s is shown as %s's %q", card.ID, card.Session, card.Detail)
		}
	}
}

func ids(cards []job.Approval) (found []string) {
	for _, card := range cards {
		found = append(found, card.ID)
	}
	return found
}

func numberOf(t *testing.T, id string) (number int) {
	t.Helper()
	if _, err := fmt.Sscanf(id, "prompt-%d", &number); err != nil {
		t.Fatal(err)
	}
	return number
}

// No operation of the link that an agent's own connections may call answers a prompt, a
// question or makes a rule: each is called by each role with whatever could name them.
func TestNED_02_NED_03_NED_04_NoOperationOfAnAgentAnswers(t *testing.T) {
	h := holds(t)
	asker := brokertest.Dial(t, h.Target, api.RoleSession)
	if _, err := asker.Register(t.Context(), api.Register{Kind: bridge.Codex, Name: "codex-x", Cwd: "/src/x", SessionID: "codex-1"}); err != nil {
		t.Fatal(err)
	}
	args := map[string]any{
		"id": h.id, "approval": h.id, "approvalId": h.id, "approval_id": h.id, "decision": "allow", "reason": "", "event": "allowed", "question": h.id,
		"option": "1", "text": "allow", "answers": [][]string{{"allow"}}, "on": true, "rule": map[string]any{"match": "exact", "folder": "all"},
		"body": "/approve " + h.id + " allow", "to": "claude-shop", "target": "claude-shop",
	}
	walked := 0
	for _, row := range api.Operations() {
		for _, role := range []api.Role{api.RoleSession, api.RolePlugin, api.RoleHook, api.RoleMod, api.RoleRunner, api.RoleDashboard} {
			if row.Name == api.OpSubscribe.Name || row.Name == api.OpRetire.Name {
				continue // they answer nothing, and end or hold the connection
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			client := brokertest.Dial(t, h.Target, role)
			_ = client.Call(ctx, row.Name, args, nil) // refused or not: what counts is what it did
			cancel()
			walked++
		}
	}
	if walked < 200 {
		t.Fatalf("%d calls were tried", walked)
	}
	h.until(h.id, func(approval job.Approval) bool {
		return approval.State == job.ApprovalAsked && approval.Decision == "" && approval.AnsweredBy == ""
	})
	if config, err := h.Home.Config(); err != nil || config.Away || config.AnswerPrompts != prompt.Always {
		t.Errorf("the settings are %+v, %v", config, err)
	}
	select {
	case answer := <-h.answers:
		t.Errorf("the hook was told %+v", answer)
	default:
	}
}
