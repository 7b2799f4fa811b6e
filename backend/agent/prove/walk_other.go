//go:build !linux

package prove

import (
	"context"

	"bridge/backend/core/bridge"
)

var errNotHere = bridge.Errorf(bridge.Unsupported,
	"bridge prove is not available on this system yet: only on Linux can Bridge run an agent without a network")

// Check fails with Unsupported: only Linux can run an agent without a network.
func Check() error { return errNotHere }

// Do fails with Unsupported, as Check does.
func (Run) Do(context.Context) (Report, error) { return Report{}, errNotHere }

// Inside fails with Unsupported, as Check does.
func (Run) Inside(context.Context) (Report, error) { return Report{}, errNotHere }
