// Package prompts shows the permission prompts of interactive sessions to their owner
// and sends the answers back (row NED-02). A prompt is in memory while its asker waits:
// a broker that ends leaves it to the terminal. An answer is durable before it is sent.
// Only the owner answers; hooks and plugins ask and report.
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

// Broker is the part of the broker that prompts use; *broker.Broker implements it.
type Broker interface {
	// Asker returns the session behind a connection.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// Prompter returns the live session of a hook call. If there is none, or it belongs
	// to a delegated job, ok is false.
	Prompter(ctx context.Context, call session.HookCall) (s broker.Prompter, ok bool, err error)
	// IsLive reports whether a session of that kind and host session id is connected.
	IsLive(kind bridge.AgentKind, hostID string) bool
	// Changed notifies all subscribers.
	Changed()
}

// Rules gives access to the owner's standing rules; *rules.Rules implements it.
type Rules interface {
	// Live lists the rules in force. With an error, the list is empty.
	Live() ([]rule.Rule, error)
	// Revoke revokes a rule immediately and returns the effect on its answers.
	Revoke(id string) (rule.Rule, rules.Undone, error)
}

// Options configures Prompts. All fields are required unless the comment says
// otherwise.
type Options struct {
	Broker Broker
	// Settings reads the settings again at each use.
	Settings func() (config.Settings, error)
	// SetAway stores in the settings whether away mode is on.
	SetAway func(on bool) error
	// Watched reports whether a dashboard page is open.
	Watched func() bool
	// Answers is the folder of the answers, one file each.
	Answers string
	// Open is a file that exists while a prompt of claude is open or its answer is
	// unproven. Without it, the hooks skip events that matter only for prompts.
	Open string
	// Waits reports whether claude reports that its dialog is on the screen.
	Waits func(folder string, pid int, sessionID string) (waits, known bool)
	// Rule answers a prompt by a rule of the owner before it becomes a card, and names the
	// rule. "" leaves it to the owner. nil has no rules.
	Rule func(p prompt.Prompt) (decision job.Decision, rule string)
	// Rules serves the owner's commands for rules; nil has none.
	Rules  Rules
	Timing Timing
	Now    func() time.Time
	Log    *slog.Logger
}

// Timing sets how often claude's state is polled, and for how long.
type Timing struct {
	PollInterval time.Duration
	// Visible is how long a background child's dialog may take to appear before its
	// prompt is left to the terminal.
	Visible time.Duration
}

func (p Timing) orUsual() Timing {
	if p == (Timing{}) {
		return Timing{PollInterval: 200 * time.Millisecond, Visible: 600 * time.Millisecond}
	}
	return p
}

// Our own limits.
const (
	// maxOpen and maxOpenOfOne limit the open prompts, in total and per session: beyond
	// these limits only the terminal decides.
	maxOpen, maxOpenOfOne = 100, 20
	// keptEnded is how many closed prompts are shown.
	keptEnded = 50
)

// Prompts keeps the prompts of one home. Its methods are safe for concurrent use.
type Prompts struct {
	opts Options

	mu   sync.Mutex // guards the fields below; held during a write
	list []*record  // in the order in which they were asked
	// marked reports that the file Open exists.
	marked bool
}

// record is one prompt and the holder that waits for its answer.
type record struct {
	prompt.Prompt
	holder  holder        // waits for the answer; nil after it stopped waiting
	alone   bool          // only its holder reports on it: the session's hooks report less
	changed chan struct{} // closed at its next change
}

// holder waits for the answer to a prompt and reports the outcome. It is a connection
// or a part of this process (Hold), and must be comparable.
type holder any

// isLink reports whether the holder is a connection.
func isLink(asker holder) bool {
	_, link := asker.(*ipc.Conn)
	return link
}

// New returns an empty set of prompts.
func New(opts Options) *Prompts {
	opts.Timing = opts.Timing.orUsual()
	p := &Prompts{opts: opts, marked: true} // an earlier broker may have left the file
	p.mu.Lock()
	defer p.mu.Unlock()
	p.markLocked()
	return p
}

