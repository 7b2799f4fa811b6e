package mcpserver

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// TestMSG_12_SendStatusTellsASessionWhatBecameOfItsMail goes through the tool as
// a model does, from the send's answer to an expiry.
func TestMSG_12_SendStatusTellsASessionWhatBecameOfItsMail(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude, SessionID: "h1"})
	w.begin()
	client, err := ipc.Dial(t.Context(), w.target, ipc.Hello{Role: api.RoleSession, PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Register(t.Context(), api.Register{Kind: bridge.Codex, Name: "to", Cwd: "/home/u/shop"}); err != nil {
		t.Fatal(err)
	}
	w.call(3, "send", `{"to":"to","message":"what became of this?"}`)
	var sent api.SendResult
	if err := json.Unmarshal([]byte(w.text(3)), &sent); err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf(`{"message_id":%q}`, sent.ID)
	began := time.Now().Add(-testkit.Patience).UnixMilli()
	check := func(call int, stage, evidence string) {
		t.Helper()
		w.call(call, "send_status", ask)
		var got map[string]any
		if err := json.Unmarshal([]byte(w.text(call)), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"id": sent.ID, "recipients": []any{map[string]any{"name": "to", "stage": stage, "evidence": evidence}}}
		recipients, _ := got["recipients"].([]any)
		first, _ := recipients[0].(map[string]any)
		at, _ := first["at"].(float64)
		delete(first, "at")
		if diff := cmp.Diff(want, got); diff != "" || int64(at) < began {
			t.Errorf("at %v (-want +got):\n%s", at, diff)
		}
	}
	check(4, "durable", "committed to the store")
	if n, err := w.db.Expire(t.Context(), store.ExpireRule{TTLBefore: time.Now().Add(time.Hour).UnixMilli()}); len(n) != 1 || err != nil {
		t.Fatalf("%v, %v", n, err)
	}
	check(5, "expired", "older than the message lifetime")

	owners := w.send("from the owner")
	for call, id := range map[int]string{6: owners, 7: "m-0"} {
		w.call(call, "send_status", fmt.Sprintf(`{"message_id":%q}`, id))
		if got, want := w.text(call), fmt.Sprintf("this session has sent no message with the id %q", id); got != want {
			t.Errorf("what another sent, or nobody, is answered with %q, want %q", got, want)
		}
	}
}
