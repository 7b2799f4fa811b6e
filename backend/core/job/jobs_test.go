package job

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
)

func named(n int) string { return fmt.Sprintf("codex-job-%08x", n) }

func session(name string) Caller { return Caller{Name: name, ID: "id-" + name} }

func jobCaller(name string) Caller { return Caller{Name: name, ID: name, IsJob: true, Inside: true} }

// isOf tells the identity of a session.
func isOf(name string) func(string) bool { return func(id string) bool { return id == "id-"+name } }

func request(access Access) Request {
	return Request{Kind: bridge.Codex, Prompt: "go", Title: "go", Access: access, Timeout: time.Hour}
}

// spawn takes in n jobs of alice, named from first on.
func spawn(t *testing.T, r *Registry, first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		if _, err := r.Spawn(request(AccessEdit), named(i), session("alice"), noon); err != nil {
			t.Fatal(err)
		}
	}
}

func namesOf(jobs []Job) []string {
	var names []string
	for _, job := range jobs {
		names = append(names, job.Name)
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, r *Registry, name string, transition Transition) Job {
	t.Helper()
	job, err := r.Apply(name, transition)
	must(t, err)
	return job
}

var answered = Outcome{State: Finished, Ended: EndAnswer}

func TestJOB_09_EightRunAndTheOthersStandInLine(t *testing.T) {
	r := NewRegistry(Limits{}, nil)
	spawn(t, r, 1, 10)
	if got := len(r.StartNext(noon)); got != 8 {
		t.Fatalf("%d of 10 started", got)
	}
	if limit, running, queued := r.Slots("id-alice"); limit != 8 || running != 8 || queued != 2 {
		t.Errorf("Slots = %d, %d, %d", limit, running, queued)
	}
	apply(t, r, named(3), End(1, answered, noon))
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(9)}) {
		t.Errorf("after one end %q started", got)
	}
	for _, wrong := range []int{0, 51} {
		if r.SetSlots("id-alice", wrong) == nil {
			t.Errorf("a limit of %d was accepted", wrong)
		}
	}
	must(t, r.SetSlots("id-alice", 50))
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(10)}) {
		t.Errorf("with more slots %q started", got)
	}
	must(t, r.SetSlots("id-alice", 1))
	if _, err := r.Spawn(request(AccessRead), named(20), session("bob"), noon); err != nil {
		t.Fatal(err)
	}
	spawn(t, r, 21, 1)
	apply(t, r, named(1), End(1, answered, noon))
	apply(t, r, named(2), End(1, answered, noon))
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(20)}) {
		t.Errorf("alice's tree is full, and %q started", got)
	}
}

func TestJOB_05_AnEndedJobContinuesInLine(t *testing.T) {
	r := NewRegistry(Limits{MaxJobs: 1}, nil)
	spawn(t, r, 1, 3)
	r.StartNext(noon)
	apply(t, r, named(1), Work(1))
	if got, err := r.Message(named(1), "hurry", Settings{}, noon); got != "running" || err != nil {
		t.Errorf("to a running job: %q, %v", got, err)
	}
	if got, err := r.Message(named(2), "and tests", Settings{}, noon); got != "queued" || err != nil {
		t.Errorf("to one in line: %q, %v", got, err)
	}
	_, err := r.Update(named(1), func(j *Job) { j.SessionID = "s1" })
	must(t, err)
	apply(t, r, named(1), End(1, answered, noon))
	if got, err := r.Message(named(1), "once more", Settings{Model: "big", Access: AccessAsk, Title: "again"}, noon); got != "queued" || err != nil {
		t.Errorf("to an ended job, others in line: %q, %v", got, err)
	}
	var order []string
	for range 3 {
		started := r.StartNext(noon)
		if len(started) != 1 {
			t.Fatalf("%d started", len(started))
		}
		order = append(order, started[0].Name+": "+started[0].NextPrompt())
		apply(t, r, started[0].Name, End(started[0].Run, answered, noon))
	}
	want := []string{named(2) + ": go\n\nand tests", named(3) + ": go", named(1) + ": once more"}
	if !slices.Equal(order, want) {
		t.Errorf("they ran as %q, want %q", order, want)
	}
	job, _ := r.Get(named(1))
	if job.Run != 2 || job.Model != "big" || job.Access != AccessAsk || job.Title != "again" || job.FirstStartedAt == 0 {
		t.Errorf("the second run is %+v", job)
	}
	if got, err := r.Message(named(1), "", Settings{Effort: "high"}, noon); got != "" || err != nil {
		t.Errorf("settings alone: %q, %v", got, err)
	}
	if job, _ := r.Get(named(1)); job.State != Finished || job.Effort != "high" {
		t.Errorf("settings alone made it %s with effort %q", job.State, job.Effort)
	}
	if got, err := r.Message(named(3), "go on", Settings{}, noon); got != "continued" || err != nil {
		t.Errorf("with a free slot: %q, %v", got, err)
	}
}

