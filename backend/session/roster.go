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

func hostKey(kind bridge.AgentKind, sessionID string) string { return string(kind) + ":" + sessionID }

func (r *Roster) remember(k Known) {
	r.known[k.ID] = k
	r.names[k.Name] = k.ID
	if k.SessionID != "" {
		r.bound[hostKey(k.Kind, k.SessionID)] = k.ID
	}
}

// Get returns the live session with that peer id.
func (r *Roster) Get(id string) (*Session, bool) {
	s, ok := r.live[id]
	return s, ok
}

// ByHost returns the live session of that host session id.
func (r *Roster) ByHost(kind bridge.AgentKind, sessionID string) (*Session, bool) {
	if sessionID == "" {
		return nil, false
	}
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
	if sessionID == "" {
		return ""
	}
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
	if wanted == "" {
		if prior, ok := r.known[s.ID]; ok {
			wanted = prior.Name
		} else {
			wanted = bridge.DefaultName(s.Kind, s.Cwd)
		}
	}
	s.Name = r.uniqueName(wanted, s.ID)
	r.live[s.ID] = s
	r.remember(Known{ID: s.ID, Name: s.Name, Kind: s.Kind, SessionID: s.SessionID})
}

// Bind gives a live session its host session id.
func (r *Roster) Bind(s *Session, sessionID string) {
	s.SessionID = sessionID
	r.remember(Known{ID: s.ID, Name: s.Name, Kind: s.Kind, SessionID: sessionID})
}

// Rekey gives a live session the peer id under which its host session was known
// before. The name stays unless the known one is free.
func (r *Roster) Rekey(s *Session, id string) {
	delete(r.live, s.ID)
	if r.names[s.Name] == s.ID {
		delete(r.names, s.Name)
	}
	delete(r.known, s.ID)
	s.ID = id
	r.Join(s, "")
}

// Leave takes a session off the list; it stays known.
func (r *Roster) Leave(id string) { delete(r.live, id) }

// uniqueName appends -2, -3 … while another live session has the name.
func (r *Roster) uniqueName(wanted, id string) string {
	name := wanted
	for n := 2; r.nameTaken(name, id); n++ {
		suffix := fmt.Sprintf("-%d", n)
		name = wanted[:min(len(wanted), bridge.MaxNameChars-len(suffix))] + suffix
	}
	return name
}

func (r *Roster) nameTaken(name, id string) bool {
	if name == bridge.OwnerName || name == bridge.OwnerID {
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

// Resolve finds whom a target names (MSG-05): an exact name, peer id or host
// session id, live before known; an agent kind when exactly one is online; `*`
// for every live session but the sender. Anything else is refused with the
// candidates.
func (r *Roster) Resolve(target, senderID string) ([]Recipient, error) {
	if target == Everyone {
		return r.everyone(senderID)
	}
	if s, ok := r.findLive(target); ok {
		return []Recipient{{ID: s.ID, Name: s.Name, Online: true, Direct: true}}, nil
	}
	if kind, err := bridge.ParseKind(target); err == nil {
		return r.onlyOf(kind)
	}
	if k, ok := r.findKnown(target); ok {
		return []Recipient{{ID: k.ID, Name: k.Name, Direct: true}}, nil
	}
	return nil, bridge.Errorf(bridge.NotFound, "no session is called %q; %s", clip(target), r.candidates(r.Live()))
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

func (r *Roster) findLive(target string) (*Session, bool) {
	if s, ok := r.live[target]; ok {
		return s, true
	}
	var byHost *Session
	for _, s := range r.live {
		if s.Name == target {
			return s, true
		}
		if s.SessionID == target {
			byHost = s
		}
	}
	return byHost, byHost != nil
}

func (r *Roster) findKnown(target string) (Known, bool) {
	if k, ok := r.known[target]; ok {
		return k, true
	}
	if k, ok := r.known[r.names[target]]; ok {
		return k, true
	}
	for _, kind := range bridge.Kinds() {
		if k, ok := r.known[r.bound[hostKey(kind, target)]]; ok {
			return k, true
		}
	}
	return Known{}, false
}

func (r *Roster) onlyOf(kind bridge.AgentKind) ([]Recipient, error) {
	var found []*Session
	for _, s := range r.Live() {
		if s.Kind == kind && !s.Runner {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return nil, bridge.Errorf(bridge.NotFound, "no %s session is connected; %s", kind, r.candidates(r.Live()))
	case 1:
		return []Recipient{{ID: found[0].ID, Name: found[0].Name, Online: true}}, nil
	default:
		return nil, bridge.Errorf(bridge.Ambiguous, "%d %s sessions are connected; %s", len(found), kind, r.candidates(found))
	}
}

// maxCandidates bounds the names in a refusal.
const maxCandidates = 20

func (r *Roster) candidates(sessions []*Session) string {
	if len(sessions) == 0 {
		return "no session is connected"
	}
	var names []string
	for _, s := range sessions[:min(len(sessions), maxCandidates)] {
		names = append(names, s.Name)
	}
	words := "choose one of " + strings.Join(names, ", ")
	if more := len(sessions) - len(names); more > 0 {
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
