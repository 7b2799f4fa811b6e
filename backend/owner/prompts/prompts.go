// Package prompts puts the permission prompts of interactive sessions to their owner and
// carries his answers back (row NED-02). A prompt lives in memory, for as long as
// somebody waits for the answer: a broker that ends leaves it to the terminal. An answer
// is durable before it leaves. Only the owner answers: hooks and plugins ask, and say
// what they saw.
package prompts

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/rules"
)

// Broker is what prompts ask of the broker; *broker.Broker is one.
type Broker interface {
	// Asker finds out who asks on a connection.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// Prompter finds the live session that a hook's call comes from; ok is false where
	// there is none, and for a delegated job's own.
	Prompter(ctx context.Context, call session.HookCall) (s broker.Prompter, ok bool, err error)
	// IsLive reports whether a session of that kind and host session id is connected.
	IsLive(kind bridge.AgentKind, hostID string) bool
	// Changed tells everyone who watches.
	Changed()
}

// Rules are the owner's standing rules; *rules.Rules is one.
type Rules interface {
	// Live lists those that hold. Beside an error there are none.
	Live() ([]rule.Rule, error)
	// TakeBack ends one, at once, and tells what became of what it had answered.
	TakeBack(id string) (rule.Rule, rules.Undone, error)
}

// Options says what Prompts work with. All fields are required unless the comment says
// otherwise.
type Options struct {
	Broker Broker
	// Settings are read anew at each use.
	Settings func() (config.Settings, error)
	// SetAway keeps in the settings whether away mode is on.
	SetAway func(on bool) error
	// Watched reports whether a page is open.
	Watched func() bool
	// Answers is the folder that keeps what was answered, a file each.
	Answers string
	// Open is a file that is there while a prompt of claude's is open, or its answer not
	// proven: its hooks look for it before they tell of prompts alone.
	Open string
	// Waits reports whether claude says that its dialog is on the screen.
	Waits func(folder string, pid int, sessionID string) (waits, known bool)
	// Rule answers a prompt before a card is made of it, by a rule that the owner has
	// set; "" leaves it to him. by names the rule. nil has no rules.
	Rule func(p prompt.Prompt) (decision job.Decision, by string)
	// Rules are what the owner's command lists and takes back; nil has none.
	Rules Rules
	Pace  Pace
	Now   func() time.Time
	Log   *slog.Logger
}

// Pace is how often claude's own word is looked at, and for how long.
type Pace struct {
	Look time.Duration
	// Visible is how long a background child's dialog may take to be on the screen
	// before its prompt is let go.
	Visible time.Duration
}

func (p Pace) orUsual() Pace {
	if p == (Pace{}) {
		return Pace{Look: 200 * time.Millisecond, Visible: 600 * time.Millisecond}
	}
	return p
}

// The limits, all ours.
const (
	// maxOpen and maxOpenOfOne bound the open prompts, of all and of one session:
	// beyond, the terminal alone decides.
	maxOpen, maxOpenOfOne = 100, 20
	// keptEnded is how many are shown that are over.
	keptEnded = 50
)

// Prompts serves one home. Its methods may be called concurrently.
type Prompts struct {
	opts Options

	mu   sync.Mutex // guards below, and is held while something is written
	list []*record  // in the order in which they were asked
	// marked says that the file Open is there.
	marked bool
}

// record is one prompt and whoever waits for its answer.
type record struct {
	prompt.Prompt
	holder  holder        // waits for the answer; nil once that has ended
	alone   bool          // its holder alone tells of it: hooks of its session say less
	changed chan struct{} // closed at its next change
}

// holder is who waits for the answer to a prompt and tells what becomes of it: the
// connection that asked, or a part of this process (Hold). It is compared.
type holder any

// isLink reports whether somebody waits by the link.
func isLink(by holder) bool {
	_, link := by.(*ipc.Conn)
	return link
}

// New serves prompts of sessions.
func New(opts Options) *Prompts {
	opts.Pace = opts.Pace.orUsual()
	p := &Prompts{opts: opts, marked: true} // one that ended before may have left it
	p.mu.Lock()
	defer p.mu.Unlock()
	p.markLocked()
	return p
}

// markLocked keeps the file Open as it should be. Where that fails the hooks tell too
// much or too little, and the end of the turn tells the rest.
func (p *Prompts) markLocked() {
	open := slices.ContainsFunc(p.list, func(one *record) bool { return one.Agent == string(bridge.Claude) && !one.IsSettled() })
	if open == p.marked {
		return
	}
	var err error
	if open {
		var file *os.File
		if file, err = os.OpenFile(p.opts.Open, os.O_CREATE|os.O_WRONLY, disk.PrivateFile); err == nil {
			err = file.Close()
		}
	} else if err = os.Remove(p.opts.Open); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		p.opts.Log.Warn("claude's hooks are not told whether a prompt is open", "open", open, "err", err)
		return
	}
	p.marked = open
}

// Prompting tells how it stands. Of settings that cannot be read nothing is shown: the
// terminal decides.
func (p *Prompts) Prompting() api.Prompting {
	settings, err := p.opts.Settings()
	if err != nil {
		return api.Prompting{AnswerPrompts: prompt.Off}
	}
	mode, err := prompt.ParseMode(string(settings.AnswerPrompts))
	if err != nil {
		return api.Prompting{AnswerPrompts: prompt.Off}
	}
	return api.Prompting{AnswerPrompts: mode, Away: settings.Away}
}

