package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/bridge"
)

// holdWriter keeps the lead until the returned function is called, so that
// everything sent meanwhile gathers into one batch.
func holdWriter(t testing.TB, db *DB) (release func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		if err := db.writer.alone(context.Background(), func() error { close(held); <-free; return nil }); err != nil {
			t.Errorf("holding the writer: %v", err)
		}
	})
	<-held
	release = sync.OnceFunc(func() { close(free); done.Wait() })
	t.Cleanup(release) // a test that fails must not hang in Close
	return release
}

// awaitQueue returns once n writes wait; housekeeping may add one.
func awaitQueue(t testing.TB, db *DB, n int) {
	t.Helper()
	await(t, func() bool {
		db.writer.mu.Lock()
		defer db.writer.mu.Unlock()
		return len(db.writer.waiting) >= n
	})
}

func TestEachCallerOfABatchGetsItsOwnAnswer(t *testing.T) {
	db := openTest(t)
	appendAll(t, db, note("taken", "alice", "first", 1, "bob"))
	release := holdWriter(t, db)
	const callers = 12
	errs := make([]error, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			switch {
			case i%4 == 0:
				_, _, errs[i] = db.Append(context.Background(), note("taken", "mallory", "second", 1, "bob"))
			case i == 5:
				errs[i] = db.writer.do(context.Background(), func(t *tx) error {
					if err := insertOne(t, "by the panicking one"); err != nil {
						return err
					}
					panic("a bug")
				})
			default:
				_, _, errs[i] = db.Append(context.Background(), note(fmt.Sprint("m", i), "alice", "x", 1, "bob"))
			}
		})
	}
	awaitQueue(t, db, callers)
	release()
	group.Wait()
	for i, err := range errs {
		var want bridge.Code
		switch {
		case i%4 == 0:
			want = bridge.Conflict
		case i == 5:
			want = bridge.Internal
		}
		if bridge.CodeOf(err) != want {
			t.Errorf("caller %d: %v, want %q", i, err, want)
		}
		_, err := db.Find(t.Context(), fmt.Sprint("m", i))
		if found := err == nil; found != (want == "") {
			t.Errorf("the message of caller %d: %v", i, err)
		}
	}
	if _, err := db.Find(t.Context(), "by the panicking one"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("a write of a closure that panicked: %v", err)
	}
}

func insertOne(t *tx, id string) error {
	_, err := insert(t, insertMessage, note(id, "a", "x", 1, "b")[0])
	return err
}

func TestACallerThatGivesUpTakesNobodyAlong(t *testing.T) {
	db := openTest(t)
	release := holdWriter(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, _, err := db.Append(ctx, note("gone", "a", "x", 1, "b")); gaveUp <- err }()
	awaitQueue(t, db, 1)
	go func() {
		_, _, err := db.Append(context.Background(), note("stays", "a", "x", 1, "b"))
		stayed <- err
	}()
	awaitQueue(t, db, 2)
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gave up: %v", err)
	}
	release()
	if err := <-stayed; err != nil {
		t.Errorf("the caller that stayed: %v", err)
	}
	if _, err := db.Find(t.Context(), "gone"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("the message of the caller that gave up: %v, want not found", err)
	}
	if _, _, err := db.Append(ctx, note("never", "a", "x", 1, "b")); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a cancelled context: %v", err)
	}
}

func TestCloseWaitsForTheWritesUnderWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db, err := Open(t.Context(), path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	release := holdWriter(t, db)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() { appendAll(t, db, note(fmt.Sprint("m", i), "a", "x", 1, "b")) })
	}
	awaitQueue(t, db, 8)
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	await(t, func() bool {
		db.writer.mu.Lock()
		defer db.writer.mu.Unlock()
		return db.writer.closed
	})
	release()
	group.Wait()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if hasLog(path) {
		t.Error("the log was not moved into the file")
	}
	if rows, err := openAt(t, path).Recent(t.Context(), 10); err != nil || len(rows) != 8 {
		t.Errorf("after Close %d messages are stored, %v; want 8", len(rows), err)
	}
}

func TestATransactionLeftBehindDoesNotStopTheWriter(t *testing.T) {
	db := openTest(t)
	if err := db.writer.alone(t.Context(), func() error { return db.writer.tx.begin() }); err != nil {
		t.Fatal(err)
	}
	appendAll(t, db, note("m", "a", "x", 1, "b"))
}

// TestTheLogStaysBounded writes far more than logBytes and looks at the
// log: without rounds of housekeeping it would hold everything.
func TestTheLogStaysBounded(t *testing.T) {
	db := openTest(t)
	body := strings.Repeat("x", 60_000)
	var largest int64
	for i := range 1800 { // 108 MB
		appendAll(t, db, note(fmt.Sprint("m", i), "a", body, int64(i), "b"))
		largest = max(largest, logSize(t, db.path))
	}
	if largest > 3*logBytes {
		t.Errorf("the log grew to %d bytes", largest)
	}
	if row := mustFind(t, db.Reader, "m0"); row.Body != body {
		t.Error("the first message changed")
	}
}

func TestConcurrentReadersAndWriters(t *testing.T) {
	db := openTest(t)
	var group sync.WaitGroup
	for sender := range 4 {
		group.Go(func() {
			for i := range 25 {
				appendAll(t, db, note(fmt.Sprintf("m-%d-%d", sender, i), fmt.Sprint("s", sender), "x", int64(i), "b"))
			}
		})
		group.Go(func() {
			for range 25 {
				rows, err := db.Recent(context.Background(), 50)
				if err != nil {
					t.Errorf("Recent: %v", err)
				}
				seen := map[string]bool{}
				for _, row := range rows {
					if seen[row.ID] || len(row.Deliveries) != 1 {
						t.Errorf("Recent gives %+v", row)
					}
					seen[row.ID] = true
				}
			}
		})
	}
	group.Wait()
	rows, err := db.Recent(t.Context(), 1000)
	if diff := cmp.Diff(100, len(rows)); err != nil || diff != "" {
		t.Errorf("stored: %v (-want +got):\n%s", err, diff)
	}
}
