package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
)

// A hub that has a program of its own tells who is there in lines (subject.There), by the
// node that this PC talks to; on a NATS server alone each PC reads the words of all others.

// listen hears of who is there under one subject in place of any before.
func listen(h *Hub, at string, take nats.MsgHandler) error {
	if h.presences != nil && h.presences.Subject == at {
		return nil // the connection keeps it
	}
	if h.presences != nil {
		_ = h.presences.Unsubscribe()
		h.presences = nil
	}
	sub, err := hear(h, at, take)
	h.presences = sub
	return err
}

// hear subscribes, with room for a burst.
func hear(h *Hub, at string, take nats.MsgHandler) (*nats.Subscription, error) {
	sub, err := h.conn.Subscribe(at, take)
	if err == nil {
		err = sub.SetPendingLimits(maxPendingFrames, maxPendingBytes)
	}
	return sub, err
}

// readTold learns who belongs to the team and who is there from the node that this PC
// talks to. told is false where no program is there that tells it.
func readTold(ctx context.Context, h *Hub) (told bool, err error) {
	if h.opts.Roster != "" {
		return false, nil
	}
	node := h.conn.ConnectedServerName()
	if err := listen(h, subject.There(h.opts.Team, node), func(m *nats.Msg) { takeTold(h, m) }); err != nil {
		return false, err
	}
	inbox := h.conn.NewInbox()
	sub, err := h.conn.SubscribeSync(inbox)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := h.conn.PublishRequest(subject.AskThere(h.opts.Team, node, h.opts.Self), inbox, nil); err != nil {
		return false, err
	}
	for more := true; more; {
		msg, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		lines, err := openTold(h, msg)
		if err != nil {
			return false, err
		}
		h.mu.Lock()
		h.ahead = h.opts.Now().Sub(time.UnixMilli(lines.Now))
		h.mu.Unlock()
		place(h, lines)
		more = lines.More
	}
	return true, nil
}

// openTold reads what the hub has signed under that very subject.
func openTold(h *Hub, msg *nats.Msg) (subject.Told, error) {
	if _, err := proved(h.opts.Hub, msg); err != nil {
		return subject.Told{}, err
	}
	return subject.ParseTold(msg.Data)
}

// takeTold takes what is different.
func takeTold(h *Hub, msg *nats.Msg) {
	told, err := openTold(h, msg)
	if err != nil {
		h.drop("", Unsigned, err)
		return
	}
	place(h, told)
}

// place has lines count that are newer than what is known.
func place(h *Hub, told subject.Told) {
	var entries []entry
	for _, line := range told.Lines {
		if line.Entry > 0 && remote.CheckName(line.Name) == nil {
			entries = append(entries, entry{pc: line.PC, number: line.Entry, member: subject.Member{Name: line.Name, Removed: line.Removed, Box: line.Box}})
		}
	}
	enter(h, entries...)
	changed := false
	h.mu.Lock()
	for _, line := range told.Lines {
		if m := h.pcs[line.PC]; m != nil && len(line.Refusals) > 0 && !slices.Equal(m.refused, line.Refusals) {
			m.refused, changed = line.Refusals, true
		}
		if m := h.pcs[line.PC]; line.Number > 0 && line.PC != h.opts.Self && m != nil && !m.gone {
			is, err := placeLocked(h, m, line, time.Duration(told.Now-line.At)*time.Millisecond)
			if changed = changed || is; err != nil {
				h.dropLocked(line.PC, Malformed, err)
			}
		}
	}
	h.mu.Unlock()
	if changed {
		h.opts.Changed(remote.PC{})
	}
}

func placeLocked(h *Hub, m *member, line subject.Line, age time.Duration) (changed bool, err error) {
	switch {
	case line.Left:
		return m.left(line.Number), nil
	case len(line.Word) == 0: // it has said the same again
		switch {
		case line.Number <= m.spoke:
		case m.heard.IsZero():
			h.lacks.Store(true)
		default:
			m.spoke, m.heard = line.Number, h.opts.Now().Add(-age)
		}
		return false, nil
	}
	word, err := parsePresence(line.Word)
	if err != nil || age > word.life(h.opts.Pace.Life) {
		return false, err
	}
	if word.Opens {
		m.box = seal.Text(line.Key)
	}
	return hearLocked(h, m, line.Number, word, age, &line), nil
}

// left notes the end of a PC's presence, as of the word with that number.
func (m *member) left(number int64) (changed bool) {
	if m.spoke > number {
		return false // it was heard since
	}
	changed = !m.since.IsZero()
	m.spoke = number + 1 // what it said before is not heard again
	m.leave()
	return changed
}

// checkLocked refuses a PC of whose presence the hub has told and that never said so: it
// is asked before anything is said to that PC, and costs too much for all of a team.
func checkLocked(h *Hub, m *member) error {
	if m.told == nil {
		return nil
	}
	line := m.told
	proof := subject.Proof{Key: line.Key, Number: line.Number, Signature: line.Signature}
	at := subject.BucketKey(subject.PresenceBucket(h.opts.Team), line.PC)
	if err := proof.Check(line.PC, at, line.Word); err != nil {
		h.dropLocked(line.PC, Unsigned, err)
		m.leave()
		return bridge.WithCause(bridge.Unavailable, err, "there is no way to "+m.pc.Name+" now: what the team's hub tells of it, it has not said")
	}
	m.told = nil
	return nil
}

// learn has this PC know who belongs to the team and who is there: told by the hub, or
// as each has said it.
func learn(ctx context.Context, h *Hub) (err error) {
	if h.told, err = readTold(ctx, h); err != nil || h.told {
		return err
	}
	presences := subject.BucketKey(subject.PresenceBucket(h.opts.Team), "*")
	if err := listen(h, presences, func(m *nats.Msg) { hearPresence(h, m) }); err != nil {
		return err
	}
	h.unread, err = readRosterFrom(ctx, h, 1, dropEntry(h))
	return err
}

// learnMore reads on where something may be missing.
func learnMore(h *Hub) (err error) {
	ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Pace.Answer)
	defer cancel()
	if h.told {
		told, err := readTold(ctx, h)
		if err == nil && !told {
			err = errors.New("the hub tells no more who is there")
		}
		return err
	}
	h.unread, err = readRosterFrom(ctx, h, h.unread, func(string, error) {}) // what is no entry was dropped before
	return err
}
