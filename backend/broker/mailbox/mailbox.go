// Package mailbox holds the moving part of one live session's mail: what is leased to
// which connection, what the session was told of, what was handed over with no
// activity since, and how its wakes stand. What lasts is in the store; all of this
// may be lost with the broker.
//
// It does no I/O and is not safe for concurrent use: the broker's lock guards it.
package mailbox

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// Box is one live session's.
type Box struct {
	FormerIDs []string // peer ids whose mail is this session's too
	Looking   bool     // a look into the CLI's own store is coming

	// How the wakes stand, each by its mechanism.
	Hooks wake.Hooks
	Mod   wake.Mod
	Queue wake.Queue

	leases    map[string]*Lease // by message id
	released  int               // counts leases that ended: mail read before one may be out of date
	announced map[string]bool   // long messages that the session was told of
	// open says that mail was handed over and no activity followed yet; handovers
	// counts them, for one may come while activity is noted.
	open       bool
	handovers  int
	arrived    chan struct{} // closed when mail arrives, then replaced
	awaits     map[*await]bool
	lastActive int64 // last sign of activity, Unix epoch milliseconds; 0 for none yet
}

// await is a call of the session that waits for messages.
type await struct{ wants func(mail.Delivery) bool }

// New is the box of a session that has just come: an earlier broker may have handed
// mail to it.
func New() *Box {
	return &Box{
		leases: map[string]*Lease{}, announced: map[string]bool{}, open: true, arrived: make(chan struct{}), awaits: map[*await]bool{},
		Hooks: wake.NewHooks(), Mod: wake.NewMod(),
	}
}

// Signal wakes everyone who waits for mail of this box.
func (b *Box) Signal() {
	close(b.arrived)
	b.arrived = make(chan struct{})
}

// Arrived is closed at the next signal; asked for before looking, it misses none.
func (b *Box) Arrived() <-chan struct{} { return b.arrived }

// Await notes that a call of the session waits for messages, until leave: what it wants
// is its answer, and shown by nothing else meanwhile. leave lets the others look again.
func (b *Box) Await(wants func(mail.Delivery) bool) (leave func()) {
	waits := &await{wants}
	b.awaits[waits] = true
	return func() {
		delete(b.awaits, waits)
		b.Signal()
	}
}

// Unawaited is free without what a call of the session waits for. It reuses the slice.
func (b *Box) Unawaited(free []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(free, func(d mail.Delivery) bool {
		for waits := range b.awaits {
			if waits.wants(d) {
				return true
			}
		}
		return false
	})
}

// Active notes a sign of activity.
func (b *Box) Active(at int64) {
	b.lastActive = at
	b.Queue.Active()
}

// LastActive is when the session last showed activity, Unix epoch milliseconds; 0
// for never.
func (b *Box) LastActive() int64 { return b.lastActive }

// Lease is mail given to a connection until that acknowledges it, returns it, or
// ends.
type Lease struct {
	session.Lease
	announced []string // ids of the messages that its text only tells of
	holder    *Holder
	box       *Box // nil until the holder is part of a session
}

// Holder is what one connection has on lease.
type Holder struct{ leases map[string]*Lease } // by lease id

// Find returns the holder's lease of that id, nil when it has none.
func (h *Holder) Find(id string) *Lease { return h.leases[id] }

// Keep notes the mail that an earlier broker leased to the holder. It is held as soon
// as the holder is part of a session.
func (h *Holder) Keep(earlier []session.Lease) {
	for _, one := range earlier {
		if h.leases[one.ID] == nil {
			h.add(&Lease{Lease: one})
		}
	}
}

func (h *Holder) add(lease *Lease) {
	if h.leases == nil {
		h.leases = map[string]*Lease{}
	}
	lease.holder = h
	h.leases[lease.ID] = lease
}

// Join holds in box what was kept until the holder was part of a session.
func (h *Holder) Join(box *Box) {
	for _, lease := range h.leases {
		if lease.box == nil {
			box.hold(lease)
		}
	}
}

// End offers again what the holder never acknowledged.
func (h *Holder) End() {
	for _, lease := range h.leases {
		lease.Release()
	}
}

// Release takes back what was never acknowledged: it is offered again.
func (l *Lease) Release() {
	delete(l.holder.leases, l.ID)
	if l.box == nil {
		return
	}
	maps.DeleteFunc(l.box.leases, func(_ string, other *Lease) bool { return other == l })
	l.box.Renew()
	l.box.Signal()
}

