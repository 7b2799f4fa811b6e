package dashboard

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// damaged is a world whose store has a damaged page: with a broker's status and one message.
func damaged(t *testing.T, name string, page testkit.Page) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.db")
	options := store.Options{Now: func() time.Time { return fixedTime }, Log: slog.New(slog.DiscardHandler)}
	db, err := store.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	message := bridge.Message{
		ID: "m1", Recipient: "p2", From: bridge.Address{ID: "p1", Name: "web", Agent: bridge.Claude}, To: "api", ConversationID: "c1", Hop: 1,
		Body: "hello", CreatedAt: fixedTime.UnixMilli(),
	}
	if _, _, err := db.Append(t.Context(), []bridge.Message{message}); err != nil {
		t.Fatal(err)
	}
	if err := db.SavePeer(t.Context(), store.Peer{ID: "p2", Name: "api", Agent: bridge.Codex, SeenAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.DamagePage(t, path, name, page)
	reader, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	w := newWorld(t, func(o *Options) { o.Reader = func(context.Context) (Reader, error) { return reader, nil } })
	w.broker.join(t, session.Session{ID: "p1", Name: "web", Kind: bridge.Claude})
	return w
}

// TestSTO_18_ADamagedPageLeavesTheState: the page gets all that can be read, and the rest is
// unknown, never 0.
func TestSTO_18_ADamagedPageLeavesTheState(t *testing.T) {
	for _, tt := range []struct {
		name     string
		messages int
		hour     bridge.Count
		names    string // the name of the recipient
	}{
		{"messages", 0, bridge.UnknownCount, ""},
		{"delivery_stages", 0, 1, ""},
		{"peer_names", 1, 1, "p2"},
		{"decisions", 1, 1, "api"},
	} {
		t.Run("STO-18 "+tt.name, func(t *testing.T) {
			w := damaged(t, tt.name, testkit.RootPage)
			state := decode[dto.State](t, w.get("/api/state"))
			if len(state.Messages) != tt.messages || state.LastHour.Messages != tt.hour || len(state.Peers) != 1 {
				t.Errorf("%d messages, %s in the last hour, %d sessions", len(state.Messages), state.LastHour.Messages, len(state.Peers))
			}
			if tt.messages > 0 && state.Messages[0].Recipients != tt.names {
				t.Errorf("the recipient is %q", state.Messages[0].Recipients)
			}
			if tt.name == "decisions" { // the state reads none
				if len(state.Unreadable) > 0 || len(state.Needs) > 0 {
					t.Errorf("unreadable: %q, needs: %+v", state.Unreadable, state.Needs)
				}
				return
			}
			if len(state.Unreadable) == 0 || state.Storage.OK == nil || *state.Storage.OK || state.Storage.Errors != 1 {
				t.Errorf("unreadable: %q, the storage: %+v", state.Unreadable, state.Storage)
			}
			if len(state.Needs) != 1 || strings.Count(state.Needs[0].Detail, "\n") != 2 || !strings.Contains(state.Needs[0].Detail, "--restore") {
				t.Errorf("the needs: %+v", state.Needs)
			}
			w.clock.Advance(time.Minute)
			if again := decode[dto.State](t, w.get("/api/state")); len(again.Needs) != 1 || again.Needs[0].Since != state.Needs[0].Since {
				t.Errorf("a minute later: %+v", again.Needs)
			}
		})
	}
}

// TestSTO_18_UnreadMailOfTheBrokerIsUnknown: the page gets what the broker cannot count.
func TestSTO_18_UnreadMailOfTheBrokerIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.broker.join(t, session.Session{ID: "p1", Name: "web", Kind: bridge.Claude})
	w.broker.status.Unreadable = []string{"Unread mail cannot be counted: the store is damaged"}
	state := decode[dto.State](t, w.get("/api/state"))
	if len(state.Unreadable) != 1 || len(state.Needs) != 1 || !strings.HasPrefix(state.Needs[0].Detail, "Unread mail cannot be counted") {
		t.Errorf("unreadable: %q, needs: %+v", state.Unreadable, state.Needs)
	}
}