func TestPGE_05_ARunHasTheAuthorsOfItsWords(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  Job
		want []string
	}{
		{"the first prompt", Job{Owner: "api"}, []string{"api"}},
		{"the first prompt after a change of supervisor", Job{Owner: "web", History: []Ownership{{From: "api", To: "web"}}}, []string{"api"}},
		{"the first prompt again, and a message", Job{Owner: "api", NextRun: NextRun{QueuedMessages: []string{"more"}, QueuedAuthors: []string{"you"}}}, []string{"api", "you"}},
		{"one message", Job{Owner: "api", FirstStartedAt: 1, SessionID: "s", NextRun: NextRun{QueuedMessages: []string{"more"}, QueuedAuthors: []string{"you"}}}, []string{"you"}},
		{
			"three messages of two authors",
			Job{Owner: "api", FirstStartedAt: 1, SessionID: "s", NextRun: NextRun{QueuedMessages: []string{"a", "b", "c"}, QueuedAuthors: []string{"you", "api", "you"}}},
			[]string{"you", "api"},
		},
		{"a message of an unknown author", Job{Owner: "api", FirstStartedAt: 1, SessionID: "s", NextRun: NextRun{QueuedMessages: []string{"a", "b"}, QueuedAuthors: []string{"you", ""}}}, nil},
		{"a late message before", Job{Owner: "api", FirstStartedAt: 1, SessionID: "s", NextRun: NextRun{QueuedMessages: []string{"a", "b"}, QueuedAuthors: []string{"you"}}}, nil},
	} {
		if got := tt.job.NextAuthors(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestJOB_05_EveryEndCanBeContinuedAndALostPromptIsSaidAgain(t *testing.T) {
	for _, state := range endedStates {
		r := NewRegistry(Limits{}, []Job{{Name: named(1), State: state, Run: 1, Prompt: "go", FirstStartedAt: 1, SessionID: "s"}})
		if got, err := r.Message(named(1), "more", Settings{}, noon); got != Continued || err != nil {
			t.Errorf("%s: %q, %v", state, got, err)
		}
		if job := r.StartNext(noon)[0]; job.Run != 2 || job.NextPrompt() != "more" || job.State != Starting || job.FinishedAt != 0 || job.Ended != "" {
			t.Errorf("%s: run %d says %q", state, job.Run, job.NextPrompt())
		}
	}
	neverBegun := Job{Prompt: "go", NextRun: NextRun{QueuedMessages: []string{"more"}}, FirstStartedAt: 1}
	if got := neverBegun.NextPrompt(); got != "go\n\nmore" {
		t.Errorf("no session has the prompt, and it is %q", got)
	}
}

func TestJOB_05_OneWriterForEachSession(t *testing.T) {
	r := NewRegistry(Limits{}, []Job{
		{Name: named(1), Agent: bridge.Codex, State: Running, Run: 1, SessionID: "s1"},
		{Name: named(2), Agent: bridge.Codex, State: Finished, Run: 1, SessionID: "s1"},
		{Name: named(3), Agent: bridge.Claude, State: Finished, Run: 1, SessionID: "s1"},
	})
	again := request(AccessRead)
	again.SessionID = "s1"
	if _, err := r.Spawn(again, named(4), session("alice"), noon); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second writer: %v", err)
	}
	if got, err := r.Message(named(2), "more", Settings{}, noon); got != InLine || err != nil {
		t.Errorf("a continuation in a busy session: %q, %v", got, err)
	}
	if got, err := r.Message(named(3), "more", Settings{}, noon); got != Continued || err != nil {
		t.Errorf("another agent's session of that id: %q, %v", got, err)
	}
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(3)}) {
		t.Errorf("%q started", got)
	}
	apply(t, r, named(1), Lose(1, noon, false))
	if _, err := r.Spawn(again, named(4), session("alice"), noon); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a second writer beside one in line: %v", err)
	}
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(2)}) {
		t.Errorf("after it was free %q started", got)
	}
}

