package runs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// MaxEnvelopeBytes is the limit for an automatic read; a person fetches a larger one (JOB-04).
const MaxEnvelopeBytes = 32 << 20

// Envelope is the result of a run, as in jobs/<name>/envelope.json. It is complete and
// durable before its message is sent (JOB-03).
type Envelope struct {
	Version   int           `json:"version"`
	Job       string        `json:"job"`
	Run       int           `json:"run"`
	MessageID string        `json:"messageId"` // of the result message, the same for a repeat
	State     job.State     `json:"state"`
	Ended     job.EndReason `json:"ended"`
	Until     job.Millis    `json:"until,omitempty"`
	Error     string        `json:"error,omitempty"` // the message of the agent or the runner about an end without an answer
	Request
	Result   string   `json:"result"` // the complete answer
	Title    string   `json:"title,omitempty"`
	Model    string   `json:"model,omitempty"`
	Session  string   `json:"session,omitempty"`
	Branch   string   `json:"branch,omitempty"`
	Workdir  string   `json:"workdir,omitempty"`
	Evidence Evidence `json:"evidence"`
	// Variables are the names of the owner's variables in the job's environment, sorted
	// (JOB-28). A job from another PC has none.
	Variables []string   `json:"variables,omitempty"`
	WrittenAt job.Millis `json:"writtenAt"`
	Host      string     `json:"host,omitempty"` // the paired PC that it came from, set by the receiving PC

	full *part // nil if Result is complete
}

// Request is the message that began a run.
type Request struct {
	Message   string   `json:"message,omitempty"`   // "" in older files
	MessageBy []string `json:"messageBy,omitempty"` // the names of its authors
}

// Evidence is the runner's own observation, in addition to the agent's report (JOB-15).
type Evidence struct {
	Base       string        `json:"base,omitempty"` // commits; empty outside a repository
	Head       string        `json:"head,omitempty"`
	Files      []Changed     `json:"files"`
	Commands   []Command     `json:"commands"`
	Tokens     int64         `json:"tokens"`
	CostUSD    float64       `json:"costUsd"`
	DurationMs int64         `json:"durationMs"`
	Ended      job.EndReason `json:"ended"`
	Layer      string        `json:"layer,omitempty"` // the floor of its run (JOB-14)
	Tracking   Tracking      `json:"tracking,omitempty"`
}

// Changed is one file that changed since the job's start.
type Changed struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // of a rename
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// Command is a command that the runner observed, and its exit code; nil if the agent
// does not report it.
type Command struct {
	Command string `json:"command"`
	Exit    *int   `json:"exit"`
}

// ResultID returns the id of the result message of a job's run. The id depends only on
// the run, so that a repeat sends the same message.
func ResultID(name string, run int) string { return fmt.Sprintf("result-%s-%d", name, run) }

// Conversation returns the thread of the result messages of a job.
func Conversation(name string) string { return "job-" + name }

// NewEnvelope returns the envelope of an ended run.
func NewEnvelope(name string, run int, outcome job.Outcome, result string, evidence Evidence, at time.Time) Envelope {
	evidence.Ended = outcome.Ended
	if evidence.Files == nil {
		evidence.Files = []Changed{}
	}
	if evidence.Commands == nil {
		evidence.Commands = []Command{}
	}
	return Envelope{
		Version: 1, Job: name, Run: run, MessageID: ResultID(name, run), State: outcome.State, Ended: outcome.Ended,
		Until: job.MillisOf(outcome.Until), Result: strings.ToValidUTF8(result, "\uFFFD"), Evidence: evidence, WrittenAt: job.MillisOf(at),
	}
}

// Encode returns the envelope as JSON, of any size. It fails for a partial one.
func (e Envelope) Encode() ([]byte, error) {
	if e.IsPart() {
		return nil, errPart
	}
	return json.Marshal(e)
}

var errPart = errors.New("only the begin of this result was read, so it cannot be written")

