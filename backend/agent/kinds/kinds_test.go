package kinds

import (
	"testing"

	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindIsInTheTable(t *testing.T) {
	if len(table) != len(bridge.Kinds()) {
		t.Errorf("%d lines, %d kinds", len(table), len(bridge.Kinds()))
	}
	for _, kind := range bridge.Kinds() {
		if got := table[kind].connector.Kind; got != kind {
			t.Errorf("%s has the plan of changes of %q", kind, got)
		}
		if QueriesOf(kind).Models == nil {
			t.Errorf("%s has no query for its models", kind)
		}
		want := kind
		if len(bridge.TraitsOf(kind).Data.Default) == 0 {
			want = ""
		}
		if got := StoreOf(kind).Kind; got != want {
			t.Errorf("%s has the store of %q, want %q", kind, got, want)
		}
	}
}

func TestKND_07_OnlyAnAgentIsConnected(t *testing.T) {
	_, err := PlanInstall(t.Context(), bridge.Owner, setup.Input{})
	if bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("the owner is connected: %v", err)
	}
}
