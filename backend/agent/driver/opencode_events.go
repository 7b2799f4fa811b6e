package driver

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// openCodeReader turns opencode's events into ours. It is used by the reader of
// the stream alone.
type openCodeReader struct {
	*opencode
	session string
	title   string
	used    map[string]openCodeMessage // every answer of the model in this run
	busy    bool                       // opencode has said that it works since the last end
	users   map[string]bool
	texts   map[string]string // finished words of each part
	steps   map[string]bool   // open tool calls
	last    openCodeMessage   // the model's newest message
	words   string            // what it says
	failed  *openCodeError    // what opencode complained about since the last answer
	window  int64
}

func newOpenCodeReader(o *opencode, session openCodeSession) *openCodeReader {
	return &openCodeReader{
		opencode: o, session: session.ID, title: session.Title, used: map[string]openCodeMessage{},
		users: map[string]bool{}, texts: map[string]string{}, steps: map[string]bool{},
	}
}

// openCodeEvent is one event.
type openCodeEvent struct {
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
}

// openCodeProperties is what events carry, as far as it is read.
type openCodeProperties struct {
	ID       string          `json:"id"`
	Session  string          `json:"sessionID"`
	Request  string          `json:"requestID"`
	Info     json.RawMessage `json:"info"`
	Part     openCodePart    `json:"part"`
	Error    *openCodeError  `json:"error"`
	Status   openCodeStatus  `json:"status"`
	Name     string          `json:"permission"`
	Patterns []string        `json:"patterns"`
	Metadata json.RawMessage `json:"metadata"`
	Tool     struct {
		Call string `json:"callID"`
	} `json:"tool"`
	Questions []struct {
		Question string `json:"question"`
		Multiple bool   `json:"multiple"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

type openCodeStatus struct {
	Type    string `json:"type"`
	Attempt int    `json:"attempt"`
	Message string `json:"message"`
	Next    int64  `json:"next"` // milliseconds since 1970
}

type openCodeMessage struct {
	ID      string         `json:"id"`
	Role    string         `json:"role"`
	Finish  string         `json:"finish"`
	Summary any            `json:"summary"` // true for a compaction
	Error   *openCodeError `json:"error"`
	Tokens  openCodeTokens `json:"tokens"`
	Cost    float64        `json:"cost"`
}

type openCodeError struct {
	Name string `json:"name"`
	Data struct {
		Message string `json:"message"`
		Status  int    `json:"statusCode"`
	} `json:"data"`
}

type openCodePart struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Message string `json:"messageID"`
	Text    string `json:"text"`
	Tool    string `json:"tool"`
	Call    string `json:"callID"`
	Time    struct {
		End bridge.UnixMillis `json:"end"`
	} `json:"time"`
	State struct {
		Status   string          `json:"status"`
		Input    json.RawMessage `json:"input"`
		Output   string          `json:"output"`
		Error    string          `json:"error"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
	} `json:"state"`
}

// read reads events until the stream ends.
func (r *openCodeReader) read(stream io.Reader) {
	r.ReadStream(stream, func(line []byte) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			return
		}
		var event openCodeEvent
		if json.Unmarshal(data, &event) != nil || event.Type == "" {
			r.Noise(line)
			return
		}
		r.event(event)
	})
}

func (r *openCodeReader) event(event openCodeEvent) {
	var p openCodeProperties
	json.Unmarshal(event.Properties, &p) //nolint:errcheck // what is not as known says nothing
	// The server is this job's alone: a question of a child's session is its own.
	switch event.Type {
	case "permission.asked":
		r.permission(p)
		return
	case "question.asked":
		r.question(p)
		return
	case "permission.replied", "question.replied", "question.rejected":
		r.Resolved(p.Request)
		return
	}
	if event.Type == "message.updated" {
		r.count(p.Info)
	}
	if p.Session != r.session {
		return
	}
	switch event.Type {
	case "session.status":
		r.status(p.Status)
	case "session.idle":
		r.idle()
	case "session.error":
		r.failed = p.Error
	case "session.updated":
		r.updated(p.Info)
	case "message.updated":
		r.says(p.Info)
	case "message.part.updated":
		r.part(p.Part)
	}
}

