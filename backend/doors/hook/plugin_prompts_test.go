package hook

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/testing/brokertest"
	"bridge/backend/testing/testkit"
)

// openCodeAsking is a plugin whose session's owner answers prompts, with no page open:
// nothing of opencode waits for him.
func openCodeAsking(t *testing.T) (brokertest.Running, plugin) {
	t.Helper()
	b := brokertest.Serve(t)
	if _, err := b.Home.UpdateConfig(func(c *config.Config) error { c.AnswerPrompts = prompt.Always; return nil }); err != nil {
		t.Fatal(err)
	}
	p := startPlugin(t, b)
	p.say(`{"id":1,"event":"session.created","call":{"sessionId":"ses_1","cwd":"/src/shop"}}`)
	if got := p.reply(); got.ID != 1 || got.Error != "" {
		t.Fatalf("registering answered %+v", got)
	}
	return b, p
}

func asksFor(id, command string) string {
	return `{"prompt":{"id":"` + id + `","call":{"sessionId":"ses_1","cwd":"/src/shop"},"permission":"bash","patterns":["` + command + `"],"metadata":{"command":"` + command + `"}}}`
}

// answer returns the next answer of the owner's.
func (p plugin) answer() hooks.PluginAnswer {
	p.t.Helper()
	for p.lines.Scan() {
		var push hooks.PluginPush
		if err := json.Unmarshal(p.lines.Bytes(), &push); err != nil {
			p.t.Fatal(err)
		}
		if push.Answer != nil {
			return *push.Answer
		}
	}
	p.t.Fatalf("the plugin's child ended: %v", p.lines.Err())
	return hooks.PluginAnswer{}
}

// shown waits until the prompt of that command is so.
func shownCard(t *testing.T, b brokertest.Running, command, what string, matches func(job.Approval) bool) job.Approval {
	t.Helper()
	for ends := time.Now().Add(testkit.Patience); ; {
		for _, approval := range b.Prompts.Approvals() {
			if approval.Detail == command && matches(approval) {
				return approval
			}
		}
		if time.Now().After(ends) || !ipc.Pause(t.Context(), time.Millisecond) {
			t.Fatalf("no card of %q came that is %s: %+v", command, what, b.Prompts.Approvals())
		}
	}
}

func isAsked(approval job.Approval) bool { return approval.State == job.ApprovalAsked }

func TestNED_02_TheOwnersAnswerReachesOpenCodeAndItsWordProvesIt(t *testing.T) {
	for _, tt := range []struct {
		decision job.Decision
		reason   string
		want     hooks.PluginAnswer
		proof    string
	}{
		{job.Allow, "", hooks.PluginAnswer{ID: "per_1", Allow: true}, "allowed"},
		{job.Deny, "not now", hooks.PluginAnswer{ID: "per_1", Message: "not now"}, "refused"},
		{job.Deny, "", hooks.PluginAnswer{ID: "per_1", Message: "Your user refused this."}, "refused"},
	} {
		b, p := openCodeAsking(t)
		p.say(asksFor("per_1", "make"))
		card := shownCard(t, b, "make", "asked", isAsked)
		if card.Agent != string(bridge.OpenCode) || card.What != "bash" || card.Cwd != "/src/shop" || card.Caution != "" {
			t.Errorf("the card is %+v", card)
		}
		if _, err := b.Prompts.Answer(card.ID, tt.decision, tt.reason); err != nil {
			t.Fatal(err)
		}
		if got := p.answer(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("the plugin is told %+v, want %+v", got, tt.want)
		}
		if now := shownCard(t, b, "make", "there", func(job.Approval) bool { return true }); now.State != job.ApprovalAnswered {
			t.Errorf("before opencode has it, it is %s", now.State)
		}
		p.say(`{"settled":{"id":"per_1","event":"delivered"}}`)
		shownCard(t, b, "make", "delivered", func(approval job.Approval) bool { return approval.State == job.ApprovalDelivered })
		p.say(`{"settled":{"id":"per_1","event":"` + tt.proof + `"}}`)
		shownCard(t, b, "make", "applied", func(approval job.Approval) bool { return approval.State == job.ApprovalApplied })
	}
}

func TestNED_02_WhatOpenCodesTerminalAnsweredEndsTheCard(t *testing.T) {
	b, p := openCodeAsking(t)
	for event, how := range map[string]job.Elsewhere{"allowed": prompt.WasAllowed, "refused": prompt.WasRefused, "gone": prompt.WasGone} {
		p.say(asksFor("per_"+event, event))
		card := shownCard(t, b, event, "asked", isAsked)
		p.say(`{"settled":{"id":"per_` + event + `","event":"` + event + `"}}`)
		shownCard(t, b, event, "over", func(approval job.Approval) bool {
			return approval.State == job.ApprovalWithdrawn && approval.Elsewhere == how
		})
		if _, err := b.Prompts.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("%s: a late answer gives %v", event, err)
		}
	}
	p.say(asksFor("per_idle", "idle"))
	shownCard(t, b, "idle", "asked", isAsked)
	p.say(`{"id":9,"event":"session.idle","call":{"sessionId":"ses_1"}}`)
	shownCard(t, b, "idle", "over", func(approval job.Approval) bool { return approval.State == job.ApprovalWithdrawn })
}

