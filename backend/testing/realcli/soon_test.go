package realcli_test

import (
	"context"
	"testing"

	"bridge/backend/testing/testkit"
)

// soon is a context for one wait.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}
