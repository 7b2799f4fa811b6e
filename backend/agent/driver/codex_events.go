package driver

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"bridge/backend/agent/appserver"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/job"
)

// codexReader turns what codex says into events. It is used by the reader of the
// output alone.
type codexReader struct {
	*codex
	steps   map[string]appserver.Item
	last    string    // the model's last words in this turn
	resets  time.Time // when the account's limit is over
	attempt int
}

func (r *codexReader) line(raw []byte) {
	var line appserver.Line
	if err := json.Unmarshal(raw, &line); err != nil || line.Method == "" && line.ID == nil {
		r.Noise(raw)
		return
	}
	switch {
	case line.Method == "":
		r.Settle(run.Text(line.ID), run.Reply{Result: line.Result, Refusal: line.Error})
	case line.ID != nil:
		r.handleRequest(line)
	default:
		r.tells(line)
	}
}

// codexNote is what notifications carry, as far as it is read.
type codexNote struct {
	Thread  string          `json:"threadId"`
	Item    appserver.Item  `json:"item"`
	Turn    codexTurn       `json:"turn"`
	Name    string          `json:"threadName"`
	Request json.RawMessage `json:"requestId"`
	Retry   bool            `json:"willRetry"`
	Error   codexError      `json:"error"`
	Tokens  struct {
		Total  codexTokens `json:"total"`
		Last   codexTokens `json:"last"`
		Window int64       `json:"modelContextWindow"` // tokens
	} `json:"tokenUsage"`
	Limits struct {
		Primary   codexWindow `json:"primary"`
		Secondary codexWindow `json:"secondary"`
	} `json:"rateLimits"`
}

type codexTurn struct {
	ID     string           `json:"id"`
	Status string           `json:"status"`
	Items  []appserver.Item `json:"items"`
	Error  codexError       `json:"error"`
}

type codexError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

type codexTokens struct {
	Total      int64 `json:"totalTokens"`
	Input      int64 `json:"inputTokens"`
	CacheRead  int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
}

type codexWindow struct {
	Used     int   `json:"usedPercent"`
	ResetsAt int64 `json:"resetsAt"` // seconds since 1970
}

func (r *codexReader) tells(line appserver.Line) {
	var note codexNote
	json.Unmarshal(line.Params, &note) //nolint:errcheck // what is not as known says nothing
	if thread, _ := r.where(); note.Thread != "" && thread != "" && note.Thread != thread {
		return // a child's
	}
	switch line.Method {
	case "turn/started":
		r.setTurn("", note.Turn.ID)
		r.last, r.attempt = "", 0
		r.TurnRuns()
	case "turn/completed":
		r.setTurn("", "")
		r.handleTurnEnd(note.Turn)
	case "item/started":
		r.handleItemStart(note.Item)
	case "item/completed":
		r.done(note.Item)
	case "serverRequest/resolved":
		r.Resolved(string(note.Request))
	case "thread/name/updated":
		r.Put(job.Titled{Title: note.Name})
	case "thread/tokenUsage/updated":
		total := note.Tokens.Total
		r.Put(job.Usage{
			Input: total.Input, CacheRead: total.CacheRead, CacheWrite: total.CacheWrite, Output: total.Output,
			Context: note.Tokens.Last.Total, Window: note.Tokens.Window,
		})
	case "account/rateLimits/updated":
		r.limits(note.Limits.Primary, note.Limits.Secondary)
	case "error":
		r.trouble(note)
	}
}

func (r *codexReader) limits(windows ...codexWindow) {
	for _, window := range windows {
		if reset := time.Unix(window.ResetsAt, 0); window.Used >= 100 && reset.After(r.resets) {
			r.resets = reset
		}
	}
}

func (r *codexReader) trouble(note codexNote) {
	if !note.Retry {
		return // the turn's end says it again
	}
	r.attempt++
	why, _ := codexWhy(note.Error)
	r.Put(job.Retrying{Attempt: r.attempt, Why: why, Message: note.Error.Message})
}

func (r *codexReader) handleItemStart(item appserver.Item) {
	tool, subject := item.Subject()
	if tool == "" {
		return
	}
	r.steps[item.ID] = item
	r.Put(job.StepStarted{Step: item.ID, Tool: tool, Subject: subject, Input: item.Arguments})
}

func (r *codexReader) done(item appserver.Item) {
	switch item.Type {
	case "userMessage":
		r.Inserted(item.Client)
	case "agentMessage":
		if item.Text != "" {
			r.last = item.Text
			r.Put(job.Text{Text: item.Text})
		}
	}
	if _, began := r.steps[item.ID]; !began {
		return
	}
	delete(r.steps, item.ID)
	state := map[string]job.StepState{"failed": job.StepFailed, "declined": job.StepRefused}[item.Status]
	if state == "" {
		state = job.StepDone
	}
	r.Put(job.StepEnded{Step: item.ID, State: state, Exit: item.Exit, Output: item.Output})
}

func (r *codexReader) handleTurnEnd(turn codexTurn) {
	r.WithdrawAll()
	end := job.TurnEnded{Text: r.last}
	for _, item := range turn.Items {
		if item.Type == "agentMessage" && item.Text != "" {
			end.Text = item.Text
		}
	}
	switch {
	case turn.Status == "interrupted":
		end.Why, end.Text = job.EndInterrupted, ""
	case turn.Status != "completed":
		end.Why, end.Status = codexWhy(turn.Error)
		end.Message = turn.Error.Message
		if end.Why != job.EndLength {
			end.Text = ""
		}
		if end.Why == job.EndLimit {
			if end.Until = r.resets; end.Until.IsZero() {
				end.Until = codexReset(end.Message, time.Now()) //nolint:forbidigo // the CLI says a time of this day
			}
		}
	case strings.TrimSpace(end.Text) == "":
		end.Why = job.EndEmpty
	default:
		end.Why = job.EndAnswer
	}
	r.last = ""
	// Only a turn that ran to its end leaves what waits to the next one.
	r.EndTurn(end, turn.Status != "completed" || !r.Waiting())
}