// hold keeps the lease's messages from being given to anyone else.
func (b *Box) hold(lease *Lease) {
	lease.box = b
	for _, id := range slices.Concat(lease.Messages, lease.announced) {
		if b.leases[id] == nil {
			b.leases[id] = lease
		}
	}
}

// TakeOver holds here what is on lease from the box of a session that turned out to
// be this one: it is shown already, or about to be.
func (b *Box) TakeOver(other *Box) {
	for _, lease := range other.leases {
		b.hold(lease)
	}
}

// Lease gives what the presentation shows and announces to the holder.
func (b *Box) Lease(to *Holder, s *session.Session, taken mail.Presentation) *Lease {
	lease := &Lease{
		Lease:     session.Lease{ID: uuid.NewString(), Recipient: s.ID, Messages: mail.IDs(taken.Shown), Process: s.Process},
		announced: mail.IDs(taken.Announced),
	}
	to.add(lease)
	b.hold(lease)
	return lease
}

// IsLeased reports whether somebody has the message on lease.
func (b *Box) IsLeased(message string) bool { return b.leases[message] != nil }

// Leased counts the messages on lease.
func (b *Box) Leased() int { return len(b.leases) }

// Free is what of unread was neither handed over nor leased to anyone. It reuses the
// slice.
func (b *Box) Free(unread []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(unread, func(d mail.Delivery) bool { return d.Handed.Happened() || b.IsLeased(d.ID) })
}

// Reading is the box as it was when its mail was read from the store.
type Reading struct{ released, leased, announced int }

// Reading begins a reading of the store.
func (b *Box) Reading() Reading {
	return Reading{released: b.released, leased: len(b.leases), announced: len(b.announced)}
}

// Beside is how many unread messages may not be given out: reading past them, mail
// behind them does not wait for them.
func (r Reading) Beside() int { return r.leased + r.announced }

// IsStale reports whether a lease began or ended since: what was read may have been
// shown.
func (b *Box) IsStale(r Reading) bool { return b.released != r.released || len(b.leases) > r.leased }

// Renew makes every reading before this one stale.
func (b *Box) Renew() { b.released++ }

// Ack ends a lease whose messages reached the session: it knows of the long ones
// that the text announced, and those that it holds whole need no announcement. Where
// another lease has a message of it by now, that lease keeps all its other messages.
func (b *Box) Ack(acked session.Lease) {
	for _, id := range acked.Messages {
		delete(b.announced, id)
	}
	for _, lease := range b.leases {
		if lease.ID == acked.ID {
			for _, id := range lease.announced {
				b.announced[id] = true
			}
		}
	}
	for id, lease := range b.leases {
		switch {
		case lease.ID == acked.ID:
			lease.Release()
		case slices.Contains(acked.Messages, id):
			delete(b.leases, id)
			b.Renew()
		}
	}
}

// Announced are the long messages that the session was told of.
func (b *Box) Announced() map[string]bool { return maps.Clone(b.announced) }

// Unannounced is free without what the session was told of. It reuses the slice.
func (b *Box) Unannounced(free []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(free, func(d mail.Delivery) bool { return b.announced[d.ID] })
}

// Unannounce forgets that the session was told of a message.
func (b *Box) Unannounce(message string) { delete(b.announced, message) }

// Forget drops what an earlier process of the session was told of a message.
func (b *Box) Forget(message string) {
	b.Unannounce(message)
	b.Hooks.Forget(message)
}

// Handed notes that mail was handed over: the next activity counts it as read, or
// judges the wake that it came by.
func (b *Box) Handed(via mail.Via) {
	b.open = true
	b.handovers++
	b.Hooks.Handed(via)
}

// Open reports whether mail may have been handed over with no activity since.
func (b *Box) Open() bool { return b.open }

// Doubt notes that mail may have been handed over that this broker knows nothing of.
func (b *Box) Doubt() { b.open = true }

// Handovers counts what was handed over.
func (b *Box) Handovers() int { return b.handovers }

// Consumed notes activity that counted all as read that was handed over until
// handovers was counted: what came meanwhile is open until the next sign.
func (b *Box) Consumed(handovers int) { b.open = b.handovers != handovers }

// Boxes are the boxes of the live sessions, by peer id.
type Boxes map[string]*Box

// Of finds the live box of a peer id that its session has or had.
func (all Boxes) Of(recipient string) (id string, box *Box) {
	if box := all[recipient]; box != nil {
		return recipient, box
	}
	for id, box := range all {
		if slices.Contains(box.FormerIDs, recipient) {
			return id, box
		}
	}
	return "", nil
}

// ErrLeft says that the session has left.
var ErrLeft = bridge.Errorf(bridge.Unavailable, "the session has left")