// markLocked creates or removes the file Open. If that fails, the hooks report too much
// or too little, and the end of the turn corrects it.
func (p *Prompts) markLocked() {
	open := slices.ContainsFunc(p.list, func(item *record) bool { return item.traits().HooksShowOutcome && !item.IsSettled() })
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

// Prompting returns the mode and away state. If the settings are unreadable, the mode
// is off: the terminal decides.
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

// Approvals lists the open prompts and the last closed ones, in the order in which they
// were asked.
func (p *Prompts) Approvals() []job.Approval {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweepLocked()
	list := make([]job.Approval, len(p.list))
	for i, record := range p.list {
		list[i] = record.Approval
		list[i].Caution = p.cautionLocked(record)
	}
	return list
}

// cautionLocked returns the warning about side effects of an answer: one refusal in
// opencode refuses all prompts of that session.
func (p *Prompts) cautionLocked(item *record) string {
	others := 0
	for _, other := range p.list {
		if other != item && other.State == job.ApprovalAsked && other.Agent == item.Agent && other.HostID == item.HostID && other.Child == item.Child && len(other.Choices) == 0 {
			others++
		}
	}
	if !item.traits().RefusesAll || item.State != job.ApprovalAsked || others == 0 || len(item.Choices) > 0 {
		return item.Caution
	}
	return item.Agent + " refuses all of a session at once: denying this also denies " + bridge.Counted(others, "other prompt") + " of it, without your reason."
}

// Has reports whether a prompt has that id.
func (p *Prompts) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findLocked(id) != nil
}

// Answer decides a prompt for the owner; the first answer wins, also over one at the
// terminal. The answer is durable when Answer returns. It returns the current prompt,
// even with a Conflict.
func (p *Prompts) Answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	return p.decide(id, func(item *prompt.Prompt) error { return item.Answer(bridge.OwnerName, decision, reason, p.opts.Now()) })
}

// Choose answers the questions of a session's model for the owner, with one list per
// question. It is like Answer.
func (p *Prompts) Choose(id string, answers [][]string) (job.Approval, error) {
	return p.decide(id, func(item *prompt.Prompt) error { return item.Choose(bridge.OwnerName, answers, p.opts.Now()) })
}

// Pick is Choose with the options that the owner picked at a terminal.
func (p *Prompts) Pick(id string, picks []job.Pick) (job.Approval, error) {
	return p.decide(id, func(item *prompt.Prompt) error { return item.Pick(bridge.OwnerName, picks, p.opts.Now()) })
}

// decide makes an answer durable if the prompt still accepts it.
func (p *Prompts) decide(id string, answer func(*prompt.Prompt) error) (job.Approval, error) {
	approval, err := p.decided(id, answer)
	if err == nil {
		p.opts.Broker.Changed()
	}
	return approval, err
}

func (p *Prompts) decided(id string, answer func(*prompt.Prompt) error) (job.Approval, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweepLocked()
	record := p.findLocked(id)
	if record == nil {
		return job.Approval{}, bridge.Errorf(bridge.NotFound, "there is no approval %q", id)
	}
	after := record.Prompt
	if err := answer(&after); err != nil {
		return record.Approval, err
	}
	if err := p.write(after); err != nil {
		return record.Approval, bridge.WithCause(bridge.Storage, err, "your answer could not be written down, and was not given")
	}
	record.setLocked(after)
	return record.Approval, nil
}

// write makes the current answer durable.
func (p *Prompts) write(item prompt.Prompt) error {
	if err := disk.MakeDir(p.opts.Answers); err != nil {
		return err
	}
	data, err := item.MarshalJSON()
	if err != nil {
		return err
	}
	return disk.WriteAtomic(p.file(item.ID), data, disk.PrivateFile)
}

// setLocked replaces the state of a prompt and wakes its waiters.
func (r *record) setLocked(after prompt.Prompt) {
	r.Prompt = after
	close(r.changed)
	r.changed = make(chan struct{})
}

func (p *Prompts) findLocked(id string) *record {
	at := slices.IndexFunc(p.list, func(item *record) bool { return item.ID == id })
	if at < 0 {
		return nil
	}
	return p.list[at]
}

// seeLocked applies a sign to a prompt, and reports whether the prompt changed.
func (p *Prompts) seeLocked(item *record, sign prompt.Sign) bool {
	after := item.Prompt
	if !after.See(sign) {
		return false
	}
	p.changeLocked(item, after)
	return true
}

// changeLocked sets a new state of a prompt. It adds the outcome to the answer's file;
// if that fails, the answer is still there.
func (p *Prompts) changeLocked(item *record, after prompt.Prompt) {
	if after.Decision != "" {
		if err := p.write(after); err != nil {
			p.opts.Log.Warn("what became of an answer could not be written down", "prompt", after.ID, "state", after.State, "err", err)
		}
	}
	item.setLocked(after)
	p.markLocked()
}

// sweepLocked ends prompts of disconnected sessions, and drops the oldest closed
// prompts.
func (p *Prompts) sweepLocked() {
	over := 0
	for _, record := range p.list {
		if !record.IsSettled() && !p.opts.Broker.IsLive(bridge.AgentKind(record.Agent), record.HostID) {
			p.seeLocked(record, prompt.Gone)
		}
		if record.IsSettled() {
			over++
		}
	}
	p.list = slices.DeleteFunc(p.list, func(item *record) bool {
		if !item.IsSettled() || over <= keptEnded {
			return false
		}
		over--
		return true
	})
}
