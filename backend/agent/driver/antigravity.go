package driver

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// antigravity drives `agy` in its documented headless mode: JSON lines on its input
// and output. It was only tested with a stand-in of that format, never with the
// real program. agy asks no questions, so an ask job is refused; a turn cannot be
// stopped without the process.
type antigravity struct {
	*run.Run
	spec job.Spec

	mu      sync.Mutex    // guards the fields below
	busy    bool          // a turn runs
	stopped bool          // it was asked to end
	begun   bool          // it has received the note
	running string        // the message of the running turn
	changed chan struct{} // closed and replaced after each change of these

	usage job.Usage    // only the reader of the output uses this and steps
	steps map[int]bool // started steps
}

func startAntigravity(spec job.Spec) (*run.Run, error) {
	if spec.Access == job.AccessAsk {
		return nil, bridge.Errorf(bridge.Denied, "antigravity cannot ask before a change in a job: use access read or edit")
	}
	floor, err := run.FloorOf(spec)
	if err != nil {
		return nil, err
	}
	env := run.Environment(spec)
	p, err := run.Launch(spec, run.Command{
		Argv: antigravityArgv(spec, floor), Env: env, Floor: floor, Writable: antigravityState(env),
		Readable: run.Entries(filepath.Join(run.UserHome(env), ".gemini", "antigravity-cli"), "brain", "conversations", "logs"),
	})
	if err != nil {
		return nil, err
	}
	a := &antigravity{Run: run.New(p, floor), spec: spec, changed: make(chan struct{}), steps: map[int]bool{}}
	a.Begin(a, spec.Prompt, a.line)
	return a.Run, nil
}

// antigravityState returns the folders of agy's conversations, without its settings
// and hooks next to them.
func antigravityState(env run.Environ) []string {
	var folders []string
	for _, name := range []string{"brain", "conversations", "logs", "cache"} {
		folders = append(folders, filepath.Join(run.UserHome(env), ".gemini", "antigravity-cli", name))
	}
	return folders
}

// antigravityArgv returns the whole command line. Without a sandbox agy's own rules
// decide, which in a headless run refuse everything they would ask about. An edit
// job in a sandbox needs no rules of agy.
func antigravityArgv(spec job.Spec, floor job.Floor) []string {
	argv := append(slices.Clone(spec.Command),
		"--output-format=stream-json", "--input-format=stream-json",
		"--print-timeout="+strconv.Itoa(int(job.MaxTimeout.Seconds()))+"s", "--add-dir="+spec.Folder)
	if spec.Access == job.AccessEdit && floor == job.FloorSandbox {
		argv = append(argv, "--dangerously-skip-permissions")
	}
	for _, row := range []struct{ flag, value string }{{"--conversation=", spec.Session}, {"--model=", spec.Model}, {"--effort=", spec.Effort}} {
		if row.value != "" {
			argv = append(argv, row.flag+row.value)
		}
	}
	return argv
}