// TestJOB_05_ATurnBeginsWithNoMoreThanTheOwnerAllows: words for one that runs, or stands
// in line, begin none.
func TestJOB_05_ATurnBeginsWithNoMoreThanTheOwnerAllows(t *testing.T) {
	for _, tt := range []struct {
		state    State
		words    string
		settings Settings
		code     bridge.Code
	}{
		{Finished, "more", Settings{}, bridge.Denied},
		{Finished, "more", Settings{Access: AccessAsk}, ""},
		{Finished, "", Settings{Title: "new"}, ""},
		{Running, "more", Settings{}, ""},
		{Running, "", Settings{Access: AccessEdit}, bridge.Denied},
		{Queued, "more", Settings{}, ""},
	} {
		r := NewRegistry(Limits{MaxAccess: AccessAsk}, []Job{{Name: named(1), State: tt.state, Run: 1, Access: AccessEdit}})
		if _, err := r.Message(named(1), tt.words, tt.settings, noon); bridge.CodeOf(err) != tt.code {
			t.Errorf("%q with %+v to one that is %s: %v", tt.words, tt.settings, tt.state, err)
		}
	}
}

func TestJOB_05_TwoContinuationsOfOneSessionRunOneAfterTheOther(t *testing.T) {
	r := NewRegistry(Limits{}, []Job{
		{Name: named(1), State: Finished, Run: 1, SessionID: "s1"},
		{Name: named(2), State: Finished, Run: 1, SessionID: "s1"},
	})
	for _, name := range []string{named(2), named(1)} {
		_, err := r.Message(name, "more", Settings{}, noon)
		must(t, err)
	}
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(2)}) {
		t.Errorf("%q started", got)
	}
}

func TestJOB_22_WhatIsDelegatedReachesNoFurther(t *testing.T) {
	const parent = 1
	begin := func(depth int, change func(*Job)) *Registry {
		job := Job{Name: named(parent), Agent: bridge.Codex, State: Running, Run: 1, Owner: "alice", Root: "alice", RootID: "id-alice", Depth: depth, Access: AccessEdit}
		if change != nil {
			change(&job)
		}
		return NewRegistry(Limits{}, []Job{job, {Name: named(8), Agent: bridge.Codex, State: Running, Owner: "bob", Root: "bob", RootID: "id-bob", Depth: 1}})
	}
	with := func(change func(*Request)) Request {
		r := request(AccessRead)
		change(&r)
		return r
	}
	tests := []struct {
		name    string
		r       *Registry
		request Request
		caller  Caller
		allowed bool
	}{
		{"a job of a session's job", begin(1, nil), request(AccessEdit), jobCaller(named(1)), true},
		{"a third level", begin(2, nil), request(AccessRead), jobCaller(named(1)), false},
		{"more access", begin(1, func(j *Job) { j.Access = AccessRead }), request(AccessEdit), jobCaller(named(1)), false},
		{"asking is more than reading", begin(1, func(j *Job) { j.Access = AccessRead }), request(AccessAsk), jobCaller(named(1)), false},
		{"the same access", begin(1, func(j *Job) { j.Access = AccessRead }), request(AccessRead), jobCaller(named(1)), true},
		{"changes elsewhere", begin(1, nil), request(AccessEdit), Caller{Name: named(1), IsJob: true}, false},
		{"reading elsewhere", begin(1, nil), request(AccessRead), Caller{Name: named(1), IsJob: true}, true},
		{"RMT-05 a job of a paired PC delegates", begin(1, func(j *Job) { j.PC = "id-desk" }), request(AccessRead), jobCaller(named(1)), false},
		{"another PC", begin(1, nil), with(func(r *Request) { r.Host = "desk" }), jobCaller(named(1)), false},
		{"an ended job delegates", begin(1, func(j *Job) { j.State = Finished }), request(AccessRead), jobCaller(named(1)), false},
		{"nobody delegates", begin(1, nil), request(AccessRead), jobCaller(named(9)), false},
		{"JOB-12 a grant that it does not have", begin(1, nil), with(func(r *Request) { r.SendTo = []string{"bob"} }), jobCaller(named(1)), false},
		{"JOB-12 a grant to another's job", begin(1, nil), with(func(r *Request) { r.SendTo = []string{named(8)} }), jobCaller(named(1)), false},
		{"a grant that it has", begin(1, func(j *Job) { j.SendTo = []string{"bob"} }), with(func(r *Request) { r.SendTo = []string{"bob"} }), jobCaller(named(1)), true},
		{"its own supervisor", begin(1, nil), with(func(r *Request) { r.SendTo = []string{"alice"} }), jobCaller(named(1)), true},
	}
	for _, tt := range tests {
		_, err := tt.r.Spawn(tt.request, named(7), tt.caller, noon)
		if (err == nil) != tt.allowed {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, has := tt.r.Get(named(7)); has != tt.allowed {
			t.Errorf("%s: the refused job is there", tt.name)
		}
	}
	deep := begin(2, nil)
	deep.limits.MaxDepth = 9 // at most 3 count
	if _, err := deep.Spawn(request(AccessRead), named(7), jobCaller(named(1)), noon); err != nil {
		t.Errorf("a third level of three: %v", err)
	}
	for asked, want := range map[float64]float64{0: 2, 1: 1, 2: 2, 5: 2} {
		cheap := begin(1, func(j *Job) { j.BudgetUSD = 2 })
		job, err := cheap.Spawn(with(func(r *Request) { r.BudgetUSD = asked }), named(7), jobCaller(named(1)), noon)
		if err != nil || job.BudgetUSD != want || job.Depth != 2 || job.RootID != "id-alice" || job.Parent != named(1) {
			t.Errorf("nested with a budget of %v: %+v, %v", asked, job, err)
		}
	}
}

func TestJOB_22_ATreeSharesOneBudgetAndNeverWaitsForItself(t *testing.T) {
	r := NewRegistry(Limits{MaxJobs: 2}, nil)
	spawn(t, r, 1, 2)
	r.StartNext(noon)
	ask := request(AccessRead)
	ask.Ask = true
	if _, err := r.Spawn(ask, "codex-ask-00000003", jobCaller(named(1)), noon); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("an ask that would wait for its own slot: %v", err)
	}
	if _, has := r.Get("codex-ask-00000003"); has {
		t.Error("the refused ask is there")
	}
	if _, err := r.Spawn(request(AccessRead), named(4), jobCaller(named(1)), noon); err != nil {
		t.Errorf("a spawn waits in line: %v", err)
	}
	if got := r.StartNext(noon); len(got) != 0 {
		t.Errorf("%q started over the budget", namesOf(got))
	}
	apply(t, r, named(2), End(1, answered, noon))
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(4)}) {
		t.Errorf("%q started", got)
	}
}

