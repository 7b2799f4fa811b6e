package broker

import (
	"testing"

	"bridge/backend/core/decision"
)

func mustScope(t *testing.T, raw string) *decision.Scope {
	t.Helper()
	scope, err := decision.ParseScope([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return &scope
}
