package maintain

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store"
)

// onStore runs a script on the home's store, which nobody else has open.
func onStore(t testing.TB, c Maintenance, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", c.Home.DB())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
}

// loseMessages takes the newer half of the home's 40 messages away.
func loseMessages(t testing.TB, c Maintenance) {
	t.Helper()
	onStore(t, c, "DELETE FROM messages WHERE created_at >= 1020")
}

// lossyHome has a backup of 40 messages and half of them.
func lossyHome(t testing.TB) Maintenance {
	t.Helper()
	c := newHome(t)
	mustBackupMessages(t, c)
	loseMessages(t, c)
	return c
}

func storedMessages(t testing.TB, c Maintenance) int {
	t.Helper()
	reader, err := store.OpenReader(context.Background(), c.Home.DB())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	rows, err := reader.Recent(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

func TestSTO_16_AMergeBringsBackWhatIsMissingAndCanBeUndone(t *testing.T) {
	c := newHome(t)
	made := mustBackupMessages(t, c)
	loseMessages(t, c)
	before := managedBytes(t, c)
	done, err := c.Restores().Merge(t.Context(), made.Path)
	if err != nil || done.Messages != 20 || done.Present != 20 || done.Snapshot != made.Path || storedMessages(t, c) != 40 {
		t.Fatalf("Merge = %+v, %v", done, err)
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	noTemps(t, c.Home.Dir())
	db := openStore(t, c)
	if unread, err := db.UnreadCount(t.Context(), "bob"); err != nil || unread != 40 {
		t.Errorf("%d unread messages, %v", unread, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("STO-16 a second merge changes nothing", func(t *testing.T) {
		before := managedBytes(t, c)
		again, err := c.Restores().Merge(t.Context(), "latest")
		if err != nil || again.Missing() != 0 || again.Recovery != "" || again.Present != 40 {
			t.Errorf("Merge = %+v, %v", again, err)
		}
		sameFiles(t, before, managedBytes(t, c))
	})
	t.Run("STO-16 restoring the recovery set undoes it", func(t *testing.T) {
		if _, err := c.Restores().Restore(t.Context(), done.Recovery); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, managedBytes(t, c)); diff != "" {
			t.Errorf("the home is not what it was:\n%.500s", diff)
		}
	})
}

// TestSTO_16_AMergeSettlesOnlyItself: it found nothing missing, and a set of an
// interrupted work is there.
func TestSTO_16_AMergeSettlesOnlyItself(t *testing.T) {
	c := lossyHome(t)
	done, err := c.Restores().Merge(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	described, noted := string(read(t, done.Recovery, inventory.RecoveryFile)), string(read(t, done.Recovery, inventory.OutcomeName))
	for _, tt := range []struct {
		name, described string
		settled         bool
	}{
		{"the same merge", described, true},
		{"a restore", strings.Replace(described, `"work": "merge"`, `"work": "restore"`, 1), false},
		{"a merge of another backup", strings.Replace(described, done.Snapshot, "another", 1), false},
		{"one that cannot be read", strings.Replace(described, `"version": 1`, `"version": 99`, 1), false},
	} {
		t.Run("STO-16 "+tt.name, func(t *testing.T) {
			if tt.settled == (tt.described != described) {
				t.Fatalf("the set is described by\n%s", tt.described)
			}
			write(t, done.Recovery, inventory.RecoveryFile, tt.described)
			if err := os.Remove(filepath.Join(done.Recovery, inventory.OutcomeName)); err != nil {
				t.Fatal(err)
			}
			if again, err := c.Restores().Merge(t.Context(), ""); err != nil || again.Missing() != 0 {
				t.Fatalf("Merge = %+v, %v", again, err)
			}
			named := has(findings(report(t, c)), "restore-unfinished backups/"+filepath.Base(done.Recovery))
			if _, err := os.Lstat(filepath.Join(done.Recovery, inventory.OutcomeName)); (err == nil) != tt.settled || named == tt.settled {
				t.Errorf("the outcome: %v; the doctor names the set: %v", err, named)
			}
			write(t, done.Recovery, inventory.OutcomeName, noted)
		})
	}
	t.Run("STO-16 one that ended", func(t *testing.T) {
		write(t, done.Recovery, inventory.RecoveryFile, described)
		if _, err := c.Restores().Merge(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if now := string(read(t, done.Recovery, inventory.OutcomeName)); now != noted {
			t.Errorf("its outcome was %s and is %s", noted, now)
		}
	})
}

func TestSTO_16_AMergeSaysHowFarItIs(t *testing.T) {
	c := lossyHome(t)
	var last, most int64
	c.OnProgress = func(what string, done, all int64) {
		if what == "merging messages" {
			last, most = done, all
		}
	}
	if _, err := c.Restores().Merge(t.Context(), ""); err != nil || last != 20 || most != 20 {
		t.Errorf("told %d of %d, %v", last, most, err)
	}
}

func TestSTO_16_AHomeThatLostItsStoreGetsItsMessagesBack(t *testing.T) {
	c := newHome(t)
	mustBackupMessages(t, c)
	if err := os.Remove(c.Home.DB()); err != nil {
		t.Fatal(err)
	}
	if done, err := c.Restores().Merge(t.Context(), ""); err != nil || done.Messages != 40 || storedMessages(t, c) != 40 {
		t.Errorf("Merge = %+v, %v", done, err)
	}
	t.Run("STO-16 but not where only the store's log is left", func(t *testing.T) {
		if err := os.Remove(c.Home.DB()); err != nil {
			t.Fatal(err)
		}
		write(t, c.Home.Dir(), "bridge.db-wal", "a log")
		if _, err := c.Restores().Merge(t.Context(), ""); bridge.CodeOf(err) != bridge.Storage {
			t.Errorf("Merge = %v", err)
		}
	})
}

func TestSTO_16_OtherSetsAndDamagedOnesAreRefusedAndNothingChanges(t *testing.T) {
	c := newHome(t)
	full := mustBackup(t, c)
	scoped := mustBackupMessages(t, c)
	loseMessages(t, c)
	tests := []struct {
		name, set, words string
		do               func(t *testing.T, c Maintenance, set string)
		code             bridge.Code
	}{
		{"a full snapshot", full.Path, "is a full snapshot", func(*testing.T, Maintenance, string) {}, bridge.Unsupported},
		{"a full snapshot from the field", full.Path, "is a full snapshot", func(t *testing.T, _ Maintenance, set string) {
			edited := strings.Replace(string(read(t, set, inventory.ManifestName)), `"kind": "full",`, "", 1)
			write(t, set, inventory.ManifestName, edited)
		}, bridge.Unsupported},
		{"no set", "elsewhere", "there is no snapshot elsewhere", func(*testing.T, Maintenance, string) {}, bridge.NotFound},
		{"one bit", scoped.Path, "is not what was captured", func(t *testing.T, _ Maintenance, set string) {
			data := read(t, set, inventory.MessagesFile)
			data[len(data)/2] ^= 4
			write(t, set, inventory.MessagesFile, string(data))
		}, bridge.Storage},
		{"no manifest", scoped.Path, "no published backup", func(t *testing.T, _ Maintenance, set string) {
			if err := os.Remove(filepath.Join(set, inventory.ManifestName)); err != nil {
				t.Fatal(err)
			}
		}, bridge.NotFound},
		{"other content here", scoped.Path, "m3 for bob", func(t *testing.T, c Maintenance, _ string) {
			onStore(t, c, "UPDATE messages SET body = 'other' WHERE id = 'm3'")
		}, bridge.Conflict},
		{"a damaged archive", scoped.Path, "archive.db", func(t *testing.T, c Maintenance, _ string) {
			write(t, c.Home.Dir(), "archive.db", strings.Repeat("no database ", 1000))
		}, bridge.Storage},
		{"an older store", scoped.Path, "start the broker once", func(t *testing.T, c Maintenance, _ string) {
			onStore(t, c, "PRAGMA user_version = 8")
		}, bridge.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := copied(t, c)
			set := tt.set
			if filepath.IsAbs(set) {
				set = filepath.Join(c.Home.Dir(), filepath.Base(filepath.Dir(set)), filepath.Base(set))
			}
			tt.do(t, c, set)
			before := listing(t, c.Home.Dir())
			_, err := c.Restores().Merge(t.Context(), set)
			if bridge.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("Merge = %v (%s), want %s with %q", err, bridge.CodeOf(err), tt.code, tt.words)
			}
			after := listing(t, c.Home.Dir())
			for _, folder := range []string{".", "message-backups"} { // the lock came and went
				delete(before, folder)
				delete(after, folder)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the refusal changed the home:\n%s", diff)
			}
		})
	}
}

func read(t testing.TB, dir, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(inventory.JoinHome(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSTO_16_LiveWritersAndALeftLockRefuseAMerge(t *testing.T) {
	c := lossyHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restores().Merge(t.Context(), ""); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "a test (process ") {
		t.Errorf("beside a writer: %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), ".maintenance-lock", `{"pid":999999,"identity":"gone:1","program":"bridge doctor","what":"merge"}`)
	if _, err := c.Restores().Merge(t.Context(), ""); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), ".maintenance-lock") {
		t.Errorf("with a left lock: %v", err)
	}
	if n := storedMessages(t, c); n != 20 {
		t.Errorf("the refused merge brought %d messages", n-20)
	}
}

func TestSTO_16_ACaughtFailureLeavesEveryMessageAsItWas(t *testing.T) {
	prepared := lossyHome(t)
	total := 0
	counting := copied(t, prepared)
	counting.step = func(string) error { total++; return nil }
	if _, err := counting.Restores().Merge(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the disk said no")
	for _, n := range someOf(t, total) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			c := copied(t, prepared)
			count, done, at := 0, false, ""
			c.step = func(name string) error {
				if count++; count == n {
					at = name
					return failed
				}
				done = done || name == "committed the merge"
				return nil
			}
			if _, err := c.Restores().Merge(t.Context(), ""); !errors.Is(err, failed) {
				t.Fatalf("%s: Merge = %v", at, err)
			}
			want := 20
			if done || at == "committed the merge" {
				want = 40 // it was done; only its last word failed
			}
			if n := storedMessages(t, c); n != want {
				t.Errorf("%s: %d messages, want %d", at, n, want)
			}
			noTemps(t, c.Home.Dir())
		})
	}
}
