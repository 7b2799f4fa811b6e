package store

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/transfer"
)

// earlierStages are stage columns as versions before the typed way wrote them,
// with what they mean.
var earlierStages = []struct {
	stage bridge.Stage
	words string
	want  mail.Via
}{
	{bridge.StageWoken, "its wake hook was given the text", mail.ViaWakeHook},
	{bridge.StageWoken, "codex's queue accepted a wake", mail.ViaQueue},
	{bridge.StageWoken, "its plugin was asked to start a turn", mail.ViaPlugin},
	{bridge.StageHanded, "hook PostToolUse", mail.ViaHook},
	{bridge.StageHanded, "wake hook", mail.ViaWakeHook},
	{bridge.StageHanded, "channel notification", mail.ViaChannel},
	{bridge.StageHanded, "opencode stored it in the running turn", mail.ViaPlugin},
	{bridge.StageHanded, "codex queue took it", mail.ViaQueue},
	{bridge.StageHanded, "codex queue: unconfirmed, codex did not answer in 10s", mail.ViaQueueUnclear},
	{bridge.StageHanded, "codex queue: launched, outcome not known", mail.ViaQueueUnclear},
	{bridge.StageConsumed, "tool inbox", mail.ViaTool},
	{bridge.StageConsumed, "next activity: Stop", mail.ViaActivity},
	{bridge.StageConsumed, "codex showed it as a prompt", mail.ViaPrompt},
	{bridge.StageConsumed, "a sentence that nobody wrote", ""},
}

// earlierStore is a store of version 9 from before delivery_ways.
func earlierStore(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	for _, e := range earlierStages {
		appendAll(t, db, note(e.words, "alice", "text", 1000, "bob"))
		if err := db.Record(t.Context(), e.stage, []mail.Mark{{MessageID: e.words, Recipient: "bob", At: 2000, Evidence: e.words}}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, db)
	inStore(t, path, "DROP TABLE delivery_ways")
	return path
}

// none says that no hand-over was to an earlier process.
func none(mail.Fact) bool { return false }

func requireEarlierWays(t *testing.T, r *Reader) {
	t.Helper()
	for _, e := range earlierStages {
		d := mustFind(t, r, e.words).Deliveries[0]
		got := map[bridge.Stage]mail.Fact{bridge.StageWoken: d.Woken, bridge.StageHanded: d.Handed, bridge.StageConsumed: d.Consumed}[e.stage]
		if want := (mail.Fact{At: 2000, Via: e.want, Evidence: e.words}); got != want {
			t.Errorf("%s: %+v, want %+v", e.words, got, want)
		}
	}
}

func TestMSG_06_AStoreFromBeforeTheWaysKeepsItsMeaning(t *testing.T) {
	path := earlierStore(t)
	reader, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	requireEarlierWays(t, reader)
	reader.Close()
	db := openAt(t, path) // makes the table
	requireEarlierWays(t, db.Reader)
	marks, err := db.ConsumeHandedOver(t.Context(), "bob", 3000, 4000, "next activity: Stop", none)
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, mark := range marks {
		read = append(read, mark.MessageID)
	}
	if diff := cmp.Diff([]string{"hook PostToolUse", "opencode stored it in the running turn"}, read); diff != "" {
		t.Errorf("activity counts as reading (-want +got):\n%s", diff)
	}
	mustClose(t, db)
	seen, err := schema.Identify(t.Context(), path)
	if want := (schema.Found{Version: 9, Deliveries: 1, Ways: true, Remote: 1, Team: true, Withdrawn: true}); err != nil || seen != want {
		t.Errorf("the store is %+v, %v; want %+v: an older program opens no other", seen, err, want)
	}
}

// TestVER_04_AnOlderProgramBesideTheWays: it knows nothing of them, reads and
// writes the stages alone, and its words count for what it did.
func TestVER_04_AnOlderProgramBesideTheWays(t *testing.T) {
	path, archive, db := oldMail(t)
	hand := func(via mail.Via, at int64) {
		mark := mail.Mark{MessageID: "m1", Recipient: "bob", At: at, Via: via, Evidence: via.Evidence("Stop"), Process: "boot/1/7"}
		if err := db.Record(t.Context(), bridge.StageHanded, []mail.Mark{mark}); err != nil {
			t.Fatal(err)
		}
	}
	hand(mail.ViaChannel, 7000)
	inStore(t, path, "UPDATE delivery_stages SET handed_at = NULL, handed_by = NULL WHERE message_id = 'm1'",
		"UPDATE delivery_stages SET handed_at = 7001, handed_by = 'hook Stop' WHERE message_id = 'm1'")
	if got := mustFind(t, db.Reader, "m1").Deliveries[0].Handed; got.Via != mail.ViaHook || got.Process != "" {
		t.Errorf("what it handed over again is %+v", got)
	}
	if marks, err := db.ConsumeHandedOver(t.Context(), "bob", 7001, 7002, "next activity: Stop", none); err != nil || len(marks) != 1 {
		t.Errorf("activity after it reads %v, %v", marks, err)
	}
	// It archives whole rows of the stages, into an archive of its own making.
	var script []string
	text, err := schema.Script("archive")
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(text, ";\n") {
		if !strings.Contains(statement, "delivery_ways") {
			script = append(script, statement)
		}
	}
	inStore(t, archive, script...)
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	for _, statement := range []string{"ATTACH DATABASE '" + archive + "' AS archive", "INSERT OR IGNORE INTO archive.delivery_stages SELECT s.* FROM main.delivery_stages s"} {
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Errorf("an older program's archiving: %v", err)
		}
	}
}

