package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
)

// Roster has the live sessions and the directory of known ones.
type Roster struct {
	live  map[string]*Session // by peer id
	known map[string]Known    // by peer id, with the live ones
	bound map[string]string   // host session key -> peer id
	names map[string]string   // name -> peer id of the last session with it
}

// NewRoster returns a roster with the sessions known from earlier, the newest first.
func NewRoster(known []Known) *Roster {
	r := &Roster{
		live:  map[string]*Session{},
		known: map[string]Known{},
		bound: map[string]string{},
		names: map[string]string{},
	}
	for _, k := range slices.Backward(known) { // the newest keeps a shared name
		r.remember(k)
	}
	return r
}

// remember stores k. It binds no session to an empty host session id, so "" finds none.
func (r *Roster) remember(k Known) {
	r.known[k.ID] = k
	r.names[k.Name] = k.ID
	if k.SessionID != "" {
		r.bound[hostKey(k.Kind, k.SessionID)] = k.ID
	}
}

func hostKey(kind bridge.AgentKind, sessionID string) string { return string(kind) + ":" + sessionID }

// Get returns the live session with that peer id.
func (r *Roster) Get(id string) (*Session, bool) {
	s, ok := r.live[id]
	return s, ok
}

// ByHost returns the live session of that host session id.
func (r *Roster) ByHost(kind bridge.AgentKind, sessionID string) (*Session, bool) {
	s, ok := r.live[r.bound[hostKey(kind, sessionID)]]
	if !ok || s.SessionID != sessionID {
		return nil, false // it continued with another host session
	}
	return s, true
}

// ByProcess returns the live sessions of that kind whose agent process is one of pids.
func (r *Roster) ByProcess(kind bridge.AgentKind, pids []int) []*Session {
	var found []*Session
	for _, s := range r.live {
		if s.Kind == kind && s.AgentPID > 1 && slices.Contains(pids, s.AgentPID) {
			found = append(found, s)
		}
	}
	return found
}

// Live lists the live sessions by name.
func (r *Roster) Live() []*Session {
	all := make([]*Session, 0, len(r.live))
	for _, s := range r.live {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Session) int { return bridge.CompareNames(a.Name, b.Name) })
	return all
}

// Len returns the number of live sessions.
func (r *Roster) Len() int { return len(r.live) }

// PriorID returns the earlier peer id of a host session, or "" if it is new.
func (r *Roster) PriorID(kind bridge.AgentKind, sessionID string) string {
	return r.bound[hostKey(kind, sessionID)]
}

// SameSession reports whether a peer id belongs to s, or to another entry with the same
// host session.
func (r *Roster) SameSession(s *Session, id string) bool {
	if s.ID == id {
		return true
	}
	known := r.known[id]
	return s.SessionID != "" && known.SessionID == s.SessionID && known.Kind == s.Kind
}

// Known returns the stored data of a peer id.
func (r *Roster) Known(id string) (Known, bool) {
	k, ok := r.known[id]
	return k, ok
}

// IDOf returns the peer id of the last session with exactly that name.
func (r *Roster) IDOf(name string) (string, bool) {
	id, ok := r.names[bridge.NormalizeName(name)]
	return id, ok
}

// Join makes s live under a unique name: wanted, or its earlier name, or the default of
// its kind and folder.
func (r *Roster) Join(s *Session, wanted string) {
	s.named, wanted = wanted != "", bridge.NormalizeName(wanted)
	if prior := r.known[s.ID].Name; wanted == "" && bridge.CheckName(prior) == nil { // old stores have other names
		wanted = prior
	}
	if wanted == "" {
		wanted = bridge.DefaultName(s.Kind, s.Cwd)
	}
	r.enter(s, wanted)
}

func (r *Roster) enter(s *Session, wanted string) {
	s.Name = r.uniqueName(wanted, s.ID)
	r.live[s.ID] = s
	r.remember(Known{ID: s.ID, Name: s.Name, Kind: s.Kind, SessionID: s.SessionID})
}

// Bind sets the host session id of a live session. If the id changes, the children are
// removed.
func (r *Roster) Bind(s *Session, sessionID string) {
	if s.SessionID != sessionID {
		s.Children, s.ChildrenNote = nil, ""
	}
	s.SessionID = sessionID
	r.remember(Known{ID: s.ID, Name: s.Name, Kind: s.Kind, SessionID: sessionID})
}

