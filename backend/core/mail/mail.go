// Package mail holds the rules of a message's life: its stages and their
// evidence, who may be woken by it, when it expires, and how it is shown to a
// model (rows MSG-04 to MSG-08, MSG-12; seed 4.4). It does no I/O.
package mail

import (
	"slices"

	"bridge/backend/core/bridge"
)

// Mark is one stored fact about one delivery: the message to Recipient reached
// a stage at At (Unix epoch milliseconds) by the way Via, and Evidence says how we
// know, in words for people ("hook PostToolUse", "tool inbox", "next activity:
// Stop"). Process is the process of the host that it was handed to, "" where that
// is not known.
type Mark struct {
	MessageID string
	Recipient string // peer id
	At        int64
	Via       Via
	Evidence  string
	Process   string
}

// Fact is what is known of a stage, as in Mark; At is 0 while it has not happened.
type Fact struct {
	At       int64
	Via      Via
	Evidence string
	Process  string
}

// Happened reports whether the stage was reached.
func (f Fact) Happened() bool { return f.At != 0 }

// Delivery is one message to one recipient with everything known of its way.
type Delivery struct {
	bridge.Message
	Woken    Fact
	Handed   Fact
	Consumed Fact
	Answered Fact
	Expired  Fact
	// Remote is how far it came on its way to a paired PC; of no other delivery is
	// anything known there.
	Remote Crossing
}

// Crossing is how far a message came on its way to a session of a paired PC.
type Crossing struct {
	Host    string // as the sender called the PC, "" for a session of this one
	AtHub   Fact   // the team's hub has stored it until the other PC takes it
	Held    string // why it still waits here, where the hub did not take it
	Arrived Fact   // the other PC stored it
	Refused Fact   // the other PC will not take it; the evidence says why
}

// IsWaiting reports whether the message waits for the other PC.
func (c Crossing) IsWaiting() bool {
	return c.Host != "" && !c.Arrived.Happened() && !c.Refused.Happened() && !c.AtHub.Happened()
}

// Words say where it is.
func (c Crossing) Words() string {
	switch {
	case c.Host == "":
		return ""
	case c.Refused.Happened():
		return c.Host + " refused it: " + c.Refused.Evidence
	case c.Arrived.Happened():
		return "on " + c.Host
	case c.AtHub.Happened():
		return "at the team's hub, not on " + c.Host + " yet"
	case c.Held != "":
		return "waiting for " + c.Host + ": " + c.Held
	default:
		return "waiting for " + c.Host
	}
}

// Stage returns the furthest stage that d has reached.
func (d Delivery) Stage() bridge.Stage {
	switch {
	case d.Answered.Happened():
		return bridge.StageAnswered
	case d.Consumed.Happened() || d.ReadAt != 0:
		return bridge.StageConsumed
	case d.Remote.Refused.Happened():
		return bridge.StageRefused
	case d.Expired.Happened():
		return bridge.StageExpired
	case d.Handed.Happened():
		return bridge.StageHanded
	case d.Woken.Happened():
		return bridge.StageWoken
	case d.Remote.Arrived.Happened():
		return bridge.StageArrived
	case d.Remote.AtHub.Happened():
		return bridge.StageAtHub
	default:
		return bridge.StageDurable
	}
}

// Facts are what is known of the six steps, in the order of bridge.Stages. A
// delivery is stored only once it is committed, so both first steps have its time.
func (d Delivery) Facts() []Fact {
	return []Fact{
		{At: d.CreatedAt, Evidence: "the broker took it"},
		{At: d.CreatedAt, Evidence: "committed to the store"},
		d.Woken, d.Handed, d.Read(), d.Answered,
	}
}

// Read is what is known of d's consumption, also where only its time was kept.
func (d Delivery) Read() Fact {
	read := d.Consumed
	if !read.Happened() {
		read.At = d.ReadAt
	}
	if read.Happened() && read.Evidence == "" {
		read.Evidence = "marked read" // before evidence was kept
	}
	return read
}

// Priority says which mail goes first where not all of it can: it sees no bodies.
type Priority func(Delivery) bool

// InOrder lets the oldest go first.
func InOrder(Delivery) bool { return false }

// Compare orders what goes first before the rest.
func (p Priority) Compare(x, y Delivery) int {
	switch first, second := p(x), p(y); {
	case first == second:
		return 0
	case first:
		return -1
	default:
		return 1
	}
}

// IDs lists the message ids of deliveries.
func IDs(deliveries []Delivery) []string {
	ids := make([]string, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.ID
	}
	return ids
}

// Reached returns the furthest stage that d has reached, and what is known of it.
func (d Delivery) Reached() (bridge.Stage, Fact) {
	stage := d.Stage()
	switch stage {
	case bridge.StageExpired:
		return stage, d.Expired
	case bridge.StageArrived:
		return stage, d.Remote.Arrived
	case bridge.StageAtHub:
		return stage, d.Remote.AtHub
	case bridge.StageRefused:
		return stage, d.Remote.Refused
	default:
	}
	if stage == bridge.StageDurable && d.Remote.Host != "" {
		return stage, Fact{At: d.CreatedAt, Evidence: "accepted, durable, " + d.Remote.Words()}
	}
	return stage, d.Facts()[slices.Index(bridge.Stages(), stage)]
}

// HistoryRow is one message with all its deliveries: what lists show.
type HistoryRow struct {
	ID             string
	From           bridge.Address
	To             string
	ConversationID string
	ReplyTo        string
	Hop            int
	Body           string
	CreatedAt      int64
	Deliveries     []Delivery
}

// Newest merges two lists, the newest first, up to limit rows; the order within each
// stays, even where a clock jumped.
func Newest(a, b []HistoryRow, limit int) []HistoryRow {
	merged := make([]HistoryRow, 0, min(limit, len(a)+len(b)))
	for len(merged) < limit && len(a)+len(b) > 0 {
		if len(a) == 0 || len(b) > 0 && b[0].CreatedAt > a[0].CreatedAt {
			a, b = b, a
		}
		merged, a = append(merged, a[0]), a[1:]
	}
	return merged
}

// With is the row with the deliveries of another part of it that it lacks, in a list of
// its own.
func (r HistoryRow) With(other HistoryRow) HistoryRow {
	r.Deliveries = slices.Clone(r.Deliveries)
	for _, delivery := range other.Deliveries {
		has := slices.ContainsFunc(r.Deliveries, func(d Delivery) bool { return d.Recipient == delivery.Recipient })
		if !has {
			r.Deliveries = append(r.Deliveries, delivery)
		}
	}
	return r
}

// Stage returns the least advanced stage over the row's deliveries: a message
// to several sessions is answered only when all of them did. Of a row without
// deliveries nothing is known but that it is stored.
func (r HistoryRow) Stage() bridge.Stage {
	if len(r.Deliveries) == 0 {
		return bridge.StageDurable
	}
	least := bridge.StageAnswered
	for _, d := range r.Deliveries {
		if stage := d.Stage(); rank(stage) < rank(least) {
			least = stage
		}
	}
	return least
}

// rank orders stages; an expired delivery holds a message back below all that
// arrived.
func rank(s bridge.Stage) int {
	switch s {
	case bridge.StageExpired, bridge.StageRefused:
		return 0
	case bridge.StageDurable, bridge.StageAtHub, bridge.StageArrived:
		return 1
	case bridge.StageWoken:
		return 2
	case bridge.StageHanded:
		return 3
	case bridge.StageConsumed:
		return 4
	default:
		return 5
	}
}
