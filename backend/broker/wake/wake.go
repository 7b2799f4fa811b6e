// Package wake holds the wake state of one live session. Each mechanism of reach.Waker
// has one file: claude's wake hooks with its channel, claude's mod, and codex's queue.
// Opencode's plugin is notified at once and needs no state. Each file names the states
// and has a method for each transition. The package also holds the intervals and the
// limits of wakes, and which sessions chose their own auto-wake.
//
// Package mail decides whether a message may wake and what its outcome was. Only Prefs
// and Ledger do I/O, and only Prefs is safe for concurrent use: the broker's lock guards
// the rest.
package wake

import "time"

// Timing sets the intervals and timeouts of wakes. A zero field means its default.
type Timing struct {
	// Debounce is how long mail is gathered for one wake.
	Debounce time.Duration
	// Confirm is how long a woken session may take to show activity. Then its mail is
	// offered to the standby.
	Confirm time.Duration
	// Settle is how long a host may take to read what a wake hook gave it.
	Settle time.Duration
	// Doubt is the interval of checks whether a busy session is still at work, while mail
	// waits for the end of its turn.
	Doubt time.Duration
	// PollInterval is how long after a sign the CLI's own store is checked for native children.
	// Signs within that time share one check.
	PollInterval time.Duration
}

// OrUsual returns p with defaults for zero fields.
func (p Timing) OrUsual() Timing {
	if p.PollInterval == 0 {
		p.PollInterval = 500 * time.Millisecond
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

// tries counts by message id how often a message was given to a mechanism.
type tries map[string]int

func (t *tries) add(messages ...string) {
	if *t == nil {
		*t = tries{}
	}
	for _, id := range messages {
		(*t)[id]++
	}
}
