package mcpserver

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// costs waits until the broker counts that much for the session.
func (w *wire) costs(want session.Cost) {
	w.t.Helper()
	var got session.Cost
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		costs, err := w.owner.Costs(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if len(costs.Sessions) == 1 {
			if got = costs.Sessions[0].Total; got == want {
				return
			}
		}
	}
	w.t.Errorf("the broker counts %+v, want %+v", got, want)
}

func TestCTX_03_TheServerCountsWhatItsHostWasGiven(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude, SessionID: "h1"})
	words, _ := w.begin()["instructions"].(string)
	bytes := session.Cost{Notes: int64(len(words))}
	w.costs(bytes.Tokens())

	w.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	result, _ := w.answer(3)["result"].(map[string]any)
	tools, err := json.Marshal(result["tools"])
	if err != nil {
		t.Fatal(err)
	}
	w.costs(bytes.Plus(session.Cost{Tools: int64(len(tools))}).Tokens())
	bytes.Tools = int64(len(tools))

	w.send("the port is 4777")
	w.call(4, "inbox", `{}`)
	bytes.Mail = int64(len(w.text(4)))
	w.costs(bytes.Tokens())
	w.call(5, "inbox", `{}`) // nothing waits: no mail
	w.text(5)
	w.call(6, "peers", `{}`)
	w.text(6)
	w.costs(bytes.Tokens())
}

func TestCTX_03_TheChannelCounts(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude, SessionID: "h1", Channel: true})
	words, _ := w.begin()["instructions"].(string)
	w.send("the port is 4777")
	pushed := w.next("push", func(line map[string]any) bool { return line["method"] == channelMethod })
	text, err := json.Marshal(pushed)
	if err != nil {
		t.Fatal(err)
	}
	w.costs(session.Cost{Notes: int64(len(words)), Mail: int64(len(text))}.Tokens())
}

func TestCTX_03_AServerWithoutABrokerEndsInTime(t *testing.T) {
	s := newSpent()
	s.add("", session.Cost{Tools: 8})
	s.add("", session.Cost{})
	s.add("h1", session.Cost{Mail: 4})
	if report, some := s.report(); !some || report.Reporter != s.id || len(report.Costs) != 2 {
		t.Errorf("the report is %+v", report)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() { defer close(done); s.run(ctx, &ipc.Reconnector{}) }()
	select {
	case <-done:
	case <-time.After(testkit.Patience):
		t.Error("it waits for a broker")
	}
}

func TestCTX_03_NoticesInAnAnswerAreNoMail(t *testing.T) {
	reply := "m-0"
	notice := api.InboxMessage{ID: "n", ConversationID: bridge.DecisionConversation + "x", Hop: bridge.DecisionHop, Body: "Decision"}
	answer := api.InboxMessage{ID: "n", ConversationID: notice.ConversationID, Hop: notice.Hop, ReplyTo: &reply}
	size := func(value any) int64 {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return int64(len(text))
	}
	for _, tt := range []struct {
		name  string
		value any
		want  session.Cost
	}{
		{"no mail", api.PeersResult{}, session.Cost{}},
		{"an empty inbox", api.Inbox{Messages: []api.InboxMessage{}}, session.Cost{}},
		{"a notice that was waited for", &notice, session.Cost{Notices: size(notice)}},
		{"an answer to a notice", &answer, session.Cost{Mail: size(answer)}},
		{"both", api.Inbox{Messages: []api.InboxMessage{notice, answer}}, session.Cost{
			Notices: size(notice), Mail: size(api.Inbox{Messages: []api.InboxMessage{notice, answer}}) - size(notice),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := json.Marshal(tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if got := mailIn(tt.value, text); got != tt.want {
				t.Errorf("counted %+v, want %+v", got, tt.want)
			}
		})
	}
}
