// Package cache keeps what the page asks a store for at each look, from one look to the
// next: the newest messages, how many each recipient has not read, and who was here. A look
// reads what was touched since the last one. Every write says what it touches, or counts as
// one that may have touched anything.
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

// Touch is what a write touches: a delivery, by its message and whose mail that is, or what
// is known of a peer, by its id.
type Touch struct{ Message, Recipient, Peer string }

// Sent are the deliveries that a send touches: its own, and the one that it answers.
func Sent(msgs ...bridge.Message) []Touch {
	touched := make([]Touch, 0, len(msgs)+1)
	for _, msg := range msgs {
		touched = append(touched, Touch{Message: msg.ID, Recipient: msg.Recipient})
	}
	if answered := msgs[0].ReplyTo; answered != "" {
		touched = append(touched, Touch{Message: answered, Recipient: msgs[0].From.ID})
	}
	return touched
}

// Marked are the deliveries that marks touch.
func Marked(marks ...mail.Mark) []Touch {
	touched := make([]Touch, len(marks))
	for i, mark := range marks {
		touched[i] = Touch{Message: mark.MessageID, Recipient: mark.Recipient}
	}
	return touched
}

// Writer is the one way to write to the store: what a write touches is noted before its
// caller hears that it is done.
type Writer struct {
	*sqlitex.Writer
	*Changes
}

// Do is sqlitex.Writer.Do of a write that may touch anything.
func (w Writer) Do(ctx context.Context, apply func(*sqlitex.Tx) error) error {
	err := w.Writer.Do(ctx, apply)
	w.forget()
	return err
}

// DoFor is Do of a write that touches at most what touched returns once it is done.
func (w Writer) DoFor(ctx context.Context, touched func() []Touch, apply func(*sqlitex.Tx) error) error {
	err := w.Writer.Do(ctx, apply)
	if err != nil { // a commit whose end nobody knows may have touched it
		w.forget()
		return err
	}
	for _, one := range touched() {
		w.messages.add(one.Message)
		w.recipients.add(one.Recipient)
		w.peers.add(one.Peer)
	}
	return nil
}

// Nothing is what a write touches that is about no delivery and no peer.
func Nothing() []Touch { return nil }

// Changes are what writes have touched. The zero value is for a store of which nothing is
// known yet.
type Changes struct{ messages, recipients, peers changes }

func (c *Changes) forget() {
	c.messages.forget()
	c.recipients.forget()
	c.peers.forget()
}

// Looks are those at one store, whose peers are of type P. The zero value keeps nothing.
type Looks[P any] struct {
	*Changes // nil where nothing is kept

	rowsMu sync.Mutex                 // guards rows; held while a look reads, never by a write
	rows   map[string]mail.HistoryRow // the newest messages at the last look, by id

	unreadMu sync.Mutex // guards unread, as rowsMu does
	unread   map[string]int

	knownMu sync.Mutex // guards known, as rowsMu does
	known   []P
}

// Follow returns the way to write to the store from then on. What the looks read is kept
// where nobody else writes.
func (l *Looks[P]) Follow(w *sqlitex.Writer, alone bool) Writer {
	changes := &Changes{}
	if alone {
		l.Changes = changes
	}
	return Writer{w, changes}
}

// Recent returns the newest messages. read reads which those are, and of them what is not
// kept; it may pass over some that are gone.
func (l *Looks[P]) Recent(read func(kept func(id string) bool) (newest []sqlitex.Stamp, missing []mail.HistoryRow, err error)) ([]mail.HistoryRow, error) {
	if l.Changes == nil {
		_, rows, err := read(func(string) bool { return false })
		return rows, err
	}
	l.rowsMu.Lock()
	defer l.rowsMu.Unlock()
	touched, all := l.messages.take() // before it is read: what is touched meanwhile is read again
	if all {
		l.rows = nil
	}
	for _, id := range touched {
		delete(l.rows, id)
	}
	newest, missing, err := read(func(id string) bool { _, kept := l.rows[id]; return kept })
	if err != nil {
		return nil, err // what is still kept was not touched
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

// Unread returns how many messages each recipient has not read, where it has some. count
// counts those of some recipients, of all of them where it is given nil.
func (l *Looks[P]) Unread(count func(of []string) (map[string]int, error)) (map[string]int, error) {
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

// Peers returns all that were here.
func (l *Looks[P]) Peers(read func() ([]P, error)) ([]P, error) {
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

// mostTouched is how many names are kept apart: with more, everything is read anew.
const mostTouched = 1_000

// changes are the names of what was touched since they were taken last.
type changes struct {
	mu    sync.Mutex      // guards below
	noted bool            // names are all that was touched; without it anything may have been
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

// take returns what was touched, nil with all where that may be anything, and begins anew.
func (c *changes) take() (touched []string, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	touched, all = slices.Collect(maps.Keys(c.names)), !c.noted
	c.noted, c.names = true, nil
	return touched, all
}