// codexReasons are codex's own words for an error.
var codexReasons = map[string]job.EndReason{
	"contextWindowExceeded": job.EndContext, "usageLimitExceeded": job.EndLimit, "sessionBudgetExceeded": job.EndLimit,
	"rateLimitExceeded": job.EndOverload, "flexUnavailable": job.EndOverload, "serverOverloaded": job.EndOverload,
	"policyCapacityUnavailable": job.EndOverload, "cyberPolicy": job.EndRefusal, "misalignmentPolicyViolation": job.EndRefusal,
	"inferenceHookDenied": job.EndRefusal, "tooManyDenials": job.EndDenied, "internalServerError": job.EndProvider, "unauthorized": job.EndAuth,
}

// codexWhy maps an error of codex's, with the provider's status where it has one.
func codexWhy(failed codexError) (job.EndReason, int) {
	if why, known := codexReasons[run.Text(failed.Info)]; known {
		return why, 0
	}
	var byKind map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	json.Unmarshal(failed.Info, &byKind) //nolint:errcheck // a word that is not known is judged by the text
	for _, info := range byKind {
		switch {
		case info.Status == 401 || info.Status == 403:
			return job.EndAuth, info.Status
		case info.Status == 429:
			return job.EndOverload, info.Status
		case info.Status >= 500:
			return job.EndProvider, info.Status
		case info.Status >= 400:
			return job.EndFailed, info.Status
		}
	}
	switch {
	case strings.Contains(failed.Message, "content_filter"):
		return job.EndRefusal, 0
	case strings.Contains(failed.Message, "max_output_tokens"):
		return job.EndLength, 0
	case len(byKind) > 0, strings.Contains(failed.Message, "stream disconnected"):
		return job.EndNetwork, 0
	}
	return job.EndFailed, 0
}

type codexUserInput struct {
	Questions []struct {
		ID       string `json:"id"`
		Question string `json:"question"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

// onlyInFolder is why a job's change of a file elsewhere is refused, unasked: codex writes
// it past its sandbox once it is allowed (JOB-14).
const onlyInFolder = "this job may change files in its own folder only."

func (r *codexReader) handleRequest(line appserver.Line) {
	var ask appserver.Ask
	json.Unmarshal(line.Params, &ask) //nolint:errcheck // what is not as known is shown as it came
	question := job.Question{ID: string(line.ID), Step: ask.Item, Reason: ask.Reason, Folder: ask.Folder, Input: line.Params}
	switch line.Method {
	case appserver.AsksCommand:
		question.Kind, question.Tool, question.Subject = job.QuestionCommand, "shell", ask.Command
		if question.Subject == "" {
			question.Subject = r.steps[ask.Item].Command
		}
		question.LeavesSandbox = true
		if r.spec.Access == job.AccessEdit { // within it, nothing is asked about
			question.Tool = "shell, outside the sandbox"
			question.Reason = strings.TrimSpace("It runs outside the sandbox: it may write anywhere and reach the network. " + ask.Reason)
		} else { // under "untrusted" codex asks once, and then tries both
			question.Reason = strings.TrimSpace("If the sandbox stops this command, Codex repeats it outside: it may write anywhere and reach the network. " + ask.Reason)
		}
	case appserver.AsksChange:
		question.Kind = job.QuestionEdit
		question.Tool, question.Subject = r.steps[ask.Item].Subject()
		question.Diff = r.steps[ask.Item].Diff()
		if !r.mayChange(r.steps[ask.Item].Paths()) {
			go r.decide(context.Background(), question, job.Answer{Reason: onlyInFolder}) //nolint:errcheck // the run's end is an event
			return
		}
	case appserver.AsksServer:
		question.Kind, question.Tool, question.Subject = job.QuestionTool, ask.Server, ask.Message
		question.LeavesSandbox = true // codex's MCP servers have no sandbox
		if ask.Server == codexServer {
			r.respond(line.ID, map[string]any{"result": codexVerdict(question, job.Answer{Allow: true})})
			return
		}
	case appserver.AsksQuestion:
		question.Kind, question.Choices = job.QuestionChoice, codexChoicesOf(line.Params)
	default:
		// Unanswered it would wait for ever.
		r.respond(line.ID, map[string]any{"error": map[string]any{"code": -32601, "message": "not supported"}})
		return
	}
	r.Ask(question)
}

func codexChoicesOf(params json.RawMessage) []job.Choice {
	var in codexUserInput
	json.Unmarshal(params, &in) //nolint:errcheck // nothing can be chosen then
	var choices []job.Choice
	for _, q := range in.Questions {
		choice := job.Choice{Question: q.Question}
		for _, option := range q.Options {
			choice.Options = append(choice.Options, option.Label)
		}
		choices = append(choices, choice)
	}
	return choices
}

// respond answers a request without a question to the owner. It does not block the reader:
// codex may stop reading until its own output is read.
func (r *codexReader) respond(id json.RawMessage, answer map[string]any) {
	answer["id"] = id
	line := []byte(run.AsJSON(answer))
	go r.Process.Send(context.Background(), line) //nolint:errcheck // the run's end is an event
}
