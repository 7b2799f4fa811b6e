// Package mailbox holds the volatile mail state of one live session. The state covers
// leases by connection, announced messages, handed-over mail without later activity, and
// wakes. Durable state is in the store; all of this may be lost with the broker.
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
	"bridge/backend/core/proof"
	"bridge/backend/core/session"
)

// Box is the mail state of one live session.
type Box struct {
	FormerIDs []string // peer ids whose mail belongs to this session too
	Looking   bool     // a check of the CLI's own store is scheduled

	// Version is the version of the CLI that serves the session, "" if it is not known, and
	// Broken are the routes that are proven broken in it (CAN-03).
	Version string
	Broken  proof.Faults

	// The state of the wakes, by mechanism.
	Hooks wake.Hooks
	Mod   wake.Mod
	Queue wake.Queue
	Rate  wake.Rate

	leases     map[string]*Lease // by message id
	generation int               // counts ended leases: mail read before one may be stale
	announced  map[string]bool   // long messages that were announced to the session
	// open is set if mail was handed over without activity since. handovers counts them,
	// because one may happen while activity is recorded.
	open       bool
	handovers  int
	arrived    chan struct{} // closed when mail arrives, then replaced
	awaits     map[*await]bool
	lastActive int64 // last sign of activity, Unix epoch milliseconds; 0 for none yet
}

// await is a call of the session that waits for messages.
type await struct{ wants func(mail.Delivery) bool }

// New returns the box of a session that has just joined. An earlier broker may have
// handed mail to it.
func New() *Box {
	return &Box{
		leases: map[string]*Lease{}, announced: map[string]bool{}, open: true, arrived: make(chan struct{}), awaits: map[*await]bool{},
		Hooks: wake.NewHooks(), Mod: wake.NewMod(),
	}
}

// Signal wakes all that wait for mail of this box.
func (b *Box) Signal() {
	close(b.arrived)
	b.arrived = make(chan struct{})
}

// Arrived returns a channel closed at the next signal. Get it before reading to miss none.
func (b *Box) Arrived() <-chan struct{} { return b.arrived }

// Await registers a call of the session that waits for messages, until leave is called.
// Mail that matches wants is reserved for it. leave signals the others to check again.
func (b *Box) Await(wants func(mail.Delivery) bool) (leave func()) {
	waits := &await{wants}
	b.awaits[waits] = true
	return func() {
		delete(b.awaits, waits)
		b.Signal()
	}
}

// Unawaited returns free without the mail that a call of the session awaits. It reuses the slice.
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

// Active records a sign of activity.
func (b *Box) Active(at int64) {
	b.lastActive = at
	b.Queue.Active()
}

// LastActive returns when the session last showed activity, in Unix epoch milliseconds, 0
// for never.
func (b *Box) LastActive() int64 { return b.lastActive }

// Lease is mail given to a connection until the connection acknowledges it, returns it,
// or ends.
type Lease struct {
	session.Lease
	announced []string     // ids of the messages that its text only announces
	cost      session.Cost // the size of its text; a tool's answer has none
	restored  bool         // an earlier broker gave it: the size of its text is unknown
	holder    *Holder
	box       *Box // nil until the holder is part of a session
}

// Holder holds the leases of one connection.
type Holder struct{ leases map[string]*Lease } // by lease id

// Find returns the holder's lease with that id, nil if there is none.
func (h *Holder) Find(id string) *Lease { return h.leases[id] }

