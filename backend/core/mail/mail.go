// Package mail has the rules of a message's life: its stages and their evidence, whom
// it may wake, when it expires, and how a model sees it (rows MSG-04 to MSG-08, MSG-12;
// seed 4.4). It does no I/O.
package mail

import (
	"slices"

	"bridge/backend/core/bridge"
)

// Mark is one stored fact about one delivery: the message to Recipient reached a stage
// at At (Unix epoch milliseconds) through Via. Evidence is the proof in words for
// people ("hook PostToolUse", "tool inbox", "next activity: Stop"). Process is the host
// process that received it, or "" if unknown.
type Mark struct {
	MessageID string
	Recipient string // peer id
	At        int64
	Via       Via
	Evidence  string
	Process   string
}

// Fact is the data of a stage, as in Mark; At is 0 before the stage.
type Fact struct {
	At       int64
	Via      Via
	Evidence string
	Process  string
}

// Happened reports whether the stage was reached.
func (f Fact) Happened() bool { return f.At != 0 }

// Delivery is one message to one recipient with all facts of its delivery.
type Delivery struct {
	bridge.Message
	Woken    Fact
	Handed   Fact
	Consumed Fact
	Answered Fact
	Expired  Fact
	// Remote is the progress toward a paired PC; it is empty for other deliveries.
	Remote Crossing
}

// Crossing is the progress of a message toward a session of a paired PC.
type Crossing struct {
	Host    string // the sender's name for the PC, "" for a session of this one
	AtHub   Fact   // the team's hub has stored it until the other PC fetches it
	Held    string // why it still waits here, if the hub did not accept it
	Arrived Fact   // the other PC stored it
	Refused Fact   // the other PC refuses it; the evidence has the reason
}

// IsWaiting reports whether the message waits for the other PC.
func (c Crossing) IsWaiting() bool {
	return c.Host != "" && !c.Arrived.Happened() && !c.Refused.Happened() && !c.AtHub.Happened()
}

// Words returns the message's location as text.
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

// Facts returns the facts of the six steps, in the order of bridge.Stages. A delivery
// is stored only once it is committed, so both first steps have its time.
func (d Delivery) Facts() []Fact {
	return []Fact{
		{At: d.CreatedAt, Evidence: "the broker took it"},
		{At: d.CreatedAt, Evidence: "committed to the store"},
		d.Woken, d.Handed, d.Read(), d.Answered,
	}
}

// Read returns the fact of d's consumption, also if only its time was stored.
func (d Delivery) Read() Fact {
	read := d.Consumed
	if !read.Happened() {
		read.At = d.ReadAt
	}
	if read.Happened() && read.Evidence == "" {
		read.Evidence = "marked read" // from before evidence was stored
	}
	return read
}

// Priority reports which mail goes first if not all fits: it sees no bodies.
type Priority func(Delivery) bool

// And returns the mail that both name.
func (p Priority) And(other Priority) Priority {
	return func(d Delivery) bool { return p(d) && other(d) }
}

// InOrder gives no mail priority, so that the oldest goes first.
func InOrder(Delivery) bool { return false }

// Compare orders mail with priority before the rest.
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

// IDs returns the message ids of deliveries.
func IDs(deliveries []Delivery) []string {
	ids := make([]string, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.ID
	}
	return ids
}

// Reached returns the furthest stage that d has reached, and its fact.
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

// HistoryRow is one message with all its deliveries, for lists.
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

// Newest merges two lists, the newest first, up to limit rows; each list keeps its
// order, even after a clock jump.
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

// With returns the row with the missing deliveries of another part of it. The result
// has a separate list.
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

// Stage returns the least advanced stage of the row's deliveries: a message to several
// sessions is answered only when all have answered. A row without deliveries is only
// known to be stored.
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

// rank orders stages; an expired delivery ranks below all that arrived.
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