// A refusal refuses all that an opencode session asks: each card says so while there
// are others.
func TestNED_02_ACardSaysWhatARefusalTakesWithIt(t *testing.T) {
	b, p := openCodeAsking(t)
	p.say(asksFor("per_1", "one"))
	shownCard(t, b, "one", "alone", func(approval job.Approval) bool { return approval.Caution == "" })
	p.say(asksFor("per_2", "two"), asksFor("per_3", "three"))
	shownCard(t, b, "three", "asked", isAsked)
	shownCard(t, b, "two", "asked", isAsked)
	shownCard(t, b, "one", "one of three", func(approval job.Approval) bool { return strings.Contains(approval.Caution, "2 other prompts") })
	for _, id := range []string{"per_2", "per_3"} {
		p.say(`{"settled":{"id":"` + id + `","event":"allowed"}}`)
	}
	shownCard(t, b, "one", "alone again", func(approval job.Approval) bool { return approval.Caution == "" })
}

// A prompt that is over without its owner is no refusal of his: opencode is told of the
// next one's answer and of no other.
func TestNED_02_SilenceIsNoAnswerToOpenCode(t *testing.T) {
	b, p := openCodeAsking(t)
	p.say(asksFor("per_1", "make"))
	shownCard(t, b, "make", "asked", isAsked)
	p.say(`{"id":9,"event":"session.idle","call":{"sessionId":"ses_1"}}`)
	shownCard(t, b, "make", "over", func(approval job.Approval) bool { return approval.State == job.ApprovalWithdrawn })
	p.say(asksFor("per_2", "make all"))
	card := shownCard(t, b, "make all", "asked", isAsked)
	if _, err := b.Prompts.Answer(card.ID, job.Allow, ""); err != nil {
		t.Fatal(err)
	}
	if got := p.answer(); !reflect.DeepEqual(got, hooks.PluginAnswer{ID: "per_2", Allow: true}) {
		t.Errorf("the plugin is told %+v", got)
	}
}

func TestNED_02_TheOwnersChoiceReachesOpenCode(t *testing.T) {
	b, p := openCodeAsking(t)
	asks := func(id string) {
		p.say(`{"prompt":{"id":"` + id + `","call":{"sessionId":"ses_1","cwd":"/src/shop"},"questions":[{"question":"` + id + `?","header":"","options":[{"label":"A","description":""},{"label":"B","description":"b"}],"multiple":true,"custom":false}]}}`)
	}
	asks("que_1")
	detail := "que_1? (several)\n  - A\n  - B: b"
	card := shownCard(t, b, detail, "asked", isAsked)
	if card.OnlyTold != "" || len(card.Choices) != 1 || !card.Choices[0].Several || card.Choices[0].Words {
		t.Fatalf("the card is %+v", card)
	}
	if _, err := b.Prompts.Choose(card.ID, [][]string{{"B", "A"}}); err != nil {
		t.Fatal(err)
	}
	if got := p.answer(); !reflect.DeepEqual(got, hooks.PluginAnswer{ID: "que_1", Allow: true, Answers: [][]string{{"B", "A"}}}) {
		t.Errorf("the plugin is told %+v", got)
	}
	p.say(`{"settled":{"id":"que_1","event":"delivered"}}`, `{"settled":{"id":"que_1","event":"allowed"}}`)
	shownCard(t, b, detail, "applied", func(approval job.Approval) bool { return approval.State == job.ApprovalApplied })
	// A refusal of a question takes no other prompt with it, and no reason.
	asks("que_2")
	p.say(asksFor("per_1", "make"))
	shownCard(t, b, "make", "alone", func(approval job.Approval) bool { return approval.Caution == "" })
	shownCard(t, b, "que_2? (several)\n  - A\n  - B: b", "said to take no reason", func(approval job.Approval) bool { return strings.Contains(approval.Caution, "no reason") })
}

// The end of the turn, which a refusal brings, may be heard before the plugin's word.
func TestNED_02_TheEndOfATurnSaysNothingOfAnAnswerOnItsWay(t *testing.T) {
	b, p := openCodeAsking(t)
	p.say(asksFor("per_1", "make"))
	card := shownCard(t, b, "make", "asked", isAsked)
	if _, err := b.Prompts.Answer(card.ID, job.Deny, "no"); err != nil {
		t.Fatal(err)
	}
	p.answer()
	p.say(`{"id":9,"event":"session.idle","call":{"sessionId":"ses_1"}}`)
	if got := p.reply(); got.ID != 9 {
		t.Fatalf("idle answered %+v", got)
	}
	shownCard(t, b, "make", "still on its way", func(approval job.Approval) bool { return approval.State == job.ApprovalAnswered })
	p.say(`{"settled":{"id":"per_1","event":"delivered"}}`, `{"settled":{"id":"per_1","event":"refused"}}`)
	shownCard(t, b, "make", "applied", func(approval job.Approval) bool { return approval.State == job.ApprovalApplied })
}
