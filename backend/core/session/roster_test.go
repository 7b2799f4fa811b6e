package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

// joined is a roster with these live sessions, in order.
func joined(known []Known, live ...Session) (*Roster, map[string]*Session) {
	r := NewRoster(known)
	byID := map[string]*Session{}
	for _, s := range live {
		r.Join(&s, s.Name)
		byID[s.ID] = &s
	}
	return r, byID
}

func TestMSG_03_NamesAreUnique(t *testing.T) {
	long := strings.Repeat("n", 64)
	r := NewRoster(nil)
	for i, tt := range []struct{ wanted, cwd, want string }{
		{"", "/work/app", "claude-app"},
		{"", "/other/app", "claude-app-2"},
		{"claude-app", "", "claude-app-3"},
		{"claude-app-3", "", "claude-app-3-2"},
		{"", "", "claude-session"},
		{long, "", long},
		{long, "", long[:62] + "-2"},
		{long, "", long[:62] + "-3"},
		{"Claude-App", "/work/app", "Claude-App"}, // names differ by case
		{"you", "", "you-2"},                      // MSG-08: nobody passes for the owner
		{"owner", "", "owner-2"},
		{"You", "", "You-2"},
		{"OWNER", "", "OWNER-2"},
	} {
		s := &Session{ID: fmt.Sprint("p", i), Kind: bridge.Claude, Cwd: tt.cwd}
		r.Join(s, tt.wanted)
		if s.Name != tt.want {
			t.Errorf("join %d as %q is called %q, want %q", i, tt.wanted, s.Name, tt.want)
		}
		if err := bridge.CheckName(s.Name); err != nil {
			t.Error(err)
		}
	}
	for i := range 120 { // the suffix grows to three digits
		s := &Session{ID: fmt.Sprint("q", i), Kind: bridge.Claude}
		r.Join(s, long)
		if len(s.Name) != 64 || bridge.CheckName(s.Name) != nil {
			t.Fatalf("name %q", s.Name)
		}
	}
	names := map[string]bool{}
	for _, s := range r.Live() {
		if names[s.Name] {
			t.Errorf("two live sessions are called %q", s.Name)
		}
		names[s.Name] = true
	}
	if len(names) != r.Len() {
		t.Errorf("%d names for %d sessions", len(names), r.Len())
	}
}

func TestMSG_03_WhoComesBackGetsItsName(t *testing.T) {
	r := NewRoster([]Known{
		{ID: "p1", Name: "alice", Kind: bridge.Claude, SessionID: "h1"},
		{ID: "p2", Name: "name with spaces\n", Kind: bridge.Claude}, // an old store's
		{ID: "p3", Name: "", Kind: bridge.Claude},
	})
	for id, want := range map[string]string{"p1": "alice", "p2": "claude-a", "p3": "claude-c"} {
		s := &Session{ID: id, Kind: bridge.Claude, Cwd: map[string]string{"p2": "/a", "p3": "/c"}[id]}
		r.Join(s, "")
		if s.Name != want {
			t.Errorf("%s is called %q, want %q", id, s.Name, want)
		}
	}
}

// targets are sessions whose names and ids are hard to tell apart.
func targets() (*Roster, map[string]*Session) {
	known := []Known{
		{ID: "p-gone", Name: "gone", Kind: bridge.Claude, SessionID: "h-gone"},
		{ID: "p-both1", Name: "both1", Kind: bridge.Claude, SessionID: "h-both"},
		{ID: "p-both2", Name: "both2", Kind: bridge.OpenCode, SessionID: "h-both"},
		{ID: "p-late", Name: "late", Kind: bridge.Codex},
	}
	return joined(known,
		Session{ID: "p-a", Name: "alice", Kind: bridge.Claude, SessionID: "h-a"},
		Session{ID: "p-b", Name: "bob", Kind: bridge.Codex},
		Session{ID: "p-c", Name: "carol", Kind: bridge.Codex, SessionID: "h-c"},
		Session{ID: "p-job", Name: "job-1", Kind: bridge.OpenCode, Host: HostRunner, SessionID: "h-job"},
		Session{ID: "p-d1", Name: "dora", Kind: bridge.Claude, SessionID: "h-twin", Host: HostRunner},
		Session{ID: "p-d2", Name: "dave", Kind: bridge.Codex, SessionID: "h-twin"},
		Session{ID: "p-evil", Name: "p-gone", Kind: bridge.OpenCode}, // calls itself by another's id
		Session{ID: "p-l", Name: "late", Kind: bridge.OpenCode, SessionID: "h-l"},
	)
}

