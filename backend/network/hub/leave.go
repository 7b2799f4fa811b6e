package hub

import (
	"cmp"
	"context"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
)

// AnnounceLeave announces that this PC leaves the team, and returns when the server has stored that.
// key is the public half of this PC's NATS key. Only Close may follow: this PC stops announcing
// itself. It fails with Unavailable without a connection.
func AnnounceLeave(ctx context.Context, h *Hub, key string) error {
	return announceLeave(ctx, h, key, publishStored)
}

// Leave is AnnounceLeave to a bridge-hub, and returns when the hub has removed this PC. It fails with
// Unavailable if the hub does not confirm in time.
func Leave(ctx context.Context, h *Hub, key string) error {
	select {
	case <-h.evicted: // of an earlier refusal
	default:
	}
	if err := announceLeave(ctx, h, key, publishOnly); err != nil { // the removal itself is the confirmation
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	select {
	case <-h.evicted:
		return nil
	case <-ctx.Done():
		return bridge.Errorf(bridge.Unavailable, "it was told, and did not say in time that it has taken this PC out")
	}
}

func announceLeave(ctx context.Context, h *Hub, key string, publisher func(context.Context, *nats.Conn, *nats.Msg) error) error {
	if state := h.State(); !state.Up {
		return bridge.Errorf(bridge.Unavailable, "%s (%s)", errAway, cmp.Or(state.Failed, "it comes back"))
	}
	h.leaving.Store(true)
	h.tasks.Cancel()
	<-h.announcerDone
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	announcement := presence{Session: h.session, Gone: true, Left: key}
	if err := h.publish(ctx, h.presenceKey(), announcement.encode(), publisher); err != nil {
		return bridge.WithCause(bridge.Unavailable, err, errAway+" ("+err.Error()+")")
	}
	return nil
}
