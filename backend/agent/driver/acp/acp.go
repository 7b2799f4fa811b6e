// Package acp drives any agent that speaks the Agent Client Protocol, version 1:
// JSON-RPC 2.0 in lines on the agent's standard input and output (JOB-24). One
// process a job, one session in it.
//
// The protocol promises less than the kinds that have a driver of their own: a
// message waits for the turn's end, no reason goes with a refusal, and what a mode
// allows is the agent's affair. So a job that reads or edits has the floor below it,
// and one that asks is refused where the agent has no mode that is known to ask.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
)

// version is the one of the protocol that is stable.
const version = 1

// serverName is the name under which the agent knows our MCP server.
const serverName = "bridge"

// agent drives one.
type agent struct {
	*run.Run
	run.Calls
	spec  job.Spec
	floor job.Floor

	adapter string // the agent's name for itself, set before the session opens

	mu      sync.Mutex          // guards what follows
	running string              // the message whose turn runs, "" for none
	prompt  string              // id of the request that began it
	turns   int                 // so far
	stopped bool                // the turn was told to stop
	left    bool                // because the agent left the mode that it must stay in
	mode    string              // as the agent told it last
	wanted  string              // the mode that it must stay in, "" for any
	open    map[string][]option // the questions that wait, with the ways to answer
	denied  map[string]bool     // steps that were refused in this turn
	changed chan struct{}       // closed and replaced when any of these changes

	reader // used by the reader of the output alone
}

// Start starts the agent of spec, which was checked. It fails with Denied without the floor
// that spec needs, and with Unavailable if the program does not start.
func Start(spec job.Spec) (*run.Run, error) {
	floor, err := run.FloorOf(spec)
	if err != nil {
		return nil, err
	}
	p, err := run.Launch(spec, run.Command{
		Argv: slices.Clone(spec.Command), Env: run.Environment(spec), Floor: floor, Writable: spec.ACP.Writable,
	})
	if err != nil {
		return nil, err
	}
	a := &agent{
		Run: run.New(p, floor), spec: spec, floor: floor, changed: make(chan struct{}),
		open: map[string][]option{}, denied: map[string]bool{}, reader: reader{steps: map[string]*step{}, questions: map[string]string{}},
	}
	a.Begin(a, spec.Prompt, a.line)
	go a.connect()
	return a.Run, nil
}

// connect opens the session. How it went is in the events.
func (a *agent) connect() {
	ctx := context.Background() // it ends with the process
	opened, err := a.shake(ctx)
	if err != nil {
		a.FailOpen(openError(err))
		return
	}
	a.Open(opened)
}

// openError says why there is no session.
func openError(err error) error {
	refused, ok := errors.AsType[*run.Refusal](err)
	if !ok {
		return err
	}
	reason, _ := why(*refused)
	return &run.OpenError{Why: reason, Err: err}
}

// capabilities are what an agent declares, as far as it is read.
type capabilities struct {
	Protocol int `json:"protocolVersion"`
	Agent    struct {
		Session struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Info struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
}

// canResume reports whether a session can be continued without a replay of all its events,
// which session/load does.
func (c capabilities) canResume() bool {
	return len(c.Agent.Session.Resume) > 0 && string(c.Agent.Session.Resume) != "null"
}

func (a *agent) shake(ctx context.Context) (job.Opened, error) {
	raw, err := a.request(ctx, "initialize", map[string]any{
		"protocolVersion":    version,
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		"clientInfo":         map[string]any{"name": "bridge-job", "title": "Bridge", "version": "1"},
	})
	if err != nil {
		return job.Opened{}, err
	}
	var can capabilities
	if err := json.Unmarshal(raw, &can); err != nil {
		return job.Opened{}, fmt.Errorf("read what %s can do: %w", a.spec.ACP.Name, err)
	}
	if can.Protocol != version {
		return job.Opened{}, fmt.Errorf("%s speaks version %d of the Agent Client Protocol, and this version of Bridge speaks %d", a.spec.ACP.Name, can.Protocol, version)
	}
	a.adapter = can.Info.Name
	session, err := a.openSession(ctx, can)
	if err != nil {
		return job.Opened{}, err
	}
	model, err := a.set(ctx, session)
	if err != nil {
		return job.Opened{}, err
	}
	return job.Opened{
		Session: session.ID, Model: model, Version: can.Info.Version,
		Capabilities: job.Capabilities{Resume: can.canResume()},
	}, nil
}

// openSession begins a session or continues one. It never uses session/load, which would replay
// the whole conversation as new events.
func (a *agent) openSession(ctx context.Context, can capabilities) (session, error) {
	params := map[string]any{"cwd": a.spec.Folder, "mcpServers": a.servers()}
	method := "session/new"
	if a.spec.Session != "" {
		if !can.canResume() {
			return session{}, fmt.Errorf("%s cannot continue a session: it does not declare session/resume", a.spec.ACP.Name)
		}
		method, params["sessionId"] = "session/resume", a.spec.Session
	}
	raw, err := a.request(ctx, method, params)
	if refused, is := errors.AsType[*run.Refusal](err); is && a.spec.Session != "" && refused.Code != authRequired {
		return session{}, &run.OpenError{Why: job.EndNoSession, Err: err}
	}
	if err != nil {
		return session{}, err
	}
	opened := session{ID: a.spec.Session}
	if err := json.Unmarshal(raw, &opened); err != nil || opened.ID == "" {
		return session{}, fmt.Errorf("read the session of %s: %w", a.spec.ACP.Name, errors.Join(err, errors.New("it has no id")))
	}
	return opened, nil
}

// servers is the MCP server of this job, as the protocol wants it.
func (a *agent) servers() []map[string]any {
	if a.spec.Bridge.Command == "" {
		return []map[string]any{}
	}
	env := run.Pairs(a.spec.Bridge.Env)
	env[sandbox.JobVariable], env[sandbox.TokenVariable] = a.spec.Job, a.spec.Token
	pairs := []map[string]string{}
	for name, value := range env {
		pairs = append(pairs, map[string]string{"name": name, "value": value})
	}
	return []map[string]any{{
		"name": serverName, "command": a.spec.Bridge.Command, "args": append([]string{}, a.spec.Bridge.Args...), "env": pairs,
	}}
}

// request asks the agent for something and waits for its answer.
func (a *agent) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return a.Call(ctx, a.Process, func(id string) any {
		return map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
	})
}

