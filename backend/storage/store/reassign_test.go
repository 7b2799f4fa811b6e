package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
)

// TestVER_01_MSG_12_MailThatWaitsUnderANameIsItsHostSessions: what programs of
// the field recorded decides who gets the mail that they addressed by name.
func TestVER_01_MSG_12_MailThatWaitsUnderANameIsItsHostSessions(t *testing.T) {
	const (
		first  = `'["claude",17,"x","/w","app"]'`
		second = `'["claude",18,"y","/w","app"]'`
		ours   = `'0b6d3c1e-aaaa-4bbb-8ccc-0123456789ab'`
	)
	mail := []bridge.Message{} // to the name app, at 1000 to 5000
	for n := range 5 {
		mail = append(mail, note(fmt.Sprintf("m%d", n+1), "alice", "x", int64(1000*(n+1)), "app")...)
	}
	all := []string{"m1", "m2", "m3", "m4", "m5"}
	for name, tt := range map[string]struct {
		records []string
		want    []string
	}{
		"nobody is recorded":                    {nil, nil},
		"the same host session":                 {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'claude', 9000)"}, all},
		"bound to the identity":                 {[]string{"peer_names VALUES (" + first + ", 'app', NULL, 'claude', 1)", "session_bindings VALUES (" + first + ", 's1', 9000)"}, all},
		"from before names were recorded":       {[]string{"session_bindings VALUES (" + first + ", 's1', 9000)"}, all},
		"in two processes":                      {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'claude', 1)", "peer_names VALUES (" + second + ", 'app', 's1', 'claude', 9000)"}, all},
		"another name":                          {[]string{"peer_names VALUES (" + first + ", 'app-2', 's1', 'claude', 1)"}, nil},
		"another host session":                  {[]string{"peer_names VALUES (" + first + ", 'app', 's2', 'claude', 1)"}, nil},
		"another agent":                         {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'codex', 1)"}, nil},
		"no host session recorded":              {[]string{"peer_names VALUES (" + first + ", 'app', NULL, 'claude', 1)"}, nil},
		"taken over from another":               {[]string{"peer_names VALUES (" + first + ", 'app', 's2', 'claude', 500)", "peer_names VALUES (" + second + ", 'app', 's1', 'claude', 3000)"}, []string{"m3", "m4", "m5"}},
		"taken over by another":                 {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'claude', 500)", "peer_names VALUES (" + second + ", 'app', 's2', 'claude', 3000)"}, nil},
		"taken over by who is not recorded":     {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'claude', 500)", "peer_names VALUES (" + second + ", 'app', NULL, 'claude', 3000)"}, nil},
		"one process, another session since":    {[]string{"peer_names VALUES (" + first + ", 'app', NULL, 'claude', 1)", "session_bindings VALUES (" + first + ", 's1', 100)", "session_bindings VALUES (" + first + ", 's2', 3000)"}, nil},
		"the name went on to a session of ours": {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'claude', 500)", "peer_names VALUES (" + ours + ", 'app', 's2', 'claude', 9000)"}, all},
		"only a session of ours":                {[]string{"peer_names VALUES (" + ours + ", 'app', 's1', 'claude', 500)"}, nil},
		"the name is a peer id":                 {[]string{"peer_names VALUES (" + first + ", 'app', 's1', 'claude', 500)", "peer_names VALUES ('app', 'other', NULL, 'claude', 1)"}, nil},
	} {
		t.Run("VER-01 MSG-12 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			for _, message := range mail {
				appendAll(t, db, []bridge.Message{message})
			}
			for _, record := range tt.records {
				inStore(t, path, "INSERT INTO "+record)
			}
			for range 2 { // again changes nothing
				if err := db.ClaimByName(t.Context(), Peer{ID: "p1", Name: "app-3", Agent: bridge.Claude, SessionID: "s1"}); err != nil {
					t.Fatal(err)
				}
			}
			unread, err := db.Unread(t.Context(), "p1", 10, nil)
			var got []string
			for _, delivery := range unread {
				got = append(got, delivery.ID)
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("the session has %v, %v; want %v", got, err, tt.want)
			}
			if left, err := db.UnreadCount(t.Context(), "app"); err != nil || left != len(all)-len(tt.want) {
				t.Errorf("%d are left under the name, %v; want %d", left, err, len(all)-len(tt.want))
			}
		})
	}
}

func TestVER_04_MailUnderANameStaysWhileOlderProgramsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 6)
	inStore(t, path, `INSERT INTO peer_names VALUES ('["claude",17,"x","/w","bob"]', 'bob', 's1', 'claude', 1)`)
	opts := testOptions()
	opts.OldestReader = 6
	db, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	peer := Peer{ID: "p1", Name: "bob", Agent: bridge.Claude, SessionID: "s1"}
	if err := db.ClaimByName(t.Context(), peer); err != nil {
		t.Fatal(err)
	}
	if n, err := db.UnreadCount(t.Context(), "p1"); err != nil || n != 0 {
		t.Errorf("beside an older program: %d, %v", n, err)
	}
	mustClose(t, db)
	db = openAt(t, path)
	if err := db.ClaimByName(t.Context(), peer); err != nil {
		t.Fatal(err)
	}
	if n, err := db.UnreadCount(t.Context(), "p1"); err != nil || n != 1 {
		t.Errorf("after the upgrade: %d, %v", n, err)
	}
}
