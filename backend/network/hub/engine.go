package hub

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
)

// The engine's own names in the answers to a request for what it stores.
const (
	headerSubject  = "Nats-Subject"
	headerSequence = "Nats-Sequence"
	headerPending  = "Nats-Num-Pending"
	headerTime     = "Nats-Time-Stamp"
	headerStatus   = "Status"

	statusEnd     = "204" // of a batch
	statusNothing = "404" // is stored from there on

	batch = 256
)

// stored is what the engine has stored.
type stored struct {
	msg      *nats.Msg // under the subject by which it was said
	sequence uint64
	at       time.Time // by the engine's clock
}

// read hands what a stream has stored under a filter to each, from a sequence on. It
// needs no consumer, so the engine keeps nothing for it. Where no answer comes it is asked
// again: the question may have gone to a node that is away.
func (h *Hub) read(ctx context.Context, stream, filter string, from uint64, each func(stored)) (err error) {
	wait := h.opts.Timing.Answer / 10
	for more := true; more; {
		once, cancel := context.WithTimeout(ctx, wait)
		from, more, err = h.readBatch(once, stream, filter, from, each)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && h.conn.IsConnected() {
			more, wait = true, 2*wait
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) readBatch(ctx context.Context, stream, filter string, from uint64, each func(stored)) (next uint64, more bool, err error) {
	ask, err := json.Marshal(map[string]any{"seq": max(from, 1), "next_by_subj": filter, "batch": batch})
	if err != nil {
		return from, false, err
	}
	inbox := h.conn.NewInbox()
	sub, err := h.conn.SubscribeSync(inbox)
	if err != nil {
		return from, false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := h.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, ask); err != nil {
		return from, false, err
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return from, more, err
		}
		switch status := msg.Header.Get(headerStatus); status {
		case "":
		case statusEnd:
			return from, msg.Header.Get(headerPending) != "0", nil
		case statusNothing:
			return from, false, nil
		default:
			return from, false, bridge.Errorf(bridge.Unavailable, "the team's hub answered %s to a request for what it stores: %s", status, msg.Header.Get("Description"))
		}
		item := stored{msg: msg}
		msg.Subject = msg.Header.Get(headerSubject)
		item.sequence, err = strconv.ParseUint(msg.Header.Get(headerSequence), 10, 64)
		if err == nil {
			item.at, err = time.Parse(time.RFC3339Nano, msg.Header.Get(headerTime))
		}
		if err != nil {
			return from, false, bridge.Errorf(bridge.Invalid, "the team's hub answered with what has no sequence or no time: %v", err)
		}
		from = item.sequence + 1
		each(item)
	}
}

// publish signs a message and publishes it with publisher.
func (h *Hub) publish(ctx context.Context, at string, body []byte, publisher func(context.Context, *nats.Conn, *nats.Msg) error) error {
	select {
	case h.publishToken <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.publishToken }()
	msg, err := sign(h, at, body)
	if err != nil {
		return err
	}
	return publisher(ctx, h.conn, msg)
}

// sign returns a signed message. The caller holds publishToken.
func sign(h *Hub, at string, body []byte) (*nats.Msg, error) {
	number, err := h.numbers.next(h.opts.Now())
	if err != nil {
		return nil, bridge.WithCause(bridge.Storage, err, "this PC says nothing to its team: "+err.Error())
	}
	proof := subject.Proof{Number: number}
	proof.Key, proof.Signature = h.opts.Sign(subject.Signed(at, number, body))
	msg := &nats.Msg{Subject: at, Data: body, Header: nats.Header{}}
	for name, value := range proof.Headers() {
		msg.Header[name] = []string{value}
	}
	return msg, nil
}

// publishOnly publishes a message that the engine does not store.
func publishOnly(_ context.Context, conn *nats.Conn, msg *nats.Msg) error {
	return conn.PublishMsg(msg)
}

// codeNoRoom is the engine's error for a full account. A hub answers it while its disk is full.
const codeNoRoom = 10002

var (
	errNoRoom  = bridge.Errorf(bridge.Busy, "the team's NATS server did not store it: it has no more room for the team")
	errHubFull = bridge.Errorf(bridge.Busy, "the team's hub did not store it: its disk is full")
)

// explainStoreError returns the error for people: a hub without room has a full disk.
func explainStoreError(h *Hub, err error) error {
	if errors.Is(err, errNoRoom) && h.opts.Roster == "" {
		return errHubFull
	}
	return err
}

// publishStored publishes a message and waits until the engine has stored it. It fails with
// Busy if the engine has no room.
func publishStored(ctx context.Context, conn *nats.Conn, msg *nats.Msg) error {
	answer, err := conn.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return err
	}
	var ack struct {
		Sequence uint64 `json:"seq"`
		Error    *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return bridge.Errorf(bridge.Invalid, "the team's hub acknowledged with what is no JSON: %v", err)
	}
	if ack.Error != nil && ack.Error.Code == codeNoRoom {
		return errNoRoom
	}
	if ack.Error != nil {
		return bridge.Errorf(bridge.Busy, "the team's hub did not store it: %s", ack.Error.Description)
	}
	if ack.Sequence == 0 {
		return bridge.Errorf(bridge.Invalid, "the team's hub acknowledged without saying where it stored it")
	}
	return nil
}