func (r *openCodeReader) status(status openCodeStatus) {
	switch status.Type {
	case "busy":
		r.busy = true
		r.TurnRuns()
	case "retry":
		r.busy = true
		r.Put(job.Retrying{
			Until: time.UnixMilli(status.Next), Attempt: status.Attempt, Why: openCodeRetry(status.Message), Message: status.Message,
		})
	}
}

// openCodeRetry reads why opencode waits from the provider's words: it has
// nothing else.
func openCodeRetry(message string) job.EndReason {
	words := strings.ToLower(message)
	for _, known := range []struct {
		part string
		why  job.EndReason
	}{
		{"quota", job.EndLimit},
		{"usage limit", job.EndLimit},
		{"credit", job.EndLimit},
		{"account's rate limit", job.EndLimit},
		{"rate limit", job.EndOverload},
		{"too many", job.EndOverload},
		{"overloaded", job.EndOverload},
		{"connect", job.EndNetwork},
		{"socket", job.EndNetwork},
		{"timed out", job.EndNetwork},
	} {
		if strings.Contains(words, known.part) {
			return known.why
		}
	}
	return job.EndProvider
}

func (r *openCodeReader) updated(raw json.RawMessage) {
	var session openCodeSession
	if json.Unmarshal(raw, &session) != nil {
		return
	}
	if session.Title != r.title && session.Title != "" {
		r.title = session.Title
		r.Put(job.Titled{Title: session.Title})
	}
}

// count keeps what a message of the model's has used, its children's too.
func (r *openCodeReader) count(raw json.RawMessage) {
	var message openCodeMessage
	if json.Unmarshal(raw, &message) == nil && message.Role == "assistant" {
		r.used[message.ID] = message
	}
}

// usage is what the run has used.
func (r *openCodeReader) usage() job.Usage {
	used := job.Usage{Context: r.window, CostKnown: true}
	for _, message := range r.used {
		t := message.Tokens
		used.Input += t.Input + t.Cache.Read + t.Cache.Write
		used.CacheRead += t.Cache.Read
		used.CacheWrite += t.Cache.Write
		used.Output += t.Output + t.Reasoning
		used.CostUSD += message.Cost
	}
	return used
}

func (r *openCodeReader) says(raw json.RawMessage) {
	var message openCodeMessage
	if json.Unmarshal(raw, &message) != nil {
		return
	}
	if message.Role == "user" {
		r.users[message.ID] = true
		return
	}
	if message.Summary == true {
		return // a compaction, not an answer
	}
	if message.ID != r.last.ID {
		r.words = ""
	}
	r.last = message
	if t := message.Tokens; t.Input > 0 {
		r.window = t.Input + t.Output + t.Cache.Read + t.Cache.Write
	}
	if message.Finish != "" && message.Error == nil {
		r.failed = nil // it went on after what it complained about
	}
}

func (r *openCodeReader) part(part openCodePart) {
	switch {
	case part.Type == "text" && r.users[part.Message]:
		r.InsertedText(part.Text)
	case part.Type == "text" && part.Time.End > 0 && r.texts[part.ID] == "" && part.Text != "":
		r.texts[part.ID] = part.Text
		if part.Message == r.last.ID {
			r.words = strings.TrimPrefix(r.words+"\n"+part.Text, "\n")
		}
		r.Put(job.Text{Text: part.Text})
	case part.Type == "tool":
		r.step(part)
	}
}

func (r *openCodeReader) step(part openCodePart) {
	switch part.State.Status {
	case "running":
		if !r.steps[part.Call] {
			r.steps[part.Call] = true
			r.Put(job.StepStarted{Step: part.Call, Tool: part.Tool, Subject: openCodeSubject(part.State.Input), Input: part.State.Input})
		}
	case "completed", "error":
		if !r.steps[part.Call] {
			return
		}
		delete(r.steps, part.Call)
		ended := job.StepEnded{Step: part.Call, State: job.StepDone, Exit: part.State.Metadata.Exit, Output: part.State.Output}
		if part.State.Status == "error" {
			ended.State, ended.Output = job.StepFailed, part.State.Error
			if strings.Contains(part.State.Error, "rejected permission") || strings.Contains(part.State.Error, "prevents you from using") {
				ended.State = job.StepRefused
			}
		} else if ended.Exit != nil && *ended.Exit != 0 {
			ended.State = job.StepFailed
		}
		r.Put(ended)
	}
}

