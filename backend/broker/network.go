package broker

import (
	"context"
	"encoding/json"

	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
)

// Network serves the owner's operations about other PCs in the broker's process.
type Network interface{ elsewhere }

// Reach has the network serve what belongs to it, before anybody connects.
func (b *Broker) Reach(network Network) { b.network = network }

// networked is an operation about other PCs. What an agent started may not call it:
// whom this PC trusts is the owner's alone.
func (b *Broker) networked(row api.Row) operation {
	return operation{Row: row, serve: func(ctx context.Context, l *link, args json.RawMessage) (any, error) {
		if b.network == nil {
			return nil, bridge.Errorf(bridge.Unsupported, "this Bridge does not link with other PCs")
		}
		by, err := b.Asker(ctx, l.Conn, api.Caller{})
		if err != nil {
			return nil, err
		}
		if err := by.OnlyOwner("decides about other PCs"); err != nil {
			return nil, err
		}
		return b.network.Handle(ctx, l.Conn, row.Name, args)
	}}
}
