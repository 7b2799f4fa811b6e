package sqlitex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// openWords opens a database of words, and closes it with the test.
func openWords(t *testing.T) *Writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words.db")
	err := CreateWhole(t.Context(), path, func(ctx context.Context, pool *sql.DB) error {
		_, err := pool.ExecContext(ctx, "CREATE TABLE words (word TEXT PRIMARY KEY)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := OpenWriter(t.Context(), path, Attachment{}, func(*Tx) error { return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

// say stores a word, one that is there is a conflict.
func say(ctx context.Context, w *Writer, word string) error {
	return w.Do(ctx, func(t *Tx) error {
		stored, err := t.Exec("INSERT OR IGNORE INTO words VALUES (?1)", word)
		if err == nil && stored == 0 {
			err = bridge.Errorf(bridge.Conflict, "%s was said", word)
		}
		return err
	})
}

// said lists the words that a connection of its own finds.
func said(t *testing.T, path string) (words []string) {
	t.Helper()
	err := Quietly(t.Context(), path, true, func(pool *sql.DB) (err error) {
		words, err = Texts(t.Context(), pool, "SELECT word FROM words ORDER BY word")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// hold keeps the lead until the returned function is called, so that everything
// sent meanwhile gathers into one batch.
func hold(t *testing.T, w *Writer) (release func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		if err := w.Alone(context.Background(), func() error { close(held); <-free; return nil }); err != nil {
			t.Errorf("holding the Writer: %v", err)
		}
	})
	<-held
	release = sync.OnceFunc(func() { close(free); done.Wait() })
	t.Cleanup(release) // a test that fails must not hang in close
	return release
}

func await(t *testing.T, holds func() bool) {
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

func TestEachCallerOfABatchGetsItsOwnAnswer(t *testing.T) {
	w := openWords(t)
	if err := say(t.Context(), w, "taken"); err != nil {
		t.Fatal(err)
	}
	release := hold(t, w)
	const callers = 12
	errs := make([]error, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			switch {
			case i%4 == 0:
				errs[i] = say(context.Background(), w, "taken")
			case i == 5:
				errs[i] = w.Do(context.Background(), func(t *Tx) error {
					if _, err := t.Exec("INSERT INTO words VALUES ('by the panicking one')"); err != nil {
						return err
					}
					panic("a bug")
				})
			default:
				errs[i] = say(context.Background(), w, fmt.Sprint("w", i))
			}
		})
	}
	await(t, func() bool { return w.Queued() == callers })
	release()
	group.Wait()
	words := said(t, w.path)
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
		if found := slices.Contains(words, fmt.Sprint("w", i)); found != (want == "") {
			t.Errorf("the word of caller %d is there: %t", i, found)
		}
	}
	if slices.Contains(words, "by the panicking one") {
		t.Error("what a closure wrote that panicked is stored")
	}
}

func TestACallerThatGivesUpTakesNobodyAlong(t *testing.T) {
	w := openWords(t)
	release := hold(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp, stayed := make(chan error, 1), make(chan error, 1)
	go func() { gaveUp <- say(ctx, w, "gone") }()
	await(t, func() bool { return w.Queued() == 1 })
	go func() { stayed <- say(context.Background(), w, "stays") }()
	await(t, func() bool { return w.Queued() == 2 })
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gave up: %v", err)
	}
	release()
	if err := <-stayed; err != nil {
		t.Errorf("the caller that stayed: %v", err)
	}
	if err := say(ctx, w, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("a write with a cancelled context: %v", err)
	}
	if words := said(t, w.path); !slices.Equal(words, []string{"stays"}) {
		t.Errorf("stored: %q", words)
	}
}

// Whoever gives up while its write is in a batch hears what became of it: it may
// be stored.
func TestACallerInABatchHearsItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWords(t)
		release := hold(t, w)
		running, goOn, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			first <- w.Do(context.Background(), func(*Tx) error { close(running); <-goOn; return nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() { second <- say(ctx, w, "claimed") }()
		synctest.Wait()
		release()
		<-running
		cancel()
		synctest.Wait()
		close(goOn)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Errorf("the writes of one batch: %v", err)
		}
		if words := said(t, w.path); !slices.Equal(words, []string{"claimed"}) {
			t.Errorf("stored: %q", words)
		}
	})
}

func TestCloseWaitsForTheWritesUnderWay(t *testing.T) {
	w := openWords(t)
	release := hold(t, w)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if err := say(context.Background(), w, fmt.Sprint("w", i)); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	await(t, func() bool { return w.Queued() == 8 })
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	await(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.closed
	})
	release()
	group.Wait()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if HasLog(w.path) {
		t.Error("the log was not moved into the file")
	}
	if words := said(t, w.path); len(words) != 8 {
		t.Errorf("after close %q are stored, want 8 words", words)
	}
	if err := say(t.Context(), w, "late"); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("a write after close: %v", err)
	}
}

func TestATransactionLeftBehindDoesNotStopTheWriter(t *testing.T) {
	w := openWords(t)
	if err := w.Alone(t.Context(), func() error { return w.tx.Begin() }); err != nil {
		t.Fatal(err)
	}
	if err := say(t.Context(), w, "on"); err != nil {
		t.Error(err)
	}
}
