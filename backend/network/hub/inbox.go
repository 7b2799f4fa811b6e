package hub

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/wire"
)

// The engine's words about an inbox.
const (
	ack        = "+ACK"
	nak        = "-NAK"
	inProgress = "+WPI"

	// askFor is how long the engine holds a request for the next message; after requestTimeout a request
	// counts as lost.
	askFor         = time.Minute
	requestTimeout = askFor + 10*time.Second

	// The pauses before a message that cannot be stored is tried again; they double.
	firstPause, longestPause = 500 * time.Millisecond, 15 * time.Second
)

// Inbox holds messages at the hub for PCs that are away. This PC's own inbox is emptied in the
// background, one message at a time, so that each sender's messages stay in order.
type Inbox struct {
	h            *Hub
	ready        lifecycle.Signal // the connection was established
	arrived      chan *nats.Msg   // requested messages
	replySubject string           // of arrived
}

func newInbox(h *Hub) *Inbox {
	return &Inbox{h: h, ready: lifecycle.NewSignal(), arrived: make(chan *nats.Msg, 16)}
}

// Store stores a frame at the hub until that PC takes it, and returns when it is on the hub's
// disk. It fails with Unavailable without a connection, or if the outcome is unknown; with Busy
// if the hub has no room; with Unsupported if this PC seals and that PC has no key.
func (i *Inbox) Store(ctx context.Context, id string, frame remote.Frame) error {
	h := i.h
	if _, err := h.Of(id); err != nil {
		return err
	}
	if state := h.State(); !state.Up || !h.conn.IsConnected() {
		h.reconnectSoon()
		return bridge.Errorf(bridge.Unavailable, "%s (%s)", errAway, cmp.Or(state.Failed, "it comes back"))
	}
	encoded, err := wire.EncodeWhole(frame)
	if err != nil {
		return err
	}
	at := subject.Subject{Team: h.opts.Team, From: h.opts.Self, To: id, Sort: subject.Message}.String()
	body, err := sealFor(h, id, at, slices.Concat(encoded.Head, encoded.Body))
	if err != nil {
		return err
	}
	if err := checkRoom(h, len(body)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	select {
	case h.publishToken <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	msg, err := sign(h, at, body)
	<-h.publishToken // others may publish while the hub syncs
	if err != nil {
		return err
	}
	err = explainStoreError(h, publishStored(ctx, h.conn, msg))
	switch {
	case err == nil || bridge.CodeOf(err) == bridge.Busy || bridge.CodeOf(err) == bridge.Invalid:
		return err
	case errors.Is(err, nats.ErrMaxPayload):
		return bridge.Errorf(bridge.TooLarge, "it is larger than the team's hub takes")
	case errors.Is(err, context.DeadlineExceeded):
		return bridge.Errorf(bridge.Unavailable, "the team's hub did not say in time whether it has it")
	}
	return bridge.WithCause(bridge.Unavailable, err, errAway)
}

func (i *Inbox) subscribe() (err error) {
	h := i.h
	if h.opts.Stored == nil {
		return nil
	}
	i.replySubject = h.conn.NewInbox()
	_, err = h.conn.ChanSubscribe(i.replySubject, i.arrived)
	return err
}

// collect takes messages for this PC whenever it is connected.
func (i *Inbox) collect() {
	h := i.h
	lost := time.NewTimer(requestTimeout)
	defer lost.Stop()
	for {
		var err error
		select {
		case <-i.ready:
			if err = i.reclaim(); err == nil {
				err = i.ask()
			}
		case msg := <-i.arrived:
			if msg.Reply == "" { // a status of the engine: every message of a PC has a reply subject
				err = i.askAfter(msg.Header.Get(headerStatus))
				break
			}
			i.handleStored(msg)
			err = i.ask()
		case <-lost.C:
			err = i.ask()
		case <-h.tasks.Done():
			return
		}
		if err != nil && !h.tasks.HasEnded() && h.conn.IsConnected() {
			h.opts.Log.Warn("what lies in the team's hub cannot be asked for", "err", err)
		}
		lost.Reset(requestTimeout)
	}
}

func (i *Inbox) consumer() (stream, name string) {
	h := i.h
	return subject.MessageStream(h.opts.Team), subject.Consumer(h.opts.Self)
}

// ask requests the next message, which may come later.
func (i *Inbox) ask() error {
	h := i.h
	stream, name := i.consumer()
	data, err := json.Marshal(map[string]any{"batch": 1, "expires": askFor})
	if err != nil {
		return err
	}
	return h.conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+name, i.replySubject, data)
}

// askAfter repeats the request after a status of the engine.
func (i *Inbox) askAfter(status string) error {
	h := i.h
	const nothingCame = "408"
	if status != nothingCame && status != statusNothing { // it is not ready: another node takes over
		select {
		case <-time.After(firstPause):
		case <-h.tasks.Done():
			return nil
		}
	}
	return i.ask()
}

// reclaim requests at once what an earlier connection of this PC did not acknowledge. Without it
// the engine waits for its timeout.
func (i *Inbox) reclaim() error {
	h := i.h
	ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Timing.Answer)
	defer cancel()
	stream, name := i.consumer()
	answer, err := h.conn.RequestWithContext(ctx, "$JS.API.CONSUMER.INFO."+stream+"."+name, nil)
	if err != nil {
		return err
	}
	var info struct {
		Delivered struct {
			Consumer uint64 `json:"consumer_seq"`
			Stream   uint64 `json:"stream_seq"`
		} `json:"delivered"`
		Unacknowledged int `json:"num_ack_pending"`
	}
	if err := json.Unmarshal(answer.Data, &info); err != nil || info.Unacknowledged == 0 {
		return err
	}
	at := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.%d.0", stream, name, info.Delivered.Stream, info.Delivered.Consumer, h.opts.Now().UnixNano())
	return h.conn.Publish(at, []byte(nak))
}

