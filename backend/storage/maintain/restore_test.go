package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/inventory"
)

// snapshotBytes are the managed files as the set has them.
func snapshotBytes(t testing.TB, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, file := range manifestOf(t, dir).Files {
		data, err := os.ReadFile(inventory.JoinHome(dir, file.Path))
		if err != nil {
			t.Fatal(err)
		}
		seen[file.Path] = string(data)
	}
	return seen
}

// change makes the home another one: new mail in a log that a dead writer left,
// a changed and a new file, one that is gone.
func change(t testing.TB, c Maintenance) {
	t.Helper()
	db := openStore(t, c)
	appendMessages(t, db, 500, 520)
	log, err := os.ReadFile(c.Home.DB() + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, c.Home.Dir(), "bridge.db-wal", string(log))
	write(t, c.Home.Dir(), "jobs.json", `{"version": 4, "jobs": []}`)
	write(t, c.Home.Dir(), "jobs/new.json", `{"name": "new"}`)
	if err := os.Remove(inventory.JoinHome(c.Home.Dir(), "remote-jobs.json")); err != nil {
		t.Fatal(err)
	}
}

func TestSTO_08_ARestoreBringsTheSnapshotBackAndKeepsWhatWasThere(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	change(t, c)
	before := managedBytes(t, c)
	done, err := c.Restores().Restore(context.Background(), made.Path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(snapshotBytes(t, made.Path), managedBytes(t, c)); diff != "" {
		t.Errorf("the home is not the snapshot:\n%.500s", diff)
	}
	displaced := map[string]string{}
	for path := range before {
		data, err := os.ReadFile(inventory.JoinHome(filepath.Join(done.Recovery, inventory.DisplacedDir), path))
		if err != nil {
			t.Error(err)
		}
		displaced[path] = string(data)
	}
	if diff := cmp.Diff(before, displaced); diff != "" {
		t.Errorf("the recovery set is not what was there:\n%.500s", diff)
	}
	if data, err := os.ReadFile(c.Home.TokenFile()); err != nil || string(data) != tokenText+"\n" {
		t.Errorf("the token: %q, %v", data, err)
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	noTemps(t, c.Home.Dir())

	t.Run("STO-08 restoring the recovery set undoes it", func(t *testing.T) {
		if _, err := c.Restores().Restore(context.Background(), done.Recovery); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, managedBytes(t, c)); diff != "" {
			t.Errorf("the home is not what it was:\n%.500s", diff)
		}
	})
}

// edited rewrites a set's manifest.
func edited(how func(*inventory.Manifest)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		m := manifestOf(t, dir)
		how(&m)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, inventory.ManifestName, string(data))
	}
}

func TestSTO_08_WhatIsDamagedNewerOrScopedIsRefusedAndNothingChanges(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, dir string)
		code bridge.Code
	}{
		{"one bit", func(t *testing.T, dir string) {
			data, err := os.ReadFile(inventory.JoinHome(dir, "bridge.db"))
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 4
			write(t, dir, "bridge.db", string(data))
		}, bridge.Storage},
		{"a missing file", func(t *testing.T, dir string) { _ = os.Remove(inventory.JoinHome(dir, "jobs.json")) }, bridge.Storage},
		{"a link in a file's place", func(t *testing.T, dir string) {
			_ = os.Rename(inventory.JoinHome(dir, "jobs.json"), inventory.JoinHome(dir, "away"))
			_ = os.Symlink("away", inventory.JoinHome(dir, "jobs.json"))
		}, bridge.Storage},
		{"no manifest", func(t *testing.T, dir string) { _ = os.Remove(inventory.JoinHome(dir, inventory.ManifestName)) }, bridge.NotFound},
		{"junk for a manifest", func(t *testing.T, dir string) { write(t, dir, inventory.ManifestName, "{") }, bridge.Storage},
		{"newer", edited(func(m *inventory.Manifest) { m.Version = 2 }), bridge.Unsupported},
		{"scoped", edited(func(m *inventory.Manifest) { m.Kind = inventory.KindMessages }), bridge.Unsupported},
		{"another kind", edited(func(m *inventory.Manifest) { m.Kind = "incremental" }), bridge.Unsupported},
		{"a way out of the home", edited(func(m *inventory.Manifest) { m.Files[0].Path = "../../bridge.db" }), bridge.Unsupported},
		{"an absolute path", edited(func(m *inventory.Manifest) { m.Files[0].Path = "/etc/passwd.json" }), bridge.Unsupported},
		{"a secret", edited(func(m *inventory.Manifest) { m.Files[0].Path = "token" }), bridge.Unsupported},
		{"a file twice", edited(func(m *inventory.Manifest) { m.Files = append(m.Files, m.Files[0]) }), bridge.Unsupported},
		{"no files", edited(func(m *inventory.Manifest) { m.Files = nil }), bridge.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newHome(t)
			made := mustBackup(t, c)
			tt.do(t, made.Path)
			before := listing(t, c.Home.Dir())
			if _, err := c.Restores().Restore(context.Background(), made.Path); bridge.CodeOf(err) != tt.code {
				t.Errorf("Restore = %v (%s), want %s", err, bridge.CodeOf(err), tt.code)
			}
			if diff := cmp.Diff(before, listing(t, c.Home.Dir())); diff != "" {
				t.Errorf("the refusal changed the home:\n%s", diff)
			}
		})
	}
	t.Run("a store of a newer version", func(t *testing.T) {
		c := newHome(t)
		made := mustBackup(t, c)
		makeNewer(t, made.Path)
		if _, err := c.Restores().Restore(context.Background(), made.Path); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("Restore = %v", err)
		}
	})
}

