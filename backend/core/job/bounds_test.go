package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

func TestJOB_07_AnAnswerThatNobodyTookUpIsAskedAgain(t *testing.T) {
	for _, tt := range []struct {
		state ApprovalState
		open  bool
	}{
		{ApprovalAsked, true}, {ApprovalAnswered, true}, {ApprovalDelivered, false}, {ApprovalApplied, false}, {ApprovalExpired, false}, {ApprovalWithdrawn, false},
	} {
		a := Approval{State: tt.state, Decision: Allow, AnsweredBy: "alice", AnsweredAt: 5, Reason: "r", ExpiresAt: 9}
		err := a.AskAgain()
		isOpen := a.State == ApprovalAsked && a.Decision == "" && a.AnsweredBy == "" && a.AnsweredAt == 0 && a.Reason == "" && a.ExpiresAt == 9
		if isOpen != tt.open || (err == nil) != tt.open {
			t.Errorf("%s: %v, %+v", tt.state, err, a)
		}
	}
}

func TestJOB_07_WhichApprovalsAreOpenAndWhichAreSettled(t *testing.T) {
	for _, tt := range []struct {
		name          string
		of            Approval
		open, settled bool
	}{
		{"asked", Approval{Job: "j", State: ApprovalAsked, ExpiresAt: MillisOf(noon) + 1}, true, false},
		{"asked, at its end", Approval{Job: "j", State: ApprovalAsked, ExpiresAt: MillisOf(noon)}, false, false},
		{"of a session, which has no end", Approval{Session: "claude-app", State: ApprovalAsked}, true, false},
		{"answered", Approval{Job: "j", State: ApprovalAnswered, ExpiresAt: MillisOf(noon) + 1}, false, false},
		{"delivered", Approval{Job: "j", State: ApprovalDelivered}, false, false},
		{"applied", Approval{Job: "j", State: ApprovalApplied}, false, true},
		{"expired", Approval{Job: "j", State: ApprovalExpired}, false, true},
		{"withdrawn", Approval{Job: "j", State: ApprovalWithdrawn}, false, true},
	} {
		if tt.of.IsOpen(noon) != tt.open || tt.of.IsSettled() != tt.settled {
			t.Errorf("%s: open %t, settled %t", tt.name, tt.of.IsOpen(noon), tt.of.IsSettled())
		}
	}
}

func TestJOB_07_AnApprovalOfTheFieldLivesTenMinutes(t *testing.T) {
	for text, end := range map[string]Millis{
		`{"job":"j","askedAt":1000}`:                                 601_000,
		`{"job":"j","askedAt":1000,"deadline":7}`:                    7,
		`{"session":"claude-app","askedAt":1000}`:                    0,
		`{"session":"claude-app","askedAt":1000,"decision":"allow"}`: 0,
		`{"session":"claude-app","askedAt":1000,"deadline":1000000}`: 1_000_000,
	} {
		var a Approval
		if err := json.Unmarshal([]byte(text), &a); err != nil || a.ExpiresAt != end {
			t.Errorf("%s: %d, %v; want %d", text, a.ExpiresAt, err, end)
		}
	}
}

