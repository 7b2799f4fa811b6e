package realcli_test

import (
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// acpBench is the real opencode as any agent that speaks the Agent Client Protocol.
type acpBench struct{ *bench }

func newACPBench(t *testing.T) drivertest.Bench {
	return acpBench{newBench(bridge.OpenCode)(t).(*bench)}
}

func (b acpBench) Driver() job.Driver {
	d, err := driver.For(job.ACP)
	must(b.T, err)
	return d
}

// Spec has it ask about everything: its mode alone does not make it.
func (b acpBench) Spec(t *testing.T) job.Spec {
	spec := b.bench.Spec(t)
	spec.Job, spec.Kind, spec.Command = "acp-job-0a1b2c3d", job.ACP, append(spec.Command, "acp")
	spec.Env = append(spec.Env, `OPENCODE_CONFIG_CONTENT={"permission":{"*":"ask"}}`)
	spec.ACP = job.ACPAgent{Name: "opencode", Modes: map[job.Access]string{job.AccessAsk: "build"}}
	for _, folder := range []string{".local/share/opencode", ".local/state/opencode", ".cache/opencode"} {
		spec.ACP.Writable = append(spec.ACP.Writable, filepath.Join(b.home.Dir, folder))
	}
	return spec
}

// What the port promises holds for a real agent behind the protocol.
func TestJOB_24_ARealACPAgent(t *testing.T) { drivertest.TestRealMain(t, newACPBench) }

// Above the real floor it can change only what its job may.
func TestJOB_24_AccessOfARealACPAgent(t *testing.T) {
	testkit.Long(t, "a real agent is tried with every access")
	self, err := os.Executable()
	must(t, err)
	drivertest.Access(t, newACPBench, []string{self, "probe-sandbox"}, map[job.Access]job.Floor{
		job.AccessRead: job.FloorSandbox, job.AccessEdit: job.FloorSandbox,
	})
}

// A provider's failure comes through the protocol as an outcome of its own.
func TestJOB_24_WhyARealACPAgentFailed(t *testing.T) {
	testkit.Long(t, "a provider fails in each way")
	drivertest.Faults(t, newACPBench, map[drivertest.Fault]job.EndReason{
		drivertest.Unauthorized: job.EndAuth, drivertest.Empty: job.EndEmpty, drivertest.Refusal: job.EndRefusal,
	})
}