// Rekey gives a live session the earlier peer id of its host session. The current name
// stays if it was requested or the earlier one is taken. The old peer id is forgotten
// if it had no host session; otherwise that host session keeps it. Bind must then set
// the host session of s.
func (r *Roster) Rekey(s *Session, id string) {
	if id == s.ID {
		return
	}
	delete(r.live, s.ID)
	if s.SessionID == "" {
		delete(r.known, s.ID)
	}
	prior := r.known[id]
	s.ID, s.SessionID = id, ""
	if s.named || bridge.CheckName(prior.Name) != nil || r.nameTaken(prior.Name, id) {
		r.enter(s, s.Name)
		return
	}
	r.enter(s, prior.Name)
}

// SetChild records a native child of s from an event or the CLI's store. It alone
// decides which session a child belongs to. A live session is no child. A child in the
// store of another session stays there against an event's claim; a store entry
// overrides earlier claims. ok is false if it refuses the pair.
func (r *Roster) SetChild(s *Session, child Child) (changed, ok bool) {
	if child.ID == s.SessionID {
		return false, false
	}
	if _, live := r.ByHost(s.Kind, child.ID); live {
		return false, false
	}
	for _, other := range r.live {
		if other == s || other.Kind != s.Kind {
			continue
		}
		at := slices.IndexFunc(other.Children, func(c Child) bool { return c.ID == child.ID })
		switch {
		case at < 0:
		case other.Children[at].Stored || !child.Stored:
			return false, false
		default:
			other.Children = slices.Delete(other.Children, at, at+1)
		}
	}
	return s.setChild(child), true
}

// Rename gives a live session another name, with a number appended if it is taken.
func (r *Roster) Rename(s *Session, name string) { r.enter(s, name) }

// Leave removes a session from the live ones; it stays known.
func (r *Roster) Leave(id string) { delete(r.live, id) }

// uniqueName appends -2, -3 … while the name is taken.
func (r *Roster) uniqueName(wanted, id string) string {
	name := wanted
	for n := 2; r.nameTaken(name, id); n++ {
		suffix := fmt.Sprintf("-%d", n)
		runes := []rune(wanted)
		name = string(runes[:min(len(runes), bridge.MaxNameChars-len(suffix))]) + suffix
	}
	return name
}

// nameTaken reports whether the session id may not use name: another live one has it,
// or it resembles the owner's (MSG-08).
func (r *Roster) nameTaken(name, id string) bool {
	if strings.EqualFold(name, bridge.OwnerName) || strings.EqualFold(name, bridge.OwnerID) {
		return true
	}
	for _, s := range r.live {
		if s.Name == name && s.ID != id {
			return true
		}
	}
	return false
}

// Recipient is the recipient of a message.
type Recipient struct {
	ID     string
	Name   string
	Online bool
	// Direct reports that the sender named exactly this session, by name or id, as
	// wakeOnDirect requires (seed 4.4).
	Direct bool
}

// Everyone is the target of all local sessions.
const Everyone = "*"

// Resolve returns the recipients of a target (MSG-05). It is the one session with that
// name, peer id or host session id. It may also be the only live one of an agent kind.
// `*` selects every live session but the sender. A session may use another's id as its
// name: such a target is ambiguous and refused, so that no name captures an id. Every
// error lists the candidates.
func (r *Roster) Resolve(target, senderID string) ([]Recipient, error) {
	if target == Everyone {
		return r.everyone(senderID)
	}
	found := r.named(target)
	if kind, err := bridge.ParseKind(target); err == nil && !slices.ContainsFunc(found, r.isLive) {
		return r.onlyOf(kind)
	}
	switch len(found) {
	case 0:
		return nil, bridge.Errorf(bridge.NotFound, "no session is called %q; %s", clip(target), r.choices(closestFirst(target, r.liveOnes())))
	case 1:
		recipient, err := r.ByID(found[0].ID)
		return []Recipient{recipient}, err
	default:
		return nil, r.ambiguous(target, found)
	}
}

// ByID returns the session with that peer id, live or away, as a recipient. It is for
// callers that have already found the session: it does not resolve names.
func (r *Roster) ByID(id string) (Recipient, error) {
	k, ok := r.known[id]
	if !ok {
		return Recipient{}, bridge.Errorf(bridge.NotFound, "no session has the id %q", clip(id))
	}
	return Recipient{ID: k.ID, Name: k.Name, Online: r.isLive(k), Direct: true}, nil
}