// EncodeTo is Encode in pieces: it makes no second copy of the result (SEC-11). It
// fails for a partial one, and if to refuses a write.
func (e Envelope) EncodeTo(writer io.Writer) error {
	if e.IsPart() {
		return errPart
	}
	result := e.Result
	e.Result = ""
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	const empty = `"result":""` // within a string its quotation marks would be escaped
	before, after, _ := bytes.Cut(data, []byte(empty))
	if _, err := writer.Write(append(before, empty[:len(empty)-1]...)); err != nil {
		return err
	}
	for len(result) > 0 {
		piece := cutBytes(result, min(len(result), pieceBytes))
		result = result[len(piece):]
		quoted, err := json.Marshal(piece)
		if err != nil {
			return err
		}
		if _, err := writer.Write(quoted[1 : len(quoted)-1]); err != nil {
			return err
		}
	}
	_, err = writer.Write(append([]byte{'"'}, after...))
	return err
}

// pieceBytes is how much of a result is encoded at a time.
const pieceBytes = 64 << 10

// ErrManual reports an envelope that is too large for an automatic read. Its file stays
// complete for a person to fetch.
var ErrManual = bridge.Errorf(bridge.TooLarge, "the result is larger than 32 MiB: it is kept whole and has to be fetched by hand")

// DecodeEnvelope reads an envelope of that job. It ignores new members of a newer
// runner. It refuses one of another job, without a run, or with another message id. It
// fails with ErrManual above MaxEnvelopeBytes.
func DecodeEnvelope(data []byte, name string) (Envelope, error) {
	if len(data) > MaxEnvelopeBytes {
		return Envelope{}, ErrManual
	}
	var envelope Envelope
	if err := bridge.DecodeAdditive(data, MaxEnvelopeBytes, &envelope); err != nil {
		return Envelope{}, err
	}
	if err := envelope.Check(name); err != nil {
		return Envelope{}, err
	}
	return envelope, nil
}

// Check fails if the envelope is of another job, has no run or end, or has another
// message id.
func (e Envelope) Check(name string) error { return e.check(name, strings.TrimSpace(e.Result) == "") }

func (e Envelope) check(name string, isBlank bool) error {
	switch {
	case e.Job != name:
		return bridge.Errorf(bridge.Conflict, "the envelope is of %q, not of %s", e.Job, name)
	case e.Run < 1 || e.MessageID != ResultID(name, e.Run):
		return bridge.Errorf(bridge.Conflict, "the envelope of %s names run %d and message %q, which do not belong together", name, e.Run, e.MessageID)
	case !e.State.IsEnded():
		return bridge.Errorf(bridge.Invalid, "the envelope of %s says %q, which is no end", name, e.State)
	case e.State == job.Finished && isBlank:
		return bridge.Errorf(bridge.Invalid, "the envelope of %s says finished and holds no answer", name)
	}
	return nil
}

// Outcome returns the outcome of the run.
func (e Envelope) Outcome() job.Outcome {
	return job.Outcome{State: e.State, Ended: e.Ended, Until: e.Until.Time()}
}

// Body returns the text of the result message. If the result exceeds a message, the
// text first reports that and names the file of the full result. Then it has the start
// of the result.
func (e Envelope) Body(file string) string {
	head := e.headline()
	if seen := e.Evidence.Words(); seen != "" {
		head += "\n" + seen
	}
	if e.Branch != "" {
		head += e.landing()
	}
	if e.Result == "" {
		return head
	}
	chars := e.Chars()
	if utf8.RuneCountInString(head)+2+chars <= bridge.MaxBodyChars {
		return head + "\n\n" + e.Result
	}
	return head + "\n" + e.begin("a message", file, bridge.MaxBodyChars-utf8.RuneCountInString(head)-1)
}

// Begin returns the start of a result, in at most bridge.MaxBodyChars characters. A
// sentence before it reports that what cannot hold more, and names the file of the full
// result.
func (e Envelope) Begin(what, file string) string { return e.begin(what, file, bridge.MaxBodyChars) }

