package realcli_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// bench is one real CLI, driven for a job.
type bench struct {
	*world
	kind bridge.AgentKind
	jobs int
}

func newBench(kind bridge.AgentKind) func(t *testing.T) drivertest.Bench {
	return func(t *testing.T) drivertest.Bench {
		w := newWorld(t, "p")
		// The driver reads who the user is from its own process.
		t.Setenv("HOME", w.home.Dir)
		t.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
		return &bench{world: w, kind: kind}
	}
}

func (b *bench) Driver() job.Driver {
	d, err := driver.For(b.kind)
	must(b.T, err)
	return d
}

func (b *bench) Spec(t *testing.T) job.Spec {
	b.jobs++
	state := filepath.Join(b.home.Root, "job"+strconv.Itoa(b.jobs))
	must(t, os.MkdirAll(state, 0o700))
	program, err := filepath.EvalSymlinks(filepath.Join(b.home.Bin, string(b.kind)))
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	return job.Spec{
		Job: string(b.kind) + "-job-" + strconv.Itoa(b.jobs), Token: rand.Text(), Kind: b.kind, Command: []string{program},
		Folder: b.home.Project("p"), StateFolder: state, Access: job.AccessAsk, Env: b.home.Env(), Sandbox: []string{self, "probe-sandbox"},
	}
}

func (b *bench) Script(name string, steps ...drivertest.Step) {
	var played []scripted.Step
	for _, step := range steps {
		s := scripted.Say(step.Say)
		switch {
		case step.Fault != "":
			s = b.fault(step.Fault)
		case step.Run != "":
			s = shell(string(b.kind), step.Run)
		}
		if step.Gate != "" {
			s = s.After(step.Gate)
		}
		played = append(played, s)
	}
	b.model.Script(name, played...)
}

// fault is a failure as the provider of each CLI words it.
func (b *bench) fault(fault drivertest.Fault) scripted.Step {
	refusal := map[bridge.AgentKind]string{bridge.Claude: "refusal", bridge.Codex: "content_filter", bridge.OpenCode: "content_filter"}[b.kind]
	fail := func(status int, kind, message string, header http.Header) scripted.Step {
		return scripted.Fail(scripted.Failed{Status: status, Header: header, Body: map[string]any{
			"type": "error", "error": map[string]any{"type": kind, "code": kind, "message": message, "resets_at": time.Now().Add(time.Hour).Unix()},
		}})
	}
	switch fault {
	case drivertest.Unauthorized:
		return fail(401, "authentication_error", "invalid x-api-key", nil)
	case drivertest.ServerError:
		return fail(500, "api_error", "Internal server error", nil)
	case drivertest.UsageLimit:
		if b.kind == bridge.Codex {
			return fail(429, "usage_limit_reached", "You've hit your usage limit.", nil)
		}
		return fail(429, "rate_limit_error", "This request would exceed your account's rate limit.", http.Header{
			"Anthropic-Ratelimit-Unified-Status": {"rejected"}, "Anthropic-Ratelimit-Unified-Reset": {strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)},
			"Retry-After": {"3600"}, "X-Should-Retry": {"false"},
		})
	case drivertest.Context:
		if b.kind == bridge.Claude {
			return fail(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", nil)
		}
		return fail(400, "context_length_exceeded", "This model's maximum context length is 100000 tokens.", nil)
	case drivertest.Refusal:
		return scripted.Stop("partial", refusal)
	default: // no fault of the model
	}
	return scripted.Say("")
}

func (b *bench) Open(gate string) { b.model.Open(gate) }

func (b *bench) AtGate(ctx context.Context, gate string) error { return b.model.AtGate(ctx, gate) }

func (b *bench) Shown(text string) int {
	for _, request := range slices.Backward(b.model.Requests()) {
		if !request.Aux {
			return request.Count(text)
		}
	}
	return 0
}

// What the port promises holds for the real CLIs. Opencode, which takes the most of a
// processor to start, is tried on the main way in a short run.
func TestDriversOfRealCLIs(t *testing.T) {
	for kind, try := range map[bridge.AgentKind]func(*testing.T, func(*testing.T) drivertest.Bench){
		bridge.Claude: drivertest.TestReal, bridge.Codex: drivertest.TestReal, bridge.OpenCode: drivertest.TestRealMain,
	} {
		t.Run(string(kind), func(t *testing.T) { try(t, newBench(kind)) })
	}
}

// Each failure of a provider ends a job with a reason of its own.
func TestDriversTellWhyRealCLIsFailed(t *testing.T) {
	kinds := map[bridge.AgentKind]map[drivertest.Fault]job.EndReason{
		bridge.Claude: {
			drivertest.Unauthorized: job.EndAuth, drivertest.UsageLimit: job.EndLimit, drivertest.ServerError: job.EndProvider,
			drivertest.Refusal: job.EndRefusal, drivertest.Empty: job.EndEmpty, drivertest.Context: job.EndContext,
		},
		bridge.Codex: {
			drivertest.Unauthorized: job.EndAuth, drivertest.UsageLimit: job.EndLimit, drivertest.ServerError: job.EndProvider,
			drivertest.Refusal: job.EndRefusal, drivertest.Empty: job.EndEmpty, drivertest.Context: job.EndContext,
		},
	}
	kinds[bridge.OpenCode] = map[drivertest.Fault]job.EndReason{
		drivertest.Unauthorized: job.EndAuth, drivertest.Refusal: job.EndRefusal, drivertest.Empty: job.EndEmpty,
	}
	for kind, want := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			drivertest.Faults(t, func(t *testing.T) drivertest.Bench {
				b := newBench(kind)(t).(*bench)
				b.home.More = append(b.home.More, "CLAUDE_CODE_MAX_RETRIES=1")
				return b
			}, mainFaults(want))
		})
	}
}