func TestJOB_22_ResultsGoToTheDirectParentOrWhereSomebodyReadsThem(t *testing.T) {
	r := NewRegistry(Limits{MaxDepth: 3}, []Job{
		{Name: named(1), State: Running, Owner: "alice", Supervisor: "id-alice", Root: "alice", RootID: "id-alice"},
		{Name: named(2), State: Running, Owner: named(1), Supervisor: "id-" + named(1), Parent: named(1), Root: "alice", RootID: "id-alice"},
		{Name: named(3), State: Running, Owner: named(2), Supervisor: "id-" + named(2), Parent: named(2), Root: "alice", RootID: "id-alice", Run: 1},
	})
	third, _ := r.Get(named(3))
	for up, want := range []string{named(2), named(1), "alice", ""} {
		if got, has := r.AnswersTo(third, up); got.Name != want || has != (want != "") {
			t.Errorf("%d levels up is %+v, %t; want %q", up, got, has, want)
		}
	}
	check := func(want string) {
		t.Helper()
		third, _ := r.Get(named(3))
		if got, has := r.AnswersTo(third, 0); got.Name != want || got.ID != "id-"+want || got.IsJob != IsName(want) || !has {
			t.Errorf("it answers to %+v, %t; want %q", got, has, want)
		}
	}
	check(named(2))
	apply(t, r, named(2), End(0, answered, noon))
	check(named(1))
	_, err := r.Message(named(2), "more", Settings{}, noon) // in line it goes on
	must(t, err)
	check(named(2))
	_, err = r.Cancel(named(2), noon)
	must(t, err)
	check(named(1))
	apply(t, r, named(1), End(0, answered, noon))
	check("alice")
	must(t, r.Forget(named(2)))
	check("alice")
	if got, has := r.AnswersTo(third, 1); has {
		t.Errorf("above the session at the top is %+v", got)
	}
	if err := r.Forget(named(3)); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a running job was forgotten: %v", err)
	}
}

