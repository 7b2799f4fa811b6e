package remote

import (
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
)

// Decisions for all sessions, shared by paired PCs (RMT-22).
const (
	// DecisionsCapability announces in a hello that a PC exchanges decisions.
	DecisionsCapability = "decisions-sync-v1"
	// WithdrawalsCapability announces in a hello that a PC supports
	// [Decided.Withdrawn]. Other PCs refuse a frame with that member.
	WithdrawalsCapability = "decisions-withdraw-v1"
	// DecisionsFrame is the type of the frames with decisions.
	DecisionsFrame = "decision-sync"

	// MaxDecisions and MaxDecisionBytes limit the content of one frame.
	MaxDecisions     = 25
	MaxDecisionBytes = 1_000_000

	// maxAhead limits how far a decision's time may be ahead of this PC's clock.
	maxAhead = 24 * 60 * 60 * 1000
)

// Decided is a decision in transit to another PC. Each PC determines for itself what it
// supersedes and whether it is current.
type Decided struct {
	ID              string            `json:"id"`
	Topic           string            `json:"topic"`
	Text            string            `json:"text"`
	Author          string            `json:"author"` // the session's name at its PC
	Agent           bridge.AgentKind  `json:"agent,omitempty"`
	CreatedAt       bridge.UnixMillis `json:"createdAt"`
	SourceMessageID string            `json:"sourceMessageId,omitempty"`
	Withdrawn       bool              `json:"withdrawn,omitempty"` // it withdraws the decision in force on its topic
}

// TeamDecided is a decision in transit to a team, through the stream of its decisions (HUB-06).
type TeamDecided struct {
	Decision Decided `json:"decision"`
	// Follows is the decision on its topic that its PC had before it: a PC with another
	// one decided at the same time.
	Follows string `json:"follows,omitempty"`
}

// ParseTeamDecided decodes one. now is the clock of the hub, which is the same for all
// PCs: so all accept it, or none does. It fails with Invalid for an unsuitable
// decision, and with TooLarge beyond MaxDecisionBytes.
func ParseTeamDecided(data []byte, now int64) (d TeamDecided, err error) {
	if err := bridge.DecodeAdditive(data, MaxDecisionBytes, &d); err != nil {
		return TeamDecided{}, err
	}
	if err := d.Decision.check(now); err != nil {
		return TeamDecided{}, err
	}
	if d.Follows != "" {
		err = bridge.CheckID("the decision before it", d.Follows)
	}
	return d, err
}

// TeamShare returns the owner's name for the whole team in the list of PCs that share
// decisions: all its members can read its stream.
func TeamShare(team string) string { return TeamMark + team }

// TeamMark is a prefix that no PC's name has.
const TeamMark = "@"

// Cursor is a position in the order of decisions.
type Cursor struct {
	CreatedAt bridge.UnixMillis `json:"createdAt"`
	ID        string            `json:"id"`
}

// After reports whether c comes after other.
func (c Cursor) After(other Cursor) bool {
	return c.CreatedAt > other.CreatedAt || c.CreatedAt == other.CreatedAt && c.ID > other.ID
}

// Cursor returns the position of a decision.
func (d Decided) Cursor() Cursor { return Cursor{d.CreatedAt, d.ID} }

// Sync is a frame about decisions, with one of three contents: a request from a
// position on (Since), the decisions there, or one new decision.
type Sync struct {
	Kind      SyncKind  `json:"kind"`
	Since     *Cursor   `json:"since,omitempty"`
	Decisions []Decided `json:"decisions,omitempty"`
	Upsert    *Decided  `json:"decision,omitempty"`
	// More reports that further decisions follow these.
	More bool `json:"more,omitempty"`
}

// SyncKind is the kind of a Sync.
type SyncKind string

// The kinds.
const (
	SyncRequest SyncKind = "sync-request"
	SyncState   SyncKind = "sync-state"
	SyncUpsert  SyncKind = "upsert"
)

