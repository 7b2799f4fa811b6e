//go:build amd64 || arm64

package faults

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/platform/disk"
	"bridge/backend/testing/testkit"
)

// syncs sees which file or folder was synced after what: by inode, for a file is
// written under one name and published under another.
type syncs struct {
	mu      sync.Mutex
	now     int
	written map[uint64]int // when it was last written
	synced  map[uint64]int // when it was last synced
}

func (s *syncs) judge(c call) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now++
	switch node := inode(c.path); {
	case node == 0:
	case c.isSync():
		s.synced[node] = s.now
	default:
		s.written[node] = s.now
	}
	return verdict{}
}

func inode(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// names gives the inode of each name, by folder.
func names(t *testing.T, dir string) map[string]map[string]uint64 {
	t.Helper()
	folders := map[string]map[string]uint64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			folders[path] = map[string]uint64{}
		}
		if path != dir && !isLoose(entry.Name()) {
			folders[filepath.Dir(path)][entry.Name()] = inode(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// isLoose reports whether a file needs no sync of ours: SQLite does its own, and
// leases, locks and logs say nothing after a power cut.
func isLoose(name string) bool {
	for _, suffix := range []string{".db", ".db-wal", ".db-shm", ".db-journal", ".lock", ".lock-journal", ".sock", ".log"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// isSet reports whether a folder gets its name when it is whole; others are made
// first and filled then.
func isSet(name string) bool {
	return strings.HasPrefix(name, "snapshot-") || strings.HasPrefix(name, "messages-")
}

// check fails for a file that was written and not synced after it, and for a
// folder with a new, other or missing name that was not synced after its files.
func (s *syncs) check(t *testing.T, before, after map[string]map[string]uint64, loose ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for folder, now := range after {
		if slices.Contains(loose, filepath.Base(folder)) {
			continue
		}
		last := 0
		for name, node := range now {
			wrote, synced := s.written[node], s.synced[node]
			if wrote > 0 && synced < wrote {
				t.Errorf("%s was written and not synced", filepath.Join(folder, name))
			}
			_, isFolder := after[filepath.Join(folder, name)]
			if before[folder][name] != node && (!isFolder || isSet(name)) {
				last = max(last, synced)
			}
		}
		if !maps.Equal(before[folder], now) && s.synced[inode(folder)] <= last {
			t.Errorf("the folder %s was not synced after its names changed", folder)
		}
	}
}

// diskPart makes the test binary do one work of the package disk.
const diskPart = "disk-part"

// diskWorks are the writes of the package disk, in a folder with the file old.
var diskWorks = map[string]func(dir string) error{
	"WriteAtomic":          func(dir string) error { return disk.WriteAtomic(filepath.Join(dir, "new"), []byte("x"), 0o600) },
	"WriteAtomic over one": func(dir string) error { return disk.WriteAtomic(filepath.Join(dir, "old"), []byte("x"), 0o600) },
	"WriteNew":             func(dir string) error { return disk.WriteNew(filepath.Join(dir, "new"), []byte("x"), 0o600) },
	"WriteJSON":            func(dir string) error { return disk.WriteJSON(filepath.Join(dir, "new"), "x") },
	"AppendSync":           func(dir string) error { return disk.Files{}.AppendSync(filepath.Join(dir, "new"), []byte("x"), 0o600) },
	"AppendSync to one":    func(dir string) error { return disk.Files{}.AppendSync(filepath.Join(dir, "old"), []byte("x"), 0o600) },
	"Copy": func(dir string) error {
		_, _, err := disk.Files{}.Copy(filepath.Join(dir, "old"), filepath.Join(dir, "new"))
		return err
	},
	"Move": func(dir string) error { return disk.Move(filepath.Join(dir, "old"), filepath.Join(dir, "sub", "new")) },
	"Publish": func(dir string) error {
		return disk.Publish(filepath.Join(dir, "old"), filepath.Join(dir, "sub", "new"))
	},
	"Replace": func(dir string) error {
		return disk.Files{}.Replace(filepath.Join(dir, "pending"), filepath.Join(dir, "old"))
	},
	"RemoveCopied":    func(dir string) error { return disk.Files{}.RemoveCopied(filepath.Join(dir, "old")) },
	"MakeDir":         func(dir string) error { return disk.MakeDir(filepath.Join(dir, "made")) },
	"MakeDir of many": func(dir string) error { return disk.MakeDir(filepath.Join(dir, "a", "b", "c")) },
}

// TestMSG_04_STO_14_WhatIsPublishedIsSynced: each way to write a file leaves it, and
// the folder that has its name, on the disk.
func TestMSG_04_STO_14_WhatIsPublishedIsSynced(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range diskWorks {
		t.Run("STO-14 "+name, func(t *testing.T) {
			dir := scratch(t)
			put(t, dir, "old", "old\n")
			put(t, dir, "pending", "pending")
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			before, seen := names(t, dir), &syncs{written: map[uint64]int{}, synced: map[uint64]int{}}
			var text bytes.Buffer
			part := startOf(t, self, dir, seen.judge, &text, &text, diskPart, name, dir)
			waitFor(t, part, &text)
			after := names(t, dir)
			seen.check(t, before, after)
			if seen.now == 0 || !strings.Contains(name, "AppendSync to") && maps.EqualFunc(before, after, maps.Equal) {
				t.Errorf("%d calls were seen, and nothing changed", seen.now)
			}
		})
	}
}

// waitFor waits for a program that must succeed.
func waitFor(t *testing.T, p *traced, text *bytes.Buffer) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testkit.Patience):
		t.Fatalf("it hangs: %s", text)
	}
	if code := p.status.ExitStatus(); code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
}

// TestSTO_04_STO_08_WhatMaintenancePublishesIsSynced: the same of what the real
// commands write.
func TestSTO_04_STO_08_WhatMaintenancePublishesIsSynced(t *testing.T) {
	made := makeHome(t)
	for _, w := range works {
		t.Run(w.name, func(t *testing.T) {
			home := copyOf(t, made)
			if w.spoil != nil {
				w.spoil(t, home)
			}
			before, seen := names(t, home), &syncs{written: map[uint64]int{}, synced: map[uint64]int{}}
			var text bytes.Buffer
			waitFor(t, start(t, home, seen.judge, &text, &text, append(w.args, "--home", home)...), &text)
			if !w.done(t, home) {
				t.Fatal(text.String())
			}
			seen.check(t, before, names(t, home), ".storage-users")
		})
	}
}

// TestSTO_14_WhatABrokerPublishesIsSynced: its secrets and folders.
func TestSTO_14_WhatABrokerPublishesIsSynced(t *testing.T) {
	home := filepath.Join(scratch(t), "h")
	seen := &syncs{written: map[uint64]int{}, synced: map[uint64]int{}}
	b := serve(t, home, seen.judge)
	if !b.send("m1") {
		t.Fatal("not sent")
	}
	b.signal(unix.SIGTERM)
	<-b.ended
	seen.check(t, map[string]map[string]uint64{}, names(t, home), ".storage-users", "logs")
}
