package job

import (
	"slices"

	"bridge/backend/core/bridge"
)

// checkGrants wants exact names of sessions or jobs on this PC (JOB-12): no
// pattern, no other PC, none twice.
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

// MaySend reports whether a job with these grants may send to the session or job
// of that exact name. Whom it works for it may always tell something; everybody
// else it reaches by a grant alone. That somebody wrote to it is none: neither a
// message nor a thread opens anything, so it never answers another master.
func MaySend(to, supervisor string, grants []string) bool {
	to = bridge.NormalizeName(to)
	return to != "" && (to == supervisor || slices.ContainsFunc(grants, func(name string) bool { return bridge.NormalizeName(name) == to }))
}
