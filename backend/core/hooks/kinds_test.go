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
		want  bridge.HookTask
	}{
		{bridge.Claude, WakeEvent, bridge.TaskWaitForMail},
		{bridge.Claude, WakeStandbyEvent, bridge.TaskStandByForMail},
		{bridge.Claude, PermissionEvent, bridge.TaskHoldPrompt},
		{bridge.Claude, FailedEvent, bridge.TaskReportOutcome},
		{bridge.Claude, BatchEvent, bridge.TaskReportOutcome},
		{bridge.Claude, "Stop", bridge.TaskReport},
		{bridge.Codex, PermissionEvent, bridge.TaskReportPrompt},
		{bridge.Codex, WakeEvent, bridge.TaskReport},
		{bridge.Codex, FailedEvent, bridge.TaskReport},
		{bridge.OpenCode, PermissionEvent, bridge.TaskReport},
		{bridge.Antigravity, PermissionEvent, bridge.TaskReport},
	} {
		if got := For(tt.kind).TaskOf(tt.event); got != tt.want {
			t.Errorf("%s of %s: %d, want %d", tt.event, tt.kind, got, tt.want)
		}
	}
}