// makeNewer raises the schema version of a snapshot and its checksum with it.
func makeNewer(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(inventory.JoinHome(dir, "bridge.db"))
	if err != nil {
		t.Fatal(err)
	}
	data[63] = 99 // user_version's last byte
	write(t, dir, "bridge.db", string(data))
	m := manifestOf(t, dir)
	for i := range m.Files {
		if m.Files[i].Path == "bridge.db" {
			m.Files[i].SHA256 = sumOf(data)
		}
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, inventory.ManifestName, string(encoded))
}

func TestSTO_08_ACaughtFailureBringsEverythingBack(t *testing.T) {
	prepared := newHome(t)
	made := mustBackup(t, prepared)
	change(t, prepared)
	total := 0
	counting := copied(t, prepared)
	counting.step = func(string) error { total++; return nil }
	if _, err := counting.Restores().Restore(context.Background(), made.Path); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the disk said no")
	for _, n := range someOf(t, total) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			c := copied(t, prepared)
			before := managedBytes(t, c)
			count, at := 0, ""
			c.step = func(name string) error {
				if count++; count == n {
					at = name
					return failed
				}
				return nil
			}
			if _, err := c.Restores().Restore(context.Background(), made.Path); !errors.Is(err, failed) {
				t.Fatalf("%s: Restore = %v", at, err)
			}
			want := before
			if strings.Contains(at, inventory.OutcomeName) || strings.HasPrefix(at, "release") || n > total-8 && strings.Contains(at, "sync-dir recovery") {
				want = snapshotBytes(t, made.Path) // it was done; only its last word failed
			}
			if diff := cmp.Diff(want, managedBytes(t, c)); diff != "" {
				t.Errorf("%s: the home differs:\n%.300s", at, diff)
			}
			noTemps(t, c.Home.Dir())
		})
	}
	if total < 60 {
		t.Errorf("a restore has only %d steps", total)
	}
}