func TestJOB_23_AllAreHandedOverOrNone(t *testing.T) {
	begin := func() *Registry {
		return NewRegistry(Limits{}, []Job{
			{Name: named(1), State: Running, Owner: "alice", Supervisor: "id-alice", Root: "alice", RootID: "id-alice", Depth: 1},
			{Name: named(2), State: Running, Owner: named(1), Parent: named(1), Root: "alice", RootID: "id-alice", Depth: 2},
			{Name: named(3), State: Finished, Owner: "alice", Supervisor: "id-alice", Root: "alice", RootID: "id-alice", Depth: 1, History: []Ownership{{From: "zoe", To: "alice", At: 1}}},
			{Name: named(4), State: Running, Owner: "carol", Supervisor: "id-carol", Root: "carol", RootID: "id-carol", Depth: 1},
		})
	}
	remote := begin()
	remote.jobs[named(5)] = &Job{Name: named(5), State: Running, Owner: "alice", Supervisor: "id-alice", Remote: &Remote{Host: "desk"}}
	refused := []struct {
		name    string
		r       *Registry
		handoff Handoff
		to      Caller
	}{
		{"somebody else's job", begin(), Handoff{Jobs: []string{named(1), named(4)}}, session("bob")},
		{"a job that is not there", begin(), Handoff{Jobs: []string{named(1), named(9)}}, session("bob")},
		{"one named twice", begin(), Handoff{Jobs: []string{named(1), named(1)}}, session("bob")},
		{"one on another PC", remote, Handoff{All: true}, session("bob")},
		{"what a job below works on", begin(), Handoff{Jobs: []string{named(2)}}, session("bob")},
		{"to a job", begin(), Handoff{All: true}, jobCaller(named(4))},
		{"to a session of another PC", begin(), Handoff{All: true}, session("desk/bob")},
		{"to oneself", begin(), Handoff{All: true}, session("alice")},
	}
	for _, tt := range refused {
		before := tt.r.All()
		if _, err := tt.r.HandOff(tt.handoff, session("alice"), tt.to, isOf("alice"), noon); err == nil {
			t.Errorf("%s: it was accepted", tt.name)
		}
		if diff := cmp.Diff(before, tt.r.All(), cmp.AllowUnexported(Job{})); diff != "" {
			t.Errorf("%s changed %s", tt.name, diff)
		}
	}
	r := begin()
	moved, err := r.HandOff(Handoff{All: true, Note: "on leave"}, session("alice"), session("bob"), isOf("alice"), noon)
	if err != nil || !slices.Equal(moved, []string{named(1), named(3)}) {
		t.Fatalf("HandOff = %q, %v", moved, err)
	}
	nested, _ := r.Get(named(2))
	if nested.Owner != named(1) || nested.Root != "bob" || nested.RootID != "id-bob" || nested.Depth != 2 {
		t.Errorf("what is below: %+v", nested)
	}
	third, _ := r.Get(named(3))
	want := []Ownership{{From: "zoe", To: "alice", At: 1}, {From: "alice", To: "bob", At: MillisOf(noon), Note: "on leave"}}
	if third.Owner != "bob" || third.Supervisor != "id-bob" || !cmp.Equal(third.History, want) {
		t.Errorf("handed over: %+v", third)
	}
	if caller, _ := r.AnswersTo(third, 0); caller.ID != "id-bob" {
		t.Errorf("it answers to %+v", caller)
	}
}

func TestJOB_09_TheLast200FinishedStay(t *testing.T) {
	var jobs []Job
	for i := range 205 {
		jobs = append(jobs, Job{Name: named(i), State: Finished, FinishedAt: Millis(1000 + i), ResultSent: true})
	}
	jobs[0].ResultSent = false  // its result is not sent yet
	jobs[1].State = Interrupted // may be continued
	jobs[2].FinishedAt = 0      // nobody knows when
	jobs = append(jobs, Job{Name: named(900), State: Running, Parent: named(3)})
	r := NewRegistry(Limits{}, jobs)
	// 203 count: 0, 3 and 4 are over the 200; 0 is not sent, below 3 something runs.
	if got := r.Archivable(time.Time{}); !slices.Equal(got, []string{named(4)}) {
		t.Errorf("Archivable = %q", got)
	}
	apply(t, r, named(900), End(0, answered, noon))
	if first, err := r.MarkSent(named(0), 0); !first || err != nil {
		t.Errorf("MarkSent = %v, %v", first, err)
	}
	if got := r.Archivable(time.Time{}); !slices.Equal(got, []string{named(0), named(3), named(4), named(5)}) {
		t.Errorf("Archivable = %q", got)
	}
}

func TestJOB_12_GrantsSurviveContinuationsAndUpdates(t *testing.T) {
	r := NewRegistry(Limits{}, nil)
	granted := request(AccessRead)
	granted.SendTo = []string{"bob"}
	_, err := r.Spawn(granted, named(1), session("alice"), noon)
	must(t, err)
	r.StartNext(noon)
	apply(t, r, named(1), End(1, answered, noon))
	_, err = r.Message(named(1), "more", Settings{Title: "x"}, noon)
	must(t, err)
	job, err := r.Update(named(1), func(j *Job) { j.SendTo, j.Owner, j.State = []string{"zoe"}, "zoe", Finished })
	if err != nil || !slices.Equal(job.SendTo, []string{"bob"}) || job.Owner != "alice" || job.State != Queued {
		t.Errorf("after a continuation and an update: %+v, %v", job, err)
	}
	job.SendTo[0] = "mallory" // a copy
	if job, _ := r.Get(named(1)); job.SendTo[0] != "bob" {
		t.Error("a caller changed the registry's grants")
	}
}

