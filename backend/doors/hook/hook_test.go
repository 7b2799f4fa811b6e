package hook

import (
	"bytes"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
)

// A host that never ends its input is answered when the budget ends, so that its
// turn goes on.
func TestAHostThatNeverEndsItsInputIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		input, host := io.Pipe()
		defer host.Close()
		var output bytes.Buffer
		began := time.Now()
		Run(t.Context(), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}, bridge.Claude, "Stop", input, &output)
		if took := time.Since(began); took > budget || output.String() != "{}\n" {
			t.Errorf("after %s it says %q, want an empty answer within %s", took, &output, budget)
		}
	})
}