// antigravityLine is one line of agy's output.
type antigravityLine struct {
	Event        string `json:"event"`
	Type         string `json:"type"` // if there is no event
	Conversation string `json:"conversation_id"`
	Model        string `json:"model"`
	Version      string `json:"version"`

	Step    int    `json:"step_index"`
	Status  string `json:"status"`
	Content string `json:"content"`
	Calls   []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"tool_calls"`

	Response string            `json:"response"`
	Error    string            `json:"error"`
	Denied   []json.RawMessage `json:"denied_actions"`
	Usage    struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

func (a *antigravity) line(raw []byte) {
	var line antigravityLine
	if json.Unmarshal(raw, &line) != nil {
		a.Noise(raw)
		return
	}
	event := line.Event
	if event == "" {
		event = line.Type
	}
	switch event {
	case "init":
		a.Open(job.Opened{Session: line.Conversation, Model: line.Model, Version: line.Version, Capabilities: job.Capabilities{Resume: true}})
		a.works()
	case "step_update":
		a.works()
		a.step(line)
	case "result":
		a.works()
		a.handleTurnEnd(line)
	default:
		a.Noise(raw)
	}
}

// works reports that agy works on the message of the running turn.
func (a *antigravity) works() {
	a.mu.Lock()
	id := a.running
	a.mu.Unlock()
	if id != "" {
		a.Inserted(id)
	}
}

// step reports a tool. A tool that agy refused automatically is an error in its text.
func (a *antigravity) step(line antigravityLine) {
	id := strconv.Itoa(line.Step)
	if len(line.Calls) > 0 && !a.steps[line.Step] {
		a.steps[line.Step] = true
		var in struct {
			Command string `json:"command"`
			Path    string `json:"path"`
		}
		json.Unmarshal(line.Calls[0].Args, &in) //nolint:errcheck // what it is about is then unknown
		a.Put(job.StepStarted{Step: id, Tool: line.Calls[0].Name, Subject: in.Command + in.Path, Input: line.Calls[0].Args})
	}
	if !a.steps[line.Step] || line.Status != "DONE" && line.Status != "ERROR" {
		return
	}
	delete(a.steps, line.Step)
	state := map[string]job.StepState{"DONE": job.StepDone, "ERROR": job.StepFailed}[line.Status]
	a.Put(job.StepEnded{Step: id, State: state, Output: line.Content})
}

// handleTurnEnd interprets a result: agy reports success for a turn without an answer, if
// all of its actions were refused.
func (a *antigravity) handleTurnEnd(line antigravityLine) {
	a.usage.Input += line.Usage.Input
	a.usage.Output += line.Usage.Output
	a.Put(a.usage)
	clear(a.steps)
	end := job.TurnEnded{Why: job.EndAnswer, Text: line.Response}
	switch empty := strings.TrimSpace(line.Response) == ""; {
	case line.Status != "SUCCESS":
		failed := run.Refusal{Message: strings.TrimSpace(line.Status + " " + line.Error)}
		end = job.TurnEnded{Message: failed.Message}
		if end.Why, end.Status = run.ClassifyError(failed); line.Error == "" && !empty {
			end.Message += ": " + line.Response
		}
	case empty && len(line.Denied) > 0:
		end = job.TurnEnded{Why: job.EndDenied, Message: "antigravity refused what the model wanted to do"}
	case empty:
		end = job.TurnEnded{Why: job.EndEmpty}
	default:
		a.Put(job.Text{Text: line.Response})
	}
	a.EndTurn(end, !a.Waiting())
	a.change(func() { a.busy, a.running = false, "" })
}

func (a *antigravity) change(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
	close(a.changed)
	a.changed = make(chan struct{})
}

// Send writes a line. It waits while a turn runs, because agy's handling of a line during a
// turn is undocumented. It fails with ErrEnded after the process has ended, and if ctx ends
// first.
func (a *antigravity) Send(ctx context.Context, message job.Message) error {
	for {
		a.mu.Lock()
		free, changed := !a.busy, a.changed
		text := message.Text
		if free {
			a.busy, a.running = true, message.ID
			if !a.begun && a.spec.Note != "" {
				text = a.spec.Note + "\n\n" + text
			}
			a.begun = true
		}
		a.mu.Unlock()
		if free {
			return a.Process.Send(ctx, []byte(run.AsJSON(map[string]any{"event": "user", "message": map[string]any{"content": text}})))
		}
		select {
		case <-changed:
		case <-a.Process.Ended():
			return job.ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Decide always fails with NotFound, because agy asks no questions.
func (a *antigravity) Decide(context.Context, job.Question, job.Answer) error {
	return bridge.Errorf(bridge.NotFound, "no such question is open")
}

// Stop ends the process, because agy has no command to end a turn. The conversation can be
// continued. Its error is always nil.
func (a *antigravity) Stop(context.Context) error {
	a.change(func() { a.stopped = true })
	a.Process.Terminate()
	return nil
}

// Leave does nothing: the end of its input ends agy.
func (a *antigravity) Leave(context.Context) {}

// Exited returns the meaning of an end without a result.
func (a *antigravity) Exited(exited job.Exited) (job.EndReason, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch words := strings.ToLower(exited.Stderr); {
	case a.stopped:
		return job.EndInterrupted, true
	case strings.Contains(words, "conversation") && strings.Contains(words, "not found"):
		return job.EndNoSession, true
	}
	return "", false
}
