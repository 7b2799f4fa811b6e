package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/job"
)

// claude drives `claude -p` with JSON lines on its input and output. The process stays
// for many turns. Control requests go both ways in parallel to the conversation.
type claude struct {
	*run.Run
	run.Calls

	session string
	state   claudeState // its writable folders; empty without a sandbox
	// Only the reader of the output uses the fields below.
	told      bool              // the CLI itself reports that it is idle
	steps     map[string]string // tool of each open step
	questions map[string]string
	retried   bool      // its provider was queried again in this turn
	resets    time.Time // end of the reported usage limit
	trouble   string    // kind of the last API error
	usage     job.Usage
}

// claudeServer is the name of Bridge's MCP server in Claude Code.
const claudeServer = "bridge"

func startClaude(spec job.Spec) (*run.Run, error) {
	floor, err := run.FloorOf(spec)
	if err != nil {
		return nil, err
	}
	c := &claude{session: spec.Session, steps: map[string]string{}, questions: map[string]string{}}
	if c.session == "" {
		c.session = uuid.NewString()
	}
	more := append(slices.Clone(spec.Bridge.Env), "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", "CLAUDE_CODE_TMPDIR="+run.Temporary(spec))
	if floor == job.FloorSandbox {
		if c.state, err = newClaudeState(spec, c.session); err != nil {
			return nil, err
		}
		more = append(more, "CLAUDE_CONFIG_DIR="+c.state.private)
	}
	p, err := run.Launch(spec, run.Command{
		Argv: c.argv(spec, floor), Env: run.Environment(spec, more...), Floor: floor, Writable: c.state.folders, Files: c.state.files, Readable: c.state.readable, After: c.state.publish,
	})
	if err != nil {
		return nil, err
	}
	c.Run = run.New(p, floor)
	go c.name(spec.Title)
	c.Begin(c, spec.Prompt, c.line)
	return c.Run, nil
}

// name sets the session's title on Claude Code's input. In --name every user of the
// machine could read it, and a title may be the first line of the prompt (SEC-13).
// A Claude Code without this request keeps its own title.
func (c *claude) name(title string) {
	if title != "" {
		_ = c.control(context.Background(), map[string]any{"subtype": "rename_session", "title": title, "source": "host"}) // it ends with the process
	}
}

// argv returns the whole command line. Values follow "=", so that none of them
// looks like a flag. It holds no secret, because every user of the machine can read
// a command line. An edit job in the sandbox does not ask about commands, as with
// other kinds (RWM-22).
func (c *claude) argv(spec job.Spec, floor job.Floor) []string {
	argv := append(slices.Clone(spec.Command),
		"-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose", "--replay-user-messages",
		"--permission-prompt-tool=stdio", "--setting-sources=", "--strict-mcp-config",
		"--permission-mode="+map[job.Access]string{job.AccessRead: "dontAsk", job.AccessAsk: "manual", job.AccessEdit: "acceptEdits"}[spec.Access],
	)
	if spec.Session == "" {
		argv = append(argv, "--session-id="+c.session)
	} else {
		argv = append(argv, "--resume="+c.session, "--system-prompt-snapshot=off")
	}
	var allowed []string
	if spec.Bridge.Command != "" {
		allowed = append(allowed, "mcp__"+claudeServer)
		server := map[string]any{"command": spec.Bridge.Command, "args": append([]string{}, spec.Bridge.Args...), "alwaysLoad": true}
		argv = append(argv, "--mcp-config="+run.AsJSON(map[string]any{"mcpServers": map[string]any{claudeServer: server}}))
	}
	if spec.Access == job.AccessEdit && floor == job.FloorSandbox {
		allowed = append(allowed, "Bash")
	}
	if len(allowed) > 0 {
		argv = append(argv, "--allowedTools="+strings.Join(allowed, ","))
	}
	if len(spec.Hooks) > 0 {
		argv = append(argv, "--settings="+run.AsJSON(map[string]any{"hooks": spec.Hooks}))
	}
	for flag, value := range map[string]string{"--model=": spec.Model, "--effort=": spec.Effort, "--append-system-prompt=": spec.Note} {
		if value != "" {
			argv = append(argv, flag+value)
		}
	}
	return argv
}

