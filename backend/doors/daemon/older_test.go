package daemon

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/transfer"
)

// olderHome makes a home with a store of version 2 and a live program of the
// field that knows no newer one; leave ends that program.
func olderHome(t *testing.T) (home config.Home, leave func()) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no program to stand for the older one")
	}
	program := exec.Command(sleep, "600")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	leave = func() {
		_ = program.Process.Kill() // it may have ended
		_ = program.Wait()
	}
	t.Cleanup(leave)
	home = newHome(t)
	if err := os.MkdirAll(home.StorageCapabilities(), 0o700); err != nil {
		t.Fatal(err)
	}
	record := fmt.Sprintf(`{"schemaVersion":1,"json":4,"sqlite":7,"pid":%d,"name":"old-tool","version":"0.29.13"}`, program.Process.Pid)
	if err := os.WriteFile(filepath.Join(home.StorageCapabilities(), fmt.Sprintf("%d.json", program.Process.Pid)), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", home.DB())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(`PRAGMA journal_mode = WAL;
		CREATE TABLE messages (id TEXT NOT NULL, recipient TEXT NOT NULL, from_id TEXT NOT NULL, from_name TEXT NOT NULL, from_agent TEXT NOT NULL,
			to_target TEXT NOT NULL, conversation_id TEXT NOT NULL, reply_to TEXT, hop INTEGER NOT NULL, body TEXT NOT NULL,
			created_at INTEGER NOT NULL, read_at INTEGER, PRIMARY KEY (id, recipient));
		CREATE TABLE archived_messages AS SELECT *, '' AS archive_reason, 0 AS archived_at FROM messages;
		PRAGMA user_version = 2`)
	if err != nil {
		t.Fatal(err)
	}
	return home, leave
}

// schemaOf reads a store's schema version from its file, which nobody has open.
func schemaOf(t *testing.T, home config.Home) int {
	t.Helper()
	seen, err := transfer.Inspect(t.Context(), home.DB(), false)
	if err != nil || len(seen.Problems) > 0 {
		t.Fatalf("%+v, %v", seen, err)
	}
	return seen.Version
}

func TestVER_04_ABrokerHostsAnOlderStoreUntilOneStartsWithoutOlderPrograms(t *testing.T) {
	home, leave := olderHome(t)
	d := start(t, options(home, "serve"))
	if got := d.db.Version(); got != 2 {
		t.Fatalf("the schema in force is %d", got)
	}
	alpha, beta := join(t, home, "alpha"), join(t, home, "beta")
	sent, err := alpha.Send(t.Context(), api.SendArgs{To: "beta", Body: "while an older program reads"})
	if err != nil || len(sent.Recipients) != 1 {
		t.Fatalf("Send = %+v, %v", sent, err)
	}
	got, err := beta.Inbox(t.Context(), api.InboxArgs{MarkRead: true, Limit: 10})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("Inbox = %+v, %v", got, err)
	}
	if err := beta.Ack(t.Context(), api.Ack{Lease: *got.Lease, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: "inbox"}); err != nil {
		t.Fatal(err)
	}
	if _, err := alpha.Decide(t.Context(), api.DecideArgs{Topic: "topic", Text: "so"}); err != nil {
		t.Fatal(err)
	}
	if got, err := beta.Inbox(t.Context(), api.InboxArgs{Limit: 10}); err != nil || len(got.Messages) != 1 {
		t.Errorf("the notice of the decision: %+v, %v", got, err)
	}
	leave() // which a running broker takes no notice of
	if _, err := d.broker.Expire(t.Context()); err != nil || d.db.Version() != 2 {
		t.Errorf("after the older program left: %d, %v", d.db.Version(), err)
	}
	report, err := d.maintenance().Doctor().Check(t.Context())
	if err != nil || !report.OK {
		t.Errorf("the doctor: %+v, %v", report.Findings, err)
	}
	alpha.Close()
	beta.Close()
	end(t, d)
	if got := schemaOf(t, home); got != 2 {
		t.Errorf("the file has version %d", got)
	}

	d = start(t, options(home, "serve"))
	defer end(t, d)
	if got := d.db.Version(); got != schema.Version {
		t.Errorf("the next broker has schema %d", got)
	}
	found, err := d.db.Decisions(t.Context(), decision.Lookup{})
	if err != nil || len(found) != 1 || found[0].Text != "so" {
		t.Errorf("decisions: %+v, %v", found, err)
	}
	row, err := d.db.Find(t.Context(), sent.ID)
	if err != nil || len(row.Deliveries) != 1 || !row.Deliveries[0].Consumed.Happened() || row.Deliveries[0].Consumed.Evidence == "" {
		t.Errorf("the message: %+v, %v", row, err)
	}
}

func TestVER_05_SharedJSONStaysUntilOneStartsWithoutOlderPrograms(t *testing.T) {
	home, leave := olderHome(t)
	const older = `{"peers":{"old-session":true}}`
	if err := os.WriteFile(home.AutoWake(), []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	stored := func() (now struct{ Peers, Sessions map[string]bool }) {
		t.Helper()
		data, err := os.ReadFile(home.AutoWake())
		if err == nil {
			err = json.Unmarshal(data, &now)
		}
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	for _, last := range []bool{false, true} {
		d := start(t, options(home, "serve"))
		alpha := join(t, home, "alpha")
		if err := alpha.AutoWake(t.Context(), api.AutoWakeArgs{Enabled: !last}); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(home.AutoWake()); err != nil || string(data) != older {
			t.Errorf("the file is %s, %v", data, err)
		}
		if last {
			leave()
		}
		alpha.Close()
		end(t, d)
	}
	d := start(t, options(home, "serve"))
	defer end(t, d)
	if now := stored(); !now.Peers["old-session"] || len(now.Sessions) != 1 {
		t.Errorf("the file is %+v", now)
	}
	for _, enabled := range stored().Sessions {
		if enabled {
			t.Error("the earlier write came last")
		}
	}
}
