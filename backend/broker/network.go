package broker

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
)

// Reach registers the owner's operations about other PCs, before the first connection. It
// refuses callers that an agent started: only the owner decides which PCs to trust.
func (b *Broker) Reach(network mux.Part) {
	network.Register(b.mux.Guarded(func(ctx context.Context, conn *ipc.Conn) error {
		return mux.CheckOwner(ctx, b, conn, "decides about other PCs")
	}))
}

var errNoNetwork = bridge.Errorf(bridge.Unsupported, "this Bridge does not link with other PCs")
