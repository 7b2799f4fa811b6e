package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/bridge"
)

// Roster is the list of live sessions and the directory of known ones.
type Roster struct {
	live  map[string]*Session // by peer id
	known map[string]Known    // by peer id, live ones included
	bound map[string]string   // host session key -> peer id
	names map[string]string   // name -> peer id of the session that had it last
}

// NewRoster starts with the sessions known from earlier, the newest first.
func NewRoster(known []Known) *Roster {
	r := &Roster{
		live:  map[string]*Session{},
		known: map[string]Known{},
		bound: map[string]string{},
		names: map[string]string{},
	}
	for _, k := range slices.Backward(known) { // the newest wins a shared name
		r.remember(k)
	}
	return r
}

// remember keeps k. Without a host session nobody is bound, so "" finds nobody.
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
		return nil, false // it went on to another host session
	}
	return s, true
}

// ByProcess returns the live sessions of that kind whose agent process is one
// of pids.
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
	slices.SortFunc(all, func(a, b *Session) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Len counts the live sessions.
func (r *Roster) Len() int { return len(r.live) }

// PriorID returns the peer id that a host session had before, "" if it is new.
func (r *Roster) PriorID(kind bridge.AgentKind, sessionID string) string {
	return r.bound[hostKey(kind, sessionID)]
}

// Known returns what is remembered of a peer id.
func (r *Roster) Known(id string) (Known, bool) {
	k, ok := r.known[id]
	return k, ok
}

// Join makes s live under a unique name: wanted, or the name it had before, or
// the default of its kind and folder.
func (r *Roster) Join(s *Session, wanted string) {
	s.named = wanted != ""
	if prior := r.known[s.ID].Name; wanted == "" && bridge.CheckName(prior) == nil { // old stores hold other names
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

// Bind gives a live session its host session id. The children of another one
// stay behind.
func (r *Roster) Bind(s *Session, sessionID string) {
	if s.SessionID != sessionID {
		s.Children, s.ChildrenNote = nil, ""
	}
	s.SessionID = sessionID
	r.remember(Known{ID: s.ID, Name: s.Name, Kind: s.Kind, SessionID: sessionID})
}

// Rekey gives a live session the peer id under which its host session was known
// before. The name stays if it was asked for or the known one is not free. The
// old peer id is forgotten when it stood for no host session; else that host
// session stays known under it. Bind says next which host session s has now.
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

// SetChild records what an event or the CLI's own store says of a native child
// of s. It is the one rule about whose a child is: no live session is a child,
// and where the store of another session holds it an event's claim counts for
// nothing, while a word of the store takes it from those who only claimed it. ok
// is false for a pair that is refused.
func (r *Roster) SetChild(s *Session, said Child) (changed, ok bool) {
	if said.ID == s.SessionID {
		return false, false
	}
	if _, live := r.ByHost(s.Kind, said.ID); live {
		return false, false
	}
	for _, other := range r.live {
		if other == s || other.Kind != s.Kind {
			continue
		}
		at := slices.IndexFunc(other.Children, func(c Child) bool { return c.ID == said.ID })
		switch {
		case at < 0:
		case other.Children[at].Stored || !said.Stored:
			return false, false
		default:
			other.Children = slices.Delete(other.Children, at, at+1)
		}
	}
	return s.setChild(said), true
}

// Leave takes a session off the list; it stays known.
func (r *Roster) Leave(id string) { delete(r.live, id) }

// uniqueName appends -2, -3 … while the name is taken.
func (r *Roster) uniqueName(wanted, id string) string {
	name := wanted
	for n := 2; r.nameTaken(name, id); n++ {
		suffix := fmt.Sprintf("-%d", n)
		name = wanted[:min(len(wanted), bridge.MaxNameChars-len(suffix))] + suffix
	}
	return name
}

// nameTaken reports whether the session id cannot be called name: another live
// one is, or it would pass for the owner (MSG-08).
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

// Recipient is where a message goes.
type Recipient struct {
	ID     string
	Name   string
	Online bool
	// Direct says that the sender named exactly this session, by name or id:
	// what wakeOnDirect asks for (seed 4.4).
	Direct bool
}

// Everyone is the target of all local sessions.
const Everyone = "*"

// Resolve finds whom a target names (MSG-05): a peer id, which no name can take
// over; an exact name or host session id, live before known; an agent kind when
// exactly one is online; `*` for every live session but the sender. Anything
// else is refused with the candidates.
func (r *Roster) Resolve(target, senderID string) ([]Recipient, error) {
	if target == Everyone {
		return r.everyone(senderID)
	}
	if k, ok := r.known[target]; ok {
		return r.single(target, []Known{k})
	}
	if found := r.findLive(target); len(found) > 0 {
		return r.single(target, found)
	}
	if kind, err := bridge.ParseKind(target); err == nil {
		return r.onlyOf(kind)
	}
	if found := r.findKnown(target); len(found) > 0 {
		return r.single(target, found)
	}
	return nil, bridge.Errorf(bridge.NotFound, "no session is called %q; %s", clip(target), choices(r.liveNames()))
}

// single is the one session that target names. The same host session id may
// exist in two kinds.
func (r *Roster) single(target string, found []Known) ([]Recipient, error) {
	if len(found) > 1 {
		var names []string
		for _, k := range found {
			names = append(names, k.Name)
		}
		return nil, bridge.Errorf(bridge.Ambiguous, "%d sessions have the id %q; %s", len(found), clip(target), choices(names))
	}
	_, online := r.live[found[0].ID]
	return []Recipient{{ID: found[0].ID, Name: found[0].Name, Online: online, Direct: true}}, nil
}

func (r *Roster) everyone(senderID string) ([]Recipient, error) {
	var all []Recipient
	for _, s := range r.Live() {
		if s.ID != senderID && !s.Runner {
			all = append(all, Recipient{ID: s.ID, Name: s.Name, Online: true})
		}
	}
	if len(all) == 0 {
		return nil, bridge.Errorf(bridge.NotFound, "no other session is connected")
	}
	return all, nil
}

func (r *Roster) findLive(target string) []Known {
	var byHost []Known
	for _, s := range r.Live() {
		if s.Name == target {
			return []Known{r.known[s.ID]}
		}
		if s.SessionID != "" && s.SessionID == target {
			byHost = append(byHost, r.known[s.ID])
		}
	}
	return byHost
}

func (r *Roster) findKnown(target string) []Known {
	if k, ok := r.known[r.names[target]]; ok {
		return []Known{k}
	}
	var byHost []Known
	for _, kind := range bridge.Kinds() {
		if k, ok := r.known[r.bound[hostKey(kind, target)]]; ok {
			byHost = append(byHost, k)
		}
	}
	return byHost
}

func (r *Roster) onlyOf(kind bridge.AgentKind) ([]Recipient, error) {
	var found []Recipient
	var names []string
	for _, s := range r.Live() {
		if s.Kind == kind && !s.Runner {
			found = append(found, Recipient{ID: s.ID, Name: s.Name, Online: true})
			names = append(names, s.Name)
		}
	}
	switch len(found) {
	case 0:
		return nil, bridge.Errorf(bridge.NotFound, "no %s session is connected; %s", kind, choices(r.liveNames()))
	case 1:
		return found, nil
	default:
		return nil, bridge.Errorf(bridge.Ambiguous, "%d %s sessions are connected; %s", len(found), kind, choices(names))
	}
}

func (r *Roster) liveNames() []string {
	var names []string
	for _, s := range r.Live() {
		names = append(names, s.Name)
	}
	return names
}

// maxCandidates bounds the names in a refusal.
const maxCandidates = 20

func choices(names []string) string {
	if len(names) == 0 {
		return "no session is connected"
	}
	words := "choose one of " + strings.Join(names[:min(len(names), maxCandidates)], ", ")
	if more := len(names) - maxCandidates; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words
}

// clip keeps a refused target readable in an error.
func clip(target string) string {
	const most = 80
	runes := []rune(target)
	if len(runes) <= most {
		return target
	}
	return string(runes[:most]) + "…"
}