func TestJOB_22_ACancelledJobTakesAllBelowItAlong(t *testing.T) {
	r := NewRegistry(Limits{MaxJobs: 3, MaxDepth: 3}, nil)
	spawn(t, r, 1, 1)
	r.StartNext(noon)
	for child, parent := range map[int]int{2: 1} {
		_, err := r.Spawn(request(AccessRead), named(child), jobCaller(named(parent)), noon)
		must(t, err)
	}
	spawn(t, r, 5, 1)
	r.StartNext(noon)
	for _, child := range []int{3, 4} {
		_, err := r.Spawn(request(AccessRead), named(child), jobCaller(named(2)), noon)
		must(t, err)
	}
	all, err := r.Cancel(named(1), noon)
	if want := []string{named(1), named(2), named(3), named(4)}; err != nil || !slices.Equal(namesOf(all), want) {
		t.Fatalf("Cancel = %q, %v; want %q", namesOf(all), err, want)
	}
	for n, ends := range map[int]bool{1: true, 2: true, 3: true, 4: true, 5: false} {
		if job, _ := r.Get(named(n)); (job.CancelAsked || job.State == Cancelled) != ends {
			t.Errorf("%s is %s, to be cancelled %t", job.Name, job.State, job.CancelAsked)
		}
	}
}

// TestJOB_23_WhatIsHandedOverIsBelowNobody: also where what was above goes on later.
func TestJOB_23_WhatIsHandedOverIsBelowNobody(t *testing.T) {
	alice := Caller{Name: "alice", ID: "id-alice"}
	isAlice := func(id string) bool { return id == alice.ID }
	of := func(n, depth int, state State, parent string) Job {
		return Job{Name: named(n), State: state, Owner: parent, Parent: parent, Depth: depth, Root: "alice", RootID: "id-alice", Run: 1}
	}
	top := of(1, 1, Finished, "")
	top.Owner, top.Supervisor = "alice", "id-alice"
	r := NewRegistry(Limits{MaxDepth: 3}, []Job{top, of(2, 2, Running, named(1)), of(3, 3, Running, named(2))})
	_, err := r.HandOff(Handoff{All: true}, alice, Caller{Name: named(9), ID: "id-job"}, isAlice, noon)
	if bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("to the name of a job: %v", err)
	}
	_, err = r.HandOff(Handoff{Jobs: []string{named(2)}}, alice, Caller{Name: "bob", ID: "id-bob"}, isAlice, noon)
	must(t, err)
	_, err = r.Message(named(1), "more", Settings{}, noon)
	must(t, err)
	second, _ := r.Get(named(2))
	third, _ := r.Get(named(3))
	if caller, _ := r.AnswersTo(second, 0); caller.Name != "bob" || caller.IsJob || second.Depth != 1 || third.Depth != 2 || third.RootID != "id-bob" {
		t.Errorf("it answers to %+v, at depth %d, and below it is depth %d of %s", caller, second.Depth, third.Depth, third.RootID)
	}
}

func TestCancel(t *testing.T) {
	r := NewRegistry(Limits{MaxJobs: 1}, nil)
	spawn(t, r, 1, 2)
	r.StartNext(noon)
	if all, err := r.Cancel(named(2), noon); err != nil || len(all) != 1 || all[0].State != Cancelled || !all[0].ResultSent {
		t.Errorf("one in line: %+v, %v", all, err)
	}
	if all, err := r.Cancel(named(1), noon); err != nil || len(all) != 1 || all[0].State != Starting || !all[0].CancelAsked {
		t.Errorf("a running one: %+v, %v", all, err)
	}
	if _, err := r.Spawn(request(AccessRead), named(3), jobCaller(named(1)), noon); bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("what is to end gives a job: %v", err)
	}
	apply(t, r, named(1), End(1, answered, noon)) // it came to its end first
	if all, err := r.Cancel(named(1), noon); err != nil || len(all) != 0 {
		t.Errorf("an ended one: %+v, %v", all, err)
	}
	_, err := r.Message(named(1), "more", Settings{}, noon)
	must(t, err)
	if job := r.StartNext(noon)[0]; job.CancelAsked {
		t.Error("the next run begins cancelled")
	}
	apply(t, r, named(1), End(2, answered, noon))
	_, err = r.Message(named(1), "what is not wanted any more", Settings{}, noon)
	must(t, err)
	_, err = r.Cancel(named(1), noon)
	must(t, err)
	_, err = r.Message(named(1), "what is", Settings{}, noon)
	must(t, err)
	if job := r.StartNext(noon)[0]; !slices.Equal(job.QueuedMessages, []string{"what is"}) {
		t.Errorf("after it was taken out of the line it is told %q", job.QueuedMessages)
	}
}

