package hub

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/wire"
)

// Send publishes a frame to a PC of the team. It fails with Unavailable if that PC cannot be
// reached now. Success does not mean that the frame arrived.
func (h *Hub) Send(ctx context.Context, id string, frame remote.Frame) error {
	return h.send(ctx, id, frame, publishOnly)
}

// SendBulk is Send for large data: one such frame at a time, so that others are not delayed. It
// fails as Send does, and if ctx ends first.
func (h *Hub) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	select {
	case h.bulkToken <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.bulkToken }()
	if err := h.send(ctx, id, frame, publishOnly); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	if err := h.conn.FlushWithContext(ctx); err != nil {
		return h.wrapSendError(id, err)
	}
	return nil
}

func (h *Hub) send(ctx context.Context, id string, frame remote.Frame, publisher func(context.Context, *nats.Conn, *nats.Msg) error) error {
	session, err := h.sessionOf(id)
	if err != nil {
		return err
	}
	encoded, err := wire.EncodeWhole(frame)
	if err != nil {
		return err
	}
	// It is for this process of that PC; a later process drops it.
	at := subject.Subject{Team: h.opts.Team, From: h.opts.Self, To: id, Sort: subject.Frame}.String()
	body, err := sealFor(h, id, at, slices.Concat(encoded.Head, encoded.Body))
	if err != nil {
		return err
	}
	body = slices.Concat([]byte(session), body)
	if err := checkRoom(h, len(body)); err != nil {
		return err
	}
	if err := h.publish(ctx, at, body, publisher); err != nil {
		return h.wrapSendError(id, err)
	}
	return nil
}

// checkRoom fails with TooLarge if a frame exceeds the hub's limit.
func checkRoom(h *Hub, size int) error {
	if most := h.conn.MaxPayload(); most > 0 && int64(size+headerBytes) > most {
		return bridge.Errorf(bridge.TooLarge, "a frame of %d bytes does not fit: the team's hub takes %d", size+headerBytes, most)
	}
	return nil
}

// headerBytes is the most bytes that a frame's signature takes.
const headerBytes = 512

// wrapSendError returns the error of a send for people.
func (h *Hub) wrapSendError(id string, err error) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return bridge.Errorf(bridge.TooLarge, "the frame is larger than the team's hub takes")
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := id
	if m := h.pcs[id]; m != nil {
		name = m.pc.Name
	}
	return bridge.WithCause(bridge.Unavailable, err, "there is no way to "+name+" now: the team's hub cannot be reached")
}