// ParseSync decodes a frame about decisions. It fails with Invalid if one decision or
// the combination of members is invalid, and with TooLarge beyond the limits.
func ParseSync(data []byte, now int64) (s Sync, err error) {
	if err := bridge.DecodeStrict(data, MaxDecisionBytes, &s); err != nil {
		return s, err
	}
	switch {
	case s.Kind == SyncRequest && s.Since != nil && s.Decisions == nil && s.Upsert == nil && !s.More:
		return s, nil
	case s.Kind == SyncState && s.Since == nil && s.Upsert == nil && (len(s.Decisions) > 0 || !s.More):
	case s.Kind == SyncUpsert && s.Since == nil && s.Decisions == nil && s.Upsert != nil && !s.More:
		return s, s.Upsert.check(now)
	default:
		return s, bridge.Errorf(bridge.Invalid, "a frame about decisions is a request with a place, a state with decisions, or one decision")
	}
	if len(s.Decisions) > MaxDecisions {
		return s, bridge.Errorf(bridge.TooLarge, "a frame has at most %d decisions", MaxDecisions)
	}
	for _, decided := range s.Decisions {
		if err := decided.check(now); err != nil {
			return s, err
		}
	}
	return s, nil
}

// EncodeSync returns a frame's payload. If the decisions are too large, it leaves the
// last ones for the next frame. It fails if a decision cannot be encoded as JSON.
func EncodeSync(s Sync) ([]byte, error) {
	for {
		data, err := json.Marshal(s)
		if err != nil || len(data) <= MaxDecisionBytes || len(s.Decisions) < 2 {
			return data, err
		}
		s.Decisions, s.More = s.Decisions[:len(s.Decisions)/2], true
	}
}

func (d Decided) check(now int64) error {
	if err := bridge.CheckID("the decision's id", d.ID); err != nil {
		return err
	}
	topic, err := decision.NormalizeTopic(d.Topic)
	switch {
	case err != nil:
		return err
	case topic != d.Topic:
		return bridge.Errorf(bridge.Invalid, "the topic %q is not as a PC keeps it", d.Topic)
	case d.CreatedAt <= 0 || d.CreatedAt > now+maxAhead:
		return bridge.Errorf(bridge.Invalid, "a decision was made at no time, or more than a day ahead of this PC's clock")
	case d.SourceMessageID != "" && bridge.CheckID("the source", d.SourceMessageID) != nil:
		return bridge.Errorf(bridge.Invalid, "the source of a decision is a message's id")
	}
	if err := bridge.CheckName(d.Author); err != nil {
		return err
	}
	return decision.CheckText(d.Text)
}

// Revision returns the decision as it is recorded here: for all sessions, by a session
// of that PC.
func (d Decided) Revision(host string) decision.Revision {
	rev := decision.Revision{ID: d.ID, Topic: d.Topic, Text: d.Text, Scope: decision.AllSessions(), Author: Letter{From: d.Author, Agent: d.Agent}.Sender(host), CreatedAt: d.CreatedAt, Withdrawn: d.Withdrawn}
	if d.SourceMessageID != "" {
		rev.SourceMessageID = &d.SourceMessageID
	}
	return rev
}

// DecidedOf returns a decision's transit form. It is Denied unless rev is for all sessions.
func DecidedOf(rev decision.Revision) (Decided, error) {
	if !rev.Scope.All {
		return Decided{}, bridge.Errorf(bridge.Denied, "only decisions for all sessions leave this PC")
	}
	d := Decided{ID: rev.ID, Topic: rev.Topic, Text: rev.Text, Author: rev.Author.Name, Agent: rev.Author.Agent, CreatedAt: rev.CreatedAt, Withdrawn: rev.Withdrawn}
	if rev.SourceMessageID != nil {
		d.SourceMessageID = *rev.SourceMessageID
	}
	return d, nil
}
