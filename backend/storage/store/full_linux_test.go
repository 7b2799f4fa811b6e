package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
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
	d := &fullDisk{DB: openAt(t, path), acknowledged: map[string]bool{}}
	for d.send("m") == nil {
	}
	requireStorage(t, d.send("m"))
	if len(d.acknowledged) < 100 {
		t.Errorf("only %d messages fitted", len(d.acknowledged))
	}

	// A whole batch meets the full disk, too.
	release := holdWriter(t, d.DB)
	var group sync.WaitGroup
	for k := range 8 {
		group.Go(func() {
			if err := d.send(fmt.Sprint("batch", k)); err != nil {
				requireStorage(t, err)
			}
		})
	}
	awaitQueue(t, d.DB, 8)
	release()
	group.Wait()
	d.check(t, "full")

	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := d.send("later"); err != nil {
			t.Fatalf("Append with space again: %v", err)
		}
	}
	d.check(t, "with space again")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.DB = openAt(t, path)
	d.check(t, "reopened")
	checkWhole(t, path)
}

// fullDisk sends messages of one size and remembers which were acknowledged.
type fullDisk struct {
	*DB
	mu           sync.Mutex
	count        int
	acknowledged map[string]bool
}

var fullDiskBody = strings.Repeat("x", 3000)

func (d *fullDisk) send(prefix string) error {
	d.mu.Lock()
	d.count++
	id := fmt.Sprint(prefix, "-", d.count)
	d.mu.Unlock()
	_, _, err := d.Append(context.Background(), note(id, "a", fullDiskBody, 1, "b"))
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.acknowledged[id] = true
	}
	return err
}

// check fails unless exactly the acknowledged messages are stored.
func (d *fullDisk) check(t testing.TB, when string) {
	t.Helper()
	for id := range d.acknowledged {
		if row, err := d.Find(context.Background(), id); err != nil || row.Body != fullDiskBody {
			t.Errorf("%s: the acknowledged %s: %v", when, id, err)
		}
	}
	rows, err := d.Recent(context.Background(), 100_000)
	if err != nil || len(rows) != len(d.acknowledged) {
		t.Errorf("%s: %d messages are stored, %v; %d were acknowledged", when, len(rows), err, len(d.acknowledged))
	}
}

func requireStorage(t testing.TB, err error) {
	t.Helper()
	if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(fmt.Sprint(err), "disk") {
		t.Errorf("a full disk answers %v, want storage and a sentence that names the disk", err)
	}
}

// await polls a condition until it holds.
func await(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(testkit.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatal("the awaited condition did not come")
		case <-tick.C:
		}
	}
}

// holdWriter keeps the lead until the returned function is called, so that
// everything sent meanwhile gathers into one batch.
func holdWriter(t testing.TB, db *DB) (release func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		if err := db.writer.Alone(context.Background(), func() error { close(held); <-free; return nil }); err != nil {
			t.Errorf("holding the writer: %v", err)
		}
	})
	<-held
	release = sync.OnceFunc(func() { close(free); done.Wait() })
	t.Cleanup(release) // a test that fails must not hang in Close
	return release
}

// awaitQueue returns once n writes wait; the checkpointer may add one.
func awaitQueue(t testing.TB, db *DB, n int) {
	t.Helper()
	await(t, func() bool { return db.writer.Queued() >= n })
}