// openCodeSubject is the command or path that a tool is about.
func openCodeSubject(input json.RawMessage) string {
	var in struct {
		Command  string `json:"command"`
		FilePath string `json:"filePath"`
	}
	json.Unmarshal(input, &in) //nolint:errcheck // what it is about is then unknown
	if in.Command != "" {
		return in.Command
	}
	return in.FilePath
}

// idle ends the turn. Opencode says it twice after some failures; the second
// time nothing has run since.
func (r *openCodeReader) idle() {
	if !r.busy {
		return
	}
	r.busy = false
	r.WithdrawAll()
	end := r.judge()
	r.Put(r.usage())
	r.failed, r.last.Finish, r.last.Error, r.words = nil, "", nil, ""
	r.EndTurn(end, true)
}

// judge returns why the turn ended. It goes by the last message and error, because opencode
// does not report a reason.
func (r *openCodeReader) judge() job.TurnEnded {
	if r.stopped.Swap(false) && r.last.Finish == "" {
		return job.TurnEnded{Why: job.EndInterrupted} // while it waits it does not even say so
	}
	failed := r.failed
	if failed == nil {
		failed = r.last.Error
	}
	if failed != nil {
		why := openCodeWhy(*failed)
		return job.TurnEnded{Why: why, Message: failed.Data.Message, Status: failed.Data.Status}
	}
	end := job.TurnEnded{Text: r.words}
	switch {
	case r.last.Finish == "content-filter":
		end.Why, end.Text = job.EndRefusal, ""
	case r.last.Finish == "length":
		end.Why = job.EndLength
	case r.last.Finish == "tool-calls":
		end.Why, end.Text = job.EndDenied, ""
	case strings.TrimSpace(r.words) == "":
		end.Why, end.Text = job.EndEmpty, ""
	default:
		end.Why = job.EndAnswer
	}
	return end
}

func openCodeWhy(failed openCodeError) job.EndReason {
	switch failed.Name {
	case "MessageAbortedError":
		return job.EndInterrupted
	case "ContentFilterError":
		return job.EndRefusal
	case "ContextOverflowError":
		return job.EndContext
	case "ProviderAuthError":
		return job.EndAuth
	case "MessageOutputLengthError":
		return job.EndLength
	}
	switch status := failed.Data.Status; {
	case status == 401, status == 403:
		return job.EndAuth
	case status == 402, status == 429:
		return job.EndLimit
	case status == 529:
		return job.EndOverload
	case status >= 500:
		return job.EndProvider
	case status == 0 && failed.Name == "APIError":
		return job.EndNetwork
	}
	return job.EndFailed
}

func (r *openCodeReader) permission(p openCodeProperties) {
	var detail struct {
		Command  string `json:"command"`
		FilePath string `json:"filepath"`
		Diff     string `json:"diff"`
	}
	json.Unmarshal(p.Metadata, &detail) //nolint:errcheck // the patterns say it, too
	question := job.Question{
		ID: p.ID, Step: p.Tool.Call, Kind: job.QuestionTool, Tool: p.Name, Subject: strings.Join(p.Patterns, "\n"),
		Input: p.Metadata, Diff: detail.Diff,
	}
	switch p.Name {
	case "bash":
		question.Kind = job.QuestionCommand
		if detail.Command != "" {
			question.Subject = detail.Command
		}
	case "edit":
		question.Kind = job.QuestionEdit
		if detail.FilePath != "" {
			question.Subject = detail.FilePath
		}
	}
	r.Ask(question)
}

func (r *openCodeReader) question(p openCodeProperties) {
	question := job.Question{ID: p.ID, Step: p.Tool.Call, Kind: job.QuestionChoice, Tool: "question"}
	for _, q := range p.Questions {
		choice := job.Choice{Question: q.Question, Several: q.Multiple}
		for _, option := range q.Options {
			choice.Options = append(choice.Options, option.Label)
		}
		question.Choices = append(question.Choices, choice)
	}
	r.Ask(question)
}
