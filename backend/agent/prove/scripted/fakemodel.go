package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// FakeModel is a model server on 127.0.0.1 for all three CLIs at once. It
// speaks OpenAI Responses (codex), Anthropic Messages (claude) and OpenAI chat
// completions (opencode), each as server-sent events, and answers by script: a
// prompt that names `script:NAME` plays the steps registered under that name,
// one step per model answer. Which step is due is read off the conversation
// that the CLI sends, so a retried or resumed request gets the same answer.
type FakeModel struct {
	server *http.Server
	url    string

	mu       sync.Mutex
	scripts  map[string][]Step
	gates    map[string]*gate
	requests []Request
	changed  chan struct{} // closed and replaced whenever a wait may have ended
}

// gate holds one or more answers back until the test lets them go.
type gate struct {
	open    chan struct{} // closed by Open
	reached bool          // a request has asked for the answer behind it
}

// Step is one answer of the model: text, which ends the turn, or a tool call.
type Step struct {
	say  string
	tool string // "name" or, for codex, "namespace/name"
	args func(Request) any
	gate string
	stop string  // why the model stopped, in the protocol's own word; "" as usual
	fail *Failed // in place of an answer
}

// Failed is how a provider fails.
type Failed struct {
	Status int
	Header http.Header
	Body   any
}

// Fail answers with a failure, again each time that the CLI asks.
func Fail(failed Failed) Step { return Step{fail: &failed} }

// Stop answers with text that ends for another reason than usual.
func Stop(text, reason string) Step { return Step{say: text, stop: reason} }

// Say answers with text, which ends the turn unless a hook keeps it going.
func Say(text string) Step { return Step{say: text} }

// Call answers with one tool call; args is what JSON makes of it. A codex tool
// of an MCP server is "mcp__SERVER/TOOL".
func Call(tool string, args any) Step {
	return CallWith(tool, func(Request) any { return args })
}

// CallWith is Call with arguments taken from what the model was shown, as a
// real model would: the id of a message that it read, for one.
func CallWith(tool string, args func(Request) any) Step { return Step{tool: tool, args: args} }

// After holds the answer back until the test opens the gate: the session is
// busy for as long as the test needs, without a clock.
func (s Step) After(gate string) Step {
	s.gate = gate
	return s
}

// Item is one piece of a conversation, in one form for all three protocols.
type Item struct {
	Role string // system, developer, user, assistant, tool
	Text string
	Tool string // the tool's name when the assistant called one; Text is then its arguments
}

// Request is one request that a CLI made of the model.
type Request struct {
	Number int    // from 1, in the order of arrival
	API    string // responses, messages, chat; "" for anything else
	Path   string
	// Session is the root session and Thread the conversation that asks: a
	// native child has a thread of its own.
	Session, Thread string
	Aux             bool     // a title or another request beside the conversation: it plays no script
	Tools           []string // names offered, namespaces written NS/NAME
	Items           []Item
	Script          string // the script in force, "" for none
	Step            int    // how many answers of it were given before
	Header          http.Header
	Body            json.RawMessage
}

// Child reports whether a native child of the session asked.
func (r Request) Child() bool { return r.Thread != r.Session }

// Text is everything that the model was shown, without its own words: one
// item a line.
func (r Request) Text() string {
	var b strings.Builder
	for _, item := range r.Items {
		if item.Role != "assistant" {
			b.WriteString(item.Text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Count says how often the model was shown the text.
func (r Request) Count(text string) int { return strings.Count(r.Text(), text) }

// String is one line for a log.
func (r Request) String() string {
	last := ""
	for _, item := range slices.Backward(r.Items) {
		if item.Text != "" {
			last = item.Role + ": " + shorten(item.Text, 160)
			break
		}
	}
	return fmt.Sprintf("#%d %s session=%s thread=%s aux=%t script=%s step=%d items=%d tools=%d | %s",
		r.Number, r.Path, r.Session, r.Thread, r.Aux, r.Script, r.Step, len(r.Items), len(r.Tools), last)
}

func shorten(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}

// StartFakeModel serves on a free port of 127.0.0.1 until Close.
func StartFakeModel() (*FakeModel, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the model: %w", err)
	}
	m := &FakeModel{
		url:     "http://" + listener.Addr().String(),
		scripts: map[string][]Step{},
		gates:   map[string]*gate{},
		changed: make(chan struct{}),
	}
	mux := http.NewServeMux()
	for path, p := range protocols {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { m.converse(w, r, p) })
	}
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": 42})
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": "fake-model", "object": "model"}}, "models": []any{}})
	})
	mux.HandleFunc("/", m.refuse)
	m.server = &http.Server{Handler: mux}
	go m.server.Serve(listener) //nolint:errcheck // it ends with Close
	return m, nil
}