// handleStored hands a message on and then acknowledges it, which removes it from the hub.
func (i *Inbox) handleStored(msg *nats.Msg) {
	h := i.h
	stream, name := i.consumer()
	if !strings.HasPrefix(msg.Reply, "$JS.ACK."+stream+"."+name+".") {
		h.drop("", Unsigned, bridge.Errorf(bridge.Invalid, "what came as lying in the team's hub did not come from there: %s", msg.Subject))
		return
	}
	from, frame, at, why, err := i.openStored(msg)
	if bridge.CodeOf(err) == bridge.Unavailable {
		return // and it comes again
	}
	for pause := firstPause; err == nil; pause = min(2*pause, longestPause) {
		storeErr := h.opts.Stored(h.tasks.Context(), from, frame, at)
		if h.tasks.HasEnded() {
			return // and it comes again
		}
		if storeErr == nil {
			break
		}
		if !isPassing(storeErr) {
			why, err = reason(storeErr), storeErr
			break
		}
		h.opts.Log.Warn("what lay in the team's hub cannot be stored now", "peer", from.Name, "err", storeErr)
		if _, err = h.Of(from.ID); err != nil {
			why = Stranger // it was removed meanwhile
			break
		}
		_ = msg.Respond([]byte(inProgress)) // or it comes again
		select {
		case <-time.After(pause):
		case <-h.tasks.Done():
			return
		}
	}
	if err != nil {
		h.drop(from.ID, why, err)
	}
	_ = msg.Respond([]byte(ack)) // what is not acknowledged comes again
}

func isPassing(err error) bool {
	return slices.Contains([]bridge.Code{bridge.Storage, bridge.Unavailable, bridge.Busy, bridge.Internal}, bridge.CodeOf(err))
}

// openStored verifies and decodes a stored message. Its sender is in subject and signature, and
// must be in the roster. why is the reason of an error.
func (i *Inbox) openStored(msg *nats.Msg) (from remote.PC, frame remote.Frame, at time.Time, why Why, err error) {
	h := i.h
	why = Unsigned
	parsed, err := subject.Parse(msg.Subject)
	if err == nil && (parsed.Team != h.opts.Team || parsed.To != h.opts.Self || parsed.Sort != subject.Message) {
		err = bridge.Errorf(bridge.Invalid, "it was for another PC")
	}
	if err == nil {
		_, err = verify(parsed.From, msg)
	}
	body := msg.Data
	if err == nil {
		if body, err = unseal(h, msg.Subject, body); err != nil {
			why = Unopened
		}
	}
	if err == nil {
		if frame, err = wire.ReadWhole(bufio.NewReader(bytes.NewReader(body)), remote.MaxFrameBytes); err != nil {
			if why = Malformed; bridge.CodeOf(err) == bridge.TooLarge {
				why = TooLarge
			}
			err = bridge.WithCause(bridge.Invalid, err, "it is no frame: "+err.Error())
		}
	}
	var meta *nats.MsgMetadata
	if err == nil {
		meta, err = msg.Metadata()
	}
	if err == nil {
		why = Stranger
		from, err = i.member(parsed.From)
	}
	if err != nil {
		return remote.PC{ID: parsed.From}, frame, at, why, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return from, frame, meta.Timestamp.Add(h.clockSkew), "", nil
}

// member returns a PC of the team. It reads the roster again for a PC that is unknown.
func (i *Inbox) member(id string) (remote.PC, error) {
	h := i.h
	status, err := h.Of(id)
	if err != nil {
		ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Timing.Answer)
		defer cancel()
		if err := h.readRoster(ctx, entryDropper(h)); err != nil {
			return remote.PC{}, bridge.WithCause(bridge.Unavailable, err, "the team's roster cannot be read")
		}
		status, err = h.Of(id)
	}
	return status.PC, err
}
