package api

import (
	"context"

	"bridge/backend/core/needs"
)

// Needs returns the facts for the list of the owner's needs (needs.List). It fails
// with Denied inside an agent.
func (c OwnerCalls) Needs(ctx context.Context) (needs.Facts, error) {
	return OpNeeds.Call(ctx, c.link, Empty{})
}