// CheckWords refuses a target that matches more than one session. One without a match
// may name a future session.
func (r *Roster) CheckWords(names ...string) error {
	for _, name := range names {
		if found := r.named(name); len(found) > 1 {
			return r.ambiguous(name, found)
		}
	}
	return nil
}

func (r *Roster) ambiguous(name string, found []Known) error {
	return bridge.Errorf(bridge.Ambiguous, "%q names %s; %s", clip(name), bridge.Counted(len(found), "session"), r.choices(found))
}

// Target returns a live session as the decision rules see it. It omits a name that is
// another's id: a decision for that id is not for this session.
func (r *Roster) Target(s *Session) decision.Target {
	target := decision.Target{ID: s.ID, Name: s.Name, Agent: s.Kind, SessionID: s.SessionID, Cwd: s.Cwd}
	if len(r.named(s.Name)) > 1 {
		target.Name = ""
	}
	return target
}

// named returns the sessions, live or away, with that peer id, name or host session id.
// If several had a name in turn, only the last counts.
func (r *Roster) named(name string) []Known {
	ids := []string{name, r.names[bridge.NormalizeName(name)]}
	for _, kind := range bridge.Kinds() {
		ids = append(ids, r.bound[hostKey(kind, name)])
	}
	var found []Known
	for _, id := range ids {
		if k, ok := r.known[id]; ok && !slices.Contains(found, k) {
			found = append(found, k)
		}
	}
	return found
}

func (r *Roster) isLive(k Known) bool {
	_, live := r.live[k.ID]
	return live
}

func (r *Roster) everyone(senderID string) ([]Recipient, error) {
	var all []Recipient
	for _, s := range r.Live() {
		if s.ID != senderID && s.Host != HostRunner {
			all = append(all, Recipient{ID: s.ID, Name: s.Name, Online: true})
		}
	}
	if len(all) == 0 {
		return nil, bridge.Errorf(bridge.NotFound, "no other session is connected")
	}
	return all, nil
}

func (r *Roster) onlyOf(kind bridge.AgentKind) ([]Recipient, error) {
	var found []Known
	for _, s := range r.Live() {
		if s.Kind == kind && s.Host != HostRunner {
			found = append(found, r.known[s.ID])
		}
	}
	switch len(found) {
	case 0:
		return nil, bridge.Errorf(bridge.NotFound, "no %s session is connected; %s", kind, r.choices(r.liveOnes()))
	case 1:
		return []Recipient{{ID: found[0].ID, Name: found[0].Name, Online: true}}, nil
	default:
		return nil, bridge.Errorf(bridge.Ambiguous, "%d %s sessions are connected; %s", len(found), kind, r.choices(found))
	}
}

func (r *Roster) liveOnes() []Known {
	var live []Known
	for _, s := range r.Live() {
		live = append(live, r.known[s.ID])
	}
	return live
}

// maxCandidates limits the sessions in an error.
const maxCandidates = 20

func (r *Roster) choices(candidates []Known) string {
	if len(candidates) == 0 {
		return "no session is connected"
	}
	var options []string
	for _, k := range candidates[:min(len(candidates), maxCandidates)] {
		options = append(options, r.targetFor(k))
	}
	text := "choose one of " + strings.Join(options, ", ")
	if more := len(candidates) - maxCandidates; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// closestFirst returns the sessions sorted by the similarity of their names to the typed one.
func closestFirst(typed string, sessions []Known) []Known {
	var names []string
	for _, k := range sessions {
		names = append(names, k.Name)
	}
	order := bridge.Closest(typed, names)
	return slices.SortedStableFunc(slices.Values(sessions), func(a, b Known) int {
		return cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name))
	})
}

// targetFor returns a target that matches k alone: its name, or an id if the name is
// another's id.
func (r *Roster) targetFor(k Known) string {
	isAlone := func(name string) bool {
		found := r.named(name)
		return len(found) == 1 && found[0] == k
	}
	for _, id := range []string{k.ID, k.SessionID} {
		if !isAlone(k.Name) && isAlone(id) {
			return fmt.Sprintf("%s (called %s)", id, k.Name)
		}
	}
	return k.Name
}

// clip shortens a refused target for an error.
func clip(target string) string {
	const most = 80
	runes := []rune(target)
	if len(runes) <= most {
		return target
	}
	return string(runes[:most]) + "…"
}