// TestMSG_06_TheWayStaysWithItsDelivery wherever the message goes.
func TestMSG_06_TheWayStaysWithItsDelivery(t *testing.T) {
	path, archive, db := oldMail(t)
	mark := mail.Mark{MessageID: "m2", Recipient: "carol", At: 2500, Via: mail.ViaTool, Evidence: "tool inbox", Process: "boot/1/7"}
	if err := db.Record(t.Context(), bridge.StageHanded, []mail.Mark{mark}); err != nil {
		t.Fatal(err)
	}
	want := mail.Fact{At: 2500, Via: mail.ViaTool, Evidence: "tool inbox", Process: "boot/1/7"}
	of := func(where, recipient string) {
		t.Helper()
		for _, d := range mustFind(t, db.Reader, "m2").Deliveries {
			if d.Recipient == recipient && d.Handed != want {
				t.Errorf("%s: %+v, want %+v", where, d.Handed, want)
			}
		}
	}
	of("at once", "carol")
	if err := db.Reassign(t.Context(), "carol", "caroline"); err != nil {
		t.Fatal(err)
	}
	of("under another id", "caroline")
	consumed := mail.Mark{MessageID: "m2", Recipient: "caroline", At: 2600, Via: mail.ViaTranscript, Evidence: "its host holds it"}
	if err := db.Record(t.Context(), bridge.StageConsumed, []mail.Mark{consumed}); err != nil {
		t.Fatal(err)
	}
	if moved, err := transfer.ArchiveMessages(t.Context(), path, archive, rule()); err != nil || moved == 0 {
		t.Fatalf("archived %d, %v", moved, err)
	}
	of("in the archive", "caroline")
	for _, d := range mustFind(t, db.Reader, "m2").Deliveries {
		if d.Recipient == "caroline" && d.Consumed.Via != mail.ViaTranscript {
			t.Errorf("in the archive it was read by %+v", d.Consumed)
		}
	}
}

func TestMSG_06_AHandOverTakenBackLeavesNoWay(t *testing.T) {
	_, _, db := oldMail(t)
	for _, via := range []mail.Via{mail.ViaChannel, mail.ViaHook} {
		mark := mail.Mark{MessageID: "m1", Recipient: "bob", At: 7000, Via: via, Evidence: "same moment"}
		if err := db.Record(t.Context(), bridge.StageHanded, []mail.Mark{mark}); err != nil {
			t.Fatal(err)
		}
		if got := mustFind(t, db.Reader, "m1").Deliveries[0].Handed; got.Via != via {
			t.Errorf("handed by %q, stored as %+v", via, got)
		}
		if err := db.Unhand(t.Context(), "m1", "bob"); err != nil {
			t.Fatal(err)
		}
		if got := mustFind(t, db.Reader, "m1").Deliveries[0].Handed; got != (mail.Fact{}) {
			t.Errorf("taken back, it is %+v", got)
		}
	}
}
