// Package rules keeps the owner's standing rules (row NED-04) in rules.json. Before a
// person is asked, it determines whether a rule allows an agent's request. Each use is
// counted durably, and logged. Only the owner's guarded page creates or revokes a rule.
// Requests in progress under a revoked rule are asked again.
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
	// maxBytes limits what is read: rule.MaxLive of the longest requests, with the
	// longest JSON escapes, and the revoked rules.
	maxBytes = 64 << 20
	// keptEnded is how many ended rules are kept in the file.
	keptEnded = 100
)

// Options configures [Rules]. All fields are required.
type Options struct {
	Path string // of rules.json
	Now  func() time.Time
	Log  *slog.Logger
}

// Rules are the rules of one home. Its methods may be called concurrently.
type Rules struct {
	opts Options

	mu     sync.Mutex // guards the fields below, and is held while the file is written
	list   []rule.Rule
	broken error // why the file is unusable: then no rule applies, and none is created
	undo   []Undo
}

// Undo revokes the answers of a rule that were not handed over yet: their requests are
// asked again. It is called after the rule has ended.
type Undo func(ruleID string) Undone

// Undone reports the outcome of the answers of a revoked rule.
type Undone struct {
	Asked  []string // approvals that are asked again
	Handed []string // approvals whose agent may have acted on the answer already
}

type file struct {
	Version int         `json:"version"`
	Rules   []rule.Rule `json:"rules"`
}

// Open reads the rules. An unusable file stays unchanged: then every request is asked,
// and Live returns the reason.
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

// OnTakenBack registers undo, which is called with each revoked rule. Call it before the
// first request.
func (r *Rules) OnTakenBack(undo Undo) { r.undo = append(r.undo, undo) }

// Handed returns the ids of the approvals that a rule answered and that are not settled:
// their agents may act on the answer, or have acted.
func Handed(all []job.Approval, ruleID string) (ids []string) {
	for _, approval := range all {
		if approval.AnsweredBy == job.ByRule+ruleID && !approval.IsSettled() {
			ids = append(ids, approval.ID)
		}
	}
	return ids
}

// Live returns the rules in force, in order of creation. It fails if the file of rules is
// unusable.
func (r *Rules) Live() ([]rule.Rule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.opts.Now()
	return slices.DeleteFunc(slices.Clone(r.list), func(item rule.Rule) bool { return !item.IsLive(at) }), r.broken
}

// Find returns a rule by its id, even an ended one.
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
	return slices.IndexFunc(r.list, func(item rule.Rule) bool { return item.ID == id })
}

// Allow returns the rule that allows the request, before a person is asked. The use by
// that job or session is on the disk when it returns. If it cannot be counted, no rule
// allows the request.
func (r *Rules) Allow(request rule.Request, user string) (rule.Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.opts.Now()
	i := slices.IndexFunc(r.list, func(item rule.Rule) bool { return item.Allows(request, at) && staysInside(item, request) })
	if i < 0 {
		return rule.Rule{}, false
	}
	used := r.list[i]
	used.Uses, used.LastUse, used.LastFor = used.Uses+1, job.MillisOf(at), user
	list := slices.Clone(r.list)
	list[i] = used
	if err := r.saveLocked(list); err != nil {
		r.opts.Log.Error("a rule's use could not be counted, so the owner is asked", "rule", used.ID, "err", err)
		return rule.Rule{}, false
	}
	r.opts.Log.Info("allowed by a standing rule", "rule", used.ID, "allows", used.Sentence(), "for", user, "what", request.Detail, "uses", used.Uses)
	return used, true
}

// staysInside checks where operands without a fixed value really lead: a link in the
// folder may lead out of it.
func staysInside(item rule.Rule, request rule.Request) bool {
	operands := item.Operands(request)
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

// leadsInto reports whether each path that an operand may name is inside place.
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

// Make creates a rule durably, by the owner's decision on a request. The rule is in force
// when Make returns. It fails with Conflict if there are too many rules.
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
	for _, item := range r.list {
		if item.IsLive(at) {
			live++
		}
	}
	if live >= rule.MaxLive {
		return rule.Rule{}, bridge.Errorf(bridge.Conflict, "there are %d rules already: take one back first", rule.MaxLive)
	}
	if err := r.saveLocked(append(slices.Clone(r.list), made)); err != nil {
		return rule.Rule{}, err
	}
	r.opts.Log.Info("a standing rule was made", "rule", made.ID, "allows", made.Sentence())
	return made, nil
}

// Revoke ends a rule at once: when it returns, the rule allows nothing any more.
// Answers by it that were not handed over are asked again. A repeated call succeeds. It
// fails with NotFound for an unknown id.
func (r *Rules) Revoke(id string) (rule.Rule, Undone, error) {
	revoked, err := r.end(id)
	if err != nil {
		return rule.Rule{}, Undone{}, err
	}
	undone := Undone{}
	for _, undo := range r.undo {
		some := undo(id)
		undone.Asked, undone.Handed = append(undone.Asked, some.Asked...), append(undone.Handed, some.Handed...)
	}
	r.opts.Log.Info("a standing rule was taken back", "rule", id, "allowed", revoked.Sentence(), "uses", revoked.Uses, "asked again", undone.Asked, "handed over before", undone.Handed)
	return revoked, undone, nil
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

// Holds reports whether an answer by that rule is still valid.
func (r *Rules) Holds(id string) bool {
	found, has := r.Find(id)
	return has && found.TakenBack == 0
}

// saveLocked stores the list on the disk and then uses it.
func (r *Rules) saveLocked(list []rule.Rule) error {
	at := r.opts.Now()
	ended := 0
	for _, item := range list {
		if !item.IsLive(at) {
			ended++
		}
	}
	list = slices.DeleteFunc(list, func(item rule.Rule) bool {
		if item.IsLive(at) {
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