// SetAway switches away mode.
func (p *Prompts) SetAway(on bool) (api.Prompting, error) {
	if err := p.opts.SetAway(on); err != nil {
		return api.Prompting{}, err
	}
	p.opts.Broker.Changed()
	return p.Prompting(), nil
}

// Approvals lists the open prompts and the last that are over, in the order in which
// they were asked.
func (p *Prompts) Approvals() []job.Approval {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweepLocked()
	list := make([]job.Approval, len(p.list))
	for i, one := range p.list {
		list[i] = one.Approval
		list[i].Caution = p.cautionLocked(one)
	}
	return list
}

// cautionLocked is what an answer does besides: opencode refuses all that a session asks
// with one of it.
func (p *Prompts) cautionLocked(one *record) string {
	others := 0
	for _, other := range p.list {
		if other != one && other.State == job.ApprovalAsked && other.Agent == one.Agent && other.HostID == one.HostID && other.Child == one.Child && len(other.Choices) == 0 {
			others++
		}
	}
	if one.Agent != string(bridge.OpenCode) || one.State != job.ApprovalAsked || others == 0 || len(one.Choices) > 0 {
		return one.Caution
	}
	return "opencode refuses all of a session at once: denying this also denies " + bridge.Counted(others, "other prompt") + " of it, without your reason."
}

// Has reports whether a prompt has that id.
func (p *Prompts) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findLocked(id) != nil
}

// Answer decides a prompt for the owner; the first answer wins, also before one that was
// given at the terminal. It is durable when this returns. The prompt is as it is then,
// also beside a Conflict.
func (p *Prompts) Answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	return p.decide(id, func(one *prompt.Prompt) error { return one.Answer(bridge.OwnerName, decision, reason, p.opts.Now()) })
}

// Choose answers for the owner what the model of a session asks in its own words, a list
// for each of its questions. It is like Answer.
func (p *Prompts) Choose(id string, answers [][]string) (job.Approval, error) {
	return p.decide(id, func(one *prompt.Prompt) error { return one.Choose(bridge.OwnerName, answers, p.opts.Now()) })
}

// Pick is Choose by what the owner has picked at a terminal.
func (p *Prompts) Pick(id string, picks []job.Pick) (job.Approval, error) {
	return p.decide(id, func(one *prompt.Prompt) error { return one.Pick(bridge.OwnerName, picks, p.opts.Now()) })
}

// decide makes an answer durable, as far as the prompt still takes it.
func (p *Prompts) decide(id string, answer func(*prompt.Prompt) error) (job.Approval, error) {
	one, err := p.decided(id, answer)
	if err == nil {
		p.opts.Broker.Changed()
	}
	return one, err
}

func (p *Prompts) decided(id string, answer func(*prompt.Prompt) error) (job.Approval, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweepLocked()
	one := p.findLocked(id)
	if one == nil {
		return job.Approval{}, bridge.Errorf(bridge.NotFound, "there is no approval %q", id)
	}
	after := one.Prompt
	if err := answer(&after); err != nil {
		return one.Approval, err
	}
	if err := p.write(after); err != nil {
		return one.Approval, bridge.WithCause(bridge.Storage, err, "your answer could not be written down, and was not given")
	}
	one.setLocked(after)
	return one.Approval, nil
}

// write makes an answer durable as it stands.
func (p *Prompts) write(one prompt.Prompt) error {
	if err := disk.MakeDir(p.opts.Answers); err != nil {
		return err
	}
	data, err := one.MarshalJSON()
	if err != nil {
		return err
	}
	return disk.WriteAtomic(p.file(one.ID), data, disk.PrivateFile)
}

// setLocked is how a prompt stands from now on.
func (r *record) setLocked(after prompt.Prompt) {
	r.Prompt = after
	close(r.changed)
	r.changed = make(chan struct{})
}

func (p *Prompts) findLocked(id string) *record {
	at := slices.IndexFunc(p.list, func(one *record) bool { return one.ID == id })
	if at < 0 {
		return nil
	}
	return p.list[at]
}

// seeLocked takes in what was seen of a prompt.
func (p *Prompts) seeLocked(one *record, sign prompt.Sign) bool {
	after := one.Prompt
	if !after.See(sign) {
		return false
	}
	p.changeLocked(one, after)
	return true
}

// changeLocked is another state of a prompt. What became of an answer is written beside
// it; where that fails the answer itself is there.
func (p *Prompts) changeLocked(one *record, after prompt.Prompt) {
	if after.Decision != "" {
		if err := p.write(after); err != nil {
			p.opts.Log.Warn("what became of an answer could not be written down", "prompt", after.ID, "state", after.State, "err", err)
		}
	}
	one.setLocked(after)
	p.markLocked()
}

// sweepLocked ends prompts of sessions that have gone, and forgets the oldest of those
// that are over.
func (p *Prompts) sweepLocked() {
	over := 0
	for _, one := range p.list {
		if !one.IsSettled() && !p.opts.Broker.IsLive(bridge.AgentKind(one.Agent), one.HostID) {
			p.seeLocked(one, prompt.Gone)
		}
		if one.IsSettled() {
			over++
		}
	}
	p.list = slices.DeleteFunc(p.list, func(one *record) bool {
		if !one.IsSettled() || over <= keptEnded {
			return false
		}
		over--
		return true
	})
}