func (a *agent) send(ctx context.Context, line map[string]any) error {
	line["jsonrpc"] = "2.0"
	return a.Process.Send(ctx, []byte(run.AsJSON(line)))
}

// change changes what is guarded and wakes who waits for that.
func (a *agent) change(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
	close(a.changed)
	a.changed = make(chan struct{})
}

// until waits until fits, which is asked under the lock.
func (a *agent) until(ctx context.Context, fits func() bool) error {
	for {
		a.mu.Lock()
		done, changed := fits(), a.changed
		a.mu.Unlock()
		if done {
			return nil
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

// Send sends a message as a new turn. While another turn runs, it waits, because the protocol
// has no message to a running turn. Until then a run that ends has certainly not received it.
// Send fails with ErrEnded after the agent has ended, with ErrUnconfirmed if ctx ends during
// the write, and if ctx ends before.
func (a *agent) Send(ctx context.Context, message job.Message) error {
	if err := a.WaitOpen(ctx); err != nil {
		return err
	}
	id, prompt := "", []map[string]any{}
	err := a.until(ctx, func() bool {
		if a.running != "" {
			return false
		}
		a.turns++
		id = "prompt" + strconv.Itoa(a.turns)
		a.running, a.prompt, a.stopped, a.left = message.ID, id, false, false
		return true
	})
	if err != nil {
		return err
	}
	if id == "prompt1" && a.spec.Note != "" {
		prompt = append(prompt, map[string]any{"type": "text", "text": a.spec.Note})
	}
	prompt = append(prompt, map[string]any{"type": "text", "text": message.Text})
	// Its answer is the turn's end, in its order among what else the agent says.
	return a.send(ctx, map[string]any{
		"id": id, "method": "session/prompt", "params": map[string]any{"sessionId": a.Session(), "prompt": prompt},
	})
}

// Stop stops the current turn. It answers the open questions as cancelled, as the protocol
// requires. It fails as Send does.
func (a *agent) Stop(ctx context.Context) error {
	if err := a.WaitOpen(ctx); err != nil {
		return err
	}
	if err := a.until(ctx, func() bool { return a.running != "" || !a.Waiting() }); err != nil {
		return err
	}
	a.mu.Lock()
	busy := a.running != ""
	a.stopped = a.stopped || busy
	open := a.open
	if busy {
		a.open = map[string][]option{}
	}
	a.mu.Unlock()
	if !busy {
		return nil
	}
	for id := range open {
		if err := a.send(ctx, map[string]any{"id": json.RawMessage(id), "result": outcome("")}); err != nil {
			return err
		}
		a.Withdraw(id)
	}
	return a.send(ctx, map[string]any{"method": "session/cancel", "params": map[string]any{"sessionId": a.Session()}})
}

// Leave terminates the agent, which may ignore the end of its input. The reaper ends processes
// that it leaves in other sessions.
func (a *agent) Leave(context.Context) { a.Process.Terminate() }
