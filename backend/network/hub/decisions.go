package hub

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
)

// Said is one message of the team's stream of decisions (HUB-06).
type Said struct {
	Sequence uint64
	From     remote.PC // by signature; its name is the roster's
	Own      bool      // sent by this PC
	Number   int64     // of its signature
	At       time.Time // by the hub's clock, the same for every PC
	// Mark differs from the message that another stream had at that sequence.
	Mark string
	Body []byte
	// Refused is why every PC ignores the message, nil for a valid one. Why is its reason in
	// the counters.
	Refused error
	Why     Why
}

// StreamState identifies the stream of decisions and its last sequence.
type StreamState struct {
	Stream string // differs between streams
	Last   uint64
}

// Decisions is the team's stream of decisions, as this PC reaches it.
type Decisions struct{ h *Hub }

// Decisions is the team's stream of decisions.
func (h *Hub) Decisions() Decisions { return Decisions{h} }

// Received returns a counter that grows when there may be new decisions to read, also with each
// connection.
func (d Decisions) Received() uint64 { return d.h.decided.Load() }

func (d Decisions) onNew(*nats.Msg) {
	d.h.decided.Add(1)
	d.h.opts.Changed(remote.PC{})
}

// Stream returns the team's present stream of decisions. It fails with Unavailable if the hub
// does not answer or has no such stream, and with Invalid if its answer is not JSON.
func (d Decisions) Stream(ctx context.Context) (StreamState, error) {
	h := d.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	answer, err := h.conn.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+subject.DecisionStream(h.opts.Team), nil)
	if err != nil {
		return StreamState{}, h.wrapError(err)
	}
	var info struct {
		Created string `json:"created"`
		State   struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &info); err != nil {
		return StreamState{}, bridge.Errorf(bridge.Invalid, "the team's hub told of its decisions with what is no JSON: %v", err)
	}
	if info.Error != nil || info.Created == "" {
		return StreamState{}, bridge.Errorf(bridge.Unavailable, "the team's hub has no decisions: %s", answer.Data[:min(len(answer.Data), 200)])
	}
	return StreamState{Stream: info.Created, Last: info.State.Last}, nil
}

// Read returns messages of the stream from a sequence on. more is set if the stream continues.
// It fails with Unavailable if the hub does not answer.
func (d Decisions) Read(ctx context.Context, from uint64) (entries []Said, more bool, err error) {
	h := d.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	_, more, err = h.readBatch(ctx, subject.DecisionStream(h.opts.Team), subject.DecisionSubjects(h.opts.Team), from, func(s stored) {
		entries = append(entries, d.verify(s))
	})
	if err != nil {
		return nil, false, h.wrapError(err)
	}
	for _, statement := range entries {
		if bridge.CodeOf(statement.Refused) == bridge.NotFound {
			return d.verifyAgain(ctx, entries, more)
		}
	}
	return entries, more, nil
}

// verifyAgain looks up senders again that were missing when the roster was read last.
func (d Decisions) verifyAgain(ctx context.Context, entries []Said, more bool) ([]Said, bool, error) {
	if err := d.h.readRoster(ctx, entryDropper(d.h)); err != nil {
		return nil, false, d.h.wrapError(err)
	}
	for i := range entries {
		if bridge.CodeOf(entries[i].Refused) == bridge.NotFound {
			d.resolveName(&entries[i])
		}
	}
	return entries, more, nil
}

// verify checks the signature of a message and finds its sender.
func (d Decisions) verify(s stored) Said {
	statement := Said{Sequence: s.sequence, At: s.at, Body: s.msg.Data, Mark: s.msg.Subject + " " + s.at.UTC().Format(time.RFC3339Nano)}
	at, err := subject.Parse(s.msg.Subject)
	if err == nil && at.Team != d.h.opts.Team {
		err = bridge.Errorf(bridge.Invalid, "it is of another team")
	}
	if err == nil {
		statement.Number, err = verify(at.From, s.msg)
	}
	if err != nil {
		statement.Refused, statement.Why = err, Unsigned
		return statement
	}
	statement.From.ID, statement.Own = at.From, at.From == d.h.opts.Self
	d.resolveName(&statement)
	return statement
}

// resolveName sets the sender's name from the roster.
func (d Decisions) resolveName(statement *Said) {
	statement.Why = ""
	if statement.From.Name, statement.Refused = d.authorName(statement.From.ID, statement.At); statement.Refused != nil {
		statement.Why = Stranger
	}
}

// Refuse counts a message that was read and refused with the error err.
func (d Decisions) Refuse(statement Said, why Why, err error) { d.h.drop(statement.From.ID, why, err) }

// authorName returns the name of a PC that was in the team at that time. Decisions of a PC stay
// valid after its removal. It fails with NotFound or Denied.
func (d Decisions) authorName(id string, when time.Time) (name string, err error) {
	h := d.h
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.pcs[id]
	switch {
	case m == nil || m.rosterNumber == 0:
		return "", bridge.Errorf(bridge.NotFound, "no PC of the team has that identity")
	case m.removed && when.UnixNano() >= m.rosterNumber:
		return m.pc.Name, bridge.Errorf(bridge.Denied, "%s was removed from the team before", m.pc.Name)
	}
	return m.pc.Name, nil
}

// Say adds a decision to the stream, and returns when it is on the hub's disk. after is the
// number of this PC's last message there: a lower number would be ignored, and a clock may have
// been set back. Say fails with Unavailable if the hub cannot be reached or the outcome is
// unknown, and with Busy if the hub refuses the message.
func (d Decisions) Say(ctx context.Context, body []byte, after int64) error {
	h := d.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	h.numbers.skipTo(after)
	at := subject.Subject{Team: h.opts.Team, From: h.opts.Self, Sort: subject.Decision}
	if err := h.publish(ctx, at.String(), body, publishStored); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && h.conn.IsConnected() {
			return bridge.WithCause(bridge.Unavailable, err, "the team's hub did not say in time whether it has it")
		}
		return h.wrapError(explainStoreError(h, err))
	}
	h.decided.Add(1) // the stream brings it back
	return nil
}

// wrapError returns the error of a request for people.
func (h *Hub) wrapError(err error) error {
	if bridge.CodeOf(err) != bridge.Internal || h.tasks.HasEnded() {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) && h.conn.IsConnected() {
		return bridge.WithCause(bridge.Unavailable, err, "the team's hub is reached and does not answer")
	}
	return bridge.WithCause(bridge.Unavailable, err, errAway+": "+err.Error())
}
