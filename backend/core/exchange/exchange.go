// Package exchange determines which two sessions write each other without their owner and
// without work (QUI-02). It counts the messages of each pair of sessions since the owner's
// last words to either, and since the last call of a tool by either. It does no I/O and
// reads no clock.
package exchange

import (
	"cmp"
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// Window is the time in which the messages of a pair count.
const Window = 15 * time.Minute

const (
	// mostKept limits the messages that are kept of one pair, and mostPairs the pairs. The
	// oldest are forgotten first.
	mostKept  = bridge.HighestExchange + 1
	mostPairs = 1000
)

// Pair is two sessions by peer id, in the order of the ids.
type Pair struct{ A, B string }

// PairOf returns the pair of two sessions.
func PairOf(x, y string) Pair {
	if y < x {
		x, y = y, x
	}
	return Pair{x, y}
}

// Has reports whether the session is one of the pair.
func (p Pair) Has(id string) bool { return p.A == id || p.B == id }

// Other returns the session that id exchanges messages with.
func (p Pair) Other(id string) string {
	if p.A == id {
		return p.B
	}
	return p.A
}

// Moved returns the pair after a session has got another peer id.
func (p Pair) Moved(old, id string) Pair {
	if !p.Has(old) {
		return p
	}
	return PairOf(id, p.Other(old))
}

// Exchange is a pair that has exchanged too many messages: one card for the owner.
type Exchange struct {
	Pair
	Messages int
	Since    int64 // when the messages became too many, Unix epoch milliseconds
}

// Talks holds the messages that count, by pair. The zero value is empty. It is not safe for
// concurrent use.
type Talks struct{ talks map[Pair]*talk }

// talk holds one pair's messages that count, oldest first.
type talk struct {
	sent       []message
	exceededAt int64 // when they became too many, 0 while they are not
}

type message struct {
	from string
	at   int64 // Unix epoch milliseconds
}

// Sent counts a message.
func (t *Talks) Sent(from, to string, at int64) {
	if from == to {
		return
	}
	pair := PairOf(from, to)
	talk := t.talks[pair]
	if talk == nil {
		talk = t.begin(pair)
	}
	talk.sent = append(talk.sent, message{from, at})
	talk.sent = talk.sent[max(0, len(talk.sent)-mostKept):]
}

// begin returns the talk of a new pair. If there are too many pairs, it forgets the one
// that has been silent for the longest time.
func (t *Talks) begin(pair Pair) *talk {
	if t.talks == nil {
		t.talks = map[Pair]*talk{}
	}
	if len(t.talks) >= mostPairs {
		oldest, first := Pair{}, true
		for other, talk := range t.talks {
			if first || talk.last() < t.talks[oldest].last() {
				oldest, first = other, false
			}
		}
		delete(t.talks, oldest)
	}
	t.talks[pair] = &talk{}
	return t.talks[pair]
}

// last returns the time of the newest message, 0 for none.
func (t *talk) last() int64 {
	if len(t.sent) == 0 {
		return 0
	}
	return t.sent[len(t.sent)-1].at
}

// judge forgets the messages that no longer count, and records since when there are too
// many. Messages after now do not count, because the clock was set back since.
func (t *talk) judge(now int64, most int) (isOver bool) {
	t.sent = slices.DeleteFunc(t.sent, func(m message) bool { return m.at > now || now-m.at >= Window.Milliseconds() })
	isOver = most > 0 && len(t.sent) > most && t.isMutual()
	switch {
	case !isOver:
		t.exceededAt = 0
	case t.exceededAt == 0:
		t.exceededAt = t.sent[most].at
	}
	return isOver
}

// isMutual reports whether both sessions have written.
func (t *talk) isMutual() bool {
	return slices.ContainsFunc(t.sent, func(m message) bool { return m.from != t.sent[0].from })
}

// Reset starts the counts of a session's pairs anew, after words of the owner to it or a
// call of a tool. It reports whether a card of the last Over disappears by that.
func (t *Talks) Reset(id string) (changed bool) {
	for pair, talk := range t.talks {
		if pair.Has(id) {
			changed = changed || talk.exceededAt != 0
			delete(t.talks, pair)
		}
	}
	return changed
}

// Forget starts the count of one pair anew, after the owner's decision.
func (t *Talks) Forget(pair Pair) { delete(t.talks, pair) }

// Move gives the messages of a session to its new peer id.
func (t *Talks) Move(old, id string) {
	for pair, talk := range t.talks {
		moved := pair.Moved(old, id)
		if moved == pair {
			continue
		}
		delete(t.talks, pair)
		if moved.A == moved.B {
			continue
		}
		for i := range talk.sent {
			if talk.sent[i].from == old {
				talk.sent[i].from = id
			}
		}
		if had := t.talks[moved]; had != nil {
			talk.sent, talk.exceededAt = slices.Concat(had.sent, talk.sent), cmp.Or(had.exceededAt, talk.exceededAt)
			slices.SortStableFunc(talk.sent, func(a, b message) int { return cmp.Compare(a.at, b.at) })
		}
		t.talks[moved] = talk
	}
}

// Over returns the pairs that have exchanged more than most messages, in the order in
// which they became too many. It returns none if most is 0.
func (t *Talks) Over(now int64, most int) []Exchange {
	over := []Exchange{}
	for pair, talk := range t.talks {
		if talk.judge(now, most) {
			over = append(over, Exchange{Pair: pair, Messages: len(talk.sent), Since: talk.exceededAt})
		}
		if len(talk.sent) == 0 {
			delete(t.talks, pair)
		}
	}
	slices.SortFunc(over, func(x, y Exchange) int {
		return cmp.Or(cmp.Compare(x.Since, y.Since), cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
	})
	return over
}
