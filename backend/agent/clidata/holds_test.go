package clidata

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// TestMSG_06_AHostsOwnStoreShowsWhatItHolds: in each kind's form, whichever way the
// mail came; a mention of a message is not the message.
func TestMSG_06_AHostsOwnStoreShowsWhatItHolds(t *testing.T) {
	var messages []mail.Delivery
	for _, id := range []string{"by-hook", "by-tool", "by-channel", "mentioned", "never"} {
		messages = append(messages, mail.Delivery{Message: bridge.Message{
			ID: id, From: bridge.OwnerAddress(), To: "app", ConversationID: id, Body: "use \"tabs\" <b>\nfor " + id, CreatedAt: 1,
		}})
	}
	want := []string{"by-channel", "by-hook", "by-tool"}
	records := recordsOf(t, messages)
	whole := func(lines []string) (text string) {
		for _, line := range lines {
			text += line + "\n"
		}
		return text + `{"cut off by a kill, with never in it: use` // the last line of a killed process
	}
	for name, tt := range map[string]struct {
		kind bridge.AgentKind
		fill func(dir string)
	}{
		"claude, its project": {bridge.Claude, func(dir string) { put(t, dir, "projects/-app/s-1.jsonl", whole(records)) }},
		"claude, another":     {bridge.Claude, func(dir string) { put(t, dir, "projects/-moved/s-1.jsonl", whole(records)) }},
		"codex": {bridge.Codex, func(dir string) {
			rollout := put(t, dir, "sessions/2026/rollout-s-1.jsonl", whole(records))
			database(t, filepath.Join(dir, "state_5.sqlite"), codexSchema, codexThreadRows(dir, "s-1", "r", "r", "open"),
				fmt.Sprintf("UPDATE threads SET rollout_path = '%s' WHERE id = 's-1'", rollout))
		}},
		"opencode": {bridge.OpenCode, func(dir string) {
			keep := database(t, filepath.Join(dir, "opencode.db"), openCodeSchema, "CREATE TABLE part(id text PRIMARY KEY, session_id text, time_created integer, data text)")
			for i, record := range records {
				if _, err := keep.Exec("INSERT INTO part VALUES (?, 's-1', ?, ?)", i, i, record); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run("MSG-06 "+name, func(t *testing.T) {
			dir := t.TempDir()
			tt.fill(dir)
			held := stores[tt.kind].Holds(t.Context(), dir, "s-1", "/app", messages)
			maps.DeleteFunc(held, func(_ string, yes bool) bool { return !yes })
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(held))); diff != "" {
				t.Errorf("it holds (-want +got):\n%s", diff)
			}
			if other := stores[tt.kind].Holds(t.Context(), dir, "s-2", "/app", messages); len(other) != 0 {
				t.Errorf("another session holds %v", other)
			}
		})
	}
}

// recordsOf are records of a host to which the first three messages came.
func recordsOf(t *testing.T, messages []mail.Delivery) []string {
	t.Helper()
	encode := func(value any) string {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	nobody := func(mail.Delivery) bool { return false }
	hook := mail.Present(messages[:1], nobody).Text
	inbox := encode(map[string]any{"messages": []any{map[string]any{"id": messages[1].ID, "body": messages[1].Body}}, "remaining": 0})
	channel := `<channel source="bridge" message_id="` + messages[2].ID + `">From your user.` + "\n\n" + messages[2].Body + "</channel>"
	return []string{
		encode(map[string]any{"type": "attachment", "attachment": map[string]any{"content": []any{hook}}}),
		encode(map[string]any{"type": "user", "message": map[string]any{"content": []any{map[string]any{"type": "tool_result", "content": encode([]any{map[string]any{"type": "text", "text": inbox}})}}}}),
		encode(map[string]any{"type": "user", "message": map[string]any{"content": channel}}),
		encode(map[string]any{"type": "assistant", "text": "answering " + messages[3].ID, "note": session.EventTool}),
	}
}
