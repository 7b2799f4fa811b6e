package realcli_test

import (
	"context"
	"testing"
	"time"
)

// patience bounds every wait. It is no measure of speed: the machine may be
// busy with other things.
const patience = 5 * time.Minute

// soon is a context for one wait.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