// sessionOf returns the session of a PC that can be reached now. It fails with Unavailable if
// it cannot.
func (h *Hub) sessionOf(id string) (session string, err error) {
	status, err := h.Of(id)
	if err != nil {
		return "", err
	}
	if !status.Up || !h.conn.IsConnected() {
		h.reconnectSoon()
		return "", bridge.Errorf(bridge.Unavailable, "there is no way to %s now: %s", status.Name, cmp.Or(status.Failed, errAway))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.pcs[id]
	if err := verifyLocked(h, m); err != nil {
		return "", err
	}
	return m.presence.Session, nil
}

const errAway = "the team's hub cannot be reached"

// reconnectSoon ends the pause before the next attempt, because a caller needs the hub.
func (h *Hub) reconnectSoon() {
	h.mu.Lock()
	now := h.opts.Now()
	due := !h.state.Up && now.Sub(h.lastHurry) > h.opts.Timing.Retry
	if due {
		h.lastHurry = now
	}
	h.mu.Unlock()
	if due && h.conn.IsReconnecting() {
		_ = h.conn.ForceReconnect() // it fails if the connection is up or closed
	}
}

// Of returns the status of a PC of the team. It fails with Unauthorized for any other PC.
func (h *Hub) Of(id string) (remote.Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.pcs[id]
	if m == nil || !h.isOther(m) {
		return remote.Status{}, errStranger
	}
	return h.statusLocked(m), nil
}

var errStranger = bridge.Errorf(bridge.Unauthorized, "that PC is not in the team")

// isOther reports whether that is another PC of the team, and the one of its name.
func (h *Hub) isOther(m *member) bool {
	return h.names[m.pc.Name] == m && m.pc.ID != h.opts.Self && !h.removed
}

func (h *Hub) statusLocked(m *member) remote.Status {
	s := remote.Status{PC: m.pc}
	switch {
	case !m.reachableSince.IsZero() && h.state.Up:
		s.Up, s.Since, s.Release, s.Capabilities = true, m.reachableSince, m.presence.Release, m.presence.Capabilities
	case !h.state.Up:
		s.Failed = errAway + " (" + h.state.Failed + ")"
	case m.presence.Left != "":
		s.Failed = "it has left the team"
	default:
		s.Failed = "it is not connected to the team's hub: is it on, and is Bridge running there?"
	}
	return s
}

// Status lists the other PCs of the team, by name.
func (h *Hub) Status() []remote.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []remote.Status{}
	for _, m := range h.names {
		if h.isOther(m) {
			list = append(list, h.statusLocked(m))
		}
	}
	slices.SortFunc(list, func(a, b remote.Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// handleFrame verifies a frame for this PC and queues it.
func (h *Hub) handleFrame(msg *nats.Msg) {
	from, err := subject.Parse(msg.Subject)
	var number int64
	var frame remote.Frame
	why := Unsigned
	if err == nil {
		number, err = verify(from.From, msg)
	}
	if err == nil {
		frame, why, err = h.unpack(msg.Subject, msg.Data)
	}
	h.mu.Lock()
	if err == nil {
		why, err = h.enqueueLocked(from.From, number, frame, len(msg.Data))
	}
	named := err != nil && h.dropLocked(from.From, why, err)
	h.mu.Unlock()
	if named {
		h.opts.Changed(remote.PC{})
	}
}

// enqueueLocked queues a frame.
func (h *Hub) enqueueLocked(from string, number int64, frame remote.Frame, size int) (Why, error) {
	m := h.pcs[from]
	if m == nil || !h.isOther(m) {
		return Stranger, errStranger
	}
	if number <= m.lastFrame {
		return Replayed, errReplayed
	}
	m.lastFrame = number
	if m.queue == nil {
		q := newQueue(&h.queued)
		m.queue = q
		h.tasks.Go(func() { q.run(h.tasks.Context(), h.ready(from), h.opts.Handle) })
	}
	if !m.queue.put(frame, size) {
		return Flooded, errFlooded
	}
	return "", nil
}

var (
	errReplayed = bridge.Errorf(bridge.Conflict, "that was said before")
	errFlooded  = bridge.Errorf(bridge.TooLarge, "it sends more than this PC keeps up with")
)

// unpack decodes a frame for this process.
func (h *Hub) unpack(at string, data []byte) (remote.Frame, Why, error) {
	if len(data) < sessionDigits || string(data[:sessionDigits]) != h.session {
		return remote.Frame{}, Late, bridge.Errorf(bridge.Invalid, "a frame was for an earlier Bridge on this PC")
	}
	body, err := unseal(h, at, data[sessionDigits:])
	if err != nil {
		return remote.Frame{}, Unopened, err
	}
	frame, err := wire.ReadWhole(bufio.NewReader(bytes.NewReader(body)), remote.MaxFrameBytes)
	if bridge.CodeOf(err) == bridge.TooLarge {
		return frame, TooLarge, err
	}
	return frame, Malformed, err
}

// ready returns a function that reports whether a PC is present: its first frames may come
// before its announcement.
func (h *Hub) ready(id string) func() (remote.PC, bool) {
	return func() (remote.PC, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		m := h.pcs[id]
		return m.pc, !m.reachableSince.IsZero() && h.isOther(m)
	}
}

// patience is how long a frame waits for its PC's announcement.
const patience = 5 * time.Second
