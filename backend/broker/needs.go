package broker

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/platform/ipc/api"
)

// Needs sets the function that gathers the facts for the list of the owner's needs,
// before the first connection.
func (b *Broker) Needs(gather func(context.Context) (needs.Facts, error)) { b.gather = gather }

// needs serves the owner's command line and desktop app (NED-01). It refuses callers that
// an agent started, because the facts include requests and runs of other sessions.
func (b *Broker) needs(ctx context.Context, l *link, _ api.Empty) (needs.Facts, error) {
	asker, err := b.Asker(ctx, l.Conn, api.Caller{})
	if err == nil {
		err = asker.OnlyOwner("is told what needs him")
	}
	if err != nil {
		return needs.Facts{}, err
	}
	if b.gather == nil {
		return needs.Facts{}, bridge.Errorf(bridge.Unsupported, "this Bridge does not know what needs its owner")
	}
	return b.gather(ctx)
}
