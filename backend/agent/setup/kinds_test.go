package setup

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindIsConnected(t *testing.T) {
	if len(connectors) != len(bridge.Kinds()) {
		t.Errorf("%d plans, %d kinds", len(connectors), len(bridge.Kinds()))
	}
	for _, kind := range bridge.Kinds() {
		if connectors[kind] == nil {
			t.Errorf("%s has no plan of changes", kind)
		}
	}
}
