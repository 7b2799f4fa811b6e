package job

import (
	"slices"

	"bridge/backend/core/bridge"
)

// checkGrants fails unless all names are exact names of sessions or jobs on this PC
// (JOB-12): no pattern, no other PC, no duplicate.
func checkGrants(sendTo []string) error {
	if len(sendTo) > MaxSendTo {
		return bridge.Errorf(bridge.TooLarge, "send_to names %d: at most %d are allowed", len(sendTo), MaxSendTo)
	}
	for i, name := range sendTo {
		if err := bridge.CheckName(name); err != nil {
			return bridge.Errorf(bridge.Invalid, "send_to must hold exact names of sessions or jobs on this PC: %w", err)
		}
		if slices.Contains(sendTo[:i], name) {
			return bridge.Errorf(bridge.Invalid, "send_to names %q twice", name)
		}
	}
	return nil
}

// MaySend reports whether a job with these grants may send to that exact name. It may
// always send to its supervisor, and to others only by a grant. A received message or
// thread is no grant, so a job never answers another master.
func MaySend(recipient, supervisor string, grants []string) bool {
	recipient = bridge.NormalizeName(recipient)
	return recipient != "" && (recipient == supervisor || slices.ContainsFunc(grants, func(name string) bool { return bridge.NormalizeName(name) == recipient }))
}
