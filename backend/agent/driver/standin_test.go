package driver_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/agent/driver"
	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// The test's own program is also each of the CLIs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if front, known := fronts[os.Args[1]]; known {
			standIn(front, os.Args[2:])
			return
		}
	}
	os.Exit(m.Run())
}

// fronts are the protocols of the stand-ins, by what the program is started with.
var fronts = map[string]func(a *agent, args []string) front{
	"standin-claude":      claudeFront,
	"standin-codex":       codexFront,
	"standin-opencode":    opencodeFront,
	"standin-acp":         acpFront,
	"standin-antigravity": antigravityFront,
}

// kinds are those that have a driver.
var kinds = []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode, job.ACP}

// What the port promises holds for scripted stand-ins of each protocol.
func TestDrivers(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { drivertest.Test(t, newStage(kind)) })
	}
}

func TestDriversTellWhy(t *testing.T) {
	want := map[drivertest.Fault]job.EndReason{
		drivertest.Unauthorized: job.EndAuth, drivertest.UsageLimit: job.EndLimit, drivertest.ServerError: job.EndProvider,
		drivertest.Refusal: job.EndRefusal, drivertest.Empty: job.EndEmpty, drivertest.Context: job.EndContext,
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			drivertest.Faults(t, newStage(kind), want)
			drivertest.Broken(t, newStage(kind))
		})
	}
}

// A server that lets its first request hang is asked again.
func TestOpenCodeIsAskedAgainWhereItHangs(t *testing.T) {
	bench := newStage(bridge.OpenCode)(t)
	bench.Script("answer", drivertest.Step{Say: "done"})
	spec := bench.Spec(t)
	spec.Prompt, spec.Env = drivertest.Prompt("answer"), append(spec.Env, "STANDIN_HANGS=1")
	if end := drivertest.Until[job.TurnEnded](drivertest.Start(t, bench, spec), nil); end.Why != job.EndAnswer {
		t.Errorf("the turn ended with %+v", end)
	}
}

// A turn can be stopped before the CLI has said that it runs.
func TestJOB_06_AnInterruptReachesATurnThatBegins(t *testing.T) {
	bench := newStage(bridge.Claude)(t)
	bench.Script("slow", drivertest.Step{Say: "never", Gate: "held"})
	spec := bench.Spec(t)
	spec.Prompt, spec.Env = drivertest.Prompt("slow"), append(spec.Env, "STANDIN_MUTE=1")
	j := drivertest.Start(t, bench, spec)
	if err := errors.Join(bench.AtGate(t.Context(), "held"), j.Run.Interrupt(t.Context())); err != nil {
		t.Fatal(err)
	}
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndInterrupted {
		t.Errorf("the turn ended with %+v", end)
	}
	bench.Open("held")
}

// What codex refuses because the turn has just ended is said again, and once.
func TestJOB_05_CodexIsToldAgainWhatCameTooLate(t *testing.T) {
	bench := newStage(bridge.Codex)(t)
	bench.Script("touch", drivertest.Step{Run: "true"}, drivertest.Step{Say: "done"})
	spec := bench.Spec(t)
	spec.Prompt, spec.Env = drivertest.Prompt("touch"), append(spec.Env, "STANDIN_LATE=1")
	j := drivertest.Start(t, bench, spec)
	question := drivertest.Until[job.Asked](j, nil).Question
	err := errors.Join(j.Run.Message(t.Context(), job.Message{ID: "m", Text: "look-at-the-moon"}),
		j.Run.Answer(t.Context(), job.Answer{Question: question.ID, Allow: true}))
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Until(j, func(i job.Inserted) bool { return i.Message == "m" })
	j.Drain()
	if n := bench.Shown("look-at-the-moon"); n != 1 {
		t.Errorf("the model reads it %d times, want 1", n)
	}
}

