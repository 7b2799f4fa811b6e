package cache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
)

// store is what is looked at, with how much of it was read.
type store struct {
	bodies map[string]string
	newest []string
	unread map[string]int
	fails  error

	rows, counts, peers int // read
}

func (s *store) recent(l *ReadCache[string]) (bodies []string, err error) {
	rows, err := l.Recent(func(kept func(string) bool) (newest []sqlitex.Stamp, missing []mail.HistoryRow, err error) {
		for _, id := range s.newest {
			newest = append(newest, sqlitex.Stamp{ID: id})
			if !kept(id) {
				missing = append(missing, mail.HistoryRow{ID: id, Body: s.bodies[id]})
				s.rows++
			}
		}
		return newest, missing, s.fails
	})
	for _, row := range rows {
		bodies = append(bodies, row.Body)
	}
	return bodies, err
}

func (s *store) count(l *ReadCache[string]) (map[string]int, error) {
	return l.Unread(func(of []string) (map[string]int, error) {
		counts := map[string]int{}
		for recipient, n := range s.unread {
			if of == nil {
				counts[recipient] = n
			}
			for _, text := range of {
				if text == recipient && n > 0 {
					counts[recipient] = n
				}
			}
			s.counts++
		}
		return counts, s.fails
	})
}

func (s *store) known(l *ReadCache[string]) ([]string, error) {
	return l.Peers(func() ([]string, error) {
		s.peers++
		return []string{fmt.Sprint("peer ", s.peers)}, s.fails
	})
}

// look wants each of the three to be read without a failure.
func (s *store) look(t *testing.T, l *ReadCache[string]) (bodies []string, unread map[string]int, peers []string) {
	t.Helper()
	bodies, err := s.recent(l)
	unread, countErr := s.count(l)
	peers, peersErr := s.known(l)
	if err := errors.Join(err, countErr, peersErr); err != nil {
		t.Fatal(err)
	}
	return bodies, unread, peers
}

func newStore() *store {
	return &store{bodies: map[string]string{"a": "1", "b": "2"}, newest: []string{"b", "a"}, unread: map[string]int{"bob": 1, "cy": 2}}
}

func TestALookReadsWhatWasTouched(t *testing.T) {
	s, l := newStore(), &ReadCache[string]{Changes: &Changes{}}
	s.look(t, l)
	s.bodies["a"], s.bodies["b"], s.bodies["c"], s.newest = "3", "4", "5", []string{"c", "b", "a"}
	s.unread["bob"], s.unread["cy"] = 0, 3
	l.messages.add("a")
	l.recipients.add("bob")
	bodies, unread, peers := s.look(t, l)
	want := []any{[]string{"5", "2", "3"}, map[string]int{"cy": 2}, []string{"peer 1"}}
	if diff := cmp.Diff(want, []any{bodies, unread, peers}); diff != "" || s.rows != 4 {
		t.Errorf("read %d rows (-want +got):\n%s", s.rows, diff)
	}
	l.forget()
	bodies, unread, peers = s.look(t, l)
	want = []any{[]string{"5", "4", "3"}, map[string]int{"bob": 0, "cy": 3}, []string{"peer 2"}}
	if diff := cmp.Diff(want, []any{bodies, unread, peers}); diff != "" {
		t.Errorf("of a write that may have touched anything (-want +got):\n%s", diff)
	}
	counts := s.counts
	if s.look(t, l); s.rows != 7 || s.counts != counts || s.peers != 2 {
		t.Errorf("nothing was touched, and read were %d rows, %d counts, %d times peers", s.rows, s.counts-counts, s.peers)
	}
}