func TestJOB_16_WhatIsCancelledAtALimitWaitsForItsEndNoMore(t *testing.T) {
	for _, state := range endedStates {
		r := NewRegistry(Limits{}, []Job{{Name: named(1), State: state, Run: 1, LimitUntil: MillisOf(noon)}})
		if all, err := r.Cancel(named(1), noon); err != nil || len(all) != 0 {
			t.Errorf("%s: %+v, %v", state, all, err)
		}
		if job, _ := r.Get(named(1)); job.State != state || job.CancelAsked != (state == Limit) {
			t.Errorf("%s is %s, and is cancelled: %t", state, job.State, job.CancelAsked)
		}
	}
}

func TestJobsOfAnotherPCTakeNoSlotHere(t *testing.T) {
	r := NewRegistry(Limits{MaxJobs: 1}, nil)
	far := request(AccessRead)
	far.Host, far.Cwd = "desk", "/src"
	job, err := r.Spawn(far, named(1), session("alice"), noon)
	if err != nil || job.State != Starting || job.Remote.Host != "desk" {
		t.Fatalf("Spawn = %+v, %v", job, err)
	}
	spawn(t, r, 2, 1)
	if got := namesOf(r.StartNext(noon)); !slices.Equal(got, []string{named(2)}) {
		t.Errorf("%q started", got)
	}
	if limit, running, queued := r.Slots("id-alice"); limit != 1 || running != 1 || queued != 0 {
		t.Errorf("%d of %d run, and %d wait", running, limit, queued)
	}
	if _, err := r.Spawn(request(AccessRead), named(1), session("alice"), noon); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("the same name again: %v", err)
	}
}

// TestJOB_09_RegistryModel makes random spawns, ends, losses, messages, cancels and
// hand-offs and checks after each: slots of all and of each tree, the order of the
// line, one writer for each session, and that each run's result counts once.
func TestJOB_09_RegistryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &registryModel{r: NewRegistry(Limits{MaxJobs: 3}, nil), results: map[string]int{}, slots: map[string]int{}}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "spawn": m.spawn, "nest": m.nest, "start": m.start, "end": m.end, "message": m.message,
			"cancel": m.cancel, "hand off": m.handOff, "limit": m.limit, "send": m.send,
		})
	})
}

type registryModel struct {
	r       *Registry
	next    int
	results map[string]int // result id → how often it counted as new
	slots   map[string]int // root → slots that somebody set
}

var people = []string{"alice", "bob"}

func (m *registryModel) draw(t *rapid.T, is func(State) bool) Job {
	var fit []Job
	for _, job := range m.r.All() {
		if is(job.State) {
			fit = append(fit, job)
		}
	}
	if len(fit) == 0 {
		t.Skip("there is none")
	}
	return fit[rapid.IntRange(0, len(fit)-1).Draw(t, "job")]
}

func anyState(State) bool { return true }

func (m *registryModel) spawn(t *rapid.T) {
	m.next++
	r := request(AccessEdit)
	r.SessionID = rapid.SampledFrom([]string{"", "", "s1", "s2"}).Draw(t, "session")
	_, _ = m.r.Spawn(r, named(m.next), session(rapid.SampledFrom(people).Draw(t, "by")), noon)
}

func (m *registryModel) nest(t *rapid.T) {
	m.next++
	r := request(AccessEdit)
	r.Ask = rapid.Bool().Draw(t, "ask")
	job, err := m.r.Spawn(r, named(m.next), jobCaller(m.draw(t, State.IsActive).Name), noon)
	if err != nil || !r.Ask {
		return
	}
	for _, started := range m.r.StartNext(noon) {
		if started.Name == job.Name {
			return
		}
	}
	t.Fatal("a job waits for an answer of one that waits for its slot")
}

func (m *registryModel) start(t *rapid.T) {
	line := m.r.All()
	started := m.r.StartNext(noon)
	for _, job := range started {
		for _, before := range line { // sorted by their place
			if before.Name == job.Name {
				break
			}
			now, _ := m.r.Get(before.Name)
			if now.State == Queued && now.RootID == job.RootID && now.SessionID == "" {
				t.Fatalf("%s started before %s, which stands before it", job.Name, before.Name)
			}
		}
	}
	m.checkSlots(t, started)
	if again := m.r.StartNext(noon); len(again) > 0 {
		t.Fatalf("%q were left", namesOf(again))
	}
}