// What was done to a turn says nothing of the next one.
func TestJOB_15_AnEndIsOfItsOwnTurn(t *testing.T) {
	tests := map[string]struct {
		first drivertest.Step
		then  drivertest.Fault
		want  job.EndReason
	}{
		"JOB-06 after an interrupt": {drivertest.Step{Say: "never", Gate: "held"}, drivertest.ServerError, job.EndProvider},
		"JOB-07 after a refusal":    {drivertest.Step{Run: "touch made"}, drivertest.Empty, job.EndEmpty},
	}
	for _, kind := range kinds {
		for name, tt := range tests {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				bench := newStage(kind)(t)
				bench.Script("first", tt.first, drivertest.Step{Say: "done"})
				bench.Script("then", drivertest.Step{Fault: tt.then})
				j := drivertest.Begin(t, bench, "first")
				var err error
				if tt.first.Gate != "" {
					err = errors.Join(bench.AtGate(t.Context(), tt.first.Gate), j.Run.Interrupt(t.Context()))
				} else {
					question := drivertest.Until[job.Asked](j, nil).Question
					err = j.Run.Answer(t.Context(), job.Answer{Question: question.ID})
				}
				if err != nil {
					t.Fatal(err)
				}
				drivertest.Until[job.TurnEnded](j, nil)
				j.Drain()
				if err := j.Run.Message(t.Context(), drivertest.Prompt("then")); err != nil {
					t.Fatal(err)
				}
				if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != tt.want {
					t.Errorf("the turn ended with %+v, want %s", end, tt.want)
				}
				if tt.first.Gate != "" {
					bench.Open(tt.first.Gate)
				}
			})
		}
	}
}

// What two turns used is the sum of both, each counted once: some CLIs tell it by turn
// and some from the start.
func TestJOB_15_WhatTwoTurnsUsed(t *testing.T) {
	cost := map[bridge.AgentKind]float64{bridge.Claude: 0.02, bridge.OpenCode: 0.02, job.ACP: 0.02} // codex tells none
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			bench := newStage(kind)(t)
			bench.Script("one", drivertest.Step{Say: "first"})
			bench.Script("two", drivertest.Step{Say: "second"})
			j := drivertest.Begin(t, bench, "one")
			j.Drain()
			if err := j.Run.Message(t.Context(), drivertest.Prompt("two")); err != nil {
				t.Fatal(err)
			}
			drivertest.Until[job.TurnEnded](j, nil)
			all := drivertest.Of[job.Usage](j)
			used := all[len(all)-1]
			if used.Output != 10 || math.Abs(used.CostUSD-cost[kind]) > 1e-9 || used.CostKnown != (cost[kind] > 0) {
				t.Errorf("usage = %+v, want 10 out for %v", used, cost[kind])
			}
		})
	}
}

// What an agent's own agents say and end is no part of its answer.
func TestJOB_15_WhatAChildSaysIsNotTheAnswer(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			bench := newStage(kind)(t)
			bench.Script("answer", drivertest.Step{Say: "forty-two"})
			spec := bench.Spec(t)
			spec.Prompt, spec.Env = drivertest.Prompt("answer"), append(spec.Env, "STANDIN_CHILD=1")
			j := drivertest.Start(t, bench, spec)
			end := drivertest.Until[job.TurnEnded](j, nil)
			j.Drain()
			if ends := drivertest.Of[job.TurnEnded](j); end.Why != job.EndAnswer || end.Text != "forty-two" || len(ends) != 1 {
				t.Errorf("the turns ended with %+v, want one that says forty-two", ends)
			}
			if texts := drivertest.Of[job.Text](j); len(texts) != 1 || texts[0].Text != "forty-two" {
				t.Errorf("it says %+v", texts)
			}
		})
	}
}

// stage is where a stand-in plays: the scripts that it asks for, step by step.
type stage struct {
	kind   bridge.AgentKind
	home   string
	server *httptest.Server

	mu      sync.Mutex // guards what follows
	scripts map[string][]drivertest.Step
	gates   map[string]*gate
	shown   string
}

type gate struct{ reached, open chan struct{} }

