package broker

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestPGE_09_TheOwnerAnswersOneMessage(t *testing.T) {
	tests := []struct {
		name      string
		recipient bridge.AgentKind
	}{{"by mail", bridge.Claude}, {"by the agent's own queue", bridge.Codex}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.codex("exit 0")
			web := b.join(api.Register{Name: "web", Kind: tt.recipient, SessionID: "thread-1"})
			b.hook(session.HookCall{Kind: tt.recipient, Event: session.EventStart, SessionID: "thread-1"}, true)
			b.chat(chat.Request{Session: web.ID, Body: "what is the port?", MessageID: "m-1"})
			b.chat(chat.Request{Session: web.ID, Body: "4777", MessageID: "m-2", ReplyTo: "m-1"})
			row, err := b.db.Find(t.Context(), "m-2")
			if err != nil {
				t.Fatal(err)
			}
			if row.ReplyTo != "m-1" || row.ConversationID != "m-1" || row.Hop != 0 {
				t.Errorf("stored as reply to %q in %q at hop %d, want m-1 in m-1 at hop 0", row.ReplyTo, row.ConversationID, row.Hop)
			}
			request := chat.Request{Session: web.ID, Body: "x", ReplyTo: "m-nowhere"}
			if _, err := b.broker.Chat(t.Context(), request); bridge.CodeOf(err) != bridge.NotFound {
				t.Errorf("an answer to no message: %v, want NotFound", err)
			}
		})
	}
}
