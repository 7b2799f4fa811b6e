package driver

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindHasADriver(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		if driver, err := For(kind); driver == nil || err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := For(bridge.Owner); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("the owner has a driver: %v", err)
	}
}
