package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

func sessions(addresses ...string) Scope { return Scope{Sessions: addresses} }

func TestDEC_02_RevisionHasExactlyNineMembers(t *testing.T) {
	source, replaced := "m-1", "d-0"
	full := Revision{
		ID: "d-1", Topic: "build", Text: "use <make> & go", Scope: sessions("alice", "p-2"),
		Author:    bridge.Address{ID: "p-1", Name: "claude-app", Agent: bridge.Claude},
		CreatedAt: 1750000000123, SourceMessageID: &source, Supersedes: &replaced, Current: true,
	}
	bare := Revision{ID: "d-2", Topic: "t", Text: "x", Scope: AllSessions()}
	for _, tt := range []struct {
		name     string
		revision Revision
		want     string
	}{
		{"DEC-02 all members set", full, `{"id":"d-1","topic":"build","text":"use \u003cmake\u003e \u0026 go","scope":{"sessions":["alice","p-2"]},` +
			`"author":{"id":"p-1","name":"claude-app","agent":"claude"},"createdAt":1750000000123,"sourceMessageId":"m-1","supersedes":"d-0","current":true}`},
		{"DEC-02 nullable members are null", bare, `{"id":"d-2","topic":"t","text":"x","scope":"all",` +
			`"author":{"id":"","name":"","agent":""},"createdAt":0,"sourceMessageId":null,"supersedes":null,"current":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.revision)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			var back Revision
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.revision, back); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDEC_03_Topics(t *testing.T) {
	for _, tt := range []struct {
		raw, want string
		code      bridge.Code
	}{
		{"build", "build", ""},
		{"  Build  Tool\t\n", "build  tool", ""},
		{"\u00a0ÄRGER\u2003", "ärger", ""},
		{"Ελλάς", "ελλάς", ""},
		{"a/b?c=%20#d \"quoted\"", "a/b?c=%20#d \"quoted\"", ""},
		{strings.Repeat("Ü", 200), strings.Repeat("ü", 200), ""},
		{" " + strings.Repeat("x", 200) + " ", strings.Repeat("x", 200), ""},
		{strings.Repeat("ü", 201), "", bridge.TooLarge},
		{"", "", bridge.Invalid},
		{" \t\u00a0\n", "", bridge.Invalid},
		{"a\nb", "", bridge.Invalid},
		{"a\x00b", "", bridge.Invalid},
		{"a\x7fb", "", bridge.Invalid},
		{"a\u0085b", "", bridge.Invalid},
		{"a\u2028b", "", bridge.Invalid},
		{"a\u2029b", "", bridge.Invalid},
		{"a\xffb", "", bridge.Invalid},
		{"\xc3", "", bridge.Invalid},
	} {
		t.Run(fmt.Sprintf("DEC-03 %.20q", tt.raw), func(t *testing.T) {
			got, err := NormalizeTopic(tt.raw)
			if got != tt.want || bridge.CodeOf(err) != tt.code {
				t.Errorf("NormalizeTopic(%q) = %q, %v; want %q, code %q", tt.raw, got, err, tt.want, tt.code)
			}
		})
	}
}

func TestDEC_03_Texts(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		code       bridge.Code
	}{
		{"one character", "x", ""},
		{"kept as written", "  a\n\tb ", ""},
		{"8,000 characters of 4 bytes", strings.Repeat("😀", 8000), ""},
		{"8,001 characters", strings.Repeat("x", 8001), bridge.TooLarge},
		{"empty", "", bridge.Invalid},
		{"only white space", " \n\u2003", bridge.Invalid},
		{"invalid UTF-8", "a\xff", bridge.Invalid},
	} {
		t.Run("DEC-03 "+tt.name, func(t *testing.T) {
			if err := CheckText(tt.text); bridge.CodeOf(err) != tt.code {
				t.Errorf("got %v, want code %q", err, tt.code)
			}
		})
	}
}

func TestDEC_20_Queries(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		code        bridge.Code
	}{
		{"empty matches everything", "", ""},
		{"1,000 characters of 4 bytes", strings.Repeat("😀", 1000), ""},
		{"1,001 characters", strings.Repeat("x", 1001), bridge.TooLarge},
		{"1,001 wide characters", strings.Repeat("é", 1001), bridge.TooLarge},
		{"invalid UTF-8", "\xff", bridge.Invalid},
	} {
		t.Run("DEC-20 "+tt.name, func(t *testing.T) {
			if err := CheckQuery(tt.query); bridge.CodeOf(err) != tt.code {
				t.Errorf("got %v, want code %q", err, tt.code)
			}
		})
	}
}

// manySessions are 101 names, one more than a scope may hold.
var manySessions = func() (names []string) {
	for i := range 101 {
		names = append(names, strings.Repeat("s", i+1))
	}
	return names
}()

func listOf(addresses []string) string {
	return `{"sessions":["` + strings.Join(addresses, `","`) + `"]}`
}

// scopeForms are scopes as JSON, and what becomes of each.
var scopeForms = []struct {
	name, data string
	want       Scope
	says       string // what a refusal says; "" when accepted
}{
	{"all", `"all"`, AllSessions(), ""},
	{"all with white space and escapes", " \"\\u0061ll\"\n", AllSessions(), ""},
	{"a folder", `{"project":"/home/me/app"}`, Scope{Project: "/home/me/app"}, ""},
	{"a folder is normalized", `{"project":"/home//me/./x/../app/"}`, Scope{Project: "/home/me/app"}, ""},
	{"a Windows folder", `{"project":"C:\\Code\\App\\"}`, Scope{Project: "c:/code/app"}, ""},
	{"a Windows drive's parent is the drive", `{"project":"C:\\.."}`, Scope{Project: "c:"}, ""},
	{"the root", `{"project":"/"}`, Scope{Project: "/"}, ""},
	{"the longest project", `{"project":"/` + strings.Repeat("x", 4_095) + `"}`, Scope{Project: "/" + strings.Repeat("x", 4_095)}, ""},
	{"sessions keep their order and doubles", `{"sessions":["bob","alice","bob"]}`, sessions("bob", "alice", "bob"), ""},
	{"as many sessions as allowed", listOf(manySessions[:100]), sessions(manySessions[:100]...), ""},
	{"a null member is left out", `{"project":null,"sessions":["a"]}`, sessions("a"), ""},

	{"nothing", ``, Scope{}, "empty"},
	{"null", `null`, Scope{}, "not null"},
	{"an unquoted word", `all`, Scope{}, "not valid JSON"},
	{"another case", `"All"`, Scope{}, `the word "All"`},
	{"a padded word", `" all"`, Scope{}, `the word " all"`},
	{"the empty word", `""`, Scope{}, `the word ""`},
	{"a folder as a word", `"/home/me"`, Scope{}, "the word"},
	{"a number", `1`, Scope{}, "malformed scope"},
	{"a list", `["alice"]`, Scope{}, "malformed scope"},
	{"two values", `"all" "all"`, Scope{}, "more than one"},
	{"an empty object", `{}`, Scope{}, "it is empty"},
	{"both", `{"project":"/a","sessions":["b"]}`, Scope{}, "both"},
	{"both, one empty", `{"project":"/a","sessions":[]}`, Scope{}, "both"},
	{"an unknown member", `{"project":"/a","x":1}`, Scope{}, `"x"`},
	{"another case of a member", `{"Project":"/a"}`, Scope{}, `"Project"`},
	{"a member twice", `{"project":"/a","project":"/b"}`, Scope{}, "twice"},
	{"a null project", `{"project":null}`, Scope{}, "it is empty"},
	{"an empty project", `{"project":""}`, Scope{}, "empty"},
	{"a relative project", `{"project":"app"}`, Scope{}, "absolute"},
	{"a dot", `{"project":"."}`, Scope{}, "absolute"},
	{"a home", `{"project":"~/app"}`, Scope{}, "absolute"},
	{"one letter", `{"project":"c"}`, Scope{}, "absolute"},
	{"two letters", `{"project":"ab/c"}`, Scope{}, "absolute"},
	{"relative to a drive", `{"project":"C:app"}`, Scope{}, "absolute"},
	{"relative to the present drive", `{"project":"\\app"}`, Scope{}, "absolute"},
	{"too long a project", `{"project":"/` + strings.Repeat("x", 4_096) + `"}`, Scope{}, "at most"},
	{"a number for a project", `{"project":1}`, Scope{}, `"project" must be a string`},
	{"no sessions", `{"sessions":[]}`, Scope{}, "1 to 100"},
	{"too many sessions", listOf(manySessions), Scope{}, "1 to 100"},
	{"a null session", `{"sessions":["a",null]}`, Scope{}, "empty"},
	{"an empty session", `{"sessions":[""]}`, Scope{}, "empty"},
	{"a session with a space", `{"sessions":["a b"]}`, Scope{}, "printable"},
	{"a string for sessions", `{"sessions":"a"}`, Scope{}, "a list"},
}

func TestDEC_04_ScopeForms(t *testing.T) {
	for _, tt := range scopeForms {
		t.Run("DEC-04 DEC-20 "+tt.name, func(t *testing.T) {
			got, err := ParseScope([]byte(tt.data))
			if tt.says == "" && err != nil {
				t.Fatalf("ParseScope(%s): %v", tt.data, err)
			}
			if tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Fatalf("ParseScope(%s) = %v, want a refusal with %q", tt.data, err, tt.says)
			}
			if code := bridge.CodeOf(err); err != nil && code != bridge.Invalid && code != bridge.TooLarge {
				t.Errorf("the refusal's code is %q", code)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("scope (-want +got):\n%s", diff)
			}
			var read struct {
				Scope *Scope `json:"scope"`
			}
			err = bridge.DecodeStrict([]byte(`{"scope":`+tt.data+`}`), 1<<20, &read)
			if refused := tt.says != "" && tt.data != "null"; (err != nil) != refused {
				t.Errorf("as a member: %v, want refused %t", err, refused)
			}
		})
	}
}

func TestAnEmptyScopeHasNoJSON(t *testing.T) {
	if got, err := json.Marshal(Scope{}); err == nil {
		t.Errorf("it became %s", got)
	}
}

// FuzzScope: parsing never panics, and what it accepts survives being written
// and read again.
func FuzzScope(f *testing.F) {
	for _, seed := range []string{
		`"all"`, `{"project":"/a/../b"}`, `{"project":"C:\\.."}`, `{"project":"\\\\Host\\Share\\.."}`, `{"project":"//x"}`,
		`{"sessions":["a","b"]}`, `{"project":null,"sessions":["a"]}`, `null`, `{}`, `{"project":"c:"}`, `{"sessions":["\u003c"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		scope, err := ParseScope(data)
		if err != nil {
			if code := bridge.CodeOf(err); code != bridge.Invalid && code != bridge.TooLarge {
				t.Fatalf("refused with code %q: %v", code, err)
			}
			return
		}
		set := 0
		for _, has := range []bool{scope.All, scope.Project != "", len(scope.Sessions) > 0} {
			if has {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("%q gave %+v: exactly one form must be set", data, scope)
		}
		written, err := json.Marshal(scope)
		if err != nil {
			t.Fatalf("write %+v: %v", scope, err)
		}
		again, err := ParseScope(written)
		if err != nil {
			t.Fatalf("read %s again: %v", written, err)
		}
		if diff := cmp.Diff(scope, again); diff != "" {
			t.Fatalf("%s is not stable:\n%s", written, diff)
		}
	})
}

// The sessions of the tables below.
var (
	alice   = Target{ID: "p-alice", Name: "alice", Agent: bridge.Claude, SessionID: "h-alice", Cwd: "/work/app/"}
	bob     = Target{ID: "p-bob", Name: "bob", Agent: bridge.Codex, Cwd: `C:\Work\App`}
	nowhere = Target{ID: "p-x", Name: "x", Agent: bridge.Codex}
)

func TestDEC_04_WhomAScopeReaches(t *testing.T) {
	for _, tt := range []struct {
		name   string
		scope  Scope
		target Target
		want   bool
	}{
		{"all", AllSessions(), alice, true},
		{"all without a folder", AllSessions(), nowhere, true},
		{"the exact folder", ProjectOf("/work/app"), alice, true},
		{"another spelling of the folder", ProjectOf("/work//./app/x/.."), alice, true},
		{"a folder inside", ProjectOf("/work/app/sub"), alice, false},
		{"the folder above", ProjectOf("/work"), alice, false},
		{"the root is no folder above", ProjectOf("/"), alice, false},
		{"a longer name", ProjectOf("/work/app2"), alice, false},
		{"another case on Unix", ProjectOf("/work/App"), alice, false},
		{"another case on Windows", ProjectOf("c:/WORK/app"), bob, true},
		{"an unknown folder is no root", ProjectOf("/"), nowhere, false},
		{"its name", sessions("zoe", "alice"), alice, true},
		{"its peer id", sessions("p-alice"), alice, true},
		{"its host session id", sessions("h-alice"), alice, true},
		{"another case of its name", sessions("Alice"), alice, false},
		{"part of its name", sessions("ali"), alice, false},
		{"its kind is no address", sessions("claude"), alice, false},
		{"others", sessions("bob", "p-bob"), alice, false},
		{"no host session id yet", sessions("h-bob"), bob, false},
		{"an empty scope reaches nobody", Scope{}, Target{}, false},
		{"an empty host session id is no address", sessions(""), bob, false},
	} {
		t.Run("DEC-04 "+tt.name, func(t *testing.T) {
			if got := tt.scope.Reaches(tt.target); got != tt.want {
				t.Errorf("%+v reaches %s: %t, want %t", tt.scope, tt.target.Name, got, tt.want)
			}
		})
	}
}

func TestDEC_12_ReceiptsFollowTheHostSession(t *testing.T) {
	reloaded := alice
	reloaded.ID, reloaded.Name = "p-other", "alice-2"
	if alice.SessionKey() != reloaded.SessionKey() {
		t.Error("a reloaded session has another key")
	}
	if got := bob.SessionKey(); got != "codex:p-bob" {
		t.Errorf("before the host session is known: %q", got)
	}
	other := alice
	other.Agent = bridge.OpenCode
	if alice.SessionKey() == other.SessionKey() {
		t.Error("two kinds share a key")
	}
}

// stored are revisions of every scope for lookups.
var stored = []Revision{
	{ID: "all", Topic: "global", Text: "for everyone", Scope: AllSessions(), Current: true},
	{ID: "app", Topic: "build", Text: "Use MAKE", Scope: ProjectOf("/work/app"), Current: true},
	{ID: "win", Topic: "build", Text: "use nmake", Scope: ProjectOf(`C:\Work\App`), Current: true},
	{ID: "alice", Topic: "lunch", Text: "at noon", Scope: sessions("alice"), Current: true},
	{ID: "alice-id", Topic: "lunch", Text: "at one", Scope: sessions("p-alice", "bob"), Current: true},
	{ID: "alice-host", Topic: "ÄRGER", Text: "Größe", Scope: sessions("h-alice"), Current: true},
}

func ids(revisions []Revision, keep func(Revision) bool) string {
	var kept []string
	for _, r := range revisions {
		if keep(r) {
			kept = append(kept, r.ID)
		}
	}
	return strings.Join(kept, " ")
}

func TestDEC_05_06_08_Lookups(t *testing.T) {
	scope := func(s Scope) *Scope { return &s }
	for _, tt := range []struct {
		name   string
		lookup Lookup
		want   string
	}{
		{"DEC-17 no scope lists every scope", Lookup{}, "all app win alice alice-id alice-host"},
		{"DEC-05 all gives only global ones", Lookup{Scope: scope(AllSessions())}, "all"},
		{"DEC-05 all gives only global ones, whoever asks", Lookup{Scope: scope(AllSessions()), Asking: &alice}, "all"},
		{"DEC-05 a project gives its own plus global", Lookup{Scope: scope(ProjectOf("/work/app"))}, "all app"},
		{"DEC-05 a project's spelling does not matter", Lookup{Scope: scope(ProjectOf("c:/work/APP/"))}, "all win"},
		{"DEC-05 an unknown project gives the global ones", Lookup{Scope: scope(ProjectOf("/work"))}, "all"},
		{"DEC-05 sessions give those addressed to any plus global", Lookup{Scope: scope(sessions("alice", "bob"))}, "all alice alice-id"},
		{"DEC-05 sessions by host session id", Lookup{Scope: scope(sessions("h-alice"))}, "all alice-host"},
		{"DEC-05 sessions never give a project's", Lookup{Scope: scope(sessions("alice")), Asking: &bob}, "all alice"},
		{"DEC-06 a project also gives what is addressed to the asking session", Lookup{Scope: scope(ProjectOf("/work/app")), Asking: &alice}, "all app alice alice-id alice-host"},
		{"DEC-06 in another project as well", Lookup{Scope: scope(ProjectOf("/other")), Asking: &bob}, "all alice-id"},
		{"DEC-06 not what is addressed to others", Lookup{Scope: scope(ProjectOf("/work/app")), Asking: &nowhere}, "all app"},
		{"DEC-08 the query finds topics", Lookup{Query: "BUILD"}, "app win"},
		{"DEC-08 the query finds texts", Lookup{Query: "make"}, "app win"},
		{"DEC-08 the query finds a part", Lookup{Query: "vERy"}, "all"},
		{"DEC-08 the query is literal", Lookup{Query: "%"}, ""},
		{"DEC-08 the query takes ß for no SS", Lookup{Query: "GRÖSSE"}, ""},
		{"DEC-08 the query folds umlauts", Lookup{Query: "gRÖß"}, "alice-host"},
		{"DEC-08 query and scope", Lookup{Query: "use", Scope: scope(ProjectOf("/work/app"))}, "app"},
		{"DEC-18 a topic is exact", Lookup{Topic: "lunch"}, "alice alice-id"},
		{"DEC-18 a topic is no substring", Lookup{Topic: "lun"}, ""},
		{"DEC-18 topic, query and scope", Lookup{Topic: "lunch", Query: "one", Scope: scope(sessions("bob"))}, "alice-id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ids(stored, tt.lookup.Matches); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDEC_05_ALookupFindsASessionByAllItsWords(t *testing.T) {
	known := []Target{
		{ID: "p1", Name: "api", SessionID: "h1"},
		{ID: "p2", Name: "web"},
		{ID: "p3", Name: "api", SessionID: "h3"}, // had the name before
	}
	for asked, want := range map[string]string{
		"api": "api p1 h1", "p1": "api p1 h1", "h1": "api p1 h1", "web": "web p2", "p3": "p3 h3", "h3": "p3 h3", "who": "who", "api web": "api p1 h1 web p2",
	} {
		scope := sessions(strings.Fields(asked)...)
		got := Lookup{Scope: &scope, Query: "q"}.Widen(known)
		words := slices.Compact(slices.Sorted(slices.Values(got.Scope.Sessions)))
		if wanted := slices.Sorted(slices.Values(strings.Fields(want))); !slices.Equal(words, wanted) || got.Query != "q" {
			t.Errorf("%q asks for %q, want %q", asked, words, wanted)
		}
		if len(scope.Sessions) != len(strings.Fields(asked)) {
			t.Errorf("%q: the scope asked for became %q", asked, scope.Sessions)
		}
	}
}

func TestDEC_13_WhatApplies(t *testing.T) {
	past := slices.Clone(stored)
	past = append(past, Revision{ID: "old", Scope: AllSessions()}) // superseded
	for _, tt := range []struct {
		target Target
		want   string
	}{
		{alice, "all app alice alice-id alice-host"},
		{bob, "all win alice-id"},
		{nowhere, "all"},
		{Target{ID: "p-alice2", Name: "alice-2", Cwd: "/work/app"}, "all app"}, // relocated here, but another session
	} {
		t.Run("DEC-13 "+tt.target.Name, func(t *testing.T) {
			if got := ids(Applicable(past, tt.target), func(Revision) bool { return true }); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDEC_15_Note(t *testing.T) {
	if got := Note(nil); got != "" {
		t.Errorf("without decisions: %q", got)
	}
	var current []Revision
	for i := range 7 {
		current = append(current, Revision{Topic: fmt.Sprintf("topic-%d", i), Text: fmt.Sprintf("text %d", i)})
	}
	t.Run("DEC-15 at most 5 topics, the newest", func(t *testing.T) {
		lines := strings.Split(Note(current), "\n")
		if len(lines) != 6 {
			t.Fatalf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		for i, line := range lines[1:] {
			if want := fmt.Sprintf("- topic-%d: text %d", i, i); line != want {
				t.Errorf("line %d is %q, want %q", i, line, want)
			}
		}
		if !strings.Contains(lines[0], "7 in force") {
			t.Errorf("it does not say how many there are: %q", lines[0])
		}
	})
	for _, tt := range []struct{ name, text, want string }{
		{"exactly 160", strings.Repeat("x", 160), strings.Repeat("x", 160)},
		{"161", strings.Repeat("x", 161), strings.Repeat("x", 160)},
		{"160 characters, not bytes", strings.Repeat("😀", 170), strings.Repeat("😀", 160)},
		{"white space is folded", " a\r\n\n\tb\u2028c\u00a0 d ", "a b c d"},
		{"folded before it is cut", strings.Repeat("x \n", 100), strings.Repeat("x ", 80)},
		{"no second entry by a line break", "ok\n- forged: yes", "ok - forged: yes"},
	} {
		t.Run("DEC-15 "+tt.name, func(t *testing.T) {
			note := Note([]Revision{{Topic: "t", Text: tt.text}})
			_, got, _ := strings.Cut(note, "\n- t: ")
			if got != tt.want {
				t.Errorf("got %q (%d characters), want %q", got, utf8.RuneCountInString(got), tt.want)
			}
		})
	}
}

func TestDEC_10_ANotificationIsAddressedAsItsScopeIs(t *testing.T) {
	for want, scope := range map[string]Scope{"*": AllSessions(), "/work/app": ProjectOf("/work/app"), "alice, p-2": sessions("alice", "p-2")} {
		if got := scope.Target(); got != want {
			t.Errorf("the target of %+v is %q, want %q", scope, got, want)
		}
	}
}

func TestNotificationSaysWhatItIs(t *testing.T) {
	old := "d-0"
	r := Revision{Topic: `say "hi"`, Text: "line 1\nline 2", Author: bridge.Address{Name: "alice"}}
	for _, tt := range []struct {
		name     string
		scope    Scope
		replaces *string
		want     []string
	}{
		{"all", AllSessions(), nil, []string{`"say \"hi\""`, "all sessions", "by alice", "line 1\nline 2"}},
		{"a project", ProjectOf("/work/app"), nil, []string{"/work/app"}},
		{"sessions", sessions("a", "b"), &old, []string{"the sessions a, b", "replaces the earlier"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.Scope, r.Supersedes = tt.scope, tt.replaces
			body := NotificationBody(r)
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("%q is missing:\n%s", want, body)
				}
			}
			if replaced := strings.Contains(body, "replaces"); replaced != (tt.replaces != nil) {
				t.Errorf("says replaced: %t", replaced)
			}
		})
	}
}

func TestRWM_16_AScopeNamesSessionsInEitherNormalForm(t *testing.T) {
	const composed, decomposed, other = "codex-\u00fcber", "codex-u\u0308ber", "codex-uber"
	for _, stored := range []string{composed, decomposed} {
		scope := Scope{Sessions: []string{stored}}
		if !scope.Reaches(Target{Name: composed}) || scope.Reaches(Target{Name: other}) {
			t.Errorf("recorded for %q, it reaches %s: %t, %s: %t", stored, composed, scope.Reaches(Target{Name: composed}), other, scope.Reaches(Target{Name: other}))
		}
		for asked, want := range map[string]bool{composed: true, decomposed: true, other: false} {
			lookup := Lookup{Scope: &Scope{Sessions: []string{asked}}}
			if got := lookup.Matches(Revision{Scope: scope}); got != want {
				t.Errorf("recorded for %q, asked for %q: %t", stored, asked, got)
			}
		}
	}
}

func TestDEC_06_ARequestBecomesARevision(t *testing.T) {
	named := sessions("alice")
	for _, tt := range []struct {
		name, topic, text string
		scope             *Scope
		cwd               string
		want              Revision
		code              bridge.Code
	}{
		{"for the folder", " Build ", "use make", nil, "/work/app", Revision{Topic: "build", Text: "use make", Scope: ProjectOf("/work/app"), Current: true}, ""},
		{"for named sessions", "build", "use make", &named, "/work/app", Revision{Topic: "build", Text: "use make", Scope: named, Current: true}, ""},
		{"for named sessions, without a folder", "build", "use make", &named, "", Revision{Topic: "build", Text: "use make", Scope: named, Current: true}, ""},
		{"without a scope and a folder", "build", "use make", nil, "", Revision{}, bridge.Invalid},
		{"without a topic", " ", "use make", nil, "/work/app", Revision{}, bridge.Invalid},
		{"without a text", "build", " ", nil, "/work/app", Revision{}, bridge.Invalid},
	} {
		got, err := New(tt.topic, tt.text, tt.scope, tt.cwd)
		if diff := cmp.Diff(tt.want, got); bridge.CodeOf(err) != tt.code || diff != "" {
			t.Errorf("%s: %v %s", tt.name, err, diff)
		}
	}
}

func TestHUB_06_ADecisionSaysWhetherItIsInForce(t *testing.T) {
	replaced, revision := "d-0", &Revision{Author: bridge.Address{Name: "desk/api"}}
	for _, tt := range []struct {
		name             string
		of               News
		inForce, notOurs bool
		replaces         bool
	}{
		{"alone", News{Revision: Revision{Current: true}}, false, false, false},
		{"after another", News{Revision: Revision{Current: true, Supersedes: &replaced}}, false, false, true},
		{"beside another, in force", News{Revision: Revision{Current: true, Supersedes: &replaced}, Beside: revision}, true, false, false},
		{"beside another, not in force", News{Revision: Revision{}, Beside: revision}, false, true, false},
	} {
		tt.of.Scope = AllSessions()
		body := tt.of.Body()
		for words, want := range map[string]bool{"and is in force": tt.inForce, "(not in force: desk/api decided": tt.notOurs, "(it replaces the earlier one)": tt.replaces} {
			if strings.Contains(body, words) != want {
				t.Errorf("%s: %q in %q: want %t", tt.name, words, body, want)
			}
		}
	}
}

func TestDEC_10_EachTargetGetsOneMessageAndOneReceipt(t *testing.T) {
	r := Revision{ID: "d-1", Topic: "build", Text: "use make", Scope: AllSessions(), Author: bridge.Address{ID: "p-0", Name: "alice"}, CreatedAt: 5}
	targets := []Target{{ID: "p-1", Agent: bridge.Claude, SessionID: "h-1"}, {ID: "p-2", Agent: bridge.Codex}}
	message := func(to, body string, at int64) bridge.Message {
		return bridge.Message{ID: "m-1", Recipient: to, From: r.Author, To: "*", ConversationID: "decision-d-1", Hop: 100, Body: body, CreatedAt: at}
	}
	body := NotificationBody(r)
	want := []Notification{{"d-1", "claude:h-1", message("p-1", body, 5)}, {"d-1", "codex:p-2", message("p-2", body, 5)}}
	if diff := cmp.Diff(want, Notifications(r, "m-1", targets)); diff != "" {
		t.Error(diff)
	}
	news := News{Revision: r, Rest: 3}
	want = []Notification{{"d-1", "claude:h-1", message("p-1", news.Body(), 9)}}
	if diff := cmp.Diff(want, news.Notifications("m-1", 9, targets[:1])); diff != "" || news.Body() == body {
		t.Error(diff)
	}
	want = []Notification{{"d-1", "claude:h-1", bridge.Message{CreatedAt: 9}}}
	if diff := cmp.Diff(want, WithoutMessage([]Revision{r}, "claude:h-1", 9)); diff != "" {
		t.Error(diff)
	}
}

func TestVER_05_AStoredScopeIsReadOrNamed(t *testing.T) {
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprint("s", i))
	}
	for _, tt := range []struct {
		stored string
		want   Scope
		why    string // "" where it is read
		newer  bool
	}{
		{`"all"`, AllSessions(), "", false},
		{`all`, AllSessions(), "", false},
		{`{"project":"/work/app"}`, ProjectOf("/work/app"), "", false},
		{`{"sessions":["alice"]}`, sessions("alice"), "", false},
		{`{"project":"","sessions":null}`, Scope{}, "its scope names nobody", false},
		{`{"sessions":[]}`, Scope{}, "its scope names nobody", false},
		{`{"sessions":["alice",""]}`, Scope{}, "its scope names nobody", false},
		{`{}`, Scope{}, "its scope names nobody", false},
		{`{"project":"/a","sessions":["alice"]}`, Scope{}, "its scope has both a project and sessions", true},
		{`{"team":"web"}`, Scope{}, "its scope cannot be read", true},
		{`{"project":"/a","team":"web"}`, Scope{}, "its scope cannot be read", true},
		{`{"project":["/a"]}`, Scope{}, "its scope cannot be read", true},
		{`{"project":"/a","project":"/b"}`, Scope{}, "its scope cannot be read", false},
		{`"everyone"`, Scope{}, "its scope cannot be read", true},
		{`""`, Scope{}, "its scope cannot be read", false},
		{`{"project":`, Scope{}, "its scope cannot be read", false},
		{``, Scope{}, "its scope cannot be read", false},
		{`[]`, Scope{}, "its scope cannot be read", false},
	} {
		got, err := StoredScope(tt.stored)
		diff := cmp.Diff(tt.want, got)
		if tt.why == "" && (err != nil || diff != "") {
			t.Errorf("%s: %v %s", tt.stored, err, diff)
		}
		var unreadable Unreadable
		if tt.why != "" && (!errors.As(err, &unreadable) || unreadable.Error() != tt.why || unreadable.Newer != tt.newer) {
			t.Errorf("%s: %+v %s, want %q, newer %t", tt.stored, err, diff, tt.why, tt.newer)
		}
	}
	if got, err := StoredScope(`{"sessions":[` + strings.Join(many, ",") + `]}`); err != nil || len(got.Sessions) != len(many) {
		t.Errorf("more sessions than may be named now: %v", err)
	}
}