// What a look that fails was to read, the next one reads.
func TestALookThatFailsTakesNothingAway(t *testing.T) {
	s, l := newStore(), &ReadCache[string]{Changes: &Changes{}}
	s.look(t, l)
	s.bodies["a"], s.unread["bob"] = "3", 4
	l.messages.add("a")
	l.recipients.add("bob")
	l.peers.add("p")
	s.fails = errors.New("the disk")
	_, err := s.recent(l)
	_, countErr := s.count(l)
	_, peersErr := s.known(l)
	if err == nil || countErr == nil || peersErr == nil {
		t.Fatalf("failures are not told: %v, %v, %v", err, countErr, peersErr)
	}
	s.fails = nil
	bodies, unread, peers := s.look(t, l)
	want := []any{[]string{"2", "3"}, map[string]int{"bob": 4, "cy": 2}, []string{"peer 3"}}
	if diff := cmp.Diff(want, []any{bodies, unread, peers}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAWriteMayHaveTouchedMoreThanItSays has a write told as failed that is stored: its file
// had no name when it was committed, and has one again when somebody looks.
func TestAWriteMayHaveTouchedMoreThanItSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words.db")
	err := sqlitex.CreateWhole(t.Context(), path, func(ctx context.Context, pool *sql.DB) error {
		_, err := pool.ExecContext(ctx, "CREATE TABLE words (word TEXT)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := sqlitex.OpenWriter(t.Context(), path, sqlitex.Attachment{}, func(*sqlitex.Tx) error { return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := (&ReadCache[string]{}).Subscribe(file, true)
	say := func(tx *sqlitex.Tx) error { _, err := tx.Exec("INSERT INTO words VALUES ('x')"); return err }
	touched := func() []Invalidation { return []Invalidation{{Message: "m", Recipient: "r", Peer: "p"}} }
	nameless := func(do func() error) func() error {
		return func() error {
			return errors.Join(os.Rename(path, path+".away"), refused(do()), os.Rename(path+".away", path))
		}
	}
	for what, c := range map[string]struct {
		do  func() error
		all bool
	}{
		"it says what":       {func() error { return w.DoFor(t.Context(), touched, say) }, false},
		"it says nothing":    {func() error { return w.Do(t.Context(), say) }, true},
		"it fails":           {nameless(func() error { return w.DoFor(t.Context(), touched, say) }), true},
		"it fails, and more": {nameless(func() error { return w.Do(t.Context(), say) }), true},
	} {
		for _, item := range []*changes{&w.messages, &w.recipients, &w.peers} {
			item.take()
		}
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for kind, item := range map[string]*changes{"m": &w.messages, "r": &w.recipients, "p": &w.peers} {
			if names, all := item.take(); all != c.all || !all && !slices.Equal(names, []string{kind}) {
				t.Errorf("%s: of %s %q are touched, all %v", what, kind, names, all)
			}
		}
	}
}

// refused is nil where the store was said to be gone.
func refused(err error) error {
	if bridge.CodeOf(err) == bridge.Storage {
		return nil
	}
	return fmt.Errorf("a write to a file without a name: %v", err) //nolint:errorlint // it may be nil
}

func TestMoreIsTouchedThanIsKeptApart(t *testing.T) {
	var c changes
	c.take()
	for i := range 1_000 {
		c.add(fmt.Sprint(i))
	}
	if touched, all := c.take(); len(touched) != 1_000 || all {
		t.Errorf("%d touched, all %v", len(touched), all)
	}
	for i := range 1_001 {
		c.add(fmt.Sprint(i))
	}
	if touched, all := c.take(); touched != nil || !all {
		t.Errorf("%d touched, all %v", len(touched), all)
	}
	c.add("one")
	c.add("")
	if touched, all := c.take(); len(touched) != 1 || all {
		t.Errorf("afterwards %q, all %v", touched, all)
	}
}

func TestNothingIsKeptWhereOthersWrite(t *testing.T) {
	s, l := newStore(), &ReadCache[string]{}
	l.Subscribe(nil, false)
	s.look(t, l)
	if s.look(t, l); s.rows != 4 || s.counts != 4 || s.peers != 2 {
		t.Errorf("read %d rows, %d counts, %d times peers", s.rows, s.counts, s.peers)
	}
}