// Keep adds the mail that an earlier broker leased to the holder. Boxes reserve it once
// the holder joins a session.
func (h *Holder) Keep(earlier []session.Lease) {
	for _, lease := range earlier {
		if h.leases[lease.ID] == nil {
			h.add(&Lease{Lease: lease, restored: true})
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

// Join reserves kept leases in box, after the holder has joined a session.
func (h *Holder) Join(box *Box) {
	for _, lease := range h.leases {
		if lease.box == nil {
			box.hold(lease)
		}
	}
}

// End offers all mail again that the holder never acknowledged.
func (h *Holder) End() {
	for _, lease := range h.leases {
		lease.Release()
	}
}

// Release ends a lease without acknowledgement: its mail is offered again.
func (l *Lease) Release() {
	delete(l.holder.leases, l.ID)
	if l.box == nil {
		return
	}
	maps.DeleteFunc(l.box.leases, func(_ string, other *Lease) bool { return other == l })
	l.box.Renew()
	l.box.Signal()
}

// hold reserves the lease's messages, so that no other connection gets them.
func (b *Box) hold(lease *Lease) {
	lease.box = b
	for _, id := range slices.Concat(lease.Messages, lease.announced) {
		if b.leases[id] == nil {
			b.leases[id] = lease
		}
	}
}

// TakeOver reserves here what is leased from the box of a session that turned out to be
// this one. That mail is already shown, or about to be.
func (b *Box) TakeOver(other *Box) {
	for _, lease := range other.leases {
		b.hold(lease)
	}
}

// Lease leases the mail that the presentation shows and announces to the holder.
func (b *Box) Lease(holder *Holder, s *session.Session, presentation mail.Presentation) *Lease {
	lease := &Lease{
		Lease:     session.Lease{ID: uuid.NewString(), Recipient: s.ID, Messages: mail.IDs(presentation.Shown), Process: s.Process},
		announced: mail.IDs(presentation.Announced),
		cost:      presentation.Cost(),
	}
	holder.add(lease)
	b.hold(lease)
	return lease
}

// TakeCost returns the size of the text of a lease, once. It returns false if the box does
// not know the lease.
func (b *Box) TakeCost(lease string) (cost session.Cost, ok bool) {
	for _, item := range b.leases {
		if item.ID == lease && !item.restored {
			cost, item.cost = item.cost, session.Cost{}
			return cost, true
		}
	}
	return session.Cost{}, false
}

// IsLeased reports whether the message is leased.
func (b *Box) IsLeased(message string) bool { return b.leases[message] != nil }

// Leased returns the number of leased messages.
func (b *Box) Leased() int { return len(b.leases) }

// Free returns the mail of unread that is neither handed over nor leased. It reuses the
// slice.
func (b *Box) Free(unread []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(unread, func(d mail.Delivery) bool { return d.Handed.Happened() || b.IsLeased(d.ID) })
}

// Reading is the state of the box when its mail was read from the store.
type Reading struct{ generation, leased, announced int }

// Reading returns the state at the start of a reading of the store.
func (b *Box) Reading() Reading {
	return Reading{generation: b.generation, leased: len(b.leases), announced: len(b.announced)}
}

// Hidden returns how many unread messages may not be given out. A reader reads that many
// more, so that mail behind them does not wait.
func (r Reading) Hidden() int { return r.leased + r.announced }

// IsStale reports whether a lease began or ended since r: mail that was read may have
// been shown.
func (b *Box) IsStale(r Reading) bool {
	return b.generation != r.generation || len(b.leases) > r.leased
}

// Renew makes every earlier reading stale.
func (b *Box) Renew() { b.generation++ }

// Ack ends a lease whose messages reached the session. It records the announced long
// messages, and removes announcements of messages shown whole. If another lease holds one
// of these messages by now, that lease keeps its others.
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

// Announced returns the long messages that were announced to the session.
func (b *Box) Announced() map[string]bool { return maps.Clone(b.announced) }

// Unannounced returns free without announced mail. It reuses the slice.
func (b *Box) Unannounced(free []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(free, func(d mail.Delivery) bool { return b.announced[d.ID] })
}

// Unannounce forgets that a message was announced to the session.
func (b *Box) Unannounce(message string) { delete(b.announced, message) }

// Forget drops what was announced or given to an earlier process for a message.
func (b *Box) Forget(message string) {
	b.Unannounce(message)
	b.Hooks.Forget(message)
}

// Handed records that mail was handed over. The next activity counts it as read, or
// determines the outcome of its wake.
func (b *Box) Handed(via mail.Via) {
	b.open = true
	b.handovers++
	b.Hooks.Handed(via)
}

// Open reports whether mail may have been handed over without activity since.
func (b *Box) Open() bool { return b.open }

// Doubt records that mail may have been handed over without this broker's knowledge.
func (b *Box) Doubt() { b.open = true }

// Handovers returns the number of handovers.
func (b *Box) Handovers() int { return b.handovers }

// Consumed records activity that counted the first handovers as read. Later ones stay
// open until the next sign.
func (b *Box) Consumed(handovers int) { b.open = b.handovers != handovers }

// Boxes holds the boxes of the live sessions, by peer id.
type Boxes map[string]*Box

// Of returns the live box of a peer id that its session has or had.
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

// ErrLeft reports that the session has left.
var ErrLeft = bridge.Errorf(bridge.Unavailable, "the session has left")
