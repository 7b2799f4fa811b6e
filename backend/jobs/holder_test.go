package jobs

import (
	"errors"
	"fmt"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

func TestSEC_01_WhatMayBeKnownAMomentLaterIsUnavailable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code bridge.Code
	}{
		{sandbox.ErrNoHolder, bridge.Unavailable},
		{sandbox.ErrManyHolders, bridge.Unavailable},
		{sandbox.ErrLowered, bridge.Denied},
		{proc.ErrGone, bridge.Denied},
		{errors.New("closed"), bridge.Denied},
	} {
		if got := bridge.CodeOf(errNobody(fmt.Errorf("look: %w", tt.err))); got != tt.code {
			t.Errorf("%v: code %s, want %s", tt.err, got, tt.code)
		}
	}
}
