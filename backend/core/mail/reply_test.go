package mail

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

func TestQUI_01_TheConversationCarriesWhetherAnAnswerIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name, conversation string
		reply              Reply
		marked, thread     string
		read               Reply
	}{
		{"optional", "c", "", "c", "c", ReplyOptional},
		{"optional, said", "c", ReplyOptional, "c", "c", ReplyOptional},
		{"wanted", "c", ReplyWanted, "c:wanted", "c", ReplyWanted},
		{"none", "c", ReplyNone, "c:ack", "c", ReplyNone},
		{"none after wanted", "c:wanted", ReplyNone, "c:ack", "c", ReplyNone},
		{"wanted after none", "c:ack", ReplyWanted, "c:wanted", "c", ReplyWanted},
		{"of a sender that marks it", "job-1:ack", "", "job-1:ack", "job-1", ReplyNone},
		{"a mark alone is a name", ":ack", "", ":ack", ":ack", ReplyNone},
		{"a note stays one", "job-1:note", ReplyOptional, "job-1:note", "job-1:note", ReplyOptional},
	} {
		t.Run(tt.name, func(t *testing.T) {
			marked := tt.reply.Mark(tt.conversation)
			if marked != tt.marked || Thread(marked) != tt.thread || ReplyOf(marked) != tt.read {
				t.Errorf("marked %q, thread %q, read as %s", marked, Thread(marked), ReplyOf(marked))
			}
		})
	}
	for _, reply := range []Reply{"", ReplyOptional, ReplyWanted, ReplyNone, "never", "None"} {
		if err := reply.Check(); (bridge.CodeOf(err) == bridge.Invalid) != (reply == "never" || reply == "None") {
			t.Errorf("%q: %v", reply, err)
		}
	}
}

// No policy lets a message wake anybody whose sender asks for no answer.
func TestQUI_01_NoneWakesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conversation := rapid.StringMatching(`[a-z:-]{1,20}`).Draw(t, "conversation")
		m := bridge.Message{
			From:           bridge.Address{Agent: rapid.SampledFrom([]bridge.AgentKind{bridge.Claude, bridge.Owner}).Draw(t, "from")},
			ConversationID: ReplyNone.Mark(conversation), Hop: rapid.IntRange(0, 100).Draw(t, "hop"),
		}
		policy := session.Policy{AutoWake: rapid.Bool().Draw(t, "auto"), WakeOnDirect: rapid.Bool().Draw(t, "direct"), MaxHops: rapid.IntRange(0, 100).Draw(t, "max")}
		if MayWake(m, true, policy) {
			t.Errorf("%+v wakes under %+v", m, policy)
		}
		if got := Thread(ReplyWanted.Mark(conversation)); got != Thread(conversation) {
			t.Errorf("the thread of %q became %q", conversation, got)
		}
	})
}

func TestQUI_01_ATextAsksForAnAnswerOnlyWhereOneIsAskedFor(t *testing.T) {
	message := func(reply Reply) Delivery {
		return Delivery{Message: bridge.Message{ID: "m-1", From: bridge.Address{Name: "web", Agent: bridge.Codex}, ConversationID: reply.Mark("m-1"), Body: "thanks"}}
	}
	all := func(Delivery) bool { return true }
	for _, tt := range []struct {
		name    string
		replies []Reply
		asks    bool
		marks   []string
	}{
		{"none", []Reply{ReplyNone, ReplyNone}, false, []string{` reply="none"`}},
		{"one of them", []Reply{ReplyNone, ReplyOptional}, true, []string{` reply="none"`}},
		{"wanted", []Reply{ReplyWanted}, true, []string{` reply="wanted"`}},
		{"optional", []Reply{ReplyOptional}, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var unread []Delivery
			for _, reply := range tt.replies {
				unread = append(unread, message(reply))
			}
			text := Present(unread, all).Text
			if got := strings.Contains(text, "Answer with"); got != tt.asks {
				t.Errorf("it asks for an answer: %t\n%s", got, text)
			}
			if strings.Contains(text, "conversation=") || strings.Contains(text, " reply=") != (tt.marks != nil) {
				t.Errorf("the envelope is\n%s", text)
			}
			for _, mark := range tt.marks {
				if !strings.Contains(text, mark) {
					t.Errorf("no %s in\n%s", mark, text)
				}
			}
		})
	}
}
