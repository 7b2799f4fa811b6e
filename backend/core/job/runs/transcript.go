package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Said is one line of a job's transcript, runs/<name>.jsonl: what was said to the
// agent, what it said and did, in the order in which its runner saw it, over all runs
// (JOB-25). It depends on nothing that the agent's CLI keeps.
type Said struct {
	At   job.Millis `json:"at"`
	Run  int        `json:"run"`
	Kind SaidKind   `json:"kind"`
	ID   string     `json:"id,omitempty"` // of the message, the question or the step
	By   string     `json:"by,omitempty"` // who said it to the agent
	Text string     `json:"text,omitempty"`

	// Of a call: what the model used. Of its result: what it came to.
	Tool   string          `json:"tool,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	State  job.StepState   `json:"state,omitempty"`
	Exit   *int            `json:"exit,omitempty"`
	Cut    bool            `json:"cut,omitempty"` // something of the line was longer than is kept
	Answer job.Decision    `json:"answer,omitempty"`
}

// SaidKind tells what a line is.
type SaidKind string

// The kinds of lines.
const (
	SaidPrompt   SaidKind = "prompt"   // what a run began with
	SaidMessage  SaidKind = "message"  // words to the agent while it worked
	SaidText     SaidKind = "text"     // the agent's own words
	SaidCall     SaidKind = "call"     // the agent uses a tool; Text is the command or path
	SaidResult   SaidKind = "result"   // what the tool gave
	SaidQuestion SaidKind = "question" // what the agent wants to be allowed
	SaidAnswer   SaidKind = "answer"
	SaidEnd      SaidKind = "end" // of a turn that is no answer: why
)

// MaxSaidBytes bounds what a line keeps of a tool's input and of what it gave.
const MaxSaidBytes = 256 << 10

// MaxLineBytes bounds a line, with its end (SEC-11).
const MaxLineBytes = 1 << 20

// Encode writes the line, with its end.
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

// encodeWithin writes the line in at most so many bytes. What does not fit is cut, and the
// text says so.
func (s Said) encodeWithin(most int) ([]byte, error) {
	said := len(s.Text)
	for room := most; ; {
		if len(s.Text) > room {
			s.Text, s.Cut = cutBytes(s.Text, room), true
		}
		line := s
		if line.Cut && len(s.Text) < said {
			line.Text += fmt.Sprintf("\n[Bridge cut this line of its transcript: the text has %s.]", bridge.Size(int64(said)))
		}
		data, err := json.Marshal(line)
		if err != nil || len(data) <= most {
			return append(data, '\n'), err
		}
		room = max(len(s.Text)-(len(data)-most)-noteBytes, room/2) // escapes make a text longer
		s.Input, s.ID, s.Tool, s.By, s.Cut = nil, clip(s.ID), clip(s.Tool), clip(s.By), true
	}
}

// noteBytes is room for the note that a cut line ends with.
const noteBytes = 128

// clip is the begin of what has a few letters as a rule.
func clip(name string) string { return cutBytes(name, min(len(name), 1024)) }

func cutBytes(text string, most int) string {
	for most > 0 && most < len(text) && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// DecodeSaid reads a line. What is none is ok = false.
func DecodeSaid(line []byte) (said Said, ok bool) {
	err := json.Unmarshal(line, &said)
	return said, err == nil && said.Kind != ""
}

// Words are those of the line by which it is found: all that was said, and what tools
// were used for, but not what they gave.
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
