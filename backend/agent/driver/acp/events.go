package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// reader is what the reader of the output keeps of the turn that runs.
type reader struct {
	steps     map[string]*step
	questions map[string]string // the question of each step that waits for one
	words     run.Words         // of the model, since its last step
	message   string            // id of the message that words end with, "" where the agent has no ids
	speaking  bool              // words is not empty
	usage     job.Usage
}

// step is a tool call that has begun.
type step struct {
	kind, title string
	input       json.RawMessage
	paths       []string
	told        bool // StepStarted was
}

// line is a response, a notification or a request of the agent's.
type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *run.Refusal    `json:"error"`
}

func (a *agent) line(raw []byte) {
	var said line
	if err := json.Unmarshal(raw, &said); err != nil || said.Method == "" && said.ID == nil {
		a.Noise(raw)
		return
	}
	switch id := run.Text(said.ID); {
	case said.Method == "" && a.isPrompt(id):
		a.handleTurnEnd(said)
	case said.Method == "":
		a.Settle(id, run.Reply{Result: said.Result, Refusal: said.Error})
	case said.Method == "session/update":
		a.update(said.Params)
	case said.Method == "session/request_permission":
		a.handleRequest(said)
	case said.Method == "$/cancel_request":
		a.closeQuestion(said.Params)
	case said.ID != nil:
		// Unanswered it would wait for ever.
		go a.send(context.Background(), map[string]any{ //nolint:errcheck // the run's end is an event
			"id": said.ID, "error": map[string]any{"code": -32601, "message": "not supported"},
		})
	}
}

// isPrompt reports whether that is the request whose answer ends the turn.
func (a *agent) isPrompt(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running != "" && id == a.prompt
}

// works says that the agent works on the message whose turn runs.
func (a *agent) works() {
	a.mu.Lock()
	id := a.running
	a.mu.Unlock()
	if id != "" {
		a.Inserted(id)
	}
}

// call is a tool call, or what is new of one.
type call struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Content []struct {
		Type    string `json:"type"`
		Path    string `json:"path"`
		Old     string `json:"oldText"`
		New     string `json:"newText"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"content"`
}

// update is what a session/update carries, as far as it is read.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"`
	Message string          `json:"messageId"` // of a chunk
	Mode    string          `json:"currentModeId"`
	Title   string          `json:"title"`
	Used    int64           `json:"used"` // tokens
	Size    int64           `json:"size"` // tokens
	Cost    *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
}

func (a *agent) update(params json.RawMessage) {
	var note struct {
		Session string          `json:"sessionId"`
		Update  json.RawMessage `json:"update"`
	}
	var told update
	json.Unmarshal(params, &note)      //nolint:errcheck // what is not as known says nothing
	json.Unmarshal(note.Update, &told) //nolint:errcheck // the same
	if own := a.Session(); own != "" && note.Session != own {
		return // a child's
	}
	switch told.Kind {
	case "agent_message_chunk":
		a.works()
		var content struct {
			Text string `json:"text"`
		}
		json.Unmarshal(told.Content, &content) //nolint:errcheck // a picture has no words
		a.hear(told.Message, content.Text)
	case "agent_thought_chunk", "plan":
		a.works()
	case "tool_call", "tool_call_update":
		a.works()
		var c call
		json.Unmarshal(note.Update, &c) //nolint:errcheck // what is not as known says nothing
		a.step(c)
	case "current_mode_update":
		a.handleMode(told.Mode)
	case "config_option_update":
		var now session
		json.Unmarshal(note.Update, &now) //nolint:errcheck // what is not as known says nothing
		if found, has := now.find(categoryMode); has {
			mode, _ := found.Current.(string)
			a.handleMode(mode)
		}
	case "session_info_update":
		if told.Title != "" {
			a.Put(job.Titled{Title: told.Title})
		}
	case "usage_update":
		a.usage.Context, a.usage.Window = told.Used, told.Size
		if told.Cost != nil && told.Cost.Currency == "USD" {
			a.usage.CostUSD, a.usage.CostKnown = told.Cost.Amount, true
		}
		a.Put(a.usage)
	}
}

// step takes in what is new of a tool call.
func (a *agent) step(c call) {
	known := a.know(c)
	if c.Status != "" && c.Status != "pending" {
		a.began(c.ID, known)
	}
	if question, asked := a.questions[c.ID]; asked && c.Status != "" && c.Status != "pending" {
		delete(a.questions, c.ID)
		a.Resolved(question)
	}
	if c.Status != "completed" && c.Status != "failed" {
		return
	}
	delete(a.steps, c.ID)
	ended := job.StepEnded{Step: c.ID, State: job.StepDone, Output: output(c)}
	switch {
	case a.isDenied(c.ID):
		ended.State = job.StepRefused
	case c.Status == "failed":
		ended.State = job.StepFailed
	}
	if known.kind == "execute" && ended.State != job.StepRefused {
		ended.Exit = exit(c.Output)
	}
	a.Put(ended)
}

