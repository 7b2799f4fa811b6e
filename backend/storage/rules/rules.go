// Package rules keeps the standing rules of the owner (row NED-04) in rules.json, and
// tells before somebody is asked whether one of them allows what an agent asks for. Each
// use is counted, durably, and logged. Only the owner's guarded page makes a rule or
// takes one back; what is under way by a rule that was taken back is asked again.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

const (
	// maxBytes bounds what is read: rule.MaxLive of the longest requests, as the longest
	// JSON escapes, and what was taken back.
	maxBytes = 64 << 20
	// keptEnded is how many rules that hold no more are kept in the file.
	keptEnded = 100
)

// Options says what Rules work with. All fields are required.
type Options struct {
	Path string // of rules.json
	Now  func() time.Time
	Log  *slog.Logger
}

// Rules are those of one home. Its methods may be called concurrently.
type Rules struct {
	opts Options

	mu     sync.Mutex // guards below, and is held while the file is written
	list   []rule.Rule
	broken error // why the file cannot be used: then no rule holds, and none is made
	undo   []Undo
}

// Undo takes answers back that a rule gave and that have not been handed over: what they
// answered is asked again. It is called after the rule holds no more.
type Undo func(ruleID string) Undone

// Undone says what became of the answers of a rule that was taken back.
type Undone struct {
	Asked  []string // approvals that are asked again
	Handed []string // approvals whose agent may have acted on the answer already
}

type file struct {
	Version int         `json:"version"`
	Rules   []rule.Rule `json:"rules"`
}

// Open reads the rules. A file that cannot be used is left as it is: then everything is
// asked, and whoever lists the rules is told why.
func Open(opts Options) *Rules {
	r := &Rules{opts: opts}
	var stored file
	err := disk.ReadJSON(opts.Path, maxBytes, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.broken = bridge.WithCause(bridge.Storage, err, config.RulesStore+" cannot be read: it is left as it is, no rule holds, and everything is asked")
	case stored.Version != config.RulesVersion:
		r.broken = bridge.Errorf(bridge.Unsupported, "%s has version %d and this Bridge knows version %d: it is left as it is, no rule holds, and everything is asked", config.RulesStore, stored.Version, config.RulesVersion)
	default:
		r.list = stored.Rules
	}
	if r.broken != nil {
		opts.Log.Error("standing rules are not used", "err", r.broken)
	}
	return r
}

// OnTakenBack has undo called with each rule that is taken back. Call it before anything
// is asked.
func (r *Rules) OnTakenBack(undo Undo) { r.undo = append(r.undo, undo) }

// Handed names the approvals that a rule answered and that are not over: their agents may
// act on it, or have.
func Handed(all []job.Approval, ruleID string) (ids []string) {
	for _, approval := range all {
		if approval.AnsweredBy == job.ByRule+ruleID && !approval.IsSettled() {
			ids = append(ids, approval.ID)
		}
	}
	return ids
}

// Live lists the rules that hold, in the order in which they were made.
func (r *Rules) Live() ([]rule.Rule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.opts.Now()
	return slices.DeleteFunc(slices.Clone(r.list), func(one rule.Rule) bool { return !one.IsLive(at) }), r.broken
}

// Find returns a rule by its id, also one that holds no more.
func (r *Rules) Find(id string) (rule.Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.indexLocked(id)
	if at < 0 {
		return rule.Rule{}, false
	}
	return r.list[at], true
}

func (r *Rules) indexLocked(id string) int {
	return slices.IndexFunc(r.list, func(one rule.Rule) bool { return one.ID == id })
}

// Allow tells which rule allows the request, before anybody is asked. The use by that
// job or session is on the disk when it returns; where it cannot be counted, no rule
// allows it.
func (r *Rules) Allow(request rule.Request, by string) (rule.Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.opts.Now()
	i := slices.IndexFunc(r.list, func(one rule.Rule) bool { return one.Allows(request, at) && staysInside(one, request) })
	if i < 0 {
		return rule.Rule{}, false
	}
	used := r.list[i]
	used.Uses, used.LastUse, used.LastFor = used.Uses+1, job.MillisOf(at), by
	list := slices.Clone(r.list)
	list[i] = used
	if err := r.saveLocked(list); err != nil {
		r.opts.Log.Error("a rule's use could not be counted, so the owner is asked", "rule", used.ID, "err", err)
		return rule.Rule{}, false
	}
	r.opts.Log.Info("allowed by a standing rule", "rule", used.ID, "allows", used.Says(), "for", by, "what", request.Detail, "uses", used.Uses)
	return used, true
}

