package broker

import (
	"context"
	"encoding/json"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// Network serves the owner's operations about other PCs in the broker's process.
type Network interface{ mux.Part }

// Reach has the network serve what belongs to it, before anybody connects.
func (b *Broker) Reach(network Network) { b.network = network }

// networked is an operation about other PCs. What an agent started may not call it:
// whom this PC trusts is the owner's alone.
func (b *Broker) networked(row api.Row) mux.Operation {
	o := mux.ByPart(func() mux.Part { return b.network }, row, errNoNetwork)
	serve := o.Serve
	o.Serve = func(ctx context.Context, l *link, args json.RawMessage) (any, error) {
		by, err := b.Asker(ctx, l.Conn, api.Caller{})
		if err == nil {
			err = by.OnlyOwner("decides about other PCs")
		}
		if err != nil {
			return nil, err
		}
		return serve(ctx, l, args)
	}
	return o
}

var errNoNetwork = bridge.Errorf(bridge.Unsupported, "this Bridge does not link with other PCs")
