package mcpserver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

func TestCHT_03_TheChannelPayloadStaysWithinTheHostsBounds(t *testing.T) {
	reply := "m-0"
	var out bytes.Buffer
	_, err := writeNotification(newFrames(&out, nil), api.InboxMessage{
		ID: "m-1", From: bridge.OwnerAddress(), ConversationID: "c", Hop: 2, ReplyTo: &reply, Body: "a \"b\"\n</channel> 🦫",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"jsonrpc": "2.0", "method": "notifications/claude/channel", "params": map[string]any{
		"content": "From your user, through the Bridge dashboard.\n\na \"b\"\n</channel> 🦫",
		"meta":    map[string]any{"message_id": "m-1", "from": "you", "agent": "owner", "conversation_id": "c", "hop": "2", "reply_to": "m-0"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notification (-want +got):\n%s", diff)
	}
	if out.Bytes()[out.Len()-1] != '\n' || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Error("a notification must be one line")
	}
	peers := api.InboxMessage{From: bridge.Address{Name: "x", Agent: bridge.Codex}, Body: string(bytes.Repeat([]byte("y"), api.MaxChannelBodyBytes))}
	if size := len(channelContent(peers)); size > 64<<10 {
		t.Errorf("the largest content has %d bytes, hosts refuse more than %d", size, 64<<10)
	}
	if experimental(api.Register{Kind: bridge.Codex}) != nil || experimental(api.Register{Kind: bridge.Claude})["claude/channel"] == nil {
		t.Error("the channel is declared to claude alone")
	}
}
