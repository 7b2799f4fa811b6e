package hooks

import (
	"testing"

	"bridge/backend/core/bridge"
)

func TestKND_07_EachKindHasAnAdapter(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		if adapter := For(kind); adapter == nil || adapter.Kind() != kind {
			t.Errorf("%s has the adapter %v", kind, adapter)
		}
	}
}

func TestKND_07_TheTaskOfAnEventIsTheKinds(t *testing.T) {
	for _, tt := range []struct {
		kind  bridge.AgentKind
		event string
		want  Task
	}{
		{bridge.Claude, WakeEvent, WaitForMail},
		{bridge.Claude, WakeStandbyEvent, StandByForMail},
		{bridge.Claude, PermissionEvent, HoldPrompt},
		{bridge.Claude, FailedEvent, ReportOutcome},
		{bridge.Claude, BatchEvent, ReportOutcome},
		{bridge.Claude, "Stop", Report},
		{bridge.Codex, PermissionEvent, ReportPrompt},
		{bridge.Codex, WakeEvent, Report},
		{bridge.Codex, FailedEvent, Report},
		{bridge.OpenCode, PermissionEvent, Report},
		{bridge.Antigravity, PermissionEvent, Report},
	} {
		if got := For(tt.kind).TaskOf(tt.event); got != tt.want {
			t.Errorf("%s of %s: %d, want %d", tt.event, tt.kind, got, tt.want)
		}
	}
}
