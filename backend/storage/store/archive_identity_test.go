package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/transfer"
)

// contentColumns are those in which two copies of one delivery may differ.
var contentColumns = []string{
	"from_id", "from_name", "from_agent", "to_target", "conversation_id", "reply_to", "hop", "body", "created_at", "read_at",
}

// archiveOf fills the archive with what a script selects of the primary store.
func archiveOf(t *testing.T, path, archive, selected string) {
	t.Helper()
	makeArchive(t, archive)
	inStore(t, archive, "ATTACH DATABASE '"+path+"' AS hot; INSERT INTO archived_messages ("+schema.MessageColumns+", archive_reason, archived_at) "+selected)
}

// makeArchive makes an archive without rows.
func makeArchive(t *testing.T, archive string) {
	t.Helper()
	script, err := schema.Script("archive")
	if err == nil {
		err = sqlitex.CreateWhole(t.Context(), archive, func(ctx context.Context, pool *sql.DB) error {
			_, err := pool.ExecContext(ctx, script)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSTO_07_ACopyThatDiffersInAnythingStopsTheArchive: the first guard names the
// message before anything is copied or leaves, whatever differs.
func TestSTO_07_ACopyThatDiffersInAnythingStopsTheArchive(t *testing.T) {
	for _, table := range []string{"messages", "archived_messages"} {
		id := map[string]string{"messages": "m2", "archived_messages": "m1"}[table]
		for _, column := range contentColumns {
			t.Run("STO-07 "+table+" "+column, func(t *testing.T) {
				path, archive, db := oldMail(t)
				defer db.Close()
				// It is another value in whatever form: 7 is no content of these messages.
				other := strings.Replace(schema.MessageColumns, column, "7", 1)
				archiveOf(t, path, archive, "SELECT "+other+", '', 0 FROM hot."+table+" WHERE id = '"+id+"' LIMIT 1")
				before := primaryRows(t, path)[table]
				_, err := transfer.ArchiveMessages(t.Context(), path, archive, rule())
				if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(fmt.Sprint(err), "the archive holds the message "+id+" with other content") {
					t.Errorf("ArchiveMessages: %v", err)
				}
				if after := primaryRows(t, path)[table]; after != before {
					t.Errorf("%d of %d rows left %s", before-after, before, table)
				}
				if got := archivedOf(t, archive, id); got != 1 {
					t.Errorf("the archive has %d copies of %s", got, id)
				}
			})
		}
	}
}

// TestSTO_07_ARowThatChangedInAnythingStays: the second guard, without the first:
// what changes between copy and removal has no equal copy.
func TestSTO_07_ARowThatChangedInAnythingStays(t *testing.T) {
	for _, column := range contentColumns {
		t.Run("STO-07 "+column, func(t *testing.T) {
			path, archive, db := oldMail(t)
			mustClose(t, db)
			changing := rule()
			changing.Step = func(name string) error {
				if name == "remove messages" {
					inStore(t, path, "UPDATE messages SET "+column+" = 7 WHERE id = 'm4' AND recipient = 'bob'")
				}
				return nil
			}
			_, err := transfer.ArchiveMessages(t.Context(), path, archive, changing)
			if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(fmt.Sprint(err), "1 of 3 old messages have no equal copy") {
				t.Errorf("ArchiveMessages: %v", err)
			}
			row := mustFind(t, openAt(t, path).Reader, "m4")
			if len(row.Deliveries) != 2 {
				t.Errorf("m4 is %+v", row)
			}
		})
	}
}

// TestSTO_07_ARowOfTheArchiveWithAnotherIdentityIsNoCopy: equal words for somebody
// else let nothing leave.
func TestSTO_07_ARowOfTheArchiveWithAnotherIdentityIsNoCopy(t *testing.T) {
	for _, column := range []string{"id", "recipient"} {
		path, archive, db := oldMail(t)
		mustClose(t, db)
		// The copy is taken from the archive again before the row leaves.
		changing := rule()
		changing.Step = func(name string) error {
			if name == "remove messages" {
				inStore(t, archive, "UPDATE archived_messages SET "+column+" = 'other' WHERE id = 'm4'")
			}
			return nil
		}
		if _, err := transfer.ArchiveMessages(t.Context(), path, archive, changing); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("%s: ArchiveMessages: %v", column, err)
		}
		if row := mustFind(t, openAt(t, path).Reader, "m4"); row.Body != "text 4" || len(row.Deliveries) < 2 {
			t.Errorf("%s: m4 is %+v", column, row)
		}
	}
}

func archivedOf(t *testing.T, archive, id string) (count int) {
	t.Helper()
	reader := archiveReader(archive)
	defer reader.Close()
	err := reader.read(t.Context(), func(v view) error {
		rows, err := v.Query(t.Context(), "SELECT count(*) FROM archived_messages WHERE id = ?", id)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&count) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}
