package broker

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestQUI_01_AMessageThatAsksForNothingWaitsForTheNextTurn(t *testing.T) {
	b := newBench(t)
	web := b.join(api.Register{Name: "web", SessionID: "h1"})
	peer := b.join(api.Register{Name: "api", Kind: bridge.Codex, SessionID: "h2"})
	stop := session.HookCall{Event: session.EventStop, SessionID: "h1"}
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "h1"}, true)

	result := web.mustSend(api.SendArgs{To: "api", Body: "which port?", MessageID: "q-1", Reply: mail.ReplyWanted})
	if result.ConversationID != "q-1" {
		t.Errorf("the sender is told the conversation %q", result.ConversationID)
	}
	box, err := peer.Inbox(t.Context(), api.InboxArgs{MarkRead: true})
	if err != nil || len(box.Messages) != 1 || box.Messages[0].Reply != mail.ReplyWanted || box.Messages[0].ConversationID != "q-1" {
		t.Fatalf("api reads %+v, %v", box, err)
	}
	peer.ack(*box.Lease, bridge.StageConsumed)

	thanks := peer.mustSend(api.SendArgs{To: "web", Body: "thanks", ReplyTo: "q-1", MessageID: "t-1", Reply: mail.ReplyNone})
	if thanks.ConversationID != "q-1" || thanks.Recipients[0].Wake {
		t.Errorf("sent %+v", thanks)
	}
	peer.finds(api.SearchArgs{Query: "thanks"}) // until it is indexed
	found, err := peer.SearchHistory(t.Context(), api.SearchArgs{Query: "thanks"})
	if err != nil || len(found.Results) != 1 || found.Results[0].ConversationID != "q-1" {
		t.Errorf("the search finds %+v, %v", found, err)
	}
	if reply := b.hook(stop, true); reply.Text != "" {
		t.Errorf("the end of the turn shows %q", reply.Text)
	}
	if got := b.stage("t-1"); got != bridge.StageDurable {
		t.Errorf("the thanks are %s", got)
	}
	if reply := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "h1"}, true); reply.Text == "" {
		t.Error("the next prompt shows nothing")
	}

	answer := web.mustSend(api.SendArgs{To: "api", Body: "one more question", ReplyTo: "t-1", MessageID: "q-2"})
	row, err := b.db.Find(t.Context(), "q-2")
	if err != nil || answer.ConversationID != "q-1" || mail.Quiet(row.ConversationID) {
		t.Errorf("the answer to thanks is in %q, %+v, %v", row.ConversationID, answer, err)
	}
	waited, err := peer.Wait(t.Context(), api.WaitArgs{TimeoutMillis: 1000, ConversationID: "q-1"})
	if err != nil || waited.Message == nil || waited.Message.ID != "q-2" {
		t.Errorf("a wait for the thread gets %+v, %v", waited, err)
	}
	_, err = peer.Send(t.Context(), api.SendArgs{To: "web", Body: "x", Reply: "never"})
	wantCode(t, "an unknown reply", err, bridge.Invalid)
}

// The owner's answer to an acknowledgement is the owner's word: it wakes.
func TestQUI_01_AnAnswerToAnAcknowledgementIsAnOrdinaryMessage(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			b.codex("exit 0")
			web := b.join(api.Register{Name: "web", Kind: kind, SessionID: "thread-1"})
			b.hook(session.HookCall{Kind: kind, Event: session.EventStart, SessionID: "thread-1"}, true)
			b.chat(chat.Request{Session: web.ID, Body: "use 4777", MessageID: "m-1"})
			b.join(api.Register{Name: "api", SessionID: "h2"}).mustSend(api.SendArgs{To: "web", Body: "thanks", ReplyTo: "m-1", MessageID: "t-1", Reply: mail.ReplyNone})
			b.chat(chat.Request{Session: web.ID, Body: "and 4778", MessageID: "m-2", ReplyTo: "t-1"})
			row, err := b.db.Find(t.Context(), "m-2")
			if err != nil || row.ConversationID != "m-1" {
				t.Errorf("it is in the conversation %q, %v", row.ConversationID, err)
			}
		})
	}
}
