package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Said is one line of a job's transcript, runs/<name>.jsonl: messages to the agent, its
// texts and actions, in the order of its runner, over all runs (JOB-25). It does not
// depend on the storage of the agent's CLI.
type Said struct {
	At   job.Millis `json:"at"`
	Run  int        `json:"run"`
	Kind SaidKind   `json:"kind"`
	ID   string     `json:"id,omitempty"` // of the message, the question or the step
	By   string     `json:"by,omitempty"` // the sender of a message to the agent
	Text string     `json:"text,omitempty"`

	// These fields are for a call, the model's tool use, and for its result.
	Tool   string          `json:"tool,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	State  job.StepState   `json:"state,omitempty"`
	Exit   *int            `json:"exit,omitempty"`
	Cut    bool            `json:"cut,omitempty"` // a part of the line was cut at its limit
	Answer job.Decision    `json:"answer,omitempty"`
}

// SaidKind is the kind of a line.
type SaidKind string

// The kinds of lines.
const (
	SaidPrompt   SaidKind = "prompt"   // the prompt of a run
	SaidMessage  SaidKind = "message"  // a message to the agent while it worked
	SaidText     SaidKind = "text"     // the agent's own text
	SaidCall     SaidKind = "call"     // the agent uses a tool; Text is the command or path
	SaidResult   SaidKind = "result"   // the output of the tool
	SaidQuestion SaidKind = "question" // the approval that the agent requests
	SaidAnswer   SaidKind = "answer"
	SaidEnd      SaidKind = "end" // the reason of a turn's end without an answer
)

// MaxSaidBytes limits a tool's input and its output in a line.
const MaxSaidBytes = 256 << 10

// MaxLineBytes limits a line, with its line break (SEC-11).
const MaxLineBytes = 1 << 20

// Encode returns the line, with its line break. It fails if the line cannot be encoded
// as JSON.
func (s Said) Encode() ([]byte, error) {
	s.Text = strings.ToValidUTF8(s.Text, "\uFFFD")
	if s.Kind == SaidResult && len(s.Text) > MaxSaidBytes {
		s.Text, s.Cut = cutBytes(s.Text, MaxSaidBytes), true
	}
	if len(s.Input) > MaxSaidBytes || len(s.Input) > 0 && !json.Valid(s.Input) {
		s.Input, s.Cut = nil, true
	}
	return s.encodeWithin(MaxLineBytes - 1)
}

// encodeWithin encodes the line in at most that many bytes. It cuts the excess, and
// adds a note to the text.
func (s Said) encodeWithin(most int) ([]byte, error) {
	size := len(s.Text)
	for room := most; ; {
		if len(s.Text) > room {
			s.Text, s.Cut = cutBytes(s.Text, room), true
		}
		line := s
		if line.Cut && len(s.Text) < size {
			line.Text += fmt.Sprintf("\n[Bridge cut this line of its transcript: the text has %s.]", bridge.Size(int64(size)))
		}
		data, err := json.Marshal(line)
		if err != nil || len(data) <= most {
			return append(data, '\n'), err
		}
		room = max(len(s.Text)-(len(data)-most)-noteBytes, room/2) // escapes make a text longer
		s.Input, s.ID, s.Tool, s.By, s.Cut = nil, clip(s.ID), clip(s.Tool), clip(s.By), true
	}
}

// noteBytes is room for the note at the end of a cut line.
const noteBytes = 128

// clip returns the start of a text that usually has a few letters.
func clip(name string) string { return cutBytes(name, min(len(name), 1024)) }

func cutBytes(text string, most int) string {
	for most > 0 && most < len(text) && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// DecodeSaid reads a line. ok is false if it is not a valid line.
func DecodeSaid(line []byte) (statement Said, ok bool) {
	err := json.Unmarshal(line, &statement)
	return statement, err == nil && statement.Kind != ""
}

// Words returns the searchable text of the line: all texts and the tools' inputs, but
// not their outputs.
func (s Said) Words() string {
	switch s.Kind {
	case SaidCall:
		return strings.TrimSpace(s.Tool + " " + s.Text)
	case SaidResult:
		return ""
	default:
		return s.Text
	}
}
