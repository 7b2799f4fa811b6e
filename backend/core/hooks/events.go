package hooks

// PermissionEvent is the hook event that asks for permission. Claude's terminal shows
// the prompt at the same time, and the first answer wins. Codex's terminal does so only
// for an asynchronous hook, whose output does not count.
const PermissionEvent = "PermissionRequest"

// FailedEvent and BatchEvent are claude's hook events that prove the effect of an
// answer if PostToolUse does not: that a call ran and failed, and what the model reads
// of a refused call.
const (
	FailedEvent = "PostToolUseFailure"
	BatchEvent  = "PostToolBatch"
)

// InterruptEvent is the codex hook event for a turn that the user interrupted.
const InterruptEvent = "Interrupt"

// The events under which claude's wake hooks call `bridge hook claude`. They start at a
// stop, wait in the background of the idle session and start a turn when mail may wake
// it. The standby works if the first one's wake failed.
const (
	WakeEvent        = "Wake"
	WakeStandbyEvent = "WakeStandby"
)

// ClaudeMod is the name of Bridge's mod for claude and of its folder in claude's
// skills. A transcript has it as the sender of the mod's prompts.
const ClaudeMod = "bridge"
