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

	// askFor is how long the engine keeps a question for the next message, and asked how
	// long after it a question counts as lost.
	askFor = time.Minute
	asked  = askFor + 10*time.Second

	// What this PC cannot store now is tried again after a pause, which doubles.
	firstPause, longestPause = 500 * time.Millisecond, 15 * time.Second
)

// Inbox is what lies in the hub for a PC of the team: this one's is taken by itself, one
// message after the other, so that those of each sender stay in their order whatever
// breaks off.
type Inbox struct {
	h    *Hub
	open lifecycle.Signal // there is a new way to the hub
	came chan *nats.Msg   // that was asked for
	at   string           // the subject of came
}

func newInbox(h *Hub) *Inbox {
	return &Inbox{h: h, open: lifecycle.NewSignal(), came: make(chan *nats.Msg, 16)}
}

// Store has a frame lie in the hub until that PC takes it, and returns when the hub has
// it on its disk. Unavailable says that there is no way to the hub, or that nobody knows
// whether it has it; Busy that it did not take it, Unsupported that this PC seals and that one cannot open.
func (i *Inbox) Store(ctx context.Context, id string, frame remote.Frame) error {
	h := i.h
	if _, err := h.Of(id); err != nil {
		return err
	}
	if state := h.State(); !state.Up || !h.conn.IsConnected() {
		h.hurry()
		return bridge.Errorf(bridge.Unavailable, "%s (%s)", errAway, cmp.Or(state.Failed, "it comes back"))
	}
	whole, err := wire.EncodeWhole(frame)
	if err != nil {
		return err
	}
	at := subject.Subject{Team: h.opts.Team, From: h.opts.Self, To: id, Sort: subject.Message}.String()
	body, err := sealFor(h, id, at, slices.Concat(whole.Head, whole.Body))
	if err != nil {
		return err
	}
	if err := checkRoom(h, len(body)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	select {
	case h.speech <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	msg, err := sign(h, at, body)
	<-h.speech // the hub's disk keeps nobody else waiting
	if err != nil {
		return err
	}
	err = whose(h, store(ctx, h.conn, msg))
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
	i.at = h.conn.NewInbox()
	_, err = h.conn.ChanSubscribe(i.at, i.came)
	return err
}

// collect takes what lies in the hub for this PC whenever there is a way to it.
func (i *Inbox) collect() {
	h := i.h
	lost := time.NewTimer(asked)
	defer lost.Stop()
	for {
		var err error
		select {
		case <-i.open:
			if err = i.reclaim(); err == nil {
				err = i.ask()
			}
		case msg := <-i.came:
			if msg.Reply == "" { // the engine's own word: what a PC says is to be acknowledged, whatever its headers are
				err = i.askAfter(msg.Header.Get(headerStatus))
				break
			}
			i.takeStored(msg)
			err = i.ask()
		case <-lost.C:
			err = i.ask()
		case <-h.tasks.Done():
			return
		}
		if err != nil && !h.tasks.HasEnded() && h.conn.IsConnected() {
			h.opts.Log.Warn("what lies in the team's hub cannot be asked for", "err", err)
		}
		lost.Reset(asked)
	}
}

func (i *Inbox) consumer() (stream, name string) {
	h := i.h
	return subject.MessageStream(h.opts.Team), subject.Consumer(h.opts.Self)
}

// ask asks for the next message, which may come later.
func (i *Inbox) ask() error {
	h := i.h
	stream, name := i.consumer()
	data, err := json.Marshal(map[string]any{"batch": 1, "expires": askFor})
	if err != nil {
		return err
	}
	return h.conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+name, i.at, data)
}

// askAfter asks again after the engine's word that there was nothing to send.
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

// reclaim has come at once what was sent to an earlier connection of this PC, and was not
// acknowledged: without it the engine would wait.
func (i *Inbox) reclaim() error {
	h := i.h
	ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Pace.Answer)
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

// takeStored has a message taken and then takes it out of the hub.
func (i *Inbox) takeStored(msg *nats.Msg) {
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
		taken := h.opts.Stored(h.tasks.Context(), from, frame, at)
		if h.tasks.HasEnded() {
			return // and it comes again
		}
		if taken == nil {
			break
		}
		if !isPassing(taken) {
			why, err = reason(taken), taken
			break
		}
		h.opts.Log.Warn("what lay in the team's hub cannot be stored now", "peer", from.Name, "err", taken)
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

// openStored reads what lay in the hub: who has stored it the subject and the signature
// tell, and the roster whether that is one of the team. why is for an error.
func (i *Inbox) openStored(msg *nats.Msg) (from remote.PC, frame remote.Frame, at time.Time, why Why, err error) {
	h := i.h
	why = Unsigned
	said, err := subject.Parse(msg.Subject)
	if err == nil && (said.Team != h.opts.Team || said.To != h.opts.Self || said.Sort != subject.Message) {
		err = bridge.Errorf(bridge.Invalid, "it was for somebody else")
	}
	if err == nil {
		_, err = proved(said.From, msg)
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
		from, err = i.one(said.From)
	}
	if err != nil {
		return remote.PC{ID: said.From}, frame, at, why, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return from, frame, meta.Timestamp.Add(h.ahead), "", nil
}

// one is a PC of the team. Who is not known may have joined just now.
func (i *Inbox) one(id string) (remote.PC, error) {
	h := i.h
	status, err := h.Of(id)
	if err != nil {
		ctx, cancel := context.WithTimeout(h.tasks.Context(), h.opts.Pace.Answer)
		defer cancel()
		if err := h.readRoster(ctx, dropEntry(h)); err != nil {
			return remote.PC{}, bridge.WithCause(bridge.Unavailable, err, "the team's roster cannot be read")
		}
		status, err = h.Of(id)
	}
	return status.PC, err
}
