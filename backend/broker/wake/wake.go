// Package wake holds how the wakes of one live session stand, one file a mechanism
// along reach.Waker: claude's wake hooks with its channel, claude's mod, and codex's
// queue. Opencode's plugin is told at once and needs nothing kept. Each file names
// the states and has a method for each transition. It also holds the rhythm of
// wakes, and which sessions chose their own auto-wake.
//
// Whether a message may wake at all, and what became of one that did, are rules of
// mail. Nothing here does I/O but Prefs, and nothing but Prefs is safe for concurrent
// use: the broker's lock guards it.
package wake

import "time"

// Pace is the rhythm of wakes. A zero member means the usual one.
type Pace struct {
	// Debounce gathers mail that comes together into one wake.
	Debounce time.Duration
	// Confirm is how long a woken session may take to show activity before its
	// mail is offered to the standby.
	Confirm time.Duration
	// Settle is how long a host may take to read what a wake hook gave it.
	Settle time.Duration
	// Doubt is how often a session that is at work, with mail that waits for the
	// end of its turn, is asked whether it still is.
	Doubt time.Duration
	// Look is how long after a sign of life the CLI's own store is looked into
	// for native children: what happens together is one look.
	Look time.Duration
}

// OrUsual is p with the usual rhythm where it says nothing.
func (p Pace) OrUsual() Pace {
	if p.Look == 0 {
		p.Look = 500 * time.Millisecond
	}
	if p.Doubt == 0 {
		p.Doubt = 15 * time.Second
	}
	if p.Settle == 0 {
		p.Settle = 10 * time.Second
	}
	if p.Debounce == 0 {
		p.Debounce = 1500 * time.Millisecond
	}
	if p.Confirm == 0 {
		p.Confirm = 20 * time.Second
	}
	return p
}

// tries counts by message id how often it was given to a mechanism.
type tries map[string]int

func (t *tries) add(messages ...string) {
	if *t == nil {
		*t = tries{}
	}
	for _, id := range messages {
		(*t)[id]++
	}
}
