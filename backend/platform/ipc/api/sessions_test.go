package api

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
)

// TestTheFlagsOfTheLinkNameOneHost: their names on the link are those that earlier
// programs of a home send.
func TestTheFlagsOfTheLinkNameOneHost(t *testing.T) {
	for flag, want := range map[string]session.Host{
		`"cwd":""`:                     session.HostOwn,
		`"threads":true`:               session.HostServer,
		`"shared":true`:                session.HostShared,
		`"runner":true`:                session.HostRunner,
		`"runner":true,"threads":true`: session.HostRunner,
	} {
		var register Register
		if err := bridge.DecodeStrict([]byte("{"+flag+"}"), 1<<10, &register); err != nil || register.Host() != want {
			t.Errorf("{%s} is the host %d (%v), want %d", flag, register.Host(), err, want)
		}
	}
}

// An agent of the kind ACP is there while it works on a job, and never as a session.
func TestJOB_24_AnACPAgentComesInAJobAlone(t *testing.T) {
	for _, runner := range []bool{true, false} {
		if err := (Register{Kind: job.ACP, Runner: runner}).Check(); (err == nil) != runner {
			t.Errorf("in a job: %v; Check = %v", runner, err)
		}
	}
}
