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

// bridge-hub sends presence snapshots and updates (subject.There) from the node that this PC is
// connected to. On a plain NATS server each PC reads the announcements of all others.

// subscribePresence replaces the presence subscription by one of subject at.
func subscribePresence(h *Hub, at string, take nats.MsgHandler) error {
	if h.presences != nil && h.presences.Subject == at {
		return nil // a reconnect keeps it
	}
	if h.presences != nil {
		_ = h.presences.Unsubscribe()
		h.presences = nil
	}
	sub, err := subscribeTo(h, at, take)
	h.presences = sub
	return err
}

// subscribeTo subscribes with buffers for a burst.
func subscribeTo(h *Hub, at string, take nats.MsgHandler) (*nats.Subscription, error) {
	sub, err := h.conn.Subscribe(at, take)
	if err == nil {
		err = sub.SetPendingLimits(maxPendingFrames, maxPendingBytes)
	}
	return sub, err
}

// readSnapshot reads roster and presence from the connected node. loaded is false if the node is
// no bridge-hub.
func readSnapshot(ctx context.Context, h *Hub) (loaded bool, err error) {
	if h.opts.Roster != "" {
		return false, nil
	}
	node := h.conn.ConnectedServerName()
	if err := subscribePresence(h, subject.Presence(h.opts.Team, node), func(m *nats.Msg) { handleUpdate(h, m) }); err != nil {
		return false, err
	}
	inbox := h.conn.NewInbox()
	sub, err := h.conn.SubscribeSync(inbox)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := h.conn.PublishRequest(subject.PresenceRequest(h.opts.Team, node, h.opts.Self), inbox, nil); err != nil {
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
		lines, err := openSnapshot(h, msg)
		if err != nil {
			return false, err
		}
		h.mu.Lock()
		h.clockSkew = h.opts.Now().Sub(time.UnixMilli(lines.Now))
		h.mu.Unlock()
		applySnapshot(h, lines)
		more = lines.More
	}
	return true, nil
}

// openSnapshot verifies the hub's signature and reads a snapshot or update.
func openSnapshot(h *Hub, msg *nats.Msg) (subject.PresenceMessage, error) {
	if _, err := verify(h.opts.Hub, msg); err != nil {
		return subject.PresenceMessage{}, err
	}
	return subject.ParsePresence(msg.Data)
}

// handleUpdate applies an update.
func handleUpdate(h *Hub, msg *nats.Msg) {
	message, err := openSnapshot(h, msg)
	if err != nil {
		h.drop("", Unsigned, err)
		return
	}
	applySnapshot(h, message)
}

// applySnapshot applies all lines that are newer than the known state.
func applySnapshot(h *Hub, message subject.PresenceMessage) {
	var entries []entry
	for _, line := range message.Lines {
		if line.Entry > 0 && remote.CheckName(line.Name) == nil {
			entries = append(entries, entry{pc: line.PC, number: line.Entry, member: subject.Member{Name: line.Name, Removed: line.Removed, Box: line.Box}})
		}
	}
	applyEntries(h, entries...)
	changed := false
	h.mu.Lock()
	for _, line := range message.Lines {
		if m := h.pcs[line.PC]; m != nil && len(line.Refusals) > 0 && !slices.Equal(m.refused, line.Refusals) {
			m.refused, changed = line.Refusals, true
		}
		if m := h.pcs[line.PC]; line.Number > 0 && line.PC != h.opts.Self && m != nil && !m.removed {
			is, err := applyLineLocked(h, m, line, time.Duration(message.Now-line.At)*time.Millisecond)
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

func applyLineLocked(h *Hub, m *member, line subject.Line, age time.Duration) (changed bool, err error) {
	switch {
	case line.Left:
		return m.endPresence(line.Number), nil
	case len(line.Word) == 0: // the same announcement, repeated
		switch {
		case line.Number <= m.presenceNumber:
		case m.lastHeard.IsZero():
			h.rosterStale.Store(true)
		default:
			m.presenceNumber, m.lastHeard = line.Number, h.opts.Now().Add(-age)
		}
		return false, nil
	}
	received, err := parsePresence(line.Word)
	if err != nil || age > received.ttl(h.opts.Timing.TTL) {
		return false, err
	}
	if received.Opens {
		m.sealKey = seal.Text(line.Key)
	}
	return updatePresenceLocked(h, m, line.Number, received, age, &line), nil
}

// endPresence marks a PC as absent as of the announcement with that number.
func (m *member) endPresence(number int64) (changed bool) {
	if m.presenceNumber > number {
		return false // a newer announcement is known
	}
	changed = !m.reachableSince.IsZero()
	m.presenceNumber = number + 1 // replays of older announcements are dropped
	m.forgetPresence()
	return changed
}

// verifyLocked checks the signature of an announcement that the hub passed on. It runs before
// the first frame to that PC: checking a whole team at once costs too much. It fails with
// Unavailable if the PC did not sign it.
func verifyLocked(h *Hub, m *member) error {
	if m.unproven == nil {
		return nil
	}
	line := m.unproven
	proof := subject.Proof{Key: line.Key, Number: line.Number, Signature: line.Signature}
	at := subject.BucketKey(subject.PresenceBucket(h.opts.Team), line.PC)
	if err := proof.Check(line.PC, at, line.Word); err != nil {
		h.dropLocked(line.PC, Unsigned, err)
		m.forgetPresence()
		return bridge.WithCause(bridge.Unavailable, err, "there is no way to "+m.pc.Name+" now: what the team's hub tells of it, it has not said")
	}
	m.unproven = nil
	return nil
}

// loadTeam loads roster and presence: from snapshots of the hub if it sends them, else from the
// roster and the announcements of the PCs.
func loadTeam(ctx context.Context, h *Hub) (err error) {
	if h.hasSnapshot, err = readSnapshot(ctx, h); err != nil || h.hasSnapshot {
		return err
	}
	presences := subject.BucketKey(subject.PresenceBucket(h.opts.Team), "*")
	if err := subscribePresence(h, presences, func(m *nats.Msg) { handleLivePresence(h, m) }); err != nil {
		return err
	}
	h.nextRosterSequence, err = readRosterFrom(ctx, h, 1, entryDropper(h))
	return err
}

// reloadTeam reads what may be missing.
func reloadTeam(h *Hub) (err error) {
	ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Timing.Answer)
	defer cancel()
	if h.hasSnapshot {
		loaded, err := readSnapshot(ctx, h)
		if err == nil && !loaded {
			err = errors.New("the hub tells no more who is there")
		}
		return err
	}
	h.nextRosterSequence, err = readRosterFrom(ctx, h, h.nextRosterSequence, func(string, error) {}) // unreadable entries were counted before
	return err
}
