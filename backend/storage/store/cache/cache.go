// Package cache caches the data that the page polls from a store: the newest messages,
// the unread count of each recipient, and the peers. A read reloads only what was touched
// since the last one. Every write declares what it touches, or counts as one that may
// have touched anything.
package cache

import (
	"context"
	"maps"
	"slices"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
)

// Invalidation is what a write touches: a delivery, by message and recipient, or the data of a
// peer, by its id.
type Invalidation struct{ Message, Recipient, Peer string }

// Sent returns the deliveries that a send touches: its own, and the one that it answers.
func Sent(msgs ...bridge.Message) []Invalidation {
	touched := make([]Invalidation, 0, len(msgs)+1)
	for _, msg := range msgs {
		touched = append(touched, Invalidation{Message: msg.ID, Recipient: msg.Recipient})
	}
	if answered := msgs[0].ReplyTo; answered != "" {
		touched = append(touched, Invalidation{Message: answered, Recipient: msgs[0].From.ID})
	}
	return touched
}

// Marked returns the deliveries that marks touch.
func Marked(marks ...mail.Mark) []Invalidation {
	touched := make([]Invalidation, len(marks))
	for i, mark := range marks {
		touched[i] = Invalidation{Message: mark.MessageID, Recipient: mark.Recipient}
	}
	return touched
}

// Writer is the only way to write to the store. It records what a write touches before it
// returns.
type Writer struct {
	*sqlitex.Writer
	*Changes
}

// Do runs sqlitex.Writer.Do for a write that may touch anything, and fails as that does.
func (w Writer) Do(ctx context.Context, apply func(*sqlitex.Tx) error) error {
	err := w.Writer.Do(ctx, apply)
	w.forget()
	return err
}

// DoFor runs a write that touches at most what touched returns after it. It fails as Do
// does.
func (w Writer) DoFor(ctx context.Context, touched func() []Invalidation, apply func(*sqlitex.Tx) error) error {
	err := w.Writer.Do(ctx, apply)
	if err != nil { // a commit with an unknown outcome may have touched it
		w.forget()
		return err
	}
	for _, use := range touched() {
		w.messages.add(use.Message)
		w.recipients.add(use.Recipient)
		w.peers.add(use.Peer)
	}
	return nil
}

// Nothing is the touched value of a write about no delivery and no peer.
func Nothing() []Invalidation { return nil }

// Changes records what writes have touched. The zero value means that nothing is known of
// the store yet.
type Changes struct{ messages, recipients, peers changes }

func (c *Changes) forget() {
	c.messages.forget()
	c.recipients.forget()
	c.peers.forget()
}

// ReadCache caches the reads of one store, whose peers are of type P. The zero value caches nothing.
type ReadCache[P any] struct {
	*Changes // nil if nothing is cached

	rowsMu sync.Mutex                 // guards rows; held during reads, never by a write
	rows   map[string]mail.HistoryRow // the newest messages at the last read, by id

	unreadMu sync.Mutex // guards unread, as rowsMu does
	unread   map[string]int

	knownMu sync.Mutex // guards known, as rowsMu does
	known   []P
}

// Subscribe returns the writer of the store from then on. Reads are cached if alone is set,
// because then no other process writes.
func (l *ReadCache[P]) Subscribe(w *sqlitex.Writer, alone bool) Writer {
	changes := &Changes{}
	if alone {
		l.Changes = changes
	}
	return Writer{w, changes}
}

// Recent returns the newest messages. read returns their stamps, and those rows that are
// not cached; it may omit rows that no longer exist. It fails if read does.
func (l *ReadCache[P]) Recent(read func(isCached func(id string) bool) (newest []sqlitex.Stamp, missing []mail.HistoryRow, err error)) ([]mail.HistoryRow, error) {
	if l.Changes == nil {
		_, rows, err := read(func(string) bool { return false })
		return rows, err
	}
	l.rowsMu.Lock()
	defer l.rowsMu.Unlock()
	touched, all := l.messages.take() // before the read: later touches cause another read
	if all {
		l.rows = nil
	}
	for _, id := range touched {
		delete(l.rows, id)
	}
	newest, missing, err := read(func(id string) bool { _, isCached := l.rows[id]; return isCached })
	if err != nil {
		return nil, err // rows still cached were not touched
	}
	rows := make(map[string]mail.HistoryRow, len(newest))
	for _, row := range missing {
		rows[row.ID] = row
	}
	history := make([]mail.HistoryRow, 0, len(newest))
	for _, stamp := range newest {
		row, has := rows[stamp.ID]
		if !has {
			row, has = l.rows[stamp.ID]
		}
		if has {
			rows[stamp.ID] = row
			history = append(history, row)
		}
	}
	l.rows = rows
	return history, nil
}

// Unread returns the number of unread messages for each recipient that has some. count
// counts them for some recipients, or for all if it gets nil. It fails if count does.
func (l *ReadCache[P]) Unread(count func(recipients []string) (map[string]int, error)) (map[string]int, error) {
	if l.Changes == nil {
		return count(nil)
	}
	l.unreadMu.Lock()
	defer l.unreadMu.Unlock()
	touched, all := l.recipients.take()
	if all || len(touched) > 0 {
		counts, err := count(touched)
		if err != nil {
			l.recipients.forget()
			return nil, err
		}
		if all {
			l.unread = nil
		}
		for _, recipient := range touched {
			delete(l.unread, recipient)
		}
		if l.unread == nil {
			l.unread = map[string]int{}
		}
		maps.Copy(l.unread, counts)
	}
	return maps.Clone(l.unread), nil
}

// Peers returns all known peers. It fails if read does.
func (l *ReadCache[P]) Peers(read func() ([]P, error)) ([]P, error) {
	if l.Changes == nil {
		return read()
	}
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	if touched, all := l.peers.take(); all || len(touched) > 0 {
		peers, err := read()
		if err != nil {
			l.peers.forget()
			return nil, err
		}
		l.known = peers
	}
	return slices.Clone(l.known), nil
}

// mostTouched limits the recorded names: beyond it, everything is read again.
const mostTouched = 1_000

// changes records the names of what was touched since the last take.
type changes struct {
	mu    sync.Mutex      // guards the fields below
	noted bool            // names is complete; if false, anything may have been touched
	names map[string]bool // what was touched
}

func (c *changes) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.noted || name == "" {
		return
	}
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[name] = true
	if len(c.names) > mostTouched {
		c.noted, c.names = false, nil
	}
}

func (c *changes) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted, c.names = false, nil
}

// take returns what was touched, or nil and all if that may be anything, and resets the record.
func (c *changes) take() (touched []string, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	touched, all = slices.Collect(maps.Keys(c.names)), !c.noted
	c.noted, c.names = true, nil
	return touched, all
}
