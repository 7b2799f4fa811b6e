package realcli_test

import (
	"context"
	"testing"

	"bridge/backend/trial"
)

// patience bounds every wait. It is no measure of speed: the machine may be
// busy with other things.
const patience = trial.Patience

// soon is a context for one wait.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
