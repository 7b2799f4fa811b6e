package driver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// antigravityStand speaks the documented headless format of `agy`. It asks nothing:
// a command runs, or STANDIN_DENIES has it refused as agy does by itself.
type antigravityStand struct {
	*agent
	ok    bool // there is a conversation
	bound bool // init was said
}

func antigravityFront(a *agent, args []string) front {
	s := &antigravityStand{agent: a, ok: true}
	a.session = "agy-conversation"
	for _, arg := range args {
		if id, found := strings.CutPrefix(arg, "--conversation="); found {
			s.ok = a.load(id)
		}
	}
	return s
}

func (s *antigravityStand) listen() {
	if !s.ok {
		fmt.Fprintln(os.Stderr, "Error: conversation not found")
		os.Exit(1)
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var line struct {
			Event   string
			Message struct{ Content string }
		}
		if err := json.Unmarshal(raw, &line); err != nil || line.Event != "user" {
			panic(fmt.Sprint("not a line of a user: ", string(raw)))
		}
		s.messages <- message{"", line.Message.Content}
	}
}

func (s *antigravityStand) inserted(message) {}

func (s *antigravityStand) turnBegan() {
	if !s.bound {
		s.bound = true
		say(object{"event": "init", "conversation_id": s.session, "model": "fake"})
	}
}

func (s *antigravityStand) text(words string) {
	say(object{"event": "step_update", "conversation_id": s.session, "step_index": 99, "type": "PLANNER_RESPONSE", "status": "DONE", "content": words})
}

func (s *antigravityStand) stepBegan(id, command string) {
	say(object{"event": "step_update", "conversation_id": s.session, "step_index": s.steps, "type": "RUN_COMMAND", "status": "RUNNING", "tool_calls": []object{{"name": "run_command", "args": object{"command": command}}}})
}

func (s *antigravityStand) asks(string, string) { s.verdicts <- verdict{allow: !set("STANDIN_DENIES")} }

func (s *antigravityStand) withdraws(string) {}

func (s *antigravityStand) stepEnded(_ string, end stepEnd) {
	status := "DONE"
	if end.refused || end.exit != 0 {
		status = "ERROR"
	}
	say(object{"event": "step_update", "conversation_id": s.session, "step_index": s.steps, "status": status, "content": end.output})
}

func (s *antigravityStand) turnEnded(fault drivertest.Fault, words string) {
	result := object{"event": "result", "conversation_id": s.session, "status": "SUCCESS", "response": words, "usage": object{"input_tokens": 10, "output_tokens": 5}}
	failed := func(message string) { result["status"], result["error"], result["response"] = "ERROR", message, "" }
	switch fault {
	case drivertest.Unauthorized:
		failed("request failed with status 401")
	case drivertest.UsageLimit:
		failed("usage limit reached")
	case drivertest.ServerError:
		failed("request failed with status 500")
	case drivertest.Refusal:
		failed("blocked by the content filter")
	case drivertest.Context:
		failed("the prompt is too long")
	default: // no fault of the model
	}
	if set("STANDIN_DENIES") {
		result["response"], result["denied_actions"] = "", []object{{"tool": "run_command"}}
	}
	say(result)
}

func (s *antigravityStand) junk() {
	fmt.Println("Loading...")
	fmt.Println(`{"event":"something_new"}`)
	fmt.Println(`{"half":`)
	fmt.Println(strings.Repeat("x", 1<<20))
}

// agyBench is a stage whose jobs edit without a floor: agy has no way to ask.
type agyBench struct{ drivertest.Bench }

func newAgyStage(t *testing.T) drivertest.Bench { return agyBench{newStage(bridge.Antigravity)(t)} }

func (b agyBench) Spec(t *testing.T) job.Spec {
	spec := b.Bench.Spec(t)
	spec.Access, spec.ToolLevelOnly = job.AccessEdit, true
	return spec
}

// What of the port's promises agy's documented format can keep, a stand-in of it does.
func TestAntigravityAsDocumented(t *testing.T) {
	cannot := []string{"JOB-07", "JOB-13", "JOB-05 a message reaches the turn", "JOB-06 an interrupt"}
	for _, c := range drivertest.Cases() {
		skip := false
		for _, prefix := range cannot {
			skip = skip || strings.HasPrefix(c.Name, prefix)
		}
		if !skip {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, newAgyStage(t)) })
		}
	}
	drivertest.Faults(t, newAgyStage, map[drivertest.Fault]job.EndReason{
		drivertest.Unauthorized: job.EndAuth, drivertest.UsageLimit: job.EndLimit, drivertest.ServerError: job.EndProvider,
		drivertest.Refusal: job.EndRefusal, drivertest.Empty: job.EndEmpty, drivertest.Context: job.EndContext,
	})
	drivertest.Broken(t, newAgyStage)
}

// What agy refused by itself is no success, though it says so; and a stop ends it.
func TestJOB_15_AntigravitysOwnEnds(t *testing.T) {
	bench := newAgyStage(t)
	bench.Script("touch", drivertest.Step{Run: "touch made"}, drivertest.Step{Say: "never heard"})
	bench.Script("slow", drivertest.Step{Say: "never", Gate: "held"})
	spec := bench.Spec(t)
	spec.Prompt, spec.Env = drivertest.Prompt("touch"), append(spec.Env, "STANDIN_DENIES=1")
	j := drivertest.Start(t, bench, spec)
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndDenied || end.Text != "" {
		t.Errorf("the turn ended with %+v", end)
	}
	j = drivertest.Begin(t, bench, "slow")
	if err := bench.AtGate(t.Context(), "held"); err != nil {
		t.Fatal(err)
	}
	if err := j.Run.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndInterrupted {
		t.Errorf("the turn ended with %+v", end)
	}
	bench.Open("held")
	spec.Access = job.AccessAsk
	d, err := driver.For(bridge.Antigravity)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(t.Context(), spec); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "cannot ask") {
		t.Errorf("ask: %v", err)
	}
}