// URL is the server's address, without a path.
func (m *FakeModel) URL() string { return m.url }

// Close drops every connection and ends the server.
func (m *FakeModel) Close() error { return m.server.Close() }

// Script registers the answers that a prompt naming `script:NAME` plays. A
// name is letters, digits and '-'. Behind the last step the model says "done".
func (m *FakeModel) Script(name string, steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts[name] = steps
}

// Open lets the answers behind the gate go, now and from now on.
func (m *FakeModel) Open(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.gate(name).open)
}

// AtGate waits until a request asked for the answer behind the gate.
func (m *FakeModel) AtGate(ctx context.Context, name string) error {
	return m.until(ctx, "a request at gate "+name, func() bool { return m.gate(name).reached })
}

// Requests are all so far, in the order of arrival.
func (m *FakeModel) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Wait returns the first request that fits, as soon as there is one; what
// names it in the error.
func (m *FakeModel) Wait(ctx context.Context, what string, fits func(Request) bool) (Request, error) {
	var found Request
	err := m.until(ctx, what, func() bool {
		i := slices.IndexFunc(m.requests, fits)
		if i >= 0 {
			found = m.requests[i]
		}
		return i >= 0
	})
	return found, err
}

// Tail is the last requests, one a line.
func (m *FakeModel) Tail(most int) string {
	requests := m.Requests()
	var b strings.Builder
	for _, r := range requests[max(0, len(requests)-most):] {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

// gate returns the gate of that name. The caller holds mu.
func (m *FakeModel) gate(name string) *gate {
	g, ok := m.gates[name]
	if !ok {
		g = &gate{open: make(chan struct{})}
		m.gates[name] = g
	}
	return g
}

// until waits for a condition that is read under mu.
func (m *FakeModel) until(ctx context.Context, what string, holds func() bool) error {
	for {
		m.mu.Lock()
		ok, changed := holds(), m.changed
		m.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// signal wakes every wait. The caller holds mu.
func (m *FakeModel) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// record numbers and keeps a request and returns the answer that is due, with
// the name of the gate before it.
func (m *FakeModel) record(r Request) (a answer, gate string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Number = len(m.requests) + 1
	m.requests = append(m.requests, r)
	step := m.due(r)
	if step.gate != "" {
		m.gate(step.gate).reached = true
	}
	m.signal()
	a = answer{number: r.Number, text: step.say, stop: step.stop, fail: step.fail}
	if step.tool != "" {
		a.namespace, a.tool = splitTool(step.tool)
		a.args = mustJSON(step.args(r))
	}
	return a, step.gate
}

// due returns the step that answers the request. The caller holds mu.
func (m *FakeModel) due(r Request) Step {
	switch steps, known := m.scripts[r.Script]; {
	case r.Aux:
		return Say("A title")
	case r.Script == "":
		return Say("no script")
	case !known:
		return Say("there is no script " + r.Script)
	case r.Step >= len(steps):
		return Say("done")
	default:
		return steps[r.Step]
	}
}

// pass waits until the gate is open; false when the CLI has gone meanwhile.
func (m *FakeModel) pass(ctx context.Context, name string) bool {
	if name == "" {
		return true
	}
	m.mu.Lock()
	open := m.gate(name).open
	m.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// converse answers one request of one protocol.
func (m *FakeModel) converse(w http.ResponseWriter, r *http.Request, p protocol) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req, err := p.read(r.Header, body)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"message": err.Error()}})
		return
	}
	req.Path, req.Header, req.Body = r.URL.Path, r.Header, body
	req.Aux = req.Aux || len(req.Tools) == 0
	req.Script, req.Step = position(req.Items)
	a, gate := m.record(req)
	if !m.pass(r.Context(), gate) {
		return
	}
	if a.fail != nil {
		for name, values := range a.fail.Header {
			w.Header()[name] = values
		}
		writeJSON(w, a.fail.Status, a.fail.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	p.write(stream{w}, a)
}

// refuse keeps a record of what no CLI was seen to ask before.
func (m *FakeModel) refuse(w http.ResponseWriter, r *http.Request) {
	m.record(Request{Path: r.Method + " " + r.URL.Path, Header: r.Header, Aux: true})
	writeJSON(w, http.StatusNotFound, map[string]any{"error": map[string]any{"message": "the fake model does not serve this"}})
}

var scriptName = regexp.MustCompile(`\bscript:([A-Za-z0-9-]+)`)

// position finds the script in force, named by the newest user text that names
// one, and how many answers were given since.
func position(items []Item) (script string, step int) {
	for _, item := range items {
		switch item.Role {
		case "assistant":
			step++
		case "user":
			if name := scriptName.FindStringSubmatch(item.Text); name != nil {
				script, step = name[1], 0
			}
		}
	}
	return script, step
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) //nolint:errcheck // the CLI may have gone
}
