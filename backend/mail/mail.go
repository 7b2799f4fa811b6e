// Package mail holds the rules of a message's life: its stages and their
// evidence, who may be woken by it, when it expires, and how it is shown to a
// model (rows MSG-04 to MSG-08, MSG-12; seed 4.4). It does no I/O.
package mail

import "bridge/backend/bridge"

// Mark is one stored fact about one delivery: the message to Recipient reached
// a stage at At (Unix epoch milliseconds), and Evidence says how we know, in
// words for people ("hook PostToolUse", "tool inbox", "next activity: Stop").
type Mark struct {
	MessageID string `json:"id"`
	Recipient string `json:"recipient"` // peer id
	At        int64  `json:"at"`
	Evidence  string `json:"evidence"`
}

// Fact is a stage's time and evidence; At is 0 while it has not happened.
type Fact struct {
	At       int64
	Evidence string
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
}

// Stage returns the furthest stage that d has reached.
func (d Delivery) Stage() bridge.Stage {
	switch {
	case d.Answered.Happened():
		return bridge.StageAnswered
	case d.Consumed.Happened() || d.ReadAt != 0:
		return bridge.StageConsumed
	case d.Expired.Happened():
		return bridge.StageExpired
	case d.Handed.Happened():
		return bridge.StageHanded
	case d.Woken.Happened():
		return bridge.StageWoken
	default:
		return bridge.StageDurable
	}
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
	case bridge.StageExpired:
		return 0
	case bridge.StageDurable:
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

// QueueEvidence begins the evidence of a message that went to the agent CLI's
// own queue. The session's next activity says nothing about such a message: its
// turn may come much later. Only the prompt that shows it does.
const QueueEvidence = "codex queue"

// WakeEvidence is the evidence of a message that a wake hook gave to its host:
// the host starts a turn with it some seconds later, shows it in a turn that a
// person began meanwhile, or drops it.
const WakeEvidence = "wake hook"

// ChannelEvidence is the evidence of a message that was pushed into a session's
// channel: the host does with it what it does with that of a wake hook.
const ChannelEvidence = "channel notification"

// IsWake reports whether the evidence is that of a wake by the message itself.
func IsWake(evidence string) bool { return evidence == WakeEvidence || evidence == ChannelEvidence }