func TestMSG_05_Targets(t *testing.T) {
	r, live := targets()
	to := func(s string, direct bool) []Recipient {
		return []Recipient{{ID: s, Name: live[s].Name, Online: true, Direct: direct}}
	}
	for _, tt := range []struct {
		name, target string
		want         []Recipient
		code         bridge.Code
		says         []string
	}{
		{"exact name", "alice", to("p-a", true), "", nil},
		{"peer id", "p-a", to("p-a", true), "", nil},
		{"host session id", "h-a", to("p-a", true), "", nil},
		{"a runner by name", "job-1", to("p-job", true), "", nil},
		{"kind with one online", "claude", to("p-a", false), "", nil},
		{"kind with several online", "codex", nil, bridge.Ambiguous, []string{"3 codex", "bob", "carol", "dave"}},
		{"kind with none online", "antigravity", nil, bridge.NotFound, []string{"no antigravity session", "alice", "bob"}},
		{"the owner's kind", "owner", nil, bridge.NotFound, []string{"alice"}},
		{"another case of a kind", "Claude", nil, bridge.NotFound, []string{"alice"}},
		{"one's name and the peer id of another that is away", "p-gone", nil, bridge.Ambiguous, []string{`"p-gone" names 2 sessions`, "gone", "p-evil"}},
		{"a known session that is away, by id", "p-both1", []Recipient{{ID: "p-both1", Name: "both1", Direct: true}}, "", nil},
		{"by its name", "gone", []Recipient{{ID: "p-gone", Name: "gone", Direct: true}}, "", nil},
		{"by its host session id", "h-gone", []Recipient{{ID: "p-gone", Name: "gone", Direct: true}}, "", nil},
		{"a live name before one that is away", "late", to("p-l", true), "", nil},
		{"the one that is away by its id", "p-late", []Recipient{{ID: "p-late", Name: "late", Direct: true}}, "", nil},
		{"one host session id in two kinds", "h-twin", nil, bridge.Ambiguous, []string{"2 sessions", "dora", "dave"}},
		{"the same, away", "h-both", nil, bridge.Ambiguous, []string{"2 sessions", "both1", "both2"}},
		{"unknown", "zoe", nil, bridge.NotFound, []string{`"zoe"`, "alice", "bob", "carol"}},
		{"another case of a name", "Alice", nil, bridge.NotFound, []string{"alice"}},
		{"part of a name", "ali", nil, bridge.NotFound, []string{"alice"}},
		{"nothing", "", nil, bridge.NotFound, []string{"alice"}},
		{"a long target", strings.Repeat("x", 80), nil, bridge.NotFound, []string{`x"; choose`}},
		{"a very long target", strings.Repeat("😀", 500), nil, bridge.NotFound, []string{"😀…"}},
	} {
		t.Run("MSG-05 "+tt.name, func(t *testing.T) {
			got, err := r.Resolve(tt.target, "p-a")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("recipients (-want +got):\n%s", diff)
			}
			if bridge.CodeOf(err) != tt.code {
				t.Fatalf("refused with %v, want code %q", err, tt.code)
			}
			for _, word := range tt.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the refusal does not say %q: %v", word, err)
				}
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the refusal has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestMSG_05_AWordThatIsANameAndAnothersIDIsAmbiguous(t *testing.T) {
	known := []Known{
		{ID: "p-away", Name: "away", Kind: bridge.Claude, SessionID: "h-away"},
		{ID: "p-was", Name: "h-b", Kind: bridge.Claude},
	}
	for _, tt := range []struct {
		name, word string
		live       []Session
		want       []string // peer ids, several where the word is refused
	}{
		{"another's host session id", "h-a", []Session{{ID: "p-a", Name: "alice", SessionID: "h-a"}, {ID: "p-x", Name: "h-a"}}, []string{"p-a", "p-x"}},
		{"the name came first", "h-a", []Session{{ID: "p-x", Name: "h-a"}, {ID: "p-a", Name: "alice", SessionID: "h-a"}}, []string{"p-a", "p-x"}},
		{"another's peer id", "p-a", []Session{{ID: "p-a", Name: "alice"}, {ID: "p-x", Name: "p-a"}}, []string{"p-a", "p-x"}},
		{"each is called by the other's id", "h-a", []Session{{ID: "p-a", Name: "h-b", SessionID: "h-a"}, {ID: "p-b", Name: "h-a", SessionID: "h-b"}}, []string{"p-a", "p-b"}},
		{"the host session id of one that is away", "h-away", []Session{{ID: "p-x", Name: "h-away"}}, []string{"p-away", "p-x"}},
		{"the peer id of one that is away", "p-away", []Session{{ID: "p-x", Name: "p-away"}}, []string{"p-away", "p-x"}},
		{"the name of one that is away and a live one's host session id", "h-b", []Session{{ID: "p-b", Name: "bob", SessionID: "h-b"}}, []string{"p-b", "p-was"}},
		{"its own host session id", "h-a", []Session{{ID: "p-a", Name: "h-a", SessionID: "h-a"}}, []string{"p-a"}},
		{"its own peer id", "p-a", []Session{{ID: "p-a", Name: "p-a", SessionID: "h-a"}}, []string{"p-a"}},
	} {
		t.Run("MSG-05 "+tt.name, func(t *testing.T) {
			r := NewRoster(known)
			for _, s := range tt.live {
				s.Kind = bridge.Claude
				r.Join(&s, s.Name)
			}
			got, err := r.Resolve(tt.word, "")
			if len(tt.want) == 1 {
				if err != nil || len(got) != 1 || got[0].ID != tt.want[0] || !got[0].Direct {
					t.Errorf("%s reaches %+v, %v; want %s", tt.word, got, err, tt.want[0])
				}
				return
			}
			if bridge.CodeOf(err) != bridge.Ambiguous || len(got) != 0 {
				t.Fatalf("%s reaches %+v, %v; want it refused as ambiguous", tt.word, got, err)
			}
			var found []string
			_, candidates, _ := strings.Cut(err.Error(), "choose one of ")
			for _, candidate := range strings.Split(candidates, ", ") {
				word, _, _ := strings.Cut(candidate, " ")
				items, err := r.Resolve(word, "")
				if err != nil || len(items) != 1 {
					t.Fatalf("the candidate %q reaches %+v, %v; want one session", word, items, err)
				}
				found = append(found, items[0].ID)
			}
			slices.Sort(found)
			if !slices.Equal(found, tt.want) {
				t.Errorf("the candidates of %q are %v, want %v", err, found, tt.want)
			}
		})
	}
}

func TestDOC_07_TheClosestSessionIsNamedFirst(t *testing.T) {
	r := NewRoster(nil)
	for _, name := range []string{"docs", "api-two", "web", "api"} {
		r.Join(&Session{ID: "id-" + name, Kind: bridge.Claude, SessionID: "s-" + name}, name)
	}
	for typed, first := range map[string]string{"ap": "api, api-two, ", "APO": "api, ", "API": "api, ", "wbe": "web, ", "doc": "docs, "} {
		_, err := r.Resolve(typed, "")
		if bridge.CodeOf(err) != bridge.NotFound || !strings.Contains(err.Error(), "choose one of "+first) {
			t.Errorf("%s: %v, want %s first", typed, err, first)
		}
	}
}

func TestMSG_05_Everyone(t *testing.T) {
	r, _ := joined([]Known{{ID: "p-gone", Name: "gone"}},
		Session{ID: "p-b", Name: "bob", Kind: bridge.Codex},
		Session{ID: "p-a", Name: "alice", Kind: bridge.Claude},
		Session{ID: "p-job", Name: "job", Kind: bridge.Claude, Host: HostRunner},
	)
	for sender, want := range map[string]string{"p-a": "bob", "p-b": "alice", bridge.OwnerID: "alice bob", "p-job": "alice bob"} {
		got, err := r.Resolve("*", sender)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, recipient := range got {
			names = append(names, recipient.Name)
			if recipient.Direct || !recipient.Online {
				t.Errorf("* reaches %+v: it names nobody directly", recipient)
			}
		}
		if strings.Join(names, " ") != want {
			t.Errorf("* from %s reaches %v, want %s", sender, names, want)
		}
	}
	r.Leave("p-b")
	if _, err := r.Resolve("*", "p-a"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("alone: %v", err)
	}
	empty := NewRoster(nil)
	for _, target := range []string{"*", "claude", "x"} {
		if _, err := empty.Resolve(target, "p"); bridge.CodeOf(err) != bridge.NotFound || !strings.Contains(err.Error(), "is connected") {
			t.Errorf("%s in an empty roster: %v", target, err)
		}
	}
}

func TestMSG_05_ManyCandidatesAreCut(t *testing.T) {
	r := NewRoster(nil)
	for range 30 {
		r.Join(&Session{ID: fmt.Sprint("p", r.Len()), Kind: bridge.Codex}, "")
	}
	for _, target := range []string{"codex", "nobody"} {
		_, err := r.Resolve(target, "")
		if err == nil || !strings.Contains(err.Error(), "and 10 more") || strings.Count(err.Error(), ", ") != maxCandidates-1 {
			t.Errorf("%s: %v", target, err)
		}
	}
	for r.Len() > maxCandidates {
		r.Leave(r.Live()[0].ID)
	}
	if _, err := r.Resolve("nobody", ""); err == nil || strings.Contains(err.Error(), "more") || strings.Count(err.Error(), ", ") != maxCandidates-1 {
		t.Errorf("as many as are named: %v", err)
	}
}

func TestSessionsAreListedAsPeopleCount(t *testing.T) {
	r := NewRoster(nil)
	for _, name := range []string{"api-54", "web", "api-9", "api-100", "api"} {
		r.Join(&Session{ID: "p-" + name, Kind: bridge.Codex}, name)
	}
	var names []string
	for _, s := range r.Live() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "api api-9 api-54 api-100 web" {
		t.Errorf("listed as %s", got)
	}
	if _, err := r.Resolve("codex", ""); err == nil || !strings.HasSuffix(err.Error(), "api, api-9, api-54, api-100, web") {
		t.Errorf("the candidates are listed as %v", err)
	}
}

func TestMSG_12_AReusedNameNeverInherits(t *testing.T) {
	r := NewRoster(nil)
	first := &Session{ID: "p1", Kind: bridge.Claude, SessionID: "h1"}
	r.Join(first, "alice")
	r.Leave("p1")
	second := &Session{ID: "p2", Kind: bridge.Claude}
	r.Join(second, "alice")
	if second.Name != "alice" || second.ID != "p2" {
		t.Fatalf("the second is %s called %s", second.ID, second.Name)
	}
	for target, want := range map[string]string{"alice": "p2", "p1": "p1", "h1": "p1", "p2": "p2"} {
		got, err := r.Resolve(target, "")
		if err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("%s reaches %+v, %v; want %s", target, got, err, want)
		}
	}
	r.Leave("p2")
	back := &Session{ID: "p1", Kind: bridge.Claude, SessionID: "h1"}
	r.Join(back, "")
	if back.Name != "alice" {
		t.Errorf("the first came back as %q", back.Name)
	}
	if got, err := r.Resolve("alice", ""); err != nil || got[0].ID != "p1" {
		t.Errorf("alice is %+v, %v", got, err)
	}
	again := &Session{ID: "p2", Kind: bridge.Claude}
	r.Join(again, "")
	if again.Name != "alice-2" || again.ID != "p2" {
		t.Errorf("the second came back as %s called %s", again.ID, again.Name)
	}
}

func TestAFormerNameFindsALiveSession(t *testing.T) {
	r := NewRoster([]Known{{ID: "p1", Name: "old", Kind: bridge.Claude}})
	r.Join(&Session{ID: "p1", Kind: bridge.Claude}, "new")
	got, err := r.Resolve("old", "")
	if want := []Recipient{{ID: "p1", Name: "new", Online: true, Direct: true}}; err != nil || !cmp.Equal(want, got) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestTheNewestOfKnownSessionsHasASharedName(t *testing.T) {
	r := NewRoster([]Known{{ID: "newest", Name: "x", Kind: bridge.Claude, SessionID: "h"}, {ID: "older", Name: "x", Kind: bridge.Claude, SessionID: "h"}})
	for _, target := range []string{"x", "h"} {
		if got, err := r.Resolve(target, ""); err != nil || got[0].ID != "newest" {
			t.Errorf("%s is %+v, %v", target, got, err)
		}
	}
	if got := r.PriorID(bridge.Claude, "h"); got != "newest" {
		t.Errorf("the host session's peer id is %q", got)
	}
}

func TestMSG_03_LearningWhoASessionIs(t *testing.T) {
	for _, tt := range []struct {
		name     string
		known    string // its name, as far as that is known
		wanted   string // asked for, "" for the default
		present  string // host session id before, "" for none
		taken    bool   // somebody else has the known name meanwhile
		wantName string
		away     string // how the present peer id is found afterwards, "" for not at all
	}{
		{"an unnamed one takes the known name", "old", "", "", false, "old", ""},
		{"a named one keeps its name", "old", "mine", "", false, "mine", ""},
		{"the known name is taken", "old", "", "", true, "claude-app", ""},
		{"one that was another before leaves that behind", "old", "", "h-now", false, "old", "claude-app"},
		{"an old store's name that is none", "name with spaces\n", "", "", false, "claude-app", ""},
	} {
		t.Run("MSG-03 "+tt.name, func(t *testing.T) {
			r := NewRoster([]Known{{ID: "p-old", Name: tt.known, Kind: bridge.Claude, SessionID: "h-old"}})
			if tt.taken {
				r.Join(&Session{ID: "p-else", Kind: bridge.Codex}, "old")
			}
			s := &Session{ID: "p-now", Kind: bridge.Claude, Cwd: "/app"}
			r.Join(s, tt.wanted)
			if tt.present != "" {
				r.Bind(s, tt.present)
			}
			r.Rekey(s, r.PriorID(bridge.Claude, "h-old"))
			r.Bind(s, "h-old")
			if s.ID != "p-old" || s.SessionID != "h-old" || s.Name != tt.wantName {
				t.Errorf("it is %s %s called %q, want p-old h-old called %q", s.ID, s.SessionID, s.Name, tt.wantName)
			}
			if got, ok := r.ByHost(bridge.Claude, "h-old"); !ok || got != s {
				t.Errorf("its host session finds %+v", got)
			}
			if _, live := r.Get("p-now"); live {
				t.Error("the old peer id is live")
			}
			got, err := r.Resolve("p-now", "")
			switch {
			case tt.away == "" && bridge.CodeOf(err) != bridge.NotFound:
				t.Errorf("the forgotten peer id finds %+v, %v", got, err)
			case tt.away != "" && (err != nil || got[0].ID != "p-now" || got[0].Online || got[0].Name != tt.away):
				t.Errorf("the session left behind is %+v, %v", got, err)
			case tt.away != "" && r.PriorID(bridge.Claude, tt.present) != "p-now":
				t.Errorf("its host session belongs to %q", r.PriorID(bridge.Claude, tt.present))
			}
		})
	}
	t.Run("to itself changes nothing", func(t *testing.T) {
		r, live := joined(nil, Session{ID: "p", Name: "x", Kind: bridge.Claude, SessionID: "h"})
		r.Rekey(live["p"], "p")
		if s, ok := r.ByHost(bridge.Claude, "h"); !ok || s.Name != "x" {
			t.Errorf("got %+v", s)
		}
	})
}

func TestByProcess(t *testing.T) {
	r, _ := joined(nil,
		Session{ID: "p1", Name: "a", Kind: bridge.Claude, AgentPID: 100},
		Session{ID: "p2", Name: "b", Kind: bridge.Claude, AgentPID: 200},
		Session{ID: "p3", Name: "c", Kind: bridge.Codex, AgentPID: 100},
		Session{ID: "p4", Name: "d", Kind: bridge.Claude, AgentPID: 1},
		Session{ID: "p5", Name: "e", Kind: bridge.Claude},
	)
	for _, tt := range []struct {
		kind bridge.AgentKind
		pids []int
		want string
	}{
		{bridge.Claude, []int{5, 100}, "p1"},
		{bridge.Codex, []int{100}, "p3"},
		{bridge.Claude, []int{100, 200}, "p1 p2"},
		{bridge.Claude, []int{1, 0}, ""}, // everybody stands below init
		{bridge.Claude, nil, ""},
		{bridge.OpenCode, []int{100}, ""},
	} {
		found := map[string]bool{}
		for _, s := range r.ByProcess(tt.kind, tt.pids) {
			found[s.ID] = true
		}
		want := map[string]bool{}
		for _, id := range strings.Fields(tt.want) {
			want[id] = true
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tt.kind, tt.pids, diff)
		}
	}
	r.Leave("p1")
	if found := r.ByProcess(bridge.Claude, []int{100}); len(found) != 0 {
		t.Errorf("one that left is found: %+v", found[0])
	}
}

func TestByHost(t *testing.T) {
	r, live := joined(nil, Session{ID: "p1", Name: "a", Kind: bridge.Claude, SessionID: "h1"})
	for _, tt := range []struct {
		kind bridge.AgentKind
		id   string
		want bool
	}{{bridge.Claude, "h1", true}, {bridge.Codex, "h1", false}, {bridge.Claude, "", false}, {bridge.Claude, "h2", false}} {
		if _, ok := r.ByHost(tt.kind, tt.id); ok != tt.want {
			t.Errorf("%s %q is found: %t", tt.kind, tt.id, ok)
		}
	}
	r.Bind(live["p1"], "h2") // it went on to another host session
	if _, ok := r.ByHost(bridge.Claude, "h1"); ok {
		t.Error("it is still found under the host session that it left")
	}
	if s, ok := r.ByHost(bridge.Claude, "h2"); !ok || s.ID != "p1" {
		t.Error("it is not found under its new host session")
	}
	if r.PriorID(bridge.Claude, "h1") != "p1" || r.PriorID(bridge.Claude, "") != "" || r.PriorID(bridge.Codex, "h1") != "" {
		t.Error("prior peer ids are wrong")
	}
}

func TestChildren(t *testing.T) {
	r, live := joined(nil, Session{ID: "p", Name: "x", Kind: bridge.Claude, SessionID: "h"})
	s := live["p"]
	for i := range maxChildren + 10 {
		r.SetChild(s, Child{ID: fmt.Sprint(i), Title: fmt.Sprint("title ", i)})
	}
	if len(s.Children) != maxChildren || s.Children[0].ID != "10" {
		t.Errorf("%d children, the first is %s", len(s.Children), s.Children[0].ID)
	}
	r.Bind(s, "h")
	if len(s.Children) != maxChildren {
		t.Errorf("to hear its own host session again left it %d children", len(s.Children))
	}
	r.Bind(s, "h2")
	if len(s.Children) != 0 {
		t.Errorf("another host session has the %d children of the one before", len(s.Children))
	}
}

func TestCHT_10_TheNewerWordAboutAChildCounts(t *testing.T) {
	const event, stored = false, true
	word := func(stored bool, at int64, title string, done bool) Child {
		return Child{ID: "c", Title: title, Done: done, At: at, Stored: stored}
	}
	for _, tt := range []struct {
		name    string
		words   []Child
		title   string
		done    bool
		changed bool // by the last word
	}{
		{"the first word", []Child{word(event, 1, "explorer", false)}, "explorer", false, true},
		{"the same again", []Child{word(event, 1, "explorer", false), word(event, 2, "explorer", false)}, "explorer", false, false},
		{"its end does not say its title", []Child{word(event, 1, "explorer", false), word(event, 2, "", true)}, "explorer", true, true},
		{"of two at one moment the later", []Child{word(event, 1, "explorer", false), word(event, 1, "", true)}, "explorer", true, true},
		{"its title is said late", []Child{word(event, 1, "", false), word(event, 2, "explorer", false)}, "explorer", false, true},
		{"the store knows its task", []Child{word(event, 1, "explorer", false), word(stored, 1, "find the bug", false)}, "find the bug", false, true},
		{"its task changes", []Child{word(stored, 1, "find it", false), word(stored, 2, "find the bug", false)}, "find the bug", false, true},
		{"an event does not take the task away", []Child{word(stored, 1, "find the bug", false), word(event, 2, "explorer", true)}, "find the bug", true, true},
		{"nor do two", []Child{word(stored, 1, "find the bug", false), word(event, 2, "", false), word(event, 3, "explorer", false)}, "find the bug", false, false},
		{"nor one after it was known by events", []Child{word(event, 1, "explorer", false), word(stored, 1, "find the bug", false), word(event, 2, "explorer", false)}, "find the bug", false, false},
		{"a store that is behind does not revive it", []Child{word(event, 5, "", true), word(stored, 2, "t", false)}, "t", true, true},
		{"a missed end is learned from the store", []Child{word(event, 5, "", false), word(stored, 9, "t", true)}, "t", true, true},
		{"it is taken up again", []Child{word(stored, 5, "t", true), word(event, 6, "", false), word(stored, 5, "t", true)}, "t", false, false},
	} {
		t.Run("CHT-10 "+tt.name, func(t *testing.T) {
			r, live := joined(nil, Session{ID: "p", Name: "x", Kind: bridge.Claude, SessionID: "h"})
			changed := false
			for _, word := range tt.words {
				var ok bool
				if changed, ok = r.SetChild(live["p"], word); !ok {
					t.Fatalf("%+v is refused", word)
				}
			}
			got := live["p"].Children
			if len(got) != 1 || got[0].Title != tt.title || got[0].Done != tt.done || changed != tt.changed {
				t.Errorf("children %+v, changed %t; want %q done %t, changed %t", got, changed, tt.title, tt.done, tt.changed)
			}
		})
	}
}

func TestCHT_13_ForgedParentsAreRefused(t *testing.T) {
	claimed, stored := Child{ID: "c"}, Child{ID: "c", Stored: true}
	for _, tt := range []struct {
		name      string
		others    *Child // what the other session has
		said      Child
		ok, taken bool // taken: it is the other's no more
	}{
		{"nobody's child", nil, claimed, true, false},
		{"claimed by two", &claimed, claimed, false, false},
		{"claimed, but another's store holds it", &stored, claimed, false, false},
		{"the store takes it from a claim", &claimed, stored, true, true},
		{"two stores", &stored, stored, false, false},
		{"a live session", nil, Child{ID: "h-other", Stored: true}, false, false},
		{"itself", nil, Child{ID: "h", Stored: true}, false, false},
	} {
		t.Run("CHT-13 "+tt.name, func(t *testing.T) {
			r, live := joined(nil,
				Session{ID: "p", Name: "x", Kind: bridge.Codex, SessionID: "h"},
				Session{ID: "o", Name: "y", Kind: bridge.Codex, SessionID: "h-other"})
			if tt.others != nil {
				r.SetChild(live["o"], *tt.others)
			}
			had := len(live["o"].Children)
			if _, ok := r.SetChild(live["p"], tt.said); ok != tt.ok || len(live["p"].Children) != map[bool]int{true: 1}[ok] {
				t.Errorf("taken in: %t, children %+v", ok, live["p"].Children)
			}
			if taken := len(live["o"].Children) < had; taken != tt.taken {
				t.Errorf("the other session has %+v", live["o"].Children)
			}
		})
	}
}

func TestCHT_13_ChildrenOfTwoKindsMayHaveOneID(t *testing.T) {
	r, live := joined(nil,
		Session{ID: "p", Name: "x", Kind: bridge.Codex, SessionID: "h"},
		Session{ID: "o", Name: "y", Kind: bridge.OpenCode, SessionID: "h-other"})
	for id, s := range live {
		if _, ok := r.SetChild(s, Child{ID: "c", Stored: true}); !ok {
			t.Errorf("the child of %s is refused", id)
		}
	}
}

func TestTakesMail(t *testing.T) {
	for event, want := range map[Event]bool{
		EventStart: false, EventPrompt: true, EventPreTool: false, EventTool: true, EventStop: true, EventIdle: true,
		EventEnd: false, EventChildStart: false, EventChildStop: false, "": false, "unknown": false,
	} {
		if got := (HookCall{Event: event}).AcceptsMail(); got != want {
			t.Errorf("%q takes mail: %t", event, got)
		}
		if (HookCall{Event: event, ChildID: "c"}).AcceptsMail() {
			t.Errorf("%q of a native child takes its parent's mail", event)
		}
	}
}

func TestASessionAsTargetAndAddress(t *testing.T) {
	r, live := joined(nil, Session{ID: "p", Name: "n", Kind: bridge.Codex, SessionID: "h", Cwd: "/c"})
	s := live["p"]
	if got := r.Target(s); got.ID != "p" || got.Name != "n" || got.Agent != bridge.Codex || got.SessionID != "h" || got.Cwd != "/c" {
		t.Errorf("target %+v", got)
	}
	if got := s.Address(); got != (bridge.Address{ID: "p", Name: "n", Agent: bridge.Codex}) {
		t.Errorf("address %+v", got)
	}
}

func TestMSG_03_APeerIDOfBeforeIsTheSameSession(t *testing.T) {
	known := []Known{
		{ID: "p-old", Name: "a", Kind: bridge.Claude, SessionID: "h"},
		{ID: "p-kind", Name: "b", Kind: bridge.Codex, SessionID: "h"},
		{ID: "p-other", Name: "c", Kind: bridge.Claude, SessionID: "h-2"},
		{ID: "p-unknown", Name: "d", Kind: bridge.Claude},
	}
	r := NewRoster(known)
	s := &Session{ID: "p-now", Kind: bridge.Claude, SessionID: "h"}
	fresh := &Session{ID: "p-fresh", Kind: bridge.Claude}
	for _, tt := range []struct {
		of   *Session
		id   string
		want bool
	}{
		{s, "p-now", true},
		{s, "p-old", true},
		{s, "p-kind", false},
		{s, "p-other", false},
		{s, "p-unknown", false},
		{s, "p-nobody", false},
		{fresh, "p-fresh", true},
		{fresh, "p-unknown", false},
		{fresh, "p-nobody", false},
	} {
		if got := r.SameSession(tt.of, tt.id); got != tt.want {
			t.Errorf("%s is %s: %t", tt.id, tt.of.ID, got)
		}
	}
}

func TestDEC_05_AWordMayNameOneSessionAtMost(t *testing.T) {
	r, _ := joined(nil, Session{ID: "p-1", Name: "p-2", Kind: bridge.Claude}, Session{ID: "p-2", Name: "web", Kind: bridge.Codex})
	for _, tt := range []struct {
		words []string
		code  bridge.Code
	}{
		{nil, ""}, {[]string{"web", "p-1"}, ""}, {[]string{"nobody-yet"}, ""}, {[]string{"web", "p-2"}, bridge.Ambiguous},
	} {
		if err := r.CheckWords(tt.words...); bridge.CodeOf(err) != tt.code {
			t.Errorf("%q: %v, want %q", tt.words, err, tt.code)
		}
	}
}

func TestMSG_03_ALiveSessionIsRenamed(t *testing.T) {
	r, live := joined(nil, Session{ID: "p-1", Name: "api", Kind: bridge.Claude}, Session{ID: "p-2", Name: "web", Kind: bridge.Claude})
	r.Rename(live["p-1"], "shop")
	r.Rename(live["p-2"], "shop")
	if live["p-1"].Name != "shop" || live["p-2"].Name != "shop-2" {
		t.Errorf("they are called %q and %q", live["p-1"].Name, live["p-2"].Name)
	}
}