func (e Envelope) begin(what, file string, most int) string {
	head := fmt.Sprintf("The result has %s, more than %s holds. It is kept whole in %s; this is its begin:\n\n", bridge.Counted(e.Chars(), "character"), what, file)
	return head + FirstChars(e.Result, most-utf8.RuneCountInString(head))
}

// landing returns how to review, land and drop the work of a worktree job (JOB-08).
func (e Envelope) landing() string {
	if e.Host != "" {
		return fmt.Sprintf("\nIts work is on the branch %s in %s on %s, whose owner lands it there by `bridge finish %s --merge` (or --squash, --apply), and drops it by --discard.", e.Branch, e.Workdir, e.Host, e.Job)
	}
	const text = "\nIts work is on the branch %s in %s. Review: git -C %s diff %s. The owner lands it by `bridge finish %s --merge` (or --squash, --apply), and drops it by --discard."
	return fmt.Sprintf(text, e.Branch, e.Workdir, bridge.QuotePOSIX(e.Workdir), cmp.Or(e.Evidence.Base, "HEAD"), e.Job)
}

// ManualBody returns the text of the result message, under its ResultID, for a run
// whose envelope is too large.
func ManualBody(name, file string, size int64) string {
	return fmt.Sprintf("%s has ended. Its result is %s, too large to be read by itself: it is kept whole in %s, to be fetched by hand.", name, bridge.Size(size), file)
}

func (e Envelope) headline() string {
	name := strings.TrimPrefix(e.Host+"/"+e.Job, "/")
	switch e.State {
	case job.Finished:
		return fmt.Sprintf("%s has finished.", name)
	case job.Limit:
		if e.Until > 0 {
			return fmt.Sprintf("%s was stopped by a usage limit until %s. %s", name, e.Until.Time().UTC().Format(time.RFC3339), e.Error)
		}
		return fmt.Sprintf("%s was stopped by a usage limit; nobody said until when. %s", name, e.Error)
	case job.Refused:
		return fmt.Sprintf("%s was refused. %s", name, e.Error)
	case job.Cancelled:
		return fmt.Sprintf("%s was cancelled.", name)
	case job.Interrupted:
		if e.Error != "" {
			return fmt.Sprintf("%s was interrupted: %s", name, e.Error)
		}
		return fmt.Sprintf("%s was interrupted: its runner is gone. Its session can be continued by message_subagent.", name)
	default:
		return strings.TrimSpace(fmt.Sprintf("%s has failed: %s. %s", name, e.failure(), e.Error))
	}
}

// failure returns the reason of a failed run, for people.
func (e Envelope) failure() string {
	switch e.Ended {
	case job.EndEmpty:
		return "it ended without an answer"
	case job.EndContext:
		return "the conversation does not fit into the model any more"
	case job.EndLength:
		return "its answer was cut by the model's own limit"
	case job.EndAuth:
		return "the provider does not accept the account: nobody is logged in, or the key is not valid, or missing in what your login shell exports and in `jobs.env`"
	case job.EndOverload:
		return "the provider has too many requests"
	case job.EndProvider:
		return "the provider failed"
	case job.EndNetwork:
		return "the provider could not be reached"
	case job.EndDenied:
		return "it stopped at a refusal"
	case job.EndNoSession:
		return "the agent does not know the session that it was to continue"
	case job.EndInUse:
		return "another process works in that session"
	case job.EndLost:
		return "the agent's program ended in the middle"
	case job.EndedNotStarted:
		return "the agent could not be started"
	default:
		return "the agent reports an error"
	}
}

// UnclearBody returns the part of a result message that lists possibly undelivered
// messages, or "" if there are none.
func UnclearBody(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return "\n\nWhether it has heard this is not known, so it was not said again:\n\n" + strings.Join(texts, "\n\n")
}