// staysInside looks where the operands that nobody spelled out really lead: a link in
// the folder may lead out of it.
func staysInside(one rule.Rule, request rule.Request) bool {
	operands := one.Operands(request)
	if len(operands) == 0 {
		return true
	}
	place, err := disk.Canonical(filepath.FromSlash(cmp.Or(request.Place, request.Folder)))
	if err != nil {
		return false
	}
	for _, operand := range operands {
		if !leadsInto(place, cmp.Or(request.Cwd, place), operand) {
			return false
		}
	}
	return true
}

// leadsInto reports whether each path that an operand may name lies inside place.
func leadsInto(place, from, operand string) bool {
	for name := range strings.FieldsFuncSeq(operand, func(r rune) bool { return r == ':' || r == ',' }) {
		name = filepath.FromSlash(name)
		if !filepath.IsAbs(name) {
			name = filepath.Join(from, name)
		}
		target, err := disk.CanonicalTarget(name)
		if err != nil {
			return false
		}
		inside, err := filepath.Rel(place, target)
		if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
			return false
		}
	}
	return true
}

// Make makes a rule durable, on the owner's word about a request. It holds when it
// returns.
func (r *Rules) Make(request rule.Request, wish rule.Wish) (rule.Rule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return rule.Rule{}, r.broken
	}
	at := r.opts.Now()
	made, err := rule.New("rule-"+uuid.NewString()[:8], request, wish, at)
	if err != nil {
		return rule.Rule{}, err
	}
	live := 0
	for _, one := range r.list {
		if one.IsLive(at) {
			live++
		}
	}
	if live >= rule.MaxLive {
		return rule.Rule{}, bridge.Errorf(bridge.Conflict, "there are %d rules already: take one back first", rule.MaxLive)
	}
	if err := r.saveLocked(append(slices.Clone(r.list), made)); err != nil {
		return rule.Rule{}, err
	}
	r.opts.Log.Info("a standing rule was made", "rule", made.ID, "allows", made.Says())
	return made, nil
}

// TakeBack ends a rule, at once: when it returns, nothing is allowed by it any more, and
// what it had answered without it having been handed over is asked again. Again it is no
// error.
func (r *Rules) TakeBack(id string) (rule.Rule, Undone, error) {
	taken, err := r.end(id)
	if err != nil {
		return rule.Rule{}, Undone{}, err
	}
	undone := Undone{}
	for _, undo := range r.undo {
		some := undo(id)
		undone.Asked, undone.Handed = append(undone.Asked, some.Asked...), append(undone.Handed, some.Handed...)
	}
	r.opts.Log.Info("a standing rule was taken back", "rule", id, "allowed", taken.Says(), "uses", taken.Uses, "asked again", undone.Asked, "handed over before", undone.Handed)
	return taken, undone, nil
}

func (r *Rules) end(id string) (rule.Rule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return rule.Rule{}, r.broken
	}
	at := r.indexLocked(id)
	if at < 0 {
		return rule.Rule{}, bridge.Errorf(bridge.NotFound, "there is no rule %q", id)
	}
	if r.list[at].TakenBack != 0 {
		return r.list[at], nil
	}
	list := slices.Clone(r.list)
	list[at].TakenBack = job.MillisOf(r.opts.Now())
	if err := r.saveLocked(list); err != nil {
		return rule.Rule{}, err
	}
	return list[at], nil
}

// Holds reports whether an answer by that rule still counts.
func (r *Rules) Holds(id string) bool {
	found, has := r.Find(id)
	return has && found.TakenBack == 0
}

// saveLocked makes that list the present one, on the disk first.
func (r *Rules) saveLocked(list []rule.Rule) error {
	at := r.opts.Now()
	ended := 0
	for _, one := range list {
		if !one.IsLive(at) {
			ended++
		}
	}
	list = slices.DeleteFunc(list, func(one rule.Rule) bool {
		if one.IsLive(at) {
			return false
		}
		ended--
		return ended >= keptEnded
	})
	if err := disk.WriteJSON(r.opts.Path, file{config.RulesVersion, list}); err != nil {
		return bridge.WithCause(bridge.Storage, fmt.Errorf("write %s: %w", config.RulesStore, err), "the rules could not be written, and are as they were: "+disk.Reason(err))
	}
	r.list = list
	return nil
}
