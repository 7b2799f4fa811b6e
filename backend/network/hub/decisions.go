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

// Said is what stands at one place in the team's stream of decisions (HUB-06).
type Said struct {
	Sequence uint64
	From     remote.PC // by the proof, with the name that the roster has
	Own      bool      // it is this PC's
	Number   int64     // of the proof
	At       time.Time // by the hub's clock, the same for every PC
	// Mark tells it from what another stream had at that place.
	Mark string
	Body []byte
	// Refused is why it counts for nothing, for any PC, and Why the reason that this is
	// counted by.
	Refused error
	Why     Why
}

// StreamState is which stream of decisions the team has, and how long it is.
type StreamState struct {
	Stream string // another one has another name
	Last   uint64
}

// Decisions is the team's stream of decisions, as this PC reaches it.
type Decisions struct{ h *Hub }

// Decisions is the team's stream of decisions.
func (h *Hub) Decisions() Decisions { return Decisions{h} }

// Heard counts what was heard of new decisions: when it grows, there is
// something to read. It grows with each connection, too.
func (d Decisions) Heard() uint64 { return d.h.decided.Load() }

func (d Decisions) hear(*nats.Msg) {
	d.h.decided.Add(1)
	d.h.opts.Changed(remote.PC{})
}

// Stream asks which stream of decisions the team has now.
func (d Decisions) Stream(ctx context.Context) (StreamState, error) {
	h := d.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	answer, err := h.conn.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+subject.DecisionStream(h.opts.Team), nil)
	if err != nil {
		return StreamState{}, h.awayWords(err)
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

// Read reads on in the team's stream of decisions, from a sequence on; more says
// that it goes on behind what it returns.
func (d Decisions) Read(ctx context.Context, from uint64) (said []Said, more bool, err error) {
	h := d.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	_, more, err = h.readBatch(ctx, subject.DecisionStream(h.opts.Team), subject.DecisionSubjects(h.opts.Team), from, func(s stored) {
		said = append(said, d.judge(s))
	})
	if err != nil {
		return nil, false, h.awayWords(err)
	}
	for _, one := range said {
		if bridge.CodeOf(one.Refused) == bridge.NotFound {
			return d.judgeAgain(ctx, said, more)
		}
	}
	return said, more, nil
}

// judgeAgain looks for those that the roster did not name when it was read the last time.
func (d Decisions) judgeAgain(ctx context.Context, said []Said, more bool) ([]Said, bool, error) {
	if err := d.h.readRoster(ctx, dropEntry(d.h)); err != nil {
		return nil, false, d.h.awayWords(err)
	}
	for i := range said {
		if bridge.CodeOf(said[i].Refused) == bridge.NotFound {
			d.name(&said[i])
		}
	}
	return said, more, nil
}

// judge finds out who said it.
func (d Decisions) judge(s stored) Said {
	one := Said{Sequence: s.sequence, At: s.at, Body: s.msg.Data, Mark: s.msg.Subject + " " + s.at.UTC().Format(time.RFC3339Nano)}
	at, err := subject.Parse(s.msg.Subject)
	if err == nil && at.Team != d.h.opts.Team {
		err = bridge.Errorf(bridge.Invalid, "it is of another team")
	}
	if err == nil {
		one.Number, err = proved(at.From, s.msg)
	}
	if err != nil {
		one.Refused, one.Why = err, Unsigned
		return one
	}
	one.From.ID, one.Own = at.From, at.From == d.h.opts.Self
	d.name(&one)
	return one
}

// name finds out who said it, by the roster.
func (d Decisions) name(one *Said) {
	one.Why = ""
	if one.From.Name, one.Refused = d.speaker(one.From.ID, one.At); one.Refused != nil {
		one.Why = Stranger
	}
}

// Refuse counts what was read there and counts for nothing.
func (d Decisions) Refuse(one Said, why Why, err error) { d.h.drop(one.From.ID, why, err) }

// speaker is the name of a PC that belonged to the team when it said something. What a
// PC said before it was removed stays.
func (d Decisions) speaker(id string, when time.Time) (name string, err error) {
	h := d.h
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.pcs[id]
	switch {
	case m == nil || m.entry == 0:
		return "", bridge.Errorf(bridge.NotFound, "nobody of the team has that identity")
	case m.gone && when.UnixNano() >= m.entry:
		return m.pc.Name, bridge.Errorf(bridge.Denied, "%s was removed from the team before", m.pc.Name)
	}
	return m.pc.Name, nil
}

// Say puts a decision into the team's stream, and returns when the hub has it on its
// disk. after is the number of what this PC was heard to say there last: with a smaller
// one it would not count, and a clock may have been put back.
func (d Decisions) Say(ctx context.Context, body []byte, after int64) error {
	h := d.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	h.number.pass(after)
	at := subject.Subject{Team: h.opts.Team, From: h.opts.Self, Sort: subject.Decision}
	if err := h.say(ctx, at.String(), body, store); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && h.conn.IsConnected() {
			return bridge.WithCause(bridge.Unavailable, err, "the team's hub did not say in time whether it has it")
		}
		return h.awayWords(whose(h, err))
	}
	h.decided.Add(1) // it comes back by the stream
	return nil
}

// awayWords tells an error of the connection as one of the way to the hub.
func (h *Hub) awayWords(err error) error {
	if bridge.CodeOf(err) != bridge.Internal || h.tasks.HasEnded() {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) && h.conn.IsConnected() {
		return bridge.WithCause(bridge.Unavailable, err, "the team's hub is reached and does not answer")
	}
	return bridge.WithCause(bridge.Unavailable, err, errAway+": "+err.Error())
}
