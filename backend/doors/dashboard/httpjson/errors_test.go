package httpjson

import (
	"errors"
	"fmt"
	"testing"

	"bridge/backend/core/bridge"
)

func TestErrorsBecomeStatusesAndHideTheirCause(t *testing.T) {
	cause := errors.New("disk /dev/secret broke")
	tests := []struct {
		err    error
		status int
		words  string
	}{
		{bridge.Errorf(bridge.Invalid, "no"), 400, "no"},
		{fmt.Errorf("doing: %w", bridge.Errorf(bridge.NotFound, "gone")), 404, "gone"},
		{bridge.WithCause(bridge.Storage, cause, "the store is broken"), 503, "the store is broken"},
		{bridge.Errorf(bridge.Busy, "slow down"), 429, "slow down"},
		{cause, 500, Hidden},
		{bridge.Errorf(bridge.Code("unheard of"), "x"), 500, Hidden},
	}
	for _, tt := range tests {
		if status, words := AnswerFor(tt.err); status != tt.status || words != tt.words {
			t.Errorf("AnswerFor(%v) = %d, %q; want %d, %q", tt.err, status, words, tt.status, tt.words)
		}
	}
	for _, code := range []bridge.Code{
		bridge.Invalid, bridge.TooLarge, bridge.Unauthorized, bridge.Denied, bridge.NotFound, bridge.Ambiguous, bridge.Conflict,
		bridge.Busy, bridge.Unavailable, bridge.Storage, bridge.Unsupported, bridge.Internal,
	} {
		if statuses[code] == 0 {
			t.Errorf("the code %s has no status", code)
		}
	}
}
