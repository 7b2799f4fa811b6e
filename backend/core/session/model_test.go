package session

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
)

// model is the roster as one would describe it: who is there, who was, and who
// had which name and host session last.
type model struct {
	roster *Roster
	live   map[string]*Session
	known  map[string]Known
	name   map[string]string // name -> the peer id that had it last
	host   map[string]string // kind:host session id -> the peer id that had it last
	next   int
}

func (m *model) note(s *Session) {
	m.known[s.ID] = Known{ID: s.ID, Name: s.Name, Kind: s.Kind, SessionID: s.SessionID}
	m.name[s.Name] = s.ID
	if s.SessionID != "" {
		m.host[string(s.Kind)+":"+s.SessionID] = s.ID
	}
}

var (
	someNames = []string{"", "alice", "bob", "claude", "you", "p1", "h1"}
	someHosts = []string{"h1", "h2", "h3"}
	someKinds = []bridge.AgentKind{bridge.Claude, bridge.Codex}
)

func (m *model) drawLive(t *rapid.T) *Session {
	if len(m.live) == 0 {
		t.Skip("nobody is live")
	}
	ids := make([]string, 0, len(m.live))
	for id := range m.live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return m.live[rapid.SampledFrom(ids).Draw(t, "live")]
}

func (m *model) join(t *rapid.T) {
	s := &Session{Kind: rapid.SampledFrom(someKinds).Draw(t, "kind"), Cwd: "/app", Host: rapid.SampledFrom([]Host{HostOwn, HostServer, HostRunner}).Draw(t, "host")}
	if rapid.Bool().Draw(t, "comes back") && len(m.known) > 0 {
		ids := make([]string, 0, len(m.known))
		for id := range m.known {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		id := rapid.SampledFrom(ids).Draw(t, "id")
		if m.live[id] != nil {
			t.Skip("it is live")
		}
		s.ID, s.Kind, s.SessionID = id, m.known[id].Kind, m.known[id].SessionID
	} else {
		m.next++
		s.ID = fmt.Sprint("p", m.next)
	}
	m.roster.Join(s, rapid.SampledFrom(someNames).Draw(t, "wanted"))
	m.live[s.ID] = s
	m.note(s)
}

func (m *model) leave(t *rapid.T) {
	s := m.drawLive(t)
	m.roster.Leave(s.ID)
	delete(m.live, s.ID)
}

// bind does what the broker does when a session learns who it is.
func (m *model) bind(t *rapid.T) {
	s := m.drawLive(t)
	host := rapid.SampledFrom(someHosts).Draw(t, "host")
	prior := m.host[string(s.Kind)+":"+host]
	if got := m.roster.PriorID(s.Kind, host); got != prior {
		t.Fatalf("PriorID(%s, %s) = %q, want %q", s.Kind, host, got, prior)
	}
	if prior != "" && prior != s.ID && m.live[prior] == nil {
		delete(m.live, s.ID)
		if s.SessionID == "" { // it never was anybody: nothing of it stays
			delete(m.known, s.ID)
			maps.DeleteFunc(m.name, func(_, id string) bool { return id == s.ID })
		}
		m.roster.Rekey(s, prior)
		if s.ID != prior {
			t.Fatalf("rekeyed to %s, want %s", s.ID, prior)
		}
		m.live[s.ID] = s
		m.name[s.Name] = s.ID
	}
	m.roster.Bind(s, host)
	m.note(s)
}

// want is whom the model says that target names: peer ids.
func (m *model) want(target, sender string) []string {
	if target == Everyone {
		return m.pick(func(s *Session) bool { return s.ID != sender && s.Host != HostRunner })
	}
	named := map[string]bool{} // as a set: one session may go by several of its words
	if _, ok := m.known[target]; ok {
		named[target] = true
	}
	if id, ok := m.name[target]; ok {
		named[id] = true
	}
	for _, kind := range someKinds {
		if id, ok := m.host[string(kind)+":"+target]; ok {
			named[id] = true
		}
	}
	isLive := func(id string) bool { return m.live[id] != nil }
	ids := slices.Sorted(maps.Keys(named))
	if slices.Contains(bridge.Kinds(), bridge.AgentKind(target)) && !slices.ContainsFunc(ids, isLive) {
		return m.pick(func(s *Session) bool { return s.Kind == bridge.AgentKind(target) && s.Host != HostRunner })
	}
	return ids
}

func (m *model) pick(keep func(*Session) bool) []string {
	var ids []string
	for id, s := range m.live {
		if keep(s) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (m *model) resolve(t *rapid.T) {
	targets := []string{Everyone, "claude", "codex", "opencode", "nobody", "claude-app", "claude-app-2", "alice-2", "you-2"}
	targets = append(targets, someNames[1:]...)
	targets = append(targets, someHosts...)
	for i := range m.next {
		targets = append(targets, fmt.Sprint("p", i+1))
	}
	target := rapid.SampledFrom(targets).Draw(t, "target")
	sender := fmt.Sprint("p", rapid.IntRange(0, m.next).Draw(t, "sender"))
	want := m.want(target, sender)
	got, err := m.roster.Resolve(target, sender)
	if len(want) == 0 || (len(want) > 1 && target != Everyone) {
		code := bridge.NotFound
		if len(want) > 1 {
			code = bridge.Ambiguous
		}
		if bridge.CodeOf(err) != code {
			t.Fatalf("%q reaches %+v, %v; the model says %v", target, got, err, want)
		}
		return
	}
	var ids []string
	for _, recipient := range got {
		ids = append(ids, recipient.ID)
		if online := m.live[recipient.ID] != nil; recipient.Online != online || recipient.Name != m.known[recipient.ID].Name {
			t.Fatalf("%q reaches %+v, which is online %t and called %q", target, recipient, online, m.known[recipient.ID].Name)
		}
	}
	slices.Sort(ids)
	if err != nil || !slices.Equal(ids, want) {
		t.Fatalf("%q reaches %v, %v; the model says %v", target, ids, err, want)
	}
}

// check holds at every moment.
func (m *model) check(t *rapid.T) {
	names := map[string]string{}
	for _, s := range m.roster.Live() {
		if other, double := names[s.Name]; double {
			t.Fatalf("%s and %s are both called %q", other, s.ID, s.Name)
		}
		names[s.Name] = s.ID
		if bridge.CheckName(s.Name) != nil || s.Name == bridge.OwnerName {
			t.Fatalf("%s is called %q", s.ID, s.Name)
		}
		if m.live[s.ID] != s {
			t.Fatalf("%s is live in the roster alone", s.ID)
		}
		if k, ok := m.roster.Known(s.ID); !ok || k != m.known[s.ID] {
			t.Fatalf("%s is known as %+v, want %+v", s.ID, k, m.known[s.ID])
		}
	}
	if m.roster.Len() != len(m.live) {
		t.Fatalf("%d are live, want %d", m.roster.Len(), len(m.live))
	}
}

func TestMSG_05_12_RosterAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{roster: NewRoster(nil), live: map[string]*Session{}, known: map[string]Known{}, name: map[string]string{}, host: map[string]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"join": m.join, "leave": m.leave, "bind": m.bind, "resolve": m.resolve, "": m.check,
		})
	})
}