// mainFaults are all in a long run, else the one that a user meets first.
func mainFaults(want map[drivertest.Fault]job.EndReason) map[drivertest.Fault]job.EndReason {
	if testkit.IsLong() {
		return want
	}
	return map[drivertest.Fault]job.EndReason{drivertest.Unauthorized: want[drivertest.Unauthorized]}
}

// What read and edit promise is kept by the real CLIs, above the real floor.
func TestAccessOfRealCLIs(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	floors := map[bridge.AgentKind]map[job.Access]job.Floor{
		bridge.Claude:   {job.AccessRead: job.FloorSandbox, job.AccessEdit: job.FloorSandbox},
		bridge.Codex:    {job.AccessRead: job.FloorOwn, job.AccessEdit: job.FloorOwn},
		bridge.OpenCode: {job.AccessRead: job.FloorSandbox, job.AccessEdit: job.FloorSandbox},
	}
	for kind, want := range floors {
		t.Run(string(kind), func(t *testing.T) { drivertest.Access(t, newBench(kind), []string{self, "probe-sandbox"}, want) })
	}
}

// A job in a folder that the owner never trusted leaves his configuration alone.
func TestJOB_13_CodexTrustsNoFolderBecauseOfAJob(t *testing.T) {
	b := newBench(bridge.Codex)(t).(*bench)
	config := filepath.Join(b.home.Dir, ".codex", "config.toml")
	before, err := os.ReadFile(config)
	must(t, err)
	for _, access := range []job.Access{job.AccessRead, job.AccessAsk, job.AccessEdit} {
		b.Script("answer", drivertest.Step{Say: "done"})
		spec := b.Spec(t)
		spec.Folder, spec.Access, spec.Prompt = filepath.Join(b.home.Dir, "never-trusted"), access, drivertest.Prompt("answer")
		must(t, os.MkdirAll(spec.Folder, 0o700))
		j := drivertest.Start(t, b, spec)
		j.Drain()
	}
	if after, err := os.ReadFile(config); err != nil || string(after) != string(before) {
		t.Errorf("config.toml is now (%v):\n%s", err, after)
	}
}

// Opencode waits for the end of a usage limit by itself, for hours: the run says
// until when, and can be stopped.
func TestJOB_16_OpenCodeSaysUntilWhenItWaits(t *testing.T) {
	b := newBench(bridge.OpenCode)(t)
	b.Script("limit", drivertest.Step{Fault: drivertest.UsageLimit})
	j := drivertest.Begin(t, b, "limit")
	retry := drivertest.Until[job.Retrying](j, nil)
	if wait := time.Until(retry.Until); retry.Why != job.EndLimit || wait < 30*time.Minute {
		t.Errorf("it waits %v because of %q, want an hour because of its limit", wait, retry.Why)
	}
	must(t, j.Run.Interrupt(soon(t)))
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndInterrupted {
		t.Errorf("the turn ended with %q", end.Why)
	}
}

// The tools of a job's own MCP server are there and never asked about, whatever
// the access.
func TestJOB_13_TheJobsOwnToolsAreNeverAskedAbout(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	tools := map[bridge.AgentKind]string{bridge.Claude: "mcp__bridge__echo", bridge.Codex: "mcp__bridge/echo", bridge.OpenCode: "bridge_echo"}
	accesses := []job.Access{job.AccessAsk}
	if testkit.IsLong() {
		accesses = append(accesses, job.AccessRead, job.AccessEdit)
	}
	for kind, tool := range tools {
		for _, access := range accesses {
			t.Run(string(kind)+" "+string(access), func(t *testing.T) {
				b := newBench(kind)(t).(*bench)
				b.model.Script("echo", scripted.Call(tool, map[string]any{"text": "hello"}), scripted.Say("done"))
				spec := b.Spec(t)
				spec.Access, spec.Sandbox, spec.Prompt = access, []string{self, "probe-sandbox"}, drivertest.Prompt("echo")
				called := filepath.Join(spec.StateFolder, "tmp", "called")
				spec.Bridge = job.MCPServer{Command: self, Args: []string{"probe-mcp", called}, Tools: []string{"echo"}}
				j := drivertest.Start(t, b, spec)
				if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndAnswer {
					t.Errorf("the turn ended with %+v", end)
				}
				if asked := drivertest.Of[job.Asked](j); len(asked) > 0 {
					t.Errorf("it was asked about: %+v", asked)
				}
				if n := b.Shown("echo of hello"); n != 1 || len(lines(t, called)) != 1 {
					t.Errorf("the model reads the answer %d times, want 1", n)
				}
			})
		}
	}
}
