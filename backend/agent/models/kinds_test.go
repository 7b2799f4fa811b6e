package models

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindIsAskedForModels(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		if askers[kind].models == nil {
			t.Errorf("%s has no query for its models", kind)
		}
	}
}