// know merges an update of a tool call. Agents send a call in several updates.
func (a *agent) know(c call) *step {
	known := a.steps[c.ID]
	if known == nil {
		a.speak()
		known = &step{}
		a.steps[c.ID] = known
	}
	known.kind, known.title = first(c.Kind, known.kind), first(c.Title, known.title)
	if len(c.Input) > 0 && string(c.Input) != "{}" {
		known.input = c.Input
	}
	if len(c.Locations) > 0 {
		known.paths = nil
		for _, location := range c.Locations {
			known.paths = append(known.paths, location.Path)
		}
	}
	return known
}

// began reports a step once its facts are complete: when it begins, or when it needs a
// permission.
func (a *agent) began(id string, s *step) {
	if s.told {
		return
	}
	s.told = true
	a.Put(job.StepStarted{Step: id, Tool: first(s.kind, "tool"), Subject: s.subject(), Input: s.input})
}

// hear adds a chunk of the message with that id to the words of the model. A blank line
// separates two messages, such as a notice of the adapter and the answer (KND-06).
func (a *agent) hear(message, text string) {
	if text == "" {
		return
	}
	if a.speaking && message != a.message {
		a.words.Add("\n\n")
	}
	a.message, a.speaking = message, true
	a.words.Add(text)
}

// speak publishes the text of the model so far, returns it, and empties the buffer.
func (a *agent) speak() string {
	a.speaking = false
	words := a.words.Take()
	if strings.TrimSpace(words) != "" {
		a.Put(job.Text{Text: words})
	}
	return words
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// subject is the exact command or path of a step, else what the agent calls it.
func (s step) subject() string {
	var in struct {
		Command json.RawMessage `json:"command"`
		Path    string          `json:"filePath"`
		Path2   string          `json:"file_path"`
		Path3   string          `json:"path"`
	}
	json.Unmarshal(s.input, &in) //nolint:errcheck // what it is about is then its title
	var words []string
	if json.Unmarshal(in.Command, &words) == nil && len(words) > 0 {
		return strings.Join(words, " ")
	}
	if s.kind == "execute" {
		return first(run.Text(in.Command), s.title)
	}
	return first(run.Text(in.Command), in.Path, in.Path2, in.Path3, strings.Join(s.paths, "\n"), s.title)
}

// output returns the result of a tool as the model reads it, as far as the agent reports it.
func output(c call) string {
	var parts []string
	for _, part := range c.Content {
		if part.Content.Text != "" {
			parts = append(parts, part.Content.Text)
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "\n")
	}
	var raw struct {
		Output string `json:"output"`
	}
	json.Unmarshal(c.Output, &raw) //nolint:errcheck // it says nothing then
	return first(raw.Output, run.Text(c.Output))
}

// exit returns a command's exit code, for which the protocol has no member. It returns nil if
// the agent does not report it.
func exit(raw json.RawMessage) *int {
	var told struct {
		Code     *int `json:"exitCode"`
		Code2    *int `json:"exit_code"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
		Contents []struct {
			Type string `json:"type"`
			Code *int   `json:"exitCode"`
		} `json:"contents"`
	}
	json.Unmarshal(raw, &told) //nolint:errcheck // it is not told then
	codes := []*int{told.Code, told.Code2, told.Metadata.Exit}
	for _, part := range told.Contents {
		if part.Type == "shell_exit" { // of Copilot CLI
			codes = append(codes, part.Code)
		}
	}
	for _, code := range codes {
		if code != nil {
			return code
		}
	}
	return nil
}

// option is one way to answer a question.
type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

func (a *agent) handleRequest(said line) {
	a.works()
	var ask struct {
		Call    call     `json:"toolCall"`
		Options []option `json:"options"`
	}
	json.Unmarshal(said.Params, &ask) //nolint:errcheck // what is not as known is shown as it came
	id, step := string(said.ID), a.know(ask.Call)
	a.began(ask.Call.ID, step)
	if allow, decided := a.rule(*step); decided {
		if !allow {
			a.deny(ask.Call.ID)
		}
		go a.send(context.Background(), map[string]any{ //nolint:errcheck // the run's end is an event
			"id": said.ID, "result": outcome(choose(ask.Options, allow)),
		})
		return
	}
	a.mu.Lock()
	a.open[id] = ask.Options
	a.mu.Unlock()
	a.questions[ask.Call.ID] = id
	a.Ask(job.Question{
		ID: id, Step: ask.Call.ID, Kind: questionKind(step.kind), Tool: first(step.kind, "tool"),
		Subject: step.subject(), Input: step.input, Diff: diff(ask.Call),
	})
}

// questionKind maps the protocol's kinds of tools.
func questionKind(kind string) job.QuestionKind {
	switch kind {
	case "execute":
		return job.QuestionCommand
	case "edit", "delete", "move":
		return job.QuestionEdit
	}
	return job.QuestionTool
}

// rule decides about a tool without a question: Bridge's own tools, and tools that the sandbox
// makes harmless, are allowed. For a job that only reads, all others are denied.
func (a *agent) rule(asked step) (allow, decided bool) {
	reading := slices.Contains([]string{"read", "search", "think"}, asked.kind)
	changing := slices.Contains([]string{"execute", "edit", "delete", "move"}, asked.kind)
	held := a.floor == job.FloorSandbox
	switch {
	case !changing && a.isOurs(asked.title):
		return true, true
	case a.spec.Access == job.AccessRead:
		return reading || held && asked.kind == "execute", true
	case a.spec.Access == job.AccessEdit:
		return true, reading || held && changing
	}
	return false, false
}

// isOurs reports whether a tool is one of the job's own MCP server, by the names that
// agents give to such.
func (a *agent) isOurs(title string) bool {
	return slices.ContainsFunc(a.spec.Bridge.Tools, func(tool string) bool {
		return slices.Contains([]string{"mcp__" + serverName + "__" + tool, serverName + "_" + tool, serverName + "/" + tool}, title)
	})
}

// diff shows the change that is asked about.
func diff(c call) string {
	var b strings.Builder
	for _, part := range c.Content {
		if part.Type != "diff" {
			continue
		}
		b.WriteString("--- " + part.Path + "\n+++ " + part.Path + "\n")
		for _, side := range []struct{ mark, text string }{{"-", part.Old}, {"+", part.New}} {
			for text := range strings.Lines(side.text) {
				b.WriteString(side.mark + strings.TrimSuffix(text, "\n") + "\n")
			}
		}
	}
	return b.String()
}

// choose finds the way to allow something once, or to refuse it; "" where there is
// none. Nothing is ever allowed for later.
func choose(options []option, allow bool) string {
	kinds := []string{"reject_once", "reject_always"}
	if allow {
		kinds = []string{"allow_once"}
	}
	for _, kind := range kinds {
		if i := slices.IndexFunc(options, func(o option) bool { return o.Kind == kind }); i >= 0 {
			return options[i].ID
		}
	}
	return ""
}

// outcome is the answer to a question; "" takes it back.
func outcome(option string) map[string]any {
	if option == "" {
		return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
	}
	return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}}
}

// Decide answers a question, without a reason. It fails with NotFound if the question is not
// open. It fails with Unsupported if the agent offers no way to allow once; the request is then
// refused.
func (a *agent) Decide(ctx context.Context, question job.Question, answer job.Answer) error {
	a.mu.Lock()
	options, open := a.open[question.ID]
	delete(a.open, question.ID)
	a.mu.Unlock()
	if !open {
		return bridge.Errorf(bridge.NotFound, "no such question is open")
	}
	chosen := choose(options, answer.Allow)
	impossible := answer.Allow && chosen == ""
	if impossible {
		chosen = choose(options, false)
	}
	if !answer.Allow || impossible {
		a.deny(question.Step)
	}
	if err := a.send(ctx, map[string]any{"id": json.RawMessage(question.ID), "result": outcome(chosen)}); err != nil {
		return err
	}
	if impossible {
		return bridge.Errorf(bridge.Unsupported, "%s offers no way to allow this once, so it was refused", a.spec.ACP.Name)
	}
	return nil
}

// deny notes that a step was refused in this turn.
func (a *agent) deny(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied[id] = true
}

func (a *agent) isDenied(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.denied[id]
}

// closeQuestion closes a question that the agent does not wait for any more.
func (a *agent) closeQuestion(params json.RawMessage) {
	var note struct {
		Request json.RawMessage `json:"requestId"`
	}
	json.Unmarshal(params, &note) //nolint:errcheck // it names nothing then
	a.mu.Lock()
	delete(a.open, string(note.Request))
	a.mu.Unlock()
	a.Withdraw(string(note.Request))
}
