package maintain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/snapshot"
)

func manifestOf(t testing.TB, dir string) inventory.Manifest {
	t.Helper()
	m, err := inventory.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSTO_04_ASnapshotHoldsTheStoresAndNoSecretAndNoRunLog(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	var paths []string
	for _, file := range manifestOf(t, made.Path).Files {
		paths = append(paths, file.Path)
		sum, size, err := disk.Checksum(inventory.JoinHome(made.Path, file.Path))
		if err != nil || sum != file.SHA256 || size != file.Bytes {
			t.Errorf("%+v is %s, %d, %v", file, sum, size, err)
		}
	}
	want := []string{
		"read-journal/0b5f.json", "config.json", "install/install.json", "jobs.json", "remote-jobs.json", "runs/one.json",
		"bridge.db", "archive/jobs/old.json",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Error(diff)
	}
	if rows := manifestOf(t, made.Path).Counts["bridge.db"]["messages"]; rows != 40 {
		t.Errorf("the manifest counts %d messages", rows)
	}
	noTemps(t, c.Home.Dir())
}

func TestAUT_03_NoSecretIsInASnapshotOrARecoverySet(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	if _, err := c.Restores().Restore(context.Background(), made.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restores().Test(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	looked := 0
	err := filepath.WalkDir(c.Home.Backups(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range []string{tokenText, secretText, logText} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds %q", path, secret)
			}
		}
		looked++
		return err
	})
	if err != nil || looked < 16 {
		t.Errorf("looked at %d files: %v", looked, err)
	}
}

func TestSTO_04_ASnapshotBesideALiveBrokerIsWhole(t *testing.T) {
	c := newHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	db := openStore(t, c)
	appendMessages(t, db, 40, 90)
	made := mustBackup(t, c)
	appendMessages(t, db, 90, 95)
	if err := errors.Join(db.Close(), held.Release()); err != nil {
		t.Fatal(err)
	}
	if rows := manifestOf(t, made.Path).Counts["bridge.db"]["messages"]; rows != 90 {
		t.Errorf("the snapshot has %d messages, not the 90 committed before it", rows)
	}
}

func TestSTO_05_ADamagedStoreIsNotPublishedAsASnapshot(t *testing.T) {
	for _, name := range []string{"bridge.db", "archive.db"} { // also one that is copied while another is verified
		t.Run(name, func(t *testing.T) {
			c := newHome(t)
			makeDatabase(t, c, "archive.db", `CREATE TABLE archived_messages (id TEXT, body TEXT);
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
				INSERT INTO archived_messages SELECT i, printf('%500d', i) FROM n`)
			spoil(t, c, name, func(data []byte) []byte {
				for i := 4096; i < 3*4096; i++ {
					data[i] = 0xee
				}
				return data
			})
			if made, err := c.Snapshots().Backup(context.Background()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Backup of a damaged store = %+v, %v", made, err)
			}
			if found, _ := inventory.Sets(c.Home.Backups(), inventory.SnapshotName); len(found) > 0 {
				t.Errorf("published: %v", found)
			}
		})
	}
}

func TestSTO_11_RetentionMovesOldSetsAndDeletesNothing(t *testing.T) {
	tests := []struct{ retention, stay int }{{0, 5}, {2, 2}, {9, 5}}
	for _, tt := range tests {
		c := newHome(t)
		c.Retention = tt.retention
		var made []snapshot.Made
		for range 5 {
			made = append(made, mustBackup(t, c))
		}
		found, err := inventory.Sets(c.Home.Backups(), inventory.SnapshotName)
		if err != nil || len(found) != tt.stay || found[0].Path != filepath.Base(made[4].Path) {
			t.Errorf("retention %d: %v, %v", tt.retention, found, err)
		}
		old, err := inventory.Sets(filepath.Join(c.Home.Backups(), "archive"), inventory.SnapshotName)
		if err != nil || len(old) != 5-tt.stay {
			t.Errorf("retention %d: moved %v, %v", tt.retention, old, err)
		}
		for _, set := range old {
			dir := filepath.Join(c.Home.Backups(), "archive", set.Path)
			if err := manifestOf(t, dir).CheckSums(context.Background(), dir, c.Worker().ProgressOf("")); err != nil {
				t.Error(err)
			}
		}
		if r := report(t, c); len(r.Findings) > 0 {
			t.Errorf("findings: %v", r.Findings)
		}
	}
}

func TestSTO_13_MigrationCopiesAreOutsideRotation(t *testing.T) {
	c := newHome(t)
	c.Retention = 1
	kept := map[string]string{".migration-snapshots/bridge.db.schema.json": "{}", "bridge.db.backup-2-to-9-x": "a copy"}
	for path, text := range kept {
		write(t, c.Home.Dir(), path, text)
	}
	for range 3 {
		mustBackup(t, c)
	}
	for path, text := range kept {
		if data, err := os.ReadFile(inventory.JoinHome(c.Home.Dir(), path)); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
}

func TestSTO_04_AnEmptyHomeHasNothingToBackUp(t *testing.T) {
	c, err := maintenanceOf(filepath.Join(t.TempDir(), "new"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Snapshots().Backup(context.Background()); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("Backup = %v", err)
	}
}

func TestSTO_04_ProgressIsTold(t *testing.T) {
	c := newHome(t)
	var told []string
	c.OnProgress = func(what string, done, all int64) {
		if done > all {
			t.Errorf("%s: %d of %d", what, done, all)
		}
		told = append(told, what)
	}
	mustBackup(t, c)
	if !slices.ContainsFunc(told, func(what string) bool {
		return regexp.MustCompile(`^copying bridge\.db, (\d+ kB) of (\d+ kB)$`).MatchString(what)
	}) {
		t.Errorf("told %v", told)
	}
}

// A check counts the bytes of all databases, and a backup those that it has verified.
func TestDOC_09_ChecksAndVerificationCountBytes(t *testing.T) {
	c := newHome(t)
	if err := openStore(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	type step struct{ done, all int64 }
	var seen map[string][]step
	sizes := regexp.MustCompile(`^(checking the databases|verifying the copies), .+ of .+$`)
	c.OnProgress = func(what string, done, all int64) {
		if match := sizes.FindStringSubmatch(what); match != nil {
			seen[match[1]] = append(seen[match[1]], step{done, all})
		}
	}
	for work, do := range map[string]func(){
		"checking the databases": func() { report(t, c) },
		"verifying the copies":   func() { mustBackup(t, c) },
	} {
		seen = map[string][]step{}
		do()
		steps := seen[work]
		if len(steps) == 0 {
			t.Errorf("%s: no progress, but %v", work, seen)
			continue
		}
		for i, step := range steps {
			if step.all <= 0 || step.all != steps[0].all || step.done > step.all || i > 0 && step.done < steps[i-1].done {
				t.Errorf("%s: %v", work, steps)
			}
		}
		if last := steps[len(steps)-1]; last.done != last.all {
			t.Errorf("%s ends at %d of %d", work, last.done, last.all)
		}
	}
}

// The archive tells how much there is before it moves anything, and ends at all of it.
func TestDOC_10_TheProgressOfTheArchiveIsTrue(t *testing.T) {
	c := newHome(t)
	c.ArchiveAge = 24 * time.Hour
	db := openStore(t, c)
	var marks []mail.Mark
	for n := range 900 { // more than the archive moves at once
		id := fmt.Sprintf("old%d", n)
		if _, _, err := db.Append(t.Context(), []bridge.Message{{
			ID: id, Recipient: "bob", From: bridge.Address{ID: "alice", Name: "alice", Agent: bridge.Claude}, To: "bob", ConversationID: "c", Body: "x", CreatedAt: int64(3000 + n),
		}}); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mail.Mark{MessageID: id, Recipient: "bob", At: 5000, Evidence: "a test"})
	}
	if err := db.Record(t.Context(), bridge.StageConsumed, marks); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var first, last, all int64 = -1, 0, 0
	c.OnProgress = func(_ string, done, of int64) {
		if first < 0 {
			first, all = done, of
		}
		if done < last || done > of || of != all {
			t.Errorf("%d of %d after %d of %d", done, of, last, all)
		}
		last = done
	}
	done, err := c.Archive().Messages(t.Context())
	if err != nil || done.Messages < 900 || first != 0 || last != all || all != int64(done.Messages) {
		t.Errorf("%+v, %v: from %d to %d of %d", done, err, first, last, all)
	}
}

func TestSTO_04_TheManifestIsExact(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	data, err := os.ReadFile(filepath.Join(made.Path, inventory.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"version", "kind", "createdAt", "files", "counts"} {
		if members[name] == nil {
			t.Errorf("no %s in %s", name, data)
		}
	}
	if string(members["kind"]) != `"full"` || string(members["version"]) != "1" {
		t.Errorf("%s", data)
	}
}

func TestSTO_04_WhatMovesToTheFirstArchiveMeanwhileIsInTheSnapshot(t *testing.T) {
	c := newHome(t)
	onStore(t, c, "UPDATE messages SET read_at = 2000")
	want := storedMessages(t, c)
	c.ArchiveAge = time.Hour
	archived := false
	c.step = func(name string) error {
		if archived || !strings.HasPrefix(name, "copy ") {
			return nil // before the first database is copied
		}
		archived = true
		maintenance := c
		maintenance.step = nil
		done, err := maintenance.Archive().Messages(t.Context())
		if err == nil && done.Messages == 0 {
			err = errors.New("nothing was archived")
		}
		return err
	}
	made := mustBackup(t, c)
	if !archived {
		t.Fatal("no database was copied")
	}
	counts := manifestOf(t, made.Path).Counts
	if got := counts["bridge.db"]["messages"] + counts["archive.db"]["archived_messages"]; got < want {
		t.Errorf("the snapshot has %d of %d messages: %v", got, want, counts)
	}
}

func TestSTO_04_ASnapshotTakesWhatMovesOnBeforeWhereItGoes(t *testing.T) {
	c := newHome(t)
	write(t, c.Home.Dir(), "read-journal/a.json", "[]")
	write(t, c.Home.Dir(), "pending-job-writes/v1/a.json", "{}")
	write(t, c.Home.Dir(), "archive/jobs/a.json", "{}")
	write(t, c.Home.Dir(), "archive.db", "")
	write(t, c.Home.Dir(), "compat.db", "")
	paths, err := inventory.Managed(t.Context(), c.Home.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{
		{"read-journal/a.json", "bridge.db"}, {"pending-job-writes/v1/a.json", "jobs.json"}, {"compat.db", "bridge.db"}, {"bridge.db", "archive.db"}, {"jobs.json", "archive/jobs/a.json"},
	} {
		if from, to := slices.Index(paths, pair[0]), slices.Index(paths, pair[1]); from < 0 || to < from {
			t.Errorf("%s is not before %s: %v", pair[0], pair[1], paths)
		}
	}
}

func TestSTO_04_AHomeThatLostADatabaseIsNoWholeSnapshot(t *testing.T) {
	for name, lose := range map[string]func(c Maintenance, t *testing.T){
		"gone":  func(c Maintenance, t *testing.T) { remove(t, c, "bridge.db") },
		"empty": func(c Maintenance, t *testing.T) { spoil(t, c, "bridge.db", func([]byte) []byte { return nil }) },
		"folder": func(c Maintenance, t *testing.T) {
			remove(t, c, "bridge.db")
			write(t, c.Home.Dir(), "bridge.db/x", "")
		},
		"archive is a link": func(c Maintenance, t *testing.T) {
			if err := os.Symlink(c.Home.DB(), c.Home.Archive()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newHome(t)
			mustBackup(t, c)
			lose(c, t)
			before := listing(t, c.Home.Backups())
			_, err := c.Snapshots().Backup(t.Context())
			if !errors.Is(err, check.ErrLost) && !strings.Contains(fmt.Sprint(err), "would lack") {
				t.Errorf("a snapshot without a database: %v", err)
			}
			if diff := cmp.Diff(before, listing(t, c.Home.Backups())); diff != "" {
				t.Errorf("the refusal left something:\n%s", diff)
			}
		})
	}
}

func TestSTO_05_ANameThatNoManifestHoldsDoesNotSpoilASnapshot(t *testing.T) {
	c := newHome(t)
	write(t, c.Home.Dir(), "jobs/\xff.json", "{}")
	made := mustBackup(t, c)
	if _, err := c.Restores().Test(t.Context(), made.Path); err != nil {
		t.Error(err)
	}
	if _, err := c.Restores().Restore(t.Context(), made.Path); err != nil {
		t.Error(err)
	}
	if data := read(t, c.Home.Dir(), "jobs/\xff.json"); string(data) != "{}" {
		t.Errorf("the restore changed what no recovery set could hold: %q", data)
	}
}

func TestSTO_11_AClockThatWasSetBackKeepsTheNewestSetTheNewest(t *testing.T) {
	c := newHome(t)
	c.Retention = 1
	first := mustBackup(t, c)
	later := c.Now
	c.Now = func() time.Time { return later().Add(-48 * time.Hour) }
	second := mustBackup(t, c)
	if _, err := os.Stat(second.Path); err != nil || len(second.Moved) != 1 || filepath.Base(second.Moved[0]) != filepath.Base(first.Path) {
		t.Errorf("made %s, moved %v, want the first one moved: %v", second.Path, second.Moved, err)
	}
	if found, err := inventory.FindSnapshot(c.Home, "latest"); err != nil || found != second.Path {
		t.Errorf("the latest is %s, want %s: %v", found, second.Path, err)
	}
}

func TestSTO_10_AClockThatWasSetBackDoesNotEndTheDailyBackups(t *testing.T) {
	c := newHome(t)
	now := time.Now()
	c.Now = func() time.Time { return now.Add(365 * 24 * time.Hour) }
	mustBackupMessages(t, c)
	c.Now = func() time.Time { return now.Add(time.Minute) }
	for range 2 {
		due, err := c.Snapshots().NextMessageBackup(24 * time.Hour)
		if err != nil || due.After(now.Add(25*time.Hour)) {
			t.Errorf("the next set is due %v, a year from %v: %v", due, now, err)
		}
		mustBackupMessages(t, c)
	}
}