// claudeLine is the part of Claude Code's output line that Bridge reads.
type claudeLine struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	UUID    string `json:"uuid"`
	Session string `json:"session_id"`
	Parent  string `json:"parent_tool_use_id"` // a subagent's line has one
	Replay  bool   `json:"isReplay"`

	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`

	Message struct {
		Content json.RawMessage `json:"content"`
		Usage   claudeUsage     `json:"usage"`
	} `json:"message"`
	Denials []struct {
		ID       string `json:"id"`
		Decision struct {
			Decision string `json:"decision"`
		} `json:"permission_decision"`
		NotRun string `json:"non_execution_kind"`
	} `json:"tool_result_meta"`

	Command string `json:"command_uuid"`
	State   string `json:"state"`
	Title   string `json:"title"`
	Model   string `json:"model"`
	Version string `json:"claude_code_version"`

	Attempt     int             `json:"attempt"`
	RetryMillis int64           `json:"retry_delay_ms"`
	ErrorStatus int             `json:"error_status"`
	Error       string          `json:"error"`
	RateLimit   claudeRateLimit `json:"rate_limit_info"`
	ErrorParams struct {
		RateLimit claudeRateLimit `json:"rate_limit_info"`
	} `json:"api_error_params"`

	claudeResult
}

// claudeResult ends a turn.
type claudeResult struct {
	IsError    bool        `json:"is_error"`
	Result     string      `json:"result"`
	Errors     []string    `json:"errors"`
	StopReason string      `json:"stop_reason"`
	Terminal   string      `json:"terminal_reason"`
	Status     int         `json:"api_error_status"`
	Queued     int         `json:"queued_turn_count"`
	Usage      claudeUsage `json:"usage"`
	CostUSD    *float64    `json:"total_cost_usd"`
	Models     map[string]struct {
		Window int64 `json:"contextWindow"` // tokens
	} `json:"modelUsage"`
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

func (u claudeUsage) input() int64 { return u.Input + u.CacheWrite + u.CacheRead }

type claudeRateLimit struct {
	Status   string `json:"status"`
	ResetsAt int64  `json:"resetsAt"` // seconds since 1970
}

func (c *claude) line(raw []byte) {
	var line claudeLine
	// A field of an unexpected type is ignored; the others count.
	err := json.Unmarshal(raw, &line)
	if _, partly := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !partly || line.Type == "" {
		c.Noise(raw)
		return
	}
	switch line.Type {
	case "system":
		c.system(line)
	case "assistant":
		c.assistant(line)
	case "user":
		c.user(line)
	case "command_lifecycle":
		c.lifecycle(line)
	case "rate_limit_event":
		c.limit(line.RateLimit)
	case "control_request":
		c.handleRequest(line)
	case "control_cancel_request":
		c.Withdraw(line.RequestID)
	case "control_response":
		c.answered(line)
	case "result":
		c.handleTurnEnd(line.claudeResult)
	default:
		c.Noise(raw)
	}
}

func (c *claude) system(line claudeLine) {
	switch line.Subtype {
	case "init":
		c.Open(job.Opened{
			Session: line.Session, Model: line.Model, Version: line.Version,
			Capabilities: job.Capabilities{LiveMessage: true, DenyReason: true, Resume: true, Background: true},
		})
	case "session_title_changed":
		c.Put(job.Titled{Title: line.Title})
	case "session_state_changed":
		c.told = true
		if line.State == "idle" {
			c.Rest()
		} else {
			c.TurnRuns()
		}
	case "api_retry":
		c.retried = true
		c.Put(job.Retrying{
			Until: time.Now().Add( //nolint:forbidigo // what the CLI said counts from now
				time.Duration(line.RetryMillis) * time.Millisecond), Attempt: line.Attempt,
			Why: claudeEndReason(line.Error, line.ErrorStatus, true), Message: line.Error,
		})
	}
}

// claudeBlock is a part of a message.
type claudeBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	ToolUse string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func claudeBlocks(raw json.RawMessage) []claudeBlock {
	var blocks []claudeBlock
	if json.Unmarshal(raw, &blocks) != nil {
		return []claudeBlock{{Type: "text", Text: run.Text(raw)}}
	}
	return blocks
}

func (c *claude) assistant(line claudeLine) {
	if line.Error != "" {
		c.trouble = line.Error
		c.limit(line.ErrorParams.RateLimit)
		return // the result describes the error
	}
	if line.Parent != "" {
		return // a subagent's; its step is the tool that started it
	}
	c.TurnRuns()
	for _, b := range claudeBlocks(line.Message.Content) {
		switch {
		case b.Type == "text" && b.Text != "":
			c.Put(job.Text{Text: b.Text})
		case b.Type == "tool_use" && c.steps[b.ID] == "":
			c.steps[b.ID] = b.Name
			_, subject := claudeSubject(b.Name, b.Input)
			c.Put(job.StepStarted{Step: b.ID, Tool: b.Name, Subject: subject, Input: b.Input})
		}
	}
	if used := line.Message.Usage; used.input() > 0 {
		c.usage.Context = used.input() + used.Output
	}
}

func (c *claude) user(line claudeLine) {
	if line.Replay {
		c.Inserted(line.UUID)
		return
	}
	refused := map[string]bool{}
	for _, d := range line.Denials {
		refused[d.ID] = d.Decision.Decision == "reject" || d.Decision.Decision == "deny" || d.NotRun != ""
	}
	for _, b := range claudeBlocks(line.Message.Content) {
		tool := c.steps[b.ToolUse]
		if b.Type != "tool_result" || tool == "" {
			continue
		}
		delete(c.steps, b.ToolUse)
		if question, asked := c.questions[b.ToolUse]; asked {
			c.Resolved(question)
		}
		state := job.StepDone
		switch {
		case refused[b.ToolUse]:
			state = job.StepRefused
		case b.IsError:
			state = job.StepFailed
		}
		ended := job.StepEnded{Step: b.ToolUse, State: state, Output: claudeOutput(b)}
		if kind, _ := claudeSubject(tool, nil); kind == job.QuestionCommand && state != job.StepRefused {
			ended.Exit = claudeExit(ended)
		}
		c.Put(ended)
	}
}

// claudeOutput returns a tool's output as the model reads it.
func claudeOutput(b claudeBlock) string {
	var parts []string
	for _, part := range claudeBlocks(b.Content) {
		if part.Text != "" {
			parts = append(parts, part.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// claudeExit returns a command's exit code. Claude Code reports it as text, and
// only if it is not 0.
func claudeExit(ended job.StepEnded) *int {
	code := 0
	if ended.State == job.StepFailed {
		if n, err := fmt.Sscanf(ended.Output, "Exit code %d", &code); n != 1 || err != nil {
			return nil
		}
	}
	return &code
}

func (c *claude) lifecycle(line claudeLine) {
	switch line.State {
	case "started", "completed":
		c.Inserted(line.Command)
	}
}

func (c *claude) limit(info claudeRateLimit) {
	if info.Status == "rejected" && info.ResetsAt > 0 {
		c.resets = time.Unix(info.ResetsAt, 0)
	}
}

// handleTurnEnd interprets a result: Claude Code reports an API failure as success.
func (c *claude) handleTurnEnd(result claudeResult) {
	c.count(result)
	end := job.TurnEnded{Text: result.Result, Status: result.Status}
	end.Why = c.why(result)
	if end.Why != job.EndAnswer && end.Why != job.EndLength {
		end.Text, end.Message = "", result.Result
		if end.Message == "" {
			end.Message = strings.Join(result.Errors, "; ")
		}
	}
	if end.Why == job.EndLimit {
		end.Until = c.resets
	}
	c.retried, c.trouble, c.resets = false, "", time.Time{}
	c.EndTurn(end, !c.told && result.Queued == 0 && !c.Waiting())
}

func (c *claude) why(result claudeResult) job.EndReason {
	switch {
	case strings.HasPrefix(result.Terminal, "aborted"):
		return job.EndInterrupted
	case slices.ContainsFunc(result.Errors, func(e string) bool { return strings.Contains(e, "No conversation found") }):
		return job.EndNoSession
	case result.StopReason == "refusal":
		return job.EndRefusal
	case result.Terminal == "prompt_too_long":
		return job.EndContext
	case result.IsError:
		return claudeEndReason(c.trouble, result.Status, c.retried && c.resets.IsZero())
	case strings.TrimSpace(result.Result) == "":
		return job.EndEmpty
	case result.StopReason == "max_tokens":
		return job.EndLength
	}
	return job.EndAnswer
}

// claudeEndReason maps Claude Code's name of an API error. A 429 without a retry
// means a used-up account; one with a retry means an overloaded provider.
func claudeEndReason(kind string, status int, retried bool) job.EndReason {
	switch {
	case kind == "billing_error":
		return job.EndLimit
	case status == 429 && retried, status == 529, kind == "overloaded":
		return job.EndOverload
	case status == 429, kind == "rate_limit":
		return job.EndLimit
	case status == 401, status == 403, kind == "authentication_failed":
		return job.EndAuth
	case status >= 500, kind == "server_error":
		return job.EndProvider
	case status == 0 && kind == "unknown":
		return job.EndNetwork
	}
	return job.EndFailed
}

// count adds a turn to the session's usage: Claude Code counts tokens per turn and
// money per process.
func (c *claude) count(result claudeResult) {
	c.usage.Input += result.Usage.input()
	c.usage.CacheRead += result.Usage.CacheRead
	c.usage.CacheWrite += result.Usage.CacheWrite
	c.usage.Output += result.Usage.Output
	if result.CostUSD != nil {
		c.usage.CostUSD, c.usage.CostKnown = *result.CostUSD, true
	}
	for _, model := range result.Models {
		c.usage.Window = max(c.usage.Window, model.Window)
	}
	c.Put(c.usage)
}

// Exited returns the meaning of an end without a result.
func (c *claude) Exited(exited job.Exited) (job.EndReason, bool) {
	if strings.Contains(exited.Stderr, "already in use") {
		return job.EndInUse, true
	}
	return "", false
}

// claudeAsk is a question from Claude Code.
type claudeAsk struct {
	Subtype     string          `json:"subtype"`
	Tool        string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	Description string          `json:"description"`
	ToolUse     string          `json:"tool_use_id"`
}

func (c *claude) handleRequest(line claudeLine) {
	var request claudeAsk
	if json.Unmarshal(line.Request, &request) != nil || request.Subtype != "can_use_tool" {
		// Without an answer it would wait forever.
		go c.reply(context.Background(), line.RequestID, nil) //nolint:errcheck // the run's end is an event
		return
	}
	c.questions[request.ToolUse] = line.RequestID
	kind, subject := claudeSubject(request.Tool, request.Input)
	question := job.Question{ID: line.RequestID, Step: request.ToolUse, Kind: kind, Tool: request.Tool, Subject: subject, Input: request.Input}
	if kind == job.QuestionChoice {
		question.Choices = claudeChoices(request.Input)
	}
	c.Ask(question)
}

// claudeSubject returns the subject of a tool: the exact command or path.
func claudeSubject(tool string, input json.RawMessage) (job.QuestionKind, string) {
	var in struct {
		Command      string `json:"command"`
		FilePath     string `json:"file_path"`
		NotebookPath string `json:"notebook_path"`
	}
	json.Unmarshal(input, &in) //nolint:errcheck // what it is about is then unknown
	switch tool {
	case "Bash", "PowerShell":
		return job.QuestionCommand, in.Command
	case "Write", "Edit", "MultiEdit":
		return job.QuestionEdit, in.FilePath
	case "NotebookEdit":
		return job.QuestionEdit, in.NotebookPath
	case "AskUserQuestion":
		return job.QuestionChoice, ""
	}
	return job.QuestionTool, in.FilePath
}

type claudeQuestions struct {
	Questions []struct {
		Question    string `json:"question"`
		MultiSelect bool   `json:"multiSelect"`
		Options     []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

func claudeChoices(input json.RawMessage) []job.Choice {
	var in claudeQuestions
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	var choices []job.Choice
	for _, q := range in.Questions {
		choice := job.Choice{Question: q.Question, Several: q.MultiSelect}
		for _, option := range q.Options {
			choice.Options = append(choice.Options, option.Label)
		}
		choices = append(choices, choice)
	}
	return choices
}

// answered passes Claude Code's answer to a control request to its sender.
func (c *claude) answered(line claudeLine) {
	var response struct {
		Subtype  string          `json:"subtype"`
		ID       string          `json:"request_id"`
		Response json.RawMessage `json:"response"`
		Error    string          `json:"error"`
	}
	if json.Unmarshal(line.Response, &response) != nil {
		return
	}
	r := run.Reply{Result: response.Response}
	if response.Subtype == "error" {
		r.Refusal = &run.Refusal{Message: response.Error}
	}
	c.Settle(response.ID, r)
}

// control sends Claude Code a request outside of the conversation.
func (c *claude) control(ctx context.Context, request map[string]any) error {
	_, err := c.Call(ctx, c.Process, func(id string) any {
		return map[string]any{"type": "control_request", "request_id": id, "request": request}
	})
	return err
}

// Send writes a user line. Claude Code reads its input in order, so the answer to a later
// request proves that it read the line. Send fails with ErrEnded after the process has ended,
// and with ErrUnconfirmed if ctx ends during the write.
func (c *claude) Send(ctx context.Context, message job.Message) error {
	line := run.AsJSON(map[string]any{
		"type": "user", "uuid": message.ID, "session_id": c.session, "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": message.Text},
	})
	return c.Process.Send(ctx, []byte(line))
}

// Decide sends the answer to a question. It fails with ErrEnded after the process has ended,
// and with ErrUnconfirmed if ctx ends before Claude Code answers a later request.
func (c *claude) Decide(ctx context.Context, question job.Question, answer job.Answer) error {
	if err := c.reply(ctx, question.ID, claudeVerdict(question, answer)); err != nil {
		return err
	}
	// Claude Code reads its input in order: its answer to a later request proves
	// that it received the verdict.
	if err := c.control(ctx, map[string]any{"subtype": "mcp_status"}); err != nil {
		if _, refused := err.(*run.Refusal); !refused { //nolint:errorlint // Call returns it as it is
			return err
		}
	}
	c.Resolved(question.ID)
	return nil
}

// claudeVerdict returns the verdict for Claude Code. It never returns Claude Code's
// suggested rules, because they would change the owner's files.
func claudeVerdict(question job.Question, answer job.Answer) map[string]any {
	if !answer.Allow {
		return map[string]any{"behavior": "deny", "message": run.Denial(answer)}
	}
	input := map[string]json.RawMessage{}
	json.Unmarshal(question.Input, &input) //nolint:errcheck // claude sent an object
	if question.Kind == job.QuestionChoice {
		answers := map[string]string{}
		for i, choice := range question.Choices {
			if i < len(answer.Choices) {
				answers[choice.Question] = strings.Join(answer.Choices[i], ", ")
			}
		}
		input["answers"] = json.RawMessage(run.AsJSON(answers))
	}
	return map[string]any{"behavior": "allow", "updatedInput": input}
}

// reply answers a control request of Claude Code; nil means an unknown request.
func (c *claude) reply(ctx context.Context, id string, verdict map[string]any) error {
	response := map[string]any{"subtype": "success", "request_id": id, "response": verdict}
	if verdict == nil {
		response = map[string]any{"subtype": "error", "request_id": id, "error": "not supported"}
	}
	return c.Process.Send(ctx, []byte(run.AsJSON(map[string]any{"type": "control_response", "response": response})))
}

// Stop interrupts the turn. It fails with ErrEnded, with ErrUnconfirmed without an answer in
// time, and with a Refusal if Claude Code refuses.
func (c *claude) Stop(ctx context.Context) error {
	return c.control(ctx, map[string]any{"subtype": "interrupt"})
}

// Leave does nothing: Claude Code ends its background shells at its own end.
func (c *claude) Leave(context.Context) {}
