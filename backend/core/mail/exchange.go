package mail

import "time"

// exchangeFor is the time in which the messages of two sessions count as one exchange
// (QUI-02).
const exchangeFor = 15 * time.Minute

// Pair names two sessions by their peer ids, the lesser one first.
type Pair struct{ A, B string }

// PairOf returns the pair of two sessions, in any order.
func PairOf(a, b string) Pair { return Pair{min(a, b), max(a, b)} }

// Has reports whether the session is one of both.
func (p Pair) Has(session string) bool { return p.A == session || p.B == session }

// Exchange is what two sessions wrote to each other without a word of their owner and
// without other work (QUI-02). The zero value is an exchange without messages.
type Exchange struct {
	at     []int64 // when each message was sent, Unix epoch milliseconds
	paused bool    // the owner paused it: mail between both wakes nobody
	asked  bool    // it was too long, and the owner has not answered yet
}

// Sent records a message between both. It reports whether the owner must be asked now:
// once, until the exchange was reset.
func (e *Exchange) Sent(now int64, most int) (ask bool) {
	e.forget(now)
	e.at = append(e.at, now)
	if most == 0 || len(e.at) <= most || e.asked || e.paused {
		return false
	}
	e.asked = true
	return true
}

// Reset begins a new exchange: the owner wrote to one of both, or one did other work. An
// exchange that the owner paused stays paused, and one that waits for the owner's answer
// goes on without it.
func (e *Exchange) Reset() { e.at, e.asked = nil, false }

// Continue is the owner's answer that both may go on: a new exchange begins.
func (e *Exchange) Continue() { *e = Exchange{} }

// Pause is the owner's answer that mail between both wakes nobody until Continue.
func (e *Exchange) Pause() { e.paused, e.asked = true, false }

// MayWake reports whether mail between both may wake. While the owner has not answered, it
// may not: two sessions that thank each other would go on meanwhile.
func (e *Exchange) MayWake() bool { return !e.paused && !e.asked }

// Messages returns how many messages the exchange has at now.
func (e *Exchange) Messages(now int64) int {
	e.forget(now)
	return len(e.at)
}

func (e *Exchange) forget(now int64) {
	kept := e.at[:0]
	for _, at := range e.at {
		if at <= now && now-at < exchangeFor.Milliseconds() {
			kept = append(kept, at)
		}
	}
	e.at = kept
}