// ask is what a stand-in sends for its next answer.
type ask struct {
	Shown  string
	Script string
	Step   int
}

func newStage(kind bridge.AgentKind) func(t *testing.T) drivertest.Bench {
	return func(t *testing.T) drivertest.Bench {
		s := &stage{kind: kind, home: t.TempDir(), scripts: map[string][]drivertest.Step{}, gates: map[string]*gate{}}
		s.server = httptest.NewServer(http.HandlerFunc(s.next))
		t.Cleanup(s.server.Close)
		return s
	}
}

func (s *stage) next(w http.ResponseWriter, r *http.Request) {
	var a ask
	if json.NewDecoder(r.Body).Decode(&a) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.shown = a.Shown
	step := drivertest.Step{Say: "done"}
	if steps := s.scripts[a.Script]; a.Step < len(steps) {
		step = steps[a.Step]
	}
	g := s.gateLocked(step.Gate)
	s.mu.Unlock()
	if step.Gate != "" {
		select {
		case <-g.reached:
		default:
			close(g.reached)
		}
		select {
		case <-g.open:
		case <-r.Context().Done():
			return
		}
	}
	json.NewEncoder(w).Encode(step) //nolint:errcheck // the stand-in may have gone
}

func (s *stage) gateLocked(name string) *gate {
	if s.gates[name] == nil {
		s.gates[name] = &gate{make(chan struct{}), make(chan struct{})}
	}
	return s.gates[name]
}

func (s *stage) gate(name string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gateLocked(name)
}

func (s *stage) Driver() job.Driver {
	d, err := driver.For(s.kind)
	if err != nil {
		panic(err)
	}
	return d
}

func (s *stage) Spec(t *testing.T) job.Spec {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return job.Spec{
		Job: string(s.kind) + "-job-0a1b2c3d", Token: rand.Text(), Kind: s.kind, Command: []string{self, "standin-" + string(s.kind)},
		Folder: t.TempDir(), StateFolder: t.TempDir(), Access: job.AccessAsk,
		Env: []string{"HOME=" + s.home, "STANDIN_STAGE=" + s.server.URL, testkit.QuickExit}, ACP: job.ACPAgent{Name: "stand-in"},
	}
}

func (s *stage) Script(name string, steps ...drivertest.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[name] = steps
}

func (s *stage) Open(name string) { close(s.gate(name).open) }

func (s *stage) AtGate(ctx context.Context, name string) error {
	select {
	case <-s.gate(name).reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stage) Shown(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.shown, text)
}

// front is one protocol of a stand-in.
type front interface {
	// listen reads what the driver says until it says no more.
	listen()
	inserted(m message)
	turnBegan()
	text(words string)
	stepBegan(id, command string)
	asks(id, command string)
	withdraws(id string)
	stepEnded(id string, end stepEnd)
	turnEnded(fault drivertest.Fault, words string)
	junk()
}

// message is one of the driver's for the model.
type message struct{ id, text string }

// verdict answers a question.
type verdict struct {
	id     string
	allow  bool
	reason string
}

type stepEnd struct {
	refused bool
	exit    int
	output  string
}

// interrupted is a turn that was stopped.
const interrupted drivertest.Fault = "interrupted"

// agent is a stand-in: a loop of answers and tools.
type agent struct {
	front     front
	session   string
	talk      []string // what the model was shown
	script    string
	step      int
	steps     int
	played    int // turns so far
	messages  chan message
	verdicts  chan verdict
	interrupt chan struct{}
	goesOn    bool // what comes during the last answer belongs to the same turn
}

func standIn(front func(a *agent, args []string) front, args []string) {
	a := &agent{
		messages: make(chan message, 100), verdicts: make(chan verdict, 100), // more than any case sends
		interrupt: make(chan struct{}, 100),
	}
	a.front = front(a, args)
	go func() {
		a.front.listen()
		os.Exit(0)
	}()
	for m := range a.messages {
		a.played++
		a.front.turnBegan()
		if parent, has := a.front.(interface{ child() }); has && set("STANDIN_CHILD") {
			parent.child()
		}
		a.turn(m)
	}
}

