package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

const rid = "6f1b5c1e-6f0e-4d0e-9a63-7a4f0a3c2b11"

var proved = Peer{ID: "theirkey", Name: "laptop"}

// asked wraps a request as it crosses the link.
func asked(request string) string {
	return fmt.Sprintf(`{"kind":"request","rid":%q,"peer":{"id":"x","name":"y","supervisor":"s-1"},"request":%s}`, rid, request)
}

func TestRMT_05_OnlyFourOperationsAndTheirMembers(t *testing.T) {
	const spawn = `"op":"spawn","job":"codex-job-0011aabb","target":"codex"`
	for _, tt := range []struct {
		name, request string
		want          string // part of the refusal; "" is taken
	}{
		{"spawn", `{` + spawn + `,"args":{"prompt":"p","cwd":"/x"}}`, ""},
		{"spawn that asks", `{"op":"spawn","job":"codex-ask-0011aabb","target":"codex","ask":true,"args":{"prompt":"p","cwd":"/x"}}`, ""},
		{"state", `{"op":"state","job":"codex-job-0011aabb"}`, ""},
		{"control with words", `{"op":"control","job":"codex-job-0011aabb","id":"m-1","control":{"job":"codex-job-0011aabb","message":"m"}}`, ""},
		{"control with settings", `{"op":"control","job":"codex-job-0011aabb","id":"m-1","control":{"job":"codex-job-0011aabb","title":"t"}}`, ""},
		{"cancel", `{"op":"control","job":"codex-job-0011aabb","cancel":true}`, ""},
		{"approval", `{"op":"approval","job":"codex-job-0011aabb","id":"a-1","decision":"deny","reason":"no"}`, ""},

		{"another operation", `{"op":"exec","job":"codex-job-0011aabb"}`, `not "exec"`},
		{"none", `{"job":"codex-job-0011aabb"}`, `not ""`},
		{"an unknown member", `{"op":"state","job":"codex-job-0011aabb","path":"/bin/sh"}`, "path"},
		{"a member of another operation", `{"op":"state","job":"codex-job-0011aabb","reason":"r"}`, "another operation"},
		{"no name of a job", `{"op":"state","job":"../x"}`, "not the name of a job"},
		{"send_to", `{` + spawn + `,"args":{"prompt":"p","cwd":"/x","send_to":["api"]}}`, "send_to"},
		{"a third PC", `{` + spawn + `,"args":{"prompt":"p","cwd":"/x","host":"lab"}}`, "not on a third one"},
		{"no folder", `{` + spawn + `,"args":{"prompt":"p"}}`, "cwd"},
		{"a relative folder", `{` + spawn + `,"args":{"prompt":"p","cwd":"x"}}`, "cwd"},
		{"an executable", `{` + spawn + `,"args":{"prompt":"p","cwd":"/x","bin":"/bin/sh"}}`, "bin"},
		{"an environment", `{` + spawn + `,"args":{"prompt":"p","cwd":"/x","env":{"A":"b"}}}`, "env"},
		{"a script", `{` + spawn + `,"args":{"prompt":"p","cwd":"/x","set_up":["sh"]}}`, "set_up"},
		{"another kind than the name's", `{"op":"spawn","job":"codex-job-0011aabb","target":"claude","args":{"prompt":"p","cwd":"/x"}}`, "not the name of a job of claude"},
		{"an agent of this PC's config", `{"op":"spawn","job":"acp-job-0011aabb","target":"acp","args":{"agent":"a","prompt":"p","cwd":"/x"}}`, "claude, codex, opencode"},
		{"words about another job", `{"op":"control","job":"codex-job-0011aabb","id":"m-1","control":{"job":"codex-job-99999999","message":"m"}}`, "its words about"},
		{"an answer among words", `{"op":"control","job":"codex-job-0011aabb","id":"m-1","control":{"job":"codex-job-0011aabb","approval_id":"a","decision":"allow"}}`, "operation of its own"},
		{"a cancellation with words", `{"op":"control","job":"codex-job-0011aabb","cancel":true,"id":"m-1"}`, "says nothing else"},
		{"words without an id", `{"op":"control","job":"codex-job-0011aabb","control":{"job":"codex-job-0011aabb","message":"m"}}`, "id"},
		{"another decision", `{"op":"approval","job":"codex-job-0011aabb","id":"a-1","decision":"always"}`, "decision"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			request, response, err := Parse([]byte(asked(tt.request)), proved)
			if response != nil || request == nil || request.Rid != rid {
				t.Fatalf("it is %+v, %+v", request, response)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("refused with %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRMT_02_ThePeerIsWhoTheLinkProved(t *testing.T) {
	request, _, err := Parse([]byte(asked(`{"op":"state","job":"codex-job-0011aabb"}`)), proved)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Peer{ID: "theirkey", Name: "laptop", Supervisor: "s-1"}); request.Peer != want || request.Peer.Owner() != "theirkey/s-1" {
		t.Errorf("the peer is %+v, the owner %q", request.Peer, request.Peer.Owner())
	}
	for _, peer := range []string{``, `"peer":{"id":"theirkey"},`, `"peer":{"supervisor":""},`, `"peer":{"supervisor":"s","admin":true},`} {
		data := fmt.Sprintf(`{"kind":"request","rid":%q,%s"request":{"op":"state","job":"codex-job-0011aabb"}}`, rid, peer)
		if _, _, err := Parse([]byte(data), proved); err == nil {
			t.Errorf("taken with %q", peer)
		}
	}
}

func TestRMT_04_Payloads(t *testing.T) {
	for _, tt := range []struct{ name, data string }{
		{"no JSON", `x`},
		{"another kind", `{"kind":"command","rid":"` + rid + `"}`},
		{"no rid", `{"kind":"request","peer":{"supervisor":"s"},"request":{"op":"state","job":"codex-job-0011aabb"}}`},
		{"a rid that is no UUID", `{"kind":"response","rid":"1","value":{"alive":true,"approvals":[]}}`},
		{"a response with nothing", `{"kind":"response","rid":"` + rid + `"}`},
		{"a response with both", `{"kind":"response","rid":"` + rid + `","value":{},"error":{"code":"denied","message":"m"}}`},
		{"a response that asks", `{"kind":"response","rid":"` + rid + `","value":{},"request":{}}`},
		{"an unknown member", `{"kind":"response","rid":"` + rid + `","value":{},"token":"t"}`},
	} {
		if request, response, err := Parse([]byte(tt.data), proved); err == nil || request != nil || response != nil {
			t.Errorf("%s: %+v, %+v, %v", tt.name, request, response, err)
		}
	}
}

func TestRMT_04_WhatIsEncodedIsRead(t *testing.T) {
	words := json.RawMessage(`{"job":"codex-job-0011aabb","message":"m"}`)
	for name, r := range map[string]struct {
		request Request
		args    json.RawMessage
	}{
		"spawn":    {Request{Operation: Spawn, Spawn: job.Request{Kind: bridge.Codex}}, json.RawMessage(`{"prompt":"p","cwd":"/x"}`)},
		"state":    {Request{Operation: State}, nil},
		"control":  {Request{Operation: Control, Control: ControlArgs{ID: "m-1"}}, words},
		"cancel":   {Request{Operation: Control, Control: ControlArgs{Cancel: true}}, nil},
		"approval": {Request{Operation: Approval, Approval: "a-1", Decision: job.Allow}, nil},
	} {
		r.request.Rid, r.request.Job, r.request.Peer = rid, "codex-job-0011aabb", Peer{Supervisor: "s-1"}
		data, err := EncodeRequest(r.request, r.args)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Parse(data, proved)
		if err != nil || got.Operation != r.request.Operation || got.Job != r.request.Job || got.Control.Cancel != r.request.Control.Cancel {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a refusal":         {bridge.Errorf(bridge.Denied, "jobs are off"), "jobs are off"},
		"an accident":       {errors.New("open /home/me/secret: no such file"), "something went wrong there: its log says what"},
		"one that is long":  {bridge.Errorf(bridge.Invalid, "%s", strings.Repeat("é", 5000)), strings.Repeat("é", 2000) + "…"},
		"one of 2000 signs": {bridge.Errorf(bridge.Invalid, "%s", strings.Repeat("é", 2000)), strings.Repeat("é", 2000)},
	} {
		data, err := EncodeResponse(Response{Rid: rid, Err: tt.err})
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := Parse(data, proved)
		if err != nil || got.Err == nil || got.Err.Error() != tt.want || bridge.CodeOf(got.Err) != bridge.CodeOf(tt.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	data, err := EncodeResponse(Response{Rid: rid, Value: Value{Alive: true, Approvals: make([]job.Approval, 60)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := Parse(data, proved); err != nil || len(got.Value.Approvals) != 50 || !got.Value.Alive {
		t.Errorf("60 approvals come as %v, %v", got, err)
	}
}

// granted is a policy that allows everything that the tests ask for.
func granted() Policy {
	return Policy{Enabled: true, RemoteJobs: RemoteJobs{
		Enabled: true, AllowRoots: []string{"/srv/w"}, Agents: []bridge.AgentKind{bridge.Codex}, AllowPeers: []string{"laptop"},
	}}
}

func TestRMT_06_EachDefaultDenies(t *testing.T) {
	roots := []string{"/srv/w"}
	places := []Place{{What: "the folder", Given: "/srv/w/a", Canonical: "/srv/w/a"}}
	allow := func(p Policy) error {
		return errors.Join(p.AllowPeer("laptop"), p.AllowAgent(bridge.Codex), p.AllowPlaces("laptop", roots[:len(p.RemoteJobs.AllowRoots)], places))
	}
	if err := allow(granted()); err != nil {
		t.Fatalf("what is allowed is refused: %v", err)
	}
	for rule, change := range map[string]func(*Policy){
		"network.enabled":               func(p *Policy) { p.Enabled = false },
		"network.remoteJobs.enabled":    func(p *Policy) { p.RemoteJobs.Enabled = false },
		"network.remoteJobs.allowPeers": func(p *Policy) { p.RemoteJobs.AllowPeers = nil },
		"network.remoteJobs.agents":     func(p *Policy) { p.RemoteJobs.Agents = nil },
		"network.remoteJobs.allowRoots": func(p *Policy) { p.RemoteJobs.AllowRoots = nil },
	} {
		p := granted()
		change(&p)
		if err := allow(p); err == nil || !strings.Contains(err.Error(), "("+rule+")") {
			t.Errorf("without %s: %v", rule, err)
		}
	}
	if err := (Policy{}).AllowPeer(""); bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("nothing at all: %v", err)
	}
	if err := granted().AllowPeer("Laptop"); bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("another spelling of the name: %v", err)
	}
}

func TestRMT_09_EveryPlaceLiesInAnAllowedRoot(t *testing.T) {
	place := func(given, canonical string) Place {
		return Place{What: "the folder", Given: given, Canonical: canonical}
	}
	for _, tt := range []struct {
		name   string
		roots  []string
		places []Place
		ok     bool
	}{
		{"in it", []string{"/srv/w"}, []Place{place("/srv/w/a", "/srv/w/a")}, true},
		{"itself", []string{"/srv/w"}, []Place{place("/srv/w", "/srv/w")}, true},
		{"in the second one", []string{"", "/other"}, []Place{place("/other/x", "/other/x")}, true},
		{"by a link, which leads inside", []string{"/srv/w"}, []Place{place("/home/link", "/srv/w/a")}, true},
		{"all of several", []string{"/srv/w"}, []Place{place("/srv/w/a", "/srv/w/a"), {What: "its git directory", Given: "/srv/w/a/.git", Canonical: "/srv/w/a/.git"}}, true},

		{"outside", []string{"/srv/w"}, []Place{place("/etc", "/etc")}, false},
		{"above", []string{"/srv/w/a"}, []Place{place("/srv/w", "/srv/w")}, false},
		{"a name that begins alike", []string{"/srv/w"}, []Place{place("/srv/wshop", "/srv/wshop")}, false},
		{"dots", []string{"/srv/w"}, []Place{place("/srv/w/../etc", "/etc")}, false},
		{"dots that come back", []string{"/srv/w"}, []Place{place("/srv/w/../srv/w/a", "/srv/w/a")}, false},
		{"a link that leads outside", []string{"/srv/w"}, []Place{place("/srv/w/link", "/etc")}, false},
		{"its git directory elsewhere", []string{"/srv/w"}, []Place{place("/srv/w/a", "/srv/w/a"), {What: "its git directory", Given: "/home/me/.git", Canonical: "/home/me/.git"}}, false},
		{"relative", []string{"/srv/w"}, []Place{place("work/a", "/srv/w/a")}, false},
		{"empty", []string{"/srv/w"}, []Place{place("", "/srv/w")}, false},
		{"a line break", []string{"/srv/w"}, []Place{place("/srv/w/a\nb", "/srv/w/a\nb")}, false},
		{"NUL", []string{"/srv/w"}, []Place{place("/srv/w/a\x00b", "/srv/w/a")}, false},
		{"a root that is not there", []string{""}, []Place{place("/srv/w/a", "/srv/w/a")}, false},
		{"no root", nil, []Place{place("/srv/w/a", "/srv/w/a")}, false},
		{"no place", []string{"/srv/w"}, nil, false},
	} {
		err := granted().AllowPlaces("laptop", tt.roots, tt.places)
		if (err == nil) != tt.ok || err != nil && bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "/etc") {
			t.Errorf("%s: the refusal says what lies there: %v", tt.name, err)
		}
	}
}

func TestRMT_14_SlidingWindows(t *testing.T) {
	start := time.Unix(1000, 0)
	var w Window
	for i := range 10 {
		if err := w.Take(Spawn, start.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatalf("job %d: %v", i+1, err)
		}
	}
	if err := w.Take(Spawn, start.Add(59*time.Second)); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("the eleventh job in a minute: %v", err)
	}
	if err := w.Take(State, start.Add(59*time.Second)); err != nil {
		t.Errorf("a question beside them: %v", err)
	}
	if err := w.Take(Spawn, start.Add(60*time.Second)); err != nil {
		t.Errorf("when the first is a minute old: %v", err)
	}
	if err := w.Take(Spawn, start.Add(60*time.Second)); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("one more at once: %v", err)
	}

	w = Window{}
	for i := range 600 {
		if err := w.Take(State, start); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	if err := w.Take(State, start.Add(time.Minute-1)); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("request 601: %v", err)
	}
	if err := w.Take(State, start.Add(time.Minute)); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	if err := w.Take(State, start.Add(-time.Hour)); err != nil {
		t.Errorf("after the clock went back: %v", err)
	}
}

func TestRMT_15_AMirrorLivesNinetySeconds(t *testing.T) {
	at := time.Unix(1000, 0)
	m := Mirror{Status: job.Running, AskedAt: at.Add(-time.Hour), HeardAt: at}
	for _, tt := range []struct {
		after time.Duration
		fresh bool
	}{{0, true}, {90*time.Second - 1, true}, {90 * time.Second, false}} {
		now := at.Add(tt.after)
		if m.IsFresh(now) != tt.fresh || (m.Doubt("desk", now) == "") != tt.fresh {
			t.Errorf("after %s: fresh %v, %q", tt.after, m.IsFresh(now), m.Doubt("desk", now))
		}
	}
	zone := time.FixedZone("", 2*3600) // words are those of the clock that asks
	for after, want := range map[time.Duration]string{
		90 * time.Second: "not heard of since 02:16", time.Hour: "not heard of since 02:16",
		24 * time.Hour: "not heard of since 1 Jan 02:16", 365 * 24 * time.Hour: "not heard of since 1 Jan 1970 02:16",
	} {
		if words := m.Doubt("desk", at.Add(after).In(zone)); words != want {
			t.Errorf("after %s it says %q, want %q", after, words, want)
		}
	}
	m.Refused = "jobs for laptop are not allowed here"
	if words := m.Doubt("desk", at.Add(time.Hour).In(zone)); words != "not heard of since 02:16: jobs for laptop are not allowed here" {
		t.Errorf("refused it says %q", words)
	}
	m.Status = job.Finished
	if !m.IsFresh(at.Add(time.Hour)) {
		t.Error("a job that has ended changes no more")
	}
}

func TestRMT_13_AnUnansweredSpawnIsAmbiguousAfterTwentySeconds(t *testing.T) {
	at := time.Unix(1000, 0)
	m := Mirror{Status: job.Starting, AskedAt: at}
	if words := m.Doubt("desk", at.Add(20*time.Second-1)); words != "" {
		t.Errorf("while it is asked it says %q", words)
	}
	if words := m.Doubt("desk", at.Add(20*time.Second)); !strings.Contains(words, "desk did not say whether the job was started") {
		t.Errorf("an ambiguous one says %q", words)
	}
	if TimeoutFor(Spawn) != 20*time.Second || TimeoutFor(State) != 10*time.Second {
		t.Errorf("a spawn may stay unanswered for %s, a question for %s", TimeoutFor(Spawn), TimeoutFor(State))
	}
}

func TestRMT_05_WhatIsReadGoesInFramesOfItsOwn(t *testing.T) {
	const job = `"job":"codex-job-0011aabb"`
	for request, ok := range map[string][2]bool{ // by Parse, by ParseRead
		`{"op":"state",` + job + `}`:                            {true, false},
		`{"op":"log",` + job + `}`:                              {false, true},
		`{"op":"log",` + job + `,"from":7}`:                     {false, true},
		`{"op":"diff",` + job + `,"from":7,"of":"abc"}`:         {false, true},
		`{"op":"log",` + job + `,"from":-1}`:                    {false, false},
		`{"op":"log",` + job + `,"path":"/etc/passwd"}`:         {false, false},
		`{"op":"log","job":"../../etc/passwd"}`:                 {false, false},
		`{"op":"log",` + job + `,"cancel":true}`:                {false, false},
		`{"op":"state",` + job + `,"from":7}`:                   {false, false},
		`{"op":"result",` + job + `,"result":1}`:                {false, true},
		`{"op":"result",` + job + `,"result":0}`:                {false, false},
		`{"op":"result",` + job + `,"result":1,"from":-1}`:      {false, false},
		`{"op":"control",` + job + `,"result":1}`:               {true, false},
		`{"op":"control",` + job + `,"result":-1}`:              {false, false},
		`{"op":"control",` + job + `,"result":1,"id":"m"}`:      {false, false},
		`{"op":"control",` + job + `,"result":1,"cancel":true}`: {false, false},
	} {
		for i, parse := range []func([]byte, Peer) (*Request, *Response, error){Parse, ParseRead} {
			if _, _, err := parse([]byte(asked(request)), proved); (err == nil) != ok[i] {
				t.Errorf("%s, read %v: %v", request, i == 1, err)
			}
		}
	}
	if MaxPartBytes != 256<<10 {
		t.Errorf("a part has %d bytes", MaxPartBytes)
	}
}

func TestSplitName(t *testing.T) {
	got := [][2]string{}
	for _, name := range []string{"codex-job-0011aabb", "desk/codex-job-0011aabb", "/x", "a/b/c"} {
		host, local := SplitName(name)
		got = append(got, [2]string{host, local})
	}
	want := [][2]string{{"", "codex-job-0011aabb"}, {"desk", "codex-job-0011aabb"}, {"", "x"}, {"a", "b/c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(asked(`{"op":"state","job":"codex-job-0011aabb"}`)))
	f.Add([]byte(`{"kind":"response","rid":"` + rid + `","value":{"alive":true,"approvals":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		request, response, err := Parse(data, proved)
		if err == nil && (request == nil) == (response == nil) {
			t.Fatalf("neither a request nor a response: %q", data)
		}
		if request != nil && (request.Peer.ID != proved.ID || request.Peer.Name != proved.Name) {
			t.Fatalf("a request has named its own sender: %q", data)
		}
	})
}

func TestRMT_01_RefusedNames(t *testing.T) {
	for name, want := range map[string]bool{
		"laptop": true, "my-pc_2.home": true, "a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "`": false, "{": false, "@": false, "[": false, ":": false, strings.Repeat("x", 40): true,
		"": false, strings.Repeat("x", 41): false, "a/b": false, ".hidden": false, "-x": false, "é": false, "a b": false, "a\n": false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRMT_09_AFolderIsSpelledPlainly(t *testing.T) {
	root := filepath.VolumeName(t.TempDir()) + string(filepath.Separator)
	for path, ok := range map[string]bool{
		root + "a b": true, root + "a~": true, root + "a..b": true, root + "a\x1fb": false, root + "a\x7fb": false, root + "a\nb": false, filepath.Join("a", "b"): false, "": false,
		root + "a" + string(filepath.Separator) + "..": false,
	} {
		if err := checkSpelling(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestRMT_16_OpenApprovalsAreToldFirst(t *testing.T) {
	var all []job.Approval
	for i := range 2 * maxApprovals {
		state := job.ApprovalApplied
		if i%4 == 0 {
			state = job.ApprovalAsked
		}
		all = append(all, job.Approval{ID: fmt.Sprint(i), State: state, AskedAt: job.Millis(i)})
	}
	told := openFirst(all)
	if len(told) != maxApprovals || all[0].ID != "0" {
		t.Fatalf("%d are told, of a list that begins with %s", len(told), all[0].ID)
	}
	open := maxApprovals / 2 // every fourth of twice as many
	for i, a := range told {
		if isOpen := a.State == job.ApprovalAsked; isOpen != (i < open) {
			t.Errorf("place %d has %s, which is open: %t", i, a.ID, isOpen)
		}
		if i > 0 && i != open && a.AskedAt > told[i-1].AskedAt {
			t.Errorf("place %d has %s, asked after the one before it", i, a.ID)
		}
	}
	if few := openFirst(all[:3]); len(few) != 3 {
		t.Errorf("of three, %d are told", len(few))
	}
}

func TestRMT_04_APayloadFitsAFrame(t *testing.T) {
	of := func(size int) payload {
		return payload{Kind: "request", Request: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
	}
	empty, err := encode(of(0))
	if err != nil {
		t.Fatal(err)
	}
	room := maxPayloadBytes - len(empty)
	for size, code := range map[int]bridge.Code{room: "", room + 1: bridge.TooLarge} {
		if data, err := encode(of(size)); bridge.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

func TestRMT_06_AnAgentOfOnesOwnIsInNoPolicy(t *testing.T) {
	kinds := Agents()
	if slices.Contains(kinds, job.ACP) || len(kinds) != len(job.Kinds())-1 {
		t.Errorf("a policy can allow %q", kinds)
	}
}
