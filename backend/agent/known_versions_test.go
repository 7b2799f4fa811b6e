package agent

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestMSG_11_AVersionIsNewsOnce(t *testing.T) {
	var v Versions
	if v.Of(bridge.Codex) != "" {
		t.Error("a version is known before one was told")
	}
	for _, tt := range []struct {
		version string
		changed bool
	}{{"", false}, {"1.0", true}, {"1.0", false}, {"1.1", true}} {
		if changed := v.Set(bridge.Codex, tt.version); changed != tt.changed || v.Of(bridge.Codex) != tt.version || v.Of(bridge.Claude) != "" {
			t.Errorf("after %q: changed %t, codex %q, claude %q", tt.version, changed, v.Of(bridge.Codex), v.Of(bridge.Claude))
		}
	}
}