// load makes the agent know what was said in a session; false when there is none.
func (a *agent) load(session string) bool {
	a.session = session
	raw, err := os.ReadFile(a.file())
	return err == nil && json.Unmarshal(raw, &a.talk) == nil
}

func (a *agent) file() string { return filepath.Join(os.Getenv("HOME"), a.session+".json") }

func (a *agent) save() {
	raw, _ := json.Marshal(a.talk)
	os.WriteFile(a.file(), raw, 0o600) //nolint:errcheck // the next run would miss it
}

var scriptName = regexp.MustCompile(`script:(\w+)`)

func (a *agent) hear(m message) {
	a.talk = append(a.talk, m.text)
	a.front.inserted(m)
	if name := scriptName.FindStringSubmatch(m.text); name != nil {
		a.script, a.step = name[1], 0
	}
}

// turn plays until there is nothing more to say.
func (a *agent) turn(first message) {
	a.hear(first)
	for {
		for len(a.messages) > 0 {
			a.hear(<-a.messages)
		}
		step, stopped := a.next()
		if stopped {
			a.front.turnEnded(interrupted, "")
			return
		}
		a.step++
		if step.Fault == drivertest.Junk {
			a.front.junk()
			step.Fault = ""
		}
		if step.Fault == drivertest.Lost {
			a.lose()
			<-time.After(time.Hour) // it lives on until somebody ends it
		}
		if step.Run == "" {
			if step.Say != "" {
				a.front.text(step.Say)
			}
			a.talk = append(a.talk, step.Say)
			a.save()
			if a.goesOn && len(a.messages) > 0 {
				continue
			}
			a.front.turnEnded(step.Fault, step.Say)
			return
		}
		if !a.tool(step.Run) {
			a.front.turnEnded(interrupted, "")
			return
		}
	}
}

// lose breaks the stream of what it says.
func (a *agent) lose() {
	if own, has := a.front.(interface{ hangUp() }); has {
		own.hangUp()
		return
	}
	os.Stdout.Close() //nolint:errcheck // that is the fault
}

// next asks the stage for the model's answer.
func (a *agent) next() (step drivertest.Step, stopped bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	body, _ := json.Marshal(ask{Shown: strings.Join(a.talk, "\n"), Script: a.script, Step: a.step})
	answered := make(chan drivertest.Step, 1)
	go func() {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("STANDIN_STAGE"), bytes.NewReader(body))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return
		}
		defer response.Body.Close()
		var s drivertest.Step
		if json.NewDecoder(response.Body).Decode(&s) == nil {
			answered <- s
		}
	}()
	select {
	case step = <-answered:
		return step, false
	case <-a.interrupt:
		return step, true
	}
}

// tool asks and runs a command; false when the turn was stopped meanwhile.
func (a *agent) tool(command string) bool {
	a.steps++
	id := "step" + strconv.Itoa(a.steps)
	a.front.stepBegan(id, command)
	a.front.asks(id, command)
	var v verdict
	select {
	case v = <-a.verdicts:
	case <-a.interrupt:
		a.front.withdraws(id)
		return false
	}
	end := stepEnd{refused: true, exit: -1, output: v.reason}
	if v.allow {
		end = run(command)
	}
	a.talk = append(a.talk, end.output)
	a.front.stepEnded(id, end)
	return true
}

func run(command string) stepEnd {
	out, err := exec.CommandContext(context.Background(), "/bin/sh", "-c", command).CombinedOutput()
	end := stepEnd{output: string(out)}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		end.exit = failed.ExitCode()
	}
	return end
}

// say writes one line.
func say(line any) {
	raw, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	sayMu.Lock()
	defer sayMu.Unlock()
	fmt.Println(string(raw))
}

var sayMu sync.Mutex // guards standard output

type object = map[string]any