// checkSlots checks the slots as often as some are given: a lower limit or a
// hand-off ends nothing.
func (m *registryModel) checkSlots(t *rapid.T, started []Job) {
	slots := func(root string) int { return stdcmp.Or(m.slots[root], 3) }
	running, bound, trees := 0, 3, map[string]int{}
	for _, job := range m.r.All() {
		if job.State.IsActive() {
			running++
			trees[job.RootID]++
		}
	}
	for root := range m.slots {
		bound = max(bound, slots(root))
	}
	for _, job := range started {
		if running > bound || trees[job.RootID] > slots(job.RootID) {
			t.Fatalf("%d run of %d, and %d of %d in the tree of %s", running, bound, trees[job.RootID], slots(job.RootID), job.Root)
		}
	}
}

func (m *registryModel) end(t *rapid.T) {
	job := m.draw(t, State.IsActive)
	if rapid.Bool().Draw(t, "works") {
		if _, err := m.r.Apply(job.Name, Work(job.Run)); err != nil {
			t.Fatal(err)
		}
		_, _ = m.r.Update(job.Name, func(j *Job) { j.SessionID = "of-" + job.Name })
	}
	end := End(job.Run, answered, noon)
	if rapid.Bool().Draw(t, "lost") {
		end = Lose(job.Run, noon, false)
	}
	if _, err := m.r.Apply(job.Name, end); err != nil {
		t.Fatal(err)
	}
	if _, err := m.r.Apply(job.Name, End(job.Run, answered, noon)); err == nil {
		t.Fatal("a run ended twice")
	}
}

func (m *registryModel) message(t *rapid.T) {
	job := m.draw(t, anyState)
	delivery, err := m.r.Message(job.Name, "more", Settings{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	now, _ := m.r.Get(job.Name)
	if (delivery == ToRunning) != job.State.IsActive() || !job.State.IsActive() && (now.State != Queued || len(now.QueuedMessages) != len(job.QueuedMessages)+1) {
		t.Fatalf("a message to a %s job was %s: now %s with %q", job.State, delivery, now.State, now.QueuedMessages)
	}
}

func (m *registryModel) cancel(t *rapid.T) {
	job := m.draw(t, anyState)
	after, err := m.r.Cancel(job.Name, noon)
	now, _ := m.r.Get(job.Name)
	if err != nil || job.State == Queued && now.State != Cancelled || job.State.IsEnded() && now.State != job.State {
		t.Fatalf("cancelling a %s job: %s, %v", job.State, now.State, err)
	}
	for _, entry := range m.r.All() {
		if below := entry.Parent == job.Name; below && !entry.State.IsEnded() && !entry.CancelAsked {
			t.Fatalf("%s below goes on: %v", entry.Name, after)
		}
	}
}

func (m *registryModel) handOff(t *rapid.T) {
	from := rapid.SampledFrom(people).Draw(t, "from")
	to := rapid.SampledFrom(people).Draw(t, "to")
	_, _ = m.r.HandOff(Handoff{All: true}, session(from), session(to), isOf(from), noon)
}

func (m *registryModel) limit(t *rapid.T) {
	root := "id-" + rapid.SampledFrom(people).Draw(t, "root")
	slots := rapid.IntRange(1, 5).Draw(t, "slots")
	if _, running, _ := m.r.Slots(root); running > slots {
		t.Skip("what runs goes on")
	}
	m.slots[root] = slots
	if err := m.r.SetSlots(root, slots); err != nil {
		t.Fatal(err)
	}
}

func (m *registryModel) send(t *rapid.T) {
	job := m.draw(t, State.IsEnded)
	first, err := m.r.MarkSent(job.Name, job.Run)
	if err != nil {
		t.Fatal(err)
	}
	if first {
		m.results[fmt.Sprintf("%s %d", job.Name, job.Run)]++
	}
}

func (m *registryModel) check(t *rapid.T) {
	writers := map[string]string{}
	places := map[int64]string{}
	for _, job := range m.r.All() {
		if other := places[job.Line]; other != "" {
			t.Fatalf("%s and %s stand at the same place", job.Name, other)
		}
		places[job.Line] = job.Name
		if !job.State.IsActive() {
			continue
		}
		if other := writers[job.SessionID]; other != "" && job.SessionID != "" {
			t.Fatalf("%s and %s write to %s", job.Name, other, job.SessionID)
		}
		writers[job.SessionID] = job.Name
		if job.Depth > 2 {
			t.Fatalf("%s is at depth %d", job.Name, job.Depth)
		}
	}
	for id, times := range m.results {
		if times != 1 {
			t.Fatalf("result %s counted %d times", id, times)
		}
	}
	if !slices.IsSortedFunc(m.r.All(), func(a, b Job) int { return strings.Compare(fmt.Sprintf("%09d", a.Line), fmt.Sprintf("%09d", b.Line)) }) {
		t.Fatal("the line is out of order")
	}
}
