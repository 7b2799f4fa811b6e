package api

import (
	"context"

	"bridge/backend/core/needs"
)

// Needs brings what the list of the owner's needs is made of (needs.List). Denied
// within an agent.
func (c OwnerCalls) Needs(ctx context.Context) (needs.Facts, error) {
	return OpNeeds.Call(ctx, c.link, Empty{})
}
