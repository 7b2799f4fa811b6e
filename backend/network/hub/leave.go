package hub

import (
	"cmp"
	"context"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
)

// SayLeft says to the team that this PC leaves it, and returns when the server has that.
// key is the public half of this PC's key for NATS. What follows is Close: this PC says
// no more by itself that it is there.
func SayLeft(ctx context.Context, h *Hub, key string) error { return sayLeft(ctx, h, key, store) }

// Leave is SayLeft to a hub, which ends this PC's membership then: it returns when the hub
// has.
func Leave(ctx context.Context, h *Hub, key string) error {
	select {
	case <-h.outed: // it was refused before, and let in again
	default:
	}
	if err := sayLeft(ctx, h, key, publish); err != nil { // that it is stored the hub need not say any more
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	select {
	case <-h.outed:
		return nil
	case <-ctx.Done():
		return bridge.Errorf(bridge.Unavailable, "it was told, and did not say in time that it has taken this PC out")
	}
}

func sayLeft(ctx context.Context, h *Hub, key string, by func(context.Context, *nats.Conn, *nats.Msg) error) error {
	if state := h.State(); !state.Up {
		return bridge.Errorf(bridge.Unavailable, "%s (%s)", errAway, cmp.Or(state.Failed, "it comes back"))
	}
	h.left.Store(true)
	h.tasks.Cancel()
	<-h.silent
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	word := presence{Session: h.session, Gone: true, Left: key}
	if err := h.say(ctx, h.presenceKey(), word.encode(), by); err != nil {
		return bridge.WithCause(bridge.Unavailable, err, errAway+" ("+err.Error()+")")
	}
	return nil
}