func TestSEC_03_OnlyTheOwnerLetsAStepOutOfTheSandbox(t *testing.T) {
	for _, tt := range []struct {
		leaves, owner bool
		decision      Decision
		code          bridge.Code
	}{
		{true, false, Allow, bridge.Denied}, {true, true, Allow, ""}, {true, false, Deny, ""}, {false, false, Allow, ""}, {false, true, Allow, ""},
	} {
		if err := (Approval{LeavesSandbox: tt.leaves}).CheckAnswer(tt.owner, tt.decision); bridge.CodeOf(err) != tt.code {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestNED_02_AnAnswerInWordsIsOneAtMost(t *testing.T) {
	choice := bridge.Choice{Question: "Which?", Options: []bridge.ChoiceOption{{Label: "a"}, {Label: "b"}}, Several: true, Words: true}
	for _, tt := range []struct {
		name   string
		chosen []string
		ok     bool
	}{
		{"words", []string{"c"}, true},
		{"words beside an option", []string{"a", "c"}, true},
		{"two answers in words", []string{"c", "d"}, false},
		{"the longest", []string{strings.Repeat("ä", MaxAnswerChars)}, true},
		{"a longer one", []string{strings.Repeat("ä", MaxAnswerChars+1)}, false},
		{"empty words", []string{" "}, false},
	} {
		if err := CheckAnswers([]bridge.Choice{choice}, [][]string{tt.chosen}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestJOB_23_AHandoffNamesSoManyJobsAtMost(t *testing.T) {
	names := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%q", named(i))
		}
		return `{"to":"bob","jobs":[` + strings.Join(list, ",") + `]}`
	}
	for n, code := range map[int]bridge.Code{MaxHandoff: "", MaxHandoff + 1: bridge.TooLarge} {
		if _, err := ParseHandoff([]byte(names(n))); bridge.CodeOf(err) != code {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
}

func TestJOB_11_TheToolsOfAJob(t *testing.T) {
	for _, tt := range []struct {
		delegates, acp bool
		spawns         []string
	}{
		{false, true, nil}, {true, false, []string{"spawn_antigravity", "spawn_claude", "spawn_codex", "spawn_opencode"}}, {true, true, []string{"spawn_acp", "spawn_antigravity", "spawn_claude", "spawn_codex", "spawn_opencode"}},
	} {
		tools := Tools(tt.delegates, tt.acp)
		var spawns []string
		for _, tool := range tools {
			if kind, is := strings.CutPrefix(tool, "spawn_"); is {
				spawns = append(spawns, tool)
				if !slices.Contains(tools, "ask_"+kind) {
					t.Errorf("%+v: %s has no ask_%s", tt, tool, kind)
				}
			}
		}
		slices.Sort(spawns)
		if diff := cmp.Diff(tt.spawns, spawns); diff != "" || slices.Contains(tools, "message_subagent") != tt.delegates || !slices.Contains(tools, "send") {
			t.Errorf("%+v: %q %s", tt, tools, diff)
		}
	}
}

func TestRWM_01_TheFoldersOfGitAreNamedOnce(t *testing.T) {
	for _, tt := range []struct {
		of   Checkout
		want []string
	}{
		{Checkout{GitDir: "/r/.git", Common: "/r/.git"}, []string{"/r/.git"}},
		{Checkout{GitDir: "/r/.git/worktrees/w", Common: "/r/.git"}, []string{"/r/.git", "/r/.git/worktrees/w"}},
	} {
		if diff := cmp.Diff(tt.want, tt.of.GitFolders()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestJOB_03_AResultIsUnsentUntilItWentOut(t *testing.T) {
	for _, tt := range []struct {
		of   Job
		want bool
	}{
		{Job{State: Finished, Run: 1}, true}, {Job{State: Finished, Run: 1, ResultSent: true}, false}, {Job{State: Cancelled}, false}, {Job{State: Running, Run: 1}, false},
	} {
		if got := tt.of.IsUnsent(); got != tt.want {
			t.Errorf("%+v: %t", tt.of, got)
		}
	}
}

func TestRMT_19_AJobOfAPairedPCHasItsHostBeforeItsName(t *testing.T) {
	own := Job{Name: "codex-job-00000001", Agent: bridge.Codex}
	far := own
	far.Mirror, far.Remote = &Mirror{}, &Remote{Host: "desk", Name: "codex-job-00000007"}
	for _, tt := range []struct {
		of   Job
		want bridge.Address
	}{
		{own, bridge.Address{ID: "codex-job-00000001", Name: "codex-job-00000001", Agent: bridge.Codex}},
		{far, bridge.Address{ID: "desk/codex-job-00000007", Name: "desk/codex-job-00000007", Agent: bridge.Codex}},
	} {
		if got := tt.of.Sender(); got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}

func TestJOB_27_LastWordsOfExactlyFourKiBAreWhole(t *testing.T) {
	for size, cut := range map[int]bool{maxLastWords: false, maxLastWords + 1: true} {
		words := Exited{Code: 1, Stderr: strings.Repeat("x", size) + "\n \t \n"}.Words()
		if strings.Contains(words, "…") != cut || strings.HasSuffix(words, "/ ") || strings.HasSuffix(words, "/") {
			t.Errorf("%d bytes: it ends with %q, cut %t", size, words[len(words)-5:], strings.Contains(words, "…"))
		}
	}
	if words := (Exited{Code: 1, Stderr: "a\n \nb\n"}).Words(); words != "exit code 1; it said last: a / b" {
		t.Errorf("a line of blanks is told: %q", words)
	}
}

func TestJOB_22_ATurnBelowReachesNoFurtherThanAJobThatIsGivenNow(t *testing.T) {
	above, below := named(1), named(2)
	for _, tt := range []struct {
		name    string
		access  Access // of the job above
		state   State  // of the job below, which may edit
		control Control
		by      Caller
		code    bridge.Code
	}{
		{"words to one that works", AccessRead, Running, Control{Job: below, Message: "m"}, jobCaller(above), ""},
		{"words to one that ended", AccessRead, Finished, Control{Job: below, Message: "m"}, jobCaller(above), bridge.Denied},
		{"words to one that ended, with its access", AccessEdit, Finished, Control{Job: below, Message: "m"}, jobCaller(above), ""},
		{"no words to one that ended", AccessRead, Finished, Control{Job: below}, jobCaller(above), ""},
		{"more access", AccessRead, Running, Control{Job: below, Settings: Settings{Access: AccessEdit}}, jobCaller(above), bridge.Denied},
		{"the same access", AccessEdit, Running, Control{Job: below, Settings: Settings{Access: AccessEdit}}, jobCaller(above), ""},
		{"changes out of its folder", AccessEdit, Running, Control{Job: below, Settings: Settings{Access: AccessEdit}}, Caller{Name: above, IsJob: true}, bridge.Denied},
		{"a session's word", AccessRead, Finished, Control{Job: below, Message: "m"}, session("alice"), ""},
		{"by a job that is gone", AccessRead, Finished, Control{Job: below, Message: "m"}, jobCaller(named(9)), ""},
		{"to a job that is gone", AccessRead, Finished, Control{Job: named(9), Message: "m"}, jobCaller(above), ""},
	} {
		r := NewRegistry(Limits{}, []Job{{Name: above, State: Running, Access: tt.access}, {Name: below, State: tt.state, Access: AccessEdit, Parent: above}})
		if err := r.CheckTurn(tt.control, tt.by); bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
		}
	}
}

func TestJOB_22_WithoutABudgetAboveThereIsNoneBelow(t *testing.T) {
	for asked, want := range map[float64]float64{0: 0, 3: 3} {
		r := NewRegistry(Limits{}, []Job{{Name: named(1), Agent: bridge.Codex, State: Running, Run: 1, Owner: "alice", Depth: 1, Access: AccessEdit}})
		nested := request(AccessRead)
		nested.BudgetUSD = asked
		job, err := r.Spawn(nested, named(7), jobCaller(named(1)), noon)
		if err != nil || job.BudgetUSD != want {
			t.Errorf("asked for %v: %v, %v", asked, job.BudgetUSD, err)
		}
	}
}

func TestSTO_07_WhatEndedBeforeATimeIsArchived(t *testing.T) {
	var jobs []Job
	for i := range 4 {
		jobs = append(jobs, Job{Name: named(i), State: Finished, FinishedAt: MillisOf(noon) + Millis(i), ResultSent: true})
	}
	for after, want := range map[int]int{0: 0, 1: 1, 3: 3, 9: 4} {
		got := NewRegistry(Limits{}, jobs).Archivable(noon.Add(time.Duration(after) * time.Millisecond))
		if len(got) != want {
			t.Errorf("before %d ms after the first: %q, want %d", after, got, want)
		}
	}
}

func TestJOB_08_WhereAJobWorks(t *testing.T) {
	for _, tt := range []struct {
		of   Job
		want string
	}{
		{Job{Workdir: "/r"}, "/r"}, {Job{Workdir: "/r", Worktree: &Worktree{}}, "/r"}, {Job{Workdir: "/r", Worktree: &Worktree{Cwd: "/w/a"}}, "/w/a"},
	} {
		if got := tt.of.Folder(); got != tt.want {
			t.Errorf("%+v works in %q", tt.of, got)
		}
	}
}

func TestJOB_19_AConflictNamesTenFiles(t *testing.T) {
	j := Job{Name: "codex-job-00000001", Worktree: &Worktree{RepoRoot: "/r"}}
	for n, want := range map[int]string{2: "(f0, f1)", 10: "f8, f9)", 11: "f9 and 1 more)"} {
		var paths []string
		for i := range n {
			paths = append(paths, fmt.Sprint("f", i))
		}
		if err := j.ConflictsWith(paths); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), want) {
			t.Errorf("%d files: %v, want %q", n, err, want)
		}
	}
}

func TestJOB_20_TheEndMayBeNow(t *testing.T) {
	if args, err := ParseProgress([]byte(`{"eta_minutes":0}`)); err != nil || args.ETAMinutes == nil || *args.ETAMinutes != 0 {
		t.Errorf("%+v, %v", args, err)
	}
}

func TestSTO_08_WhatGoesOnInACopyEndsWhenItIsBroughtBack(t *testing.T) {
	file := File{Jobs: []Job{
		{Name: "queued", State: Queued},
		{Name: "queued again", State: Queued, Run: 1},
		{Name: "running", State: Running, Run: 2},
		{Name: "had a result", State: Running, Run: 3},
		{Name: "ended", State: Finished, Run: 1},
		{Name: "there", State: Running, Run: 1, Remote: &Remote{Host: "desk"}},
	}}
	result := func(name string, run int) (Outcome, bool) {
		return Outcome{State: Finished}, name == "had a result" && run == 3
	}
	if !file.Settle(noon, result) {
		t.Error("nothing changed")
	}
	type end struct {
		State State
		At    Millis
		Ended EndReason
		Sent  bool
	}
	at := MillisOf(noon)
	want := map[string]end{
		"queued": {Interrupted, at, EndedRunnerGone, true}, "queued again": {Interrupted, at, EndedRunnerGone, false}, "running": {Interrupted, at, EndedRunnerGone, false},
		"had a result": {Finished, at, "", false}, "ended": {Finished, 0, "", false}, "there": {Running, 0, "", false},
	}
	got := map[string]end{}
	for _, j := range file.Jobs {
		got[j.Name] = end{j.State, j.FinishedAt, j.Ended, j.ResultSent}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if file.Settle(noon, result) {
		t.Error("what has ended changed")
	}
}

func TestJOB_01_AnAgentOfTheConfigurationIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		`{"prompt":"go"}`:                  "must name one of agents.acp",
		`{"prompt":"go","agent":"gemini"}`: "",
		`{"prompt":"go","agent":"a/b"}`:    "letters",
	} {
		if _, err := ParseSpawn(ACP, false, []byte(args)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	for size, ok := range map[int]bool{20: true, 21: false} {
		if _, err := ParseSpawn(bridge.Codex, false, []byte(`{"prompt":"go","effort":"`+strings.Repeat("x", size)+`"}`)); (err == nil) != ok {
			t.Errorf("an effort of %d characters: %v", size, err)
		}
	}
}

func TestVER_05_JobsOfOneNameAreNotServed(t *testing.T) {
	file := decodeJobs(t, `{"name":"codex-job-00000001","agent":"codex","status":"done"},{"name":"codex-job-00000002","agent":"codex","status":"done"},`+
		`{"name":"codex-job-00000001","agent":"codex","status":"done"},{"agent":"codex","status":"done"}`)
	if len(file.Jobs) != 1 || file.Jobs[0].Name != "codex-job-00000002" {
		t.Errorf("served are %+v", file.Jobs)
	}
	out, err := file.Encode()
	if err != nil || strings.Count(string(out), `"codex-job-00000001"`) != 2 || strings.Count(string(out), `"agent":"codex"`) != 4 {
		t.Errorf("it is written as %s, %v", out, err)
	}
	item := decodeJobs(t, `{"agent":"codex","status":"done"},{"name":"codex-job-00000002","agent":"codex","status":"done"}`)
	if len(item.Jobs) != 1 || item.Jobs[0].Name != "codex-job-00000002" {
		t.Errorf("one without a name is served: %+v", item.Jobs)
	}
}