func TestSTO_08_ADrillProvesASnapshotAndRecordsIt(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	before := managedBytes(t, c)
	result, err := c.Restores().Test(context.Background(), "")
	if err != nil || !result.OK || result.Files != 8 || result.Rows < 40 || result.Snapshot != filepath.Base(made.Path) {
		t.Errorf("Test = %+v, %v", result, err)
	}
	if last, ok := inventory.LastPassed(c.Home.Backups()); !ok || last != result {
		t.Errorf("LastPassed = %+v, %v", last, ok)
	}
	if diff := cmp.Diff(before, managedBytes(t, c)); diff != "" {
		t.Errorf("the restore test changed the home:\n%.300s", diff)
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	t.Run("STO-08 a snapshot without the rows that it counts fails the drill", func(t *testing.T) {
		m := manifestOf(t, made.Path)
		m.Counts["bridge.db"]["messages"]++
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		write(t, made.Path, inventory.ManifestName, string(data))
		if result, err := c.Restores().Test(context.Background(), ""); err == nil || result.OK {
			t.Errorf("Test = %+v, %v", result, err)
		}
		results, err := c.Doctor().TestResults()
		if err != nil || len(results) != 2 || results[0].OK || results[0].Detail == "" {
			t.Errorf("TestResults = %+v, %v", results, err)
		}
		if last, ok := inventory.LastPassed(c.Home.Backups()); !ok || last != result {
			t.Errorf("LastPassed = %+v, %v", last, ok)
		}
	})
}

func TestSTO_08_ARestoreWritesThroughNoLink(t *testing.T) {
	c := newHome(t)
	write(t, c.Home.Dir(), "network/keys.json", `{"key": "old"}`)
	made := mustBackup(t, c)
	elsewhere := t.TempDir()
	remove(t, c, "network/keys.json")
	remove(t, c, "network")
	write(t, elsewhere, "keys.json", `{"key": "precious"}`)
	if err := os.Symlink(elsewhere, inventory.JoinHome(c.Home.Dir(), "network")); err != nil {
		t.Fatal(err)
	}
	before := managedBytes(t, c)
	if _, err := c.Restores().Restore(t.Context(), made.Path); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "network is a symbolic link") {
		t.Errorf("restored through a link: %v", err)
	}
	if data := read(t, elsewhere, "keys.json"); string(data) != `{"key": "precious"}` {
		t.Errorf("what the link leads to is %s", data)
	}
	if diff := cmp.Diff(before, managedBytes(t, c)); diff != "" {
		t.Errorf("the refusal changed the home:\n%s", diff)
	}
}

func TestSTO_08_AManifestNamesOnlyWhatSnapshotsHold(t *testing.T) {
	for _, path := range []string{
		"../evil.json", "/evil.json", "x/../backups/evil.json", "x/../dashboard.json", "./evil.json", "jobs//evil.json", "backups/evil.json", "token", "",
	} {
		t.Run(path, func(t *testing.T) {
			c := newHome(t)
			made := mustBackup(t, c)
			manifest := manifestOf(t, made.Path)
			if path != "" {
				write(t, made.Path, path, "{}")
			}
			manifest.Files = append(manifest.Files, inventory.File{Path: path, SHA256: sumOf([]byte("{}")), Bytes: 2})
			if err := disk.WriteJSON(inventory.JoinHome(made.Path, inventory.ManifestName), manifest); err != nil {
				t.Fatal(err)
			}
			before := listing(t, c.Home.Dir())
			if _, err := c.Restores().Restore(t.Context(), made.Path); bridge.CodeOf(err) != bridge.Unsupported {
				t.Errorf("restored a manifest that names %q: %v", path, err)
			}
			if diff := cmp.Diff(before, listing(t, c.Home.Dir())); diff != "" {
				t.Errorf("the refusal changed the home:\n%s", diff)
			}
		})
	}
}

func TestSTO_14_WhatComesDuringARestoreIsNotTakenAway(t *testing.T) {
	for name, fails := range map[string]bool{"restored": false, "rolled back": true} {
		t.Run(name, func(t *testing.T) {
			c := newHome(t)
			made := mustBackup(t, c)
			c.step = func(name string) error {
				// The recovery set has just got its name; a hook keeps a receipt.
				if strings.HasPrefix(name, "remove ") || strings.HasPrefix(name, "publish jobs.json") {
					write(t, c.Home.Dir(), "read-journal/late.json", "[]")
					if fails {
						return errors.New("the disk is tired")
					}
				}
				return nil
			}
			if _, err := c.Restores().Restore(t.Context(), made.Path); (err != nil) != fails {
				t.Fatal(err)
			}
			if data := read(t, c.Home.Dir(), "read-journal/late.json"); string(data) != "[]" {
				t.Errorf("the receipt is %q", data)
			}
		})
	}
}

func TestSTO_08_ADrillProvesWhatWasCapturedAsItIs(t *testing.T) {
	c := newHome(t)
	onStore(t, c, "PRAGMA foreign_keys = 0; CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE q (p REFERENCES p(id)); INSERT INTO q VALUES (7)")
	made := mustBackup(t, c)
	if result, err := c.Restores().Test(t.Context(), made.Path); err != nil || !result.OK {
		t.Errorf("a faithful copy of broken references: %+v, %v", result, err)
	}
}
