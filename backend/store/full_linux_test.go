package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/bridge"
)

// TestMSG_04_AFullDiskAcknowledgesNothing fills a small file system of its own.
func TestMSG_04_AFullDiskAcknowledgesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("NOT PROVEN: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	path := filepath.Join(dir, "bridge.db")
	db, err := Open(t.Context(), path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()

	body := strings.Repeat("x", 3000)
	acknowledged := map[string]bool{}
	send := func(id string) error {
		_, _, err := db.Append(context.Background(), note(id, "a", body, 1, "b"))
		if err == nil {
			acknowledged[id] = true
		}
		return err
	}
	i := 0
	for err = nil; err == nil; i++ {
		err = send(fmt.Sprint("m", i))
	}
	requireStorage(t, err)
	if !strings.Contains(err.Error(), "disk") {
		t.Errorf("the sentence does not name the disk: %q", err)
	}
	// A whole batch meets the full disk, too.
	release := holdWriter(t, db)
	var group sync.WaitGroup
	errs := make([]error, 8)
	for k := range errs {
		group.Go(func() {
			_, _, errs[k] = db.Append(context.Background(), note(fmt.Sprint("batch", k), "a", body, 1, "b"))
		})
	}
	awaitQueue(t, db, len(errs))
	release()
	group.Wait()
	for k, err := range errs {
		if err == nil {
			acknowledged[fmt.Sprint("batch", k)] = true
			continue
		}
		requireStorage(t, err)
	}
	check := func(when string) {
		t.Helper()
		for id := range acknowledged {
			if row, err := db.Find(t.Context(), id); err != nil || row.Body != body {
				t.Errorf("%s: the acknowledged %s: %v", when, id, err)
			}
		}
		rows, err := db.Recent(t.Context(), 100_000)
		if err != nil || len(rows) != len(acknowledged) {
			t.Errorf("%s: %d messages are stored, %v; %d were acknowledged", when, len(rows), err, len(acknowledged))
		}
	}
	check("full")
	if len(acknowledged) < 100 {
		t.Errorf("only %d messages fitted", len(acknowledged))
	}

	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		i++
		if err := send(fmt.Sprint("m", i)); err != nil {
			t.Fatalf("Append with space again: %v", err)
		}
	}
	check("with space again")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openAt(t, path)
	check("reopened")
	checkWhole(t, path)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func requireStorage(t testing.TB, err error) {
	t.Helper()
	if bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("a full disk answers %v, want storage", err)
	}
}
