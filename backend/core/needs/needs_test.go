package needs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/core/proof"
)

var now = time.UnixMilli(1_800_000_000_000)

func ago(d time.Duration) int64 { return now.Add(-d).UnixMilli() }

func asked(id, name string, expires time.Duration) job.Approval {
	return job.Approval{
		ID: id, Job: name, Kind: "command", What: "Bash", Detail: "rm -rf build", Cwd: "/src/app", State: job.ApprovalAsked,
		AskedAt: job.Millis(ago(time.Minute)), ExpiresAt: job.Millis(now.Add(expires).UnixMilli()),
	}
}

func TestNED_01_EachRowSaysWhoWhatExactlyWhereSinceWhenAndHowLongIsLeft(t *testing.T) {
	until := now.Add(9 * time.Minute).UnixMilli()
	tests := []struct {
		name  string
		facts needs.Facts
		want  needs.Item
	}{
		{
			"an approval",
			needs.Facts{Approvals: []job.Approval{asked("a-1", "codex-job-1", 9*time.Minute)}, Jobs: []needs.JobFact{{Name: "codex-job-1", Title: "Mend it"}}},
			needs.Item{ID: "approval:a-1", Sort: needs.Approval, Urgency: needs.Now, Title: "Mend it asks for permission", Detail: "Bash: rm -rf build", Since: ago(time.Minute), Until: &until, Place: "/src/app", Link: "#/runs/codex-job-1/log"},
		},
		{
			"a prompt of a session",
			needs.Facts{Approvals: []job.Approval{{ID: "p-1", Session: "claude-app", Kind: "command", What: "Bash", Detail: "rm -rf build", Cwd: "/src/app", State: job.ApprovalAsked, AskedAt: job.Millis(ago(time.Hour))}}},
			needs.Item{ID: "approval:p-1", Sort: needs.Approval, Urgency: needs.Now, By: "claude-app", Title: "claude-app asks for permission", Detail: "Bash: rm -rf build", Since: ago(time.Hour), Place: "/src/app", Link: "#/needs"},
		},
		{
			"a prompt that only its terminal can answer",
			needs.Facts{Approvals: []job.Approval{{ID: "p-1", Session: "claude-app", What: "ExitPlanMode", OnlyTold: "the plan is shown there alone", State: job.ApprovalAsked, AskedAt: job.Millis(ago(time.Hour))}}},
			needs.Item{ID: "approval:p-1", Sort: needs.Approval, Urgency: needs.Now, By: "claude-app", Title: "claude-app asks for permission", Detail: "ExitPlanMode\nAnswer it in the terminal: the plan is shown there alone.", Since: ago(time.Hour), Link: "#/needs"},
		},
		{
			"a question",
			needs.Facts{Questions: []needs.QuestionFact{{ID: "q-1", By: "claude-app", Folder: "/src/app", Title: "Which port?", Context: "4777 is taken.", Options: []string{"4778", "a free one"}, Blocking: true, AskedAt: ago(time.Hour)}}},
			needs.Item{ID: "question:q-1", Sort: needs.Question, Urgency: needs.Now, By: "claude-app", Title: "claude-app asks: Which port?", Detail: "4777 is taken.\nYou can choose: 4778; a free one.\nIt waits for the answer.", Since: ago(time.Hour), Place: "/src/app", Link: "#/needs"},
		},
		{
			"a budget that is spent",
			needs.Facts{Jobs: []needs.JobFact{{Name: "codex-job-1", Folder: "/src/app", State: job.Waiting, StartedAt: ago(time.Hour), Wait: &job.Wait{For: job.ForBudget, ID: "s-1", Since: job.Millis(ago(time.Minute))}}}},
			needs.Item{ID: "job-asks:codex-job-1:budget:s-1", Sort: needs.JobAsks, Urgency: needs.Now, Title: "codex-job-1 waits for your word", Detail: "It has spent what it was given.", Since: ago(time.Minute), Place: "/src/app", Link: "#/runs/codex-job-1"},
		},
		{
			"a job that is stuck, of a runner that tells no time",
			needs.Facts{Jobs: []needs.JobFact{{Name: "codex-job-1", State: job.Waiting, StartedAt: ago(time.Hour), Wait: &job.Wait{For: job.ForSilence, ID: "s-1"}}}},
			needs.Item{ID: "job-asks:codex-job-1:silence:s-1", Sort: needs.JobAsks, Urgency: needs.Now, Title: "codex-job-1 waits for your word", Detail: "It was not heard of for ten minutes.", Since: ago(time.Hour), Link: "#/runs/codex-job-1"},
		},
		{
			"a job that failed",
			needs.Facts{Jobs: []needs.JobFact{{Name: "codex-job-1", Title: "Mend it", By: "claude-app", Folder: "/src/app", State: job.Failed, Ended: job.EndAuth, EndedAt: ago(time.Hour)}}},
			needs.Item{ID: fmt.Sprintf("job-ended:codex-job-1:%d", ago(time.Hour)), Sort: needs.JobEnded, Urgency: needs.Info, Title: "Mend it failed", Detail: "The provider does not accept the account. claude-app has been told; it can be continued.", Since: ago(time.Hour), Place: "/src/app", Link: "#/runs/codex-job-1", News: true},
		},
		{
			"changes to be looked at",
			needs.Facts{Jobs: []needs.JobFact{{Name: "codex-job-1", Title: "Mend it", Folder: "/src/wt", State: job.Finished, Changed: true, EndedAt: ago(time.Hour)}}},
			needs.Item{ID: fmt.Sprintf("job-review:codex-job-1:%d", ago(time.Hour)), Sort: needs.JobReview, Urgency: needs.Next, Title: "Mend it has changes for you", Detail: "It has finished. Its changes stay in its worktree until you apply, keep or discard them.", Since: ago(time.Hour), Place: "/src/wt", Link: "#/runs/codex-job-1/changes"},
		},
		{
			"mail of an idle session",
			needs.Facts{Mail: []needs.MailFact{{Session: "codex a/b", Folder: "/src/web", State: "idle", Messages: 2, Oldest: "m-1", Since: ago(16 * time.Minute)}}},
			needs.Item{ID: "mail:codex a/b:m-1", Sort: needs.Mail, Urgency: needs.Info, Title: "codex a/b has not read 2 messages", Detail: "It is idle; give it a turn, and it reads.", Since: ago(16 * time.Minute), Place: "/src/web", Link: "#/sessions/codex%20a%2Fb?m=m-1", News: true},
		},
		{
			"a message that expired",
			needs.Facts{Expired: []needs.ExpiredFact{{Message: "m-1", Recipient: "p-1", From: "claude-app", To: "codex-web", Note: "expired after 7 d", At: ago(time.Hour)}}},
			needs.Item{ID: "expired:m-1:p-1", Sort: needs.Expired, Urgency: needs.Info, Title: "A message from claude-app to codex-web expired unread", Detail: "expired after 7 d", Since: ago(time.Hour), Link: "#/sessions/codex-web?m=m-1", News: true},
		},
		{
			"errors of the storage",
			needs.Facts{Storage: needs.StorageFact{Home: "/home/anna/.bridge", Errors: 2, Warnings: 1, First: "jobs.json: it is not valid JSON", Since: ago(time.Hour)}},
			needs.Item{ID: "storage:2", Sort: needs.Storage, Urgency: needs.Now, Title: "The storage has 2 errors", Detail: "jobs.json: it is not valid JSON. And 1 warning.", Since: ago(time.Hour), Place: "/home/anna/.bridge", Link: "#/storage"},
		},
		{
			"a storage that nobody can look at",
			needs.Facts{Storage: needs.StorageFact{Problem: "no rights", Since: ago(time.Hour)}},
			needs.Item{ID: "storage:unknown", Sort: needs.Storage, Urgency: needs.Now, Title: "The storage cannot be looked at", Detail: "no rights", Since: ago(time.Hour), Link: "#/storage"},
		},
		{
			"an agent that lost its hooks",
			needs.Facts{Agents: []needs.AgentFact{{Kind: bridge.Claude, Missing: "settings.json is not as Bridge left it.", Since: ago(time.Hour)}}},
			needs.Item{ID: "agent:claude", Sort: needs.Agent, Urgency: needs.Info, Title: "claude is not connected any more as it was", Detail: "settings.json is not as Bridge left it.", Since: ago(time.Hour), Link: "#/settings", News: true},
		},
		{
			"no broker",
			needs.Facts{NoBroker: ago(time.Hour)},
			needs.Item{ID: "offline", Sort: needs.Offline, Urgency: needs.Now, Title: "The broker is offline", Detail: "Sessions cannot send or receive. It starts with the next session, or by bridge open.", Since: ago(time.Hour), Link: "#/needs"},
		},
	}
	for _, tt := range tests {
		t.Run("NED-01 "+tt.name, func(t *testing.T) {
			got := needs.List(tt.facts, now)
			if diff := cmp.Diff([]needs.Item{tt.want}, got, cmpopts.IgnoreUnexported(needs.Item{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNED_01_WhatNeedsNobodyIsNotListed(t *testing.T) {
	ended := func(state job.State, age time.Duration) needs.JobFact {
		return needs.JobFact{Name: "codex-job-1", State: state, EndedAt: ago(age)}
	}
	waiting := func(waitFor job.WaitFor) needs.JobFact {
		return needs.JobFact{Name: "codex-job-1", State: job.Waiting, Wait: &job.Wait{For: waitFor}}
	}
	answered := asked("a-1", "codex-job-1", time.Minute)
	answered.State = job.ApprovalAnswered
	landed := ended(job.Finished, time.Hour)
	landed.Changed, landed.Landed = true, ago(time.Minute)
	again := landed
	again.EndedAt = ago(time.Second)
	for _, tt := range []struct {
		name  string
		facts needs.Facts
		want  int
	}{
		{"nothing", needs.Facts{}, 0},
		{"a storage with warnings", needs.Facts{Storage: needs.StorageFact{Warnings: 3}}, 0},
		{"an approval whose time is up", needs.Facts{Approvals: []job.Approval{asked("a-1", "codex-job-1", 0)}}, 0},
		{"an approval with a millisecond left", needs.Facts{Approvals: []job.Approval{asked("a-1", "codex-job-1", time.Millisecond)}}, 1},
		{"an approval that was answered", needs.Facts{Approvals: []job.Approval{answered}}, 0},
		{"a provider that is asked again", needs.Facts{Jobs: []needs.JobFact{waiting(job.ForRetry)}}, 0},
		{"a job whose approval is an item of its own", needs.Facts{Jobs: []needs.JobFact{waiting(job.ForApproval)}}, 0},
		{"a job that waits for nothing", needs.Facts{Jobs: []needs.JobFact{{State: job.Waiting}}}, 0},
		{"a call that was repeated", needs.Facts{Jobs: []needs.JobFact{waiting(job.ForRepeat)}}, 1},
		{"a job out of time", needs.Facts{Jobs: []needs.JobFact{waiting(job.ForTime)}}, 1},
		{"a job that goes on", needs.Facts{Jobs: []needs.JobFact{{State: job.Running}}}, 0},
		{"an answer", needs.Facts{Jobs: []needs.JobFact{ended(job.Finished, time.Hour)}}, 0},
		{"a word of somebody's", needs.Facts{Jobs: []needs.JobFact{ended(job.Cancelled, time.Hour)}}, 0},
		{"a failure of 24 hours ago", needs.Facts{Jobs: []needs.JobFact{ended(job.Failed, 24*time.Hour)}}, 0},
		{"one a millisecond younger", needs.Facts{Jobs: []needs.JobFact{ended(job.Failed, 24*time.Hour-time.Millisecond)}}, 1},
		{"a refusal, a limit, a runner that is gone", needs.Facts{Jobs: []needs.JobFact{
			ended(job.Refused, time.Hour), {Name: "b", State: job.Limit, EndedAt: ago(time.Hour)}, {Name: "c", State: job.Interrupted, EndedAt: ago(time.Hour)},
		}}, 3},
		{"changes that were landed", needs.Facts{Jobs: []needs.JobFact{landed}}, 0},
		{"what the job did after that", needs.Facts{Jobs: []needs.JobFact{again}}, 1},
	} {
		if got := needs.List(tt.facts, now); len(got) != tt.want || got == nil {
			t.Errorf("%s: %+v, want %d", tt.name, got, tt.want)
		}
	}
}

func TestNED_01_OnlyNewsCanBePutAway(t *testing.T) {
	facts := needs.Facts{
		Storage:   needs.StorageFact{Errors: 1},
		Approvals: []job.Approval{asked("a-1", "codex-job-1", time.Minute)},
		Mail:      []needs.MailFact{{Session: "codex-web", Oldest: "m-1"}},
	}
	for _, item := range needs.List(facts, now) {
		facts.PutAway = append(facts.PutAway, item.ID)
	}
	var left []string
	for _, item := range needs.List(facts, now) {
		left = append(left, item.ID)
	}
	if diff := cmp.Diff([]string{"approval:a-1", "storage:1"}, left); diff != "" {
		t.Error(diff)
	}
}

func TestDSK_07_ThePlainTitleHasNoWordOfAnAgents(t *testing.T) {
	facts := needs.Facts{
		Approvals: []job.Approval{asked("a-1", "codex-job-1", time.Minute)},
		Jobs:      []needs.JobFact{{Name: "codex-job-1", Title: "secret"}, {Name: "codex-job-2", Title: "secret", State: job.Failed, EndedAt: ago(0)}},
		Questions: []needs.QuestionFact{{ID: "q", By: "claude-app", Title: "secret"}},
	}
	list := needs.List(facts, now)
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	for _, item := range list {
		if strings.Contains(item.Plain(), "secret") || !strings.Contains(item.Title, "secret") {
			t.Errorf("%q is %q", item.Title, item.Plain())
		}
	}
}

// drawnFacts are facts of all sorts, with times that are often the same.
func drawnFacts(t *rapid.T) needs.Facts {
	at := rapid.Map(rapid.Int64Range(0, 4), func(n int64) int64 { return ago(time.Duration(n) * time.Minute) })
	id := rapid.StringMatching(`[a-c]`)
	return needs.Facts{
		NoBroker: rapid.SampledFrom([]int64{0, ago(time.Minute)}).Draw(t, "noBroker"),
		Storage:  needs.StorageFact{Errors: rapid.IntRange(0, 1).Draw(t, "errors"), Since: at.Draw(t, "storage")},
		Approvals: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.Approval {
			a := asked(id.Draw(t, "approval"), id.Draw(t, "of"), time.Duration(rapid.IntRange(-1, 1).Draw(t, "left"))*time.Minute)
			a.AskedAt = job.Millis(at.Draw(t, "asked"))
			return a
		}), 0, 4).Draw(t, "approvals"),
		Questions: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) needs.QuestionFact {
			return needs.QuestionFact{ID: id.Draw(t, "question"), AskedAt: at.Draw(t, "asked")}
		}), 0, 4).Draw(t, "questions"),
		Jobs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) needs.JobFact {
			states := []job.State{job.Running, job.Waiting, job.Failed, job.Finished, job.Limit}
			return needs.JobFact{
				Name: id.Draw(t, "job"), State: rapid.SampledFrom(states).Draw(t, "state"), EndedAt: at.Draw(t, "ended"), Changed: rapid.Bool().Draw(t, "changed"),
				Wait: &job.Wait{For: rapid.SampledFrom([]job.WaitFor{job.ForBudget, job.ForRetry, job.ForSilence}).Draw(t, "wait")},
			}
		}), 0, 4).Draw(t, "jobs"),
		Mail: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) needs.MailFact {
			return needs.MailFact{Session: id.Draw(t, "session"), Oldest: id.Draw(t, "oldest"), Since: at.Draw(t, "since")}
		}), 0, 4).Draw(t, "mail"),
		Exchanges: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) needs.ExchangeFact {
			return needs.ExchangeFact{A: needs.ExchangeSession{ID: id.Draw(t, "a")}, B: needs.ExchangeSession{ID: id.Draw(t, "b")}, Paused: rapid.Bool().Draw(t, "paused"), Since: at.Draw(t, "over")}
		}), 0, 4).Draw(t, "exchanges"),
		Proofs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) proof.Summary {
			p := proof.Summary{Kind: bridge.Codex, Version: id.Draw(t, "version"), At: at.Draw(t, "tried")}
			if rapid.Bool().Draw(t, "broken") {
				p.Broken = []proof.BrokenRoute{{Route: proof.Wake, Text: "wake is broken: mail waits"}}
			}
			return p
		}), 0, 4).Draw(t, "proofs"),
		PutAway: rapid.SliceOfN(rapid.Map(id, func(s string) string { return "mail:" + s + ":" + s }), 0, 2).Draw(t, "putAway"),
	}
}

func TestNED_01_TheOrderIsTotalNothingIsTwiceAndWhatIsGoneIsGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawnFacts(t)
		list := needs.List(facts, now)
		seen := map[string]bool{}
		for i, item := range list {
			if seen[item.ID] {
				t.Fatalf("%s is listed twice", item.ID)
			}
			seen[item.ID] = true
			if i > 0 && !inOrder(list[i-1], item) {
				t.Fatalf("%+v stands before %+v", list[i-1], item)
			}
			if item.Until != nil && *item.Until <= now.UnixMilli() {
				t.Fatalf("%s is over and listed", item.ID)
			}
			if item.News && slices.Contains(facts.PutAway, item.ID) {
				t.Fatalf("%s was put away and is listed", item.ID)
			}
		}
		// However the facts stand, the list is the same.
		turned := facts
		for _, turn := range []func(){
			func() { turned.Mail = slices.Clone(turned.Mail); slices.Reverse(turned.Mail) },
			func() { turned.Questions = slices.Clone(turned.Questions); slices.Reverse(turned.Questions) },
		} {
			turn()
		}
		if unique(facts) && !slices.EqualFunc(list, needs.List(turned, now), func(a, b needs.Item) bool { return a.ID == b.ID }) {
			t.Fatalf("turned round, the list is another one")
		}
		// One thing less is one row less, and no other row moves.
		if len(facts.Questions) > 0 && unique(facts) {
			gone := "question:" + facts.Questions[0].ID
			facts.Questions = facts.Questions[1:]
			want := slices.DeleteFunc(slices.Clone(list), func(i needs.Item) bool { return i.ID == gone })
			if got := needs.List(facts, now); !slices.EqualFunc(want, got, func(a, b needs.Item) bool { return a.ID == b.ID }) {
				t.Fatalf("without %s the list is %v, want %v", gone, got, want)
			}
		}
	})
}

// inOrder reports whether one item may stand directly before another: by urgency, then what
// ends by itself, the soonest first, then by age.
func inOrder(item, next needs.Item) bool {
	rank := map[needs.Urgency]int{needs.Now: 0, needs.Next: 1, needs.Info: 2}
	switch {
	case item.Urgency != next.Urgency:
		return rank[item.Urgency] < rank[next.Urgency]
	case item.Until != nil && next.Until != nil && *item.Until != *next.Until:
		return *item.Until < *next.Until
	case (item.Until == nil) != (next.Until == nil):
		return item.Until != nil
	}
	return item.Since <= next.Since
}

// unique reports whether nothing is there under the same id twice: which of two is
// meant is then nobody's question.
func unique(f needs.Facts) bool {
	seen := map[string]bool{}
	for _, q := range f.Questions {
		if seen[q.ID] {
			return false
		}
		seen[q.ID] = true
	}
	for _, m := range f.Mail {
		if seen[m.Session+m.Oldest] {
			return false
		}
		seen[m.Session+m.Oldest] = true
	}
	return true
}

// No command is named that would be refused.
func TestNED_02_WhatIsOnlyToldNamesNoCommand(t *testing.T) {
	approval := job.Approval{ID: "p-1", Session: "codex-app", What: "shell", Detail: "make clean", State: job.ApprovalAsked, AskedAt: job.Millis(ago(time.Hour))}
	for told, want := range map[string]string{
		"":                  "codex-app asks for permission   (1 h ago)\n  | shell: make clean\n  bridge approve p-1\n",
		"it is shown there": "codex-app asks for permission   (1 h ago)\n  | shell: make clean\n  | Answer it in the terminal: it is shown there.\n",
	} {
		approval.OnlyTold = told
		if got := needs.Text(needs.List(needs.Facts{Approvals: []job.Approval{approval}}, now), now, typed); got != want {
			t.Errorf("only told %q, it says\n%s, want\n%s", told, got, want)
		}
	}
}

func TestNED_01_WhatARowSaysWhereAPartIsMissing(t *testing.T) {
	approval := func(what, detail string) needs.Facts {
		return needs.Facts{Approvals: []job.Approval{{ID: "p-1", Session: "claude-app", What: what, Detail: detail, State: job.ApprovalAsked, AskedAt: job.Millis(ago(time.Hour))}}}
	}
	mailOf := func(state string) needs.Facts {
		return needs.Facts{Mail: []needs.MailFact{{Session: "codex", State: state, Messages: 1, Oldest: "m-1", Since: ago(time.Hour)}}}
	}
	for _, tt := range []struct {
		name   string
		facts  needs.Facts
		detail string
	}{
		{"errors alone", needs.Facts{Storage: needs.StorageFact{Errors: 1, Since: ago(time.Hour)}}, "Storage says what is wrong and what to do."},
		{"a question without options", needs.Facts{Questions: []needs.QuestionFact{{ID: "q-1", By: "a", Title: "t", Context: "c", AskedAt: ago(time.Hour)}}}, "c"},
		{"a question without a context", needs.Facts{Questions: []needs.QuestionFact{{ID: "q-1", By: "a", Title: "t", Options: []string{"x", "y"}, AskedAt: ago(time.Hour)}}}, "You can choose: x; y."},
		{"a tool alone", approval("Bash", ""), "Bash"},
		{"a detail alone", approval("", "make"), "make"},
		{"a detail that names its tool", approval("Bash", "Bash(make)"), "Bash(make)"},
		{"mail of a session that is away", mailOf(""), "It is not connected; the mail waits for it."},
		{"mail of a busy session", mailOf("busy"), "It is busy and has not reached a step at which it takes mail."},
	} {
		if list := needs.List(tt.facts, now); len(list) != 1 || list[0].Detail != tt.detail {
			t.Errorf("%s: %+v, want %q", tt.name, list, tt.detail)
		}
	}
}

func TestNED_01_ChangesThatAreAppliedNeedNobody(t *testing.T) {
	for landed, listed := range map[time.Duration]bool{2 * time.Hour: true, time.Hour: false, time.Minute: false} {
		facts := needs.Facts{Jobs: []needs.JobFact{{Name: "codex-job-1", State: job.Finished, Changed: true, EndedAt: ago(time.Hour), Landed: ago(landed)}}}
		if list := needs.List(facts, now); (len(list) == 1) != listed {
			t.Errorf("it ended an hour ago, and was applied %s ago: %+v", landed, list)
		}
	}
}

// typed writes a command as a person types it for the usual home.
func typed(words ...string) string { return "bridge " + strings.Join(words, " ") }

func TestNED_01_TheListForPeopleNamesTheCommand(t *testing.T) {
	const hidden = "\u202eevil"
	until := job.Millis(now.Add(9 * time.Minute).UnixMilli())
	choice := []bridge.Choice{{Question: "Which port?", Options: []bridge.ChoiceOption{{Label: "4777"}, {Label: "4778"}}}}
	facts := needs.Facts{
		Storage: needs.StorageFact{Home: "/home" + hidden, Errors: 1, First: "jobs.json is damaged", Since: ago(7 * time.Hour)},
		Approvals: []job.Approval{
			{ID: "p-1", Session: "claude-app", What: "Bash", Detail: "make", Cwd: "/src" + hidden, State: job.ApprovalAsked, AskedAt: job.Millis(ago(6 * time.Hour)), ExpiresAt: until},
			{ID: "p-2", Session: "claude-app", What: "AskUserQuestion", Choices: choice, State: job.ApprovalAsked, AskedAt: job.Millis(ago(5 * time.Hour))},
			{ID: "p-3", Session: "claude-app", What: "AskUserQuestion", Choices: choice, OnlyTold: "it is shown there", State: job.ApprovalAsked, AskedAt: job.Millis(ago(4 * time.Hour))},
		},
		Questions: []needs.QuestionFact{{ID: "q-1", By: "claude-web", Title: "Which" + hidden, AskedAt: ago(3 * time.Hour), Context: "a\nb"}, {ID: "q-2", By: "claude-web", Title: "Tabs?", AskedAt: ago(3 * time.Hour), Options: []string{"yes", "no" + hidden}}},
		Jobs:      []needs.JobFact{{Name: "codex-job-1", State: job.Finished, Changed: true, EndedAt: ago(2 * time.Hour)}},
		Mail:      []needs.MailFact{{Session: "codex", State: "idle", Messages: 1, Oldest: "m-1", Since: ago(time.Hour)}},
	}
	list := needs.List(facts, now)
	want := "The storage has 1 error   (7 h ago)\n  jobs.json is damaged.\n  " + bridge.OneLine("/home"+hidden) + "\n  bridge doctor\n" +
		"claude-app asks for permission   (6 h ago)\n  | Bash: make\n  " + bridge.VisibleExact("/src"+hidden) + "\n  bridge approve p-1\n" +
		"claude-app asks for permission   (5 h ago)\n  | Which port?\n  |   1  4777\n  |   2  4778\n  bridge approve p-2 --option 1   (4777)\n  bridge approve p-2 --option 2   (4778)\n" +
		"claude-app asks for permission   (4 h ago)\n  | AskUserQuestion\n  | Answer it in the terminal: it is shown there.\n" +
		"claude-web asks: " + bridge.VisibleExact("Which"+hidden) + "   (3 h ago)\n  | a\n  | b\n  bridge answer q-1 --text -   (reads your answer from the terminal)\n" +
		"claude-web asks: Tabs?   (3 h ago)\n  | You can choose: yes; " + bridge.VisibleExact("no"+hidden) + ".\n  bridge answer q-2 --option 1   (yes)\n  bridge answer q-2 --option 2   (" + bridge.VisibleExact("no"+hidden) + ")\n" +
		"codex-job-1 has changes for you   (2 h ago)\n  It has finished. Its changes stay in its worktree until you apply, keep or discard them.\n  bridge finish codex-job-1 --squash --dry-run   (says whether it conflicts; without --dry-run it lands)\n" +
		"codex has not read 1 message   (1 h ago)\n  It is idle; give it a turn, and it reads.\n"
	if diff := cmp.Diff(want, needs.Text(list, now, typed)); diff != "" {
		t.Error(diff)
	}
	if got := needs.Text(nil, now, typed); got != "Nothing needs you.\n" {
		t.Errorf("an empty list is %q", got)
	}
	if offers := list[2].Offers(); !strings.Contains(offers, "1 4777") || list[3].Offers() != "" {
		t.Errorf("it offers %q and %q", offers, list[3].Offers())
	}
	counts := map[needs.Sort]int{needs.Storage: 1, needs.Approval: 3, needs.Question: 2, needs.JobReview: 1, needs.Mail: 1}
	if diff := cmp.Diff(counts, needs.Counts(list)); diff != "" {
		t.Error(diff)
	}
}

func TestNED_01_TheListSaysHowLongIsLeft(t *testing.T) {
	list := needs.List(needs.Facts{Approvals: []job.Approval{asked("a-1", "codex-job-1", 9*time.Minute)}, Jobs: []needs.JobFact{{Name: "codex-job-1"}}}, now)
	if got := needs.Text(list, now, typed); !strings.HasPrefix(got, "codex-job-1 asks for permission   (1 min ago, 9 min left)\n") {
		t.Errorf("it says %s", got)
	}
}

func TestPGE_02_WhatIsBlockedOrEndsComesFirst(t *testing.T) {
	blocking := func(id string, is bool, at time.Duration) needs.QuestionFact {
		return needs.QuestionFact{ID: id, By: "web", Title: id, Blocking: is, AskedAt: ago(at)}
	}
	prompt := job.Approval{ID: "prompt", Session: "web", What: "rm", State: job.ApprovalAsked, AskedAt: job.Millis(ago(time.Minute))}
	facts := needs.Facts{
		Mail:      []needs.MailFact{{Session: "codex", Oldest: "m-1", Messages: 1, Since: ago(24 * time.Hour)}},
		Questions: []needs.QuestionFact{blocking("old", false, 20*time.Hour), blocking("waits", true, 2*time.Hour)},
		Approvals: []job.Approval{asked("late", "job-1", 9*time.Minute), asked("soon", "job-1", time.Minute), prompt},
		Jobs: []needs.JobFact{
			{Name: "job-1", By: "api"},
			{Name: "job-2", State: job.Failed, EndedAt: ago(3 * time.Hour)},
			{Name: "job-3", By: "api", State: job.Waiting, Wait: &job.Wait{For: job.ForBudget, Since: job.Millis(ago(4 * time.Hour))}},
			{Name: "job-4", State: job.Finished, Changed: true, EndedAt: ago(time.Hour)},
		},
	}
	type row struct {
		id, by  string
		urgency needs.Urgency
	}
	var got []row
	list := needs.List(facts, now)
	for _, item := range list {
		id, _, _ := strings.Cut(strings.SplitN(item.ID, ":", 2)[1], ":")
		got = append(got, row{id, item.By, item.Urgency})
	}
	want := []row{
		{"soon", "api", needs.Now},
		{"late", "api", needs.Now},
		{"job-3", "api", needs.Now},
		{"waits", "web", needs.Now},
		{"prompt", "web", needs.Now},
		{"old", "", needs.Next},
		{"job-4", "", needs.Next},
		{"codex", "", needs.Info},
		{"job-2", "", needs.Info},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
	if n := needs.Pressing(list); n != 7 {
		t.Errorf("%d are pressing, want all but the news", n)
	}
}

func TestPGE_02_UnreadMailIsOneRow(t *testing.T) {
	mailOf := func(sessions ...string) (facts needs.Facts) {
		for i, name := range sessions {
			facts.Mail = append(facts.Mail, needs.MailFact{Session: name, Oldest: "m-" + name, Messages: 2, Since: ago(time.Duration(i+1) * time.Hour)})
		}
		return facts
	}
	if list := needs.List(mailOf("web"), now); len(list) != 1 || list[0].Title != "web has not read 2 messages" {
		t.Errorf("of one session: %+v", list)
	}
	facts := mailOf("web", "api", "docs")
	list := needs.List(facts, now)
	if len(list) != 1 || list[0].Title != "3 sessions have unread mail" || list[0].Detail != "docs, api, web" || list[0].Since != ago(3*time.Hour) || !list[0].News {
		t.Fatalf("of three: %+v", list)
	}
	// Dismissed, they stay away until another session joins them.
	facts.PutAway = []string{list[0].ID}
	if left := needs.List(facts, now); len(left) != 0 {
		t.Errorf("dismissed, there is %+v", left)
	}
	more := mailOf("web", "api", "docs", "db")
	more.PutAway = facts.PutAway
	if left := needs.List(more, now); len(left) != 1 || left[0].Title != "4 sessions have unread mail" {
		t.Errorf("with another session there is %+v", left)
	}
	// A session that was dismissed by itself is not counted.
	facts.PutAway = []string{"mail:web:m-web"}
	if left := needs.List(facts, now); len(left) != 1 || left[0].Detail != "docs, api" {
		t.Errorf("without one there is %+v", left)
	}
}

func exchangeFact(paused bool, messages bridge.Count) needs.Facts {
	return needs.Facts{Exchanges: []needs.ExchangeFact{{
		A: needs.ExchangeSession{ID: "1", Name: "api"}, B: needs.ExchangeSession{ID: "2", Name: "web"}, Paused: paused, Messages: messages, Since: ago(time.Minute),
	}}}
}

func TestQUI_02_TwoSessionsThatOnlyWriteEachOtherAreOneCard(t *testing.T) {
	two := func(paused bool) *needs.ExchangeItem {
		return &needs.ExchangeItem{A: needs.ExchangeSession{ID: "1", Name: "api"}, B: needs.ExchangeSession{ID: "2", Name: "web"}, Paused: paused}
	}
	id := fmt.Sprintf("exchange:1:2:%d", ago(time.Minute))
	for _, tt := range []struct {
		name  string
		facts needs.Facts
		want  needs.Item
		text  string
		press int
	}{
		{
			"to be decided", exchangeFact(false, 9),
			needs.Item{
				ID: id, Sort: needs.Exchange, Urgency: needs.Next, Title: "api and web have exchanged 9 messages: let them go on, or pause",
				Detail: "Since your last word to them, neither has used a tool other than Bridge's. Paused messages wait and wake nobody.",
				Since:  ago(time.Minute), Link: "#/needs", Exchange: two(false),
			},
			"bridge resume api web   (lets them go on)\n  bridge pause api web   (their messages wait)\n", 1,
		},
		{
			"paused", exchangeFact(true, 1),
			needs.Item{
				ID: id, Sort: needs.Exchange, Urgency: needs.Info, Title: "api and web are paused",
				Detail: "They get no messages from each other until you resume them. 1 message waits.",
				Since:  ago(time.Minute), Link: "#/needs", Exchange: two(true),
			},
			"bridge resume api web\n", 0,
		},
	} {
		list := needs.List(tt.facts, now)
		if diff := cmp.Diff([]needs.Item{tt.want}, list, cmpopts.IgnoreUnexported(needs.Item{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if text := needs.Text(list, now, typed); !strings.Contains(text, tt.text) {
			t.Errorf("%s: it says\n%s", tt.name, text)
		}
		if got := needs.Pressing(list); got != tt.press {
			t.Errorf("%s: the badge counts %d, want %d", tt.name, got, tt.press)
		}
		tt.facts.PutAway = []string{id}
		if got := needs.List(tt.facts, now); len(got) != 1 {
			t.Errorf("%s: put away, it is %+v", tt.name, got)
		}
	}
}

// What is blocked comes before two sessions that only write each other, and news after.
func TestQUI_02_ACardComesAfterWhatIsBlocked(t *testing.T) {
	facts := exchangeFact(false, 9)
	facts.Approvals = []job.Approval{asked("a-1", "codex-job-1", time.Minute)}
	facts.Questions = []needs.QuestionFact{{ID: "q", By: "docs", Blocking: true, AskedAt: ago(0)}}
	facts.Mail = []needs.MailFact{{Session: "docs", Oldest: "m-1", Since: ago(time.Hour)}}
	var sorts []needs.Sort
	for _, item := range needs.List(facts, now) {
		sorts = append(sorts, item.Sort)
	}
	if diff := cmp.Diff([]needs.Sort{needs.Approval, needs.Question, needs.Exchange, needs.Mail}, sorts); diff != "" {
		t.Error(diff)
	}
}

// routesFact is a version of codex with broken routes, beside two kinds without any.
func routesFact(version string, broken ...proof.BrokenRoute) needs.Facts {
	return needs.Facts{Proofs: []proof.Summary{
		{Kind: bridge.Claude, Version: "9", At: ago(time.Hour), Broken: []proof.BrokenRoute{}},
		{Kind: bridge.OpenCode, Version: "9", At: ago(time.Hour), Problem: "it did not start"},
		{Kind: bridge.Codex, Version: version, At: ago(time.Hour), Broken: broken},
	}}
}

func TestCAN_02_BrokenRoutesAreOneRowAVersion(t *testing.T) {
	wake := proof.BrokenRoute{Route: proof.Wake, Since: "0.171.0", Text: "wake is broken since 0.171.0: mail waits for the next prompt"}
	known := wake
	known.Worked = "0.170.0"
	note := proof.BrokenRoute{Route: proof.StartNote, Since: "0.172.0", Text: "the start note is broken since 0.172.0: new sessions are not told of your decisions"}
	for _, tt := range []struct {
		name          string
		facts         needs.Facts
		title, detail string
	}{
		{
			"one", routesFact("0.172.0", wake), "codex: wake is broken since 0.171.0: mail waits for the next prompt",
			"Bridge tries each new version of codex once.",
		},
		{
			"one that worked before", routesFact("0.172.0", known), "codex: wake is broken since 0.171.0: mail waits for the next prompt",
			"It worked in 0.170.0. Bridge tries each new version of codex once.",
		},
		{
			"two", routesFact("0.172.0", note, known), "codex 0.172.0: 2 routes are broken",
			"The start note is broken since 0.172.0: new sessions are not told of your decisions. " +
				"Wake is broken since 0.171.0: mail waits for the next prompt. It worked in 0.170.0. Bridge tries each new version of codex once.",
		},
	} {
		want := needs.Item{
			ID: "routes:codex:0.172.0", Sort: needs.Routes, Urgency: needs.Info, Title: tt.title, Detail: tt.detail, Since: ago(time.Hour), Link: "#/settings", News: true,
		}
		list := needs.List(tt.facts, now)
		if diff := cmp.Diff([]needs.Item{want}, list, cmpopts.IgnoreUnexported(needs.Item{})); diff != "" {
			t.Fatalf("%s: %s", tt.name, diff)
		}
		if got := needs.Pressing(list); got != 0 {
			t.Errorf("%s: the badge counts %d", tt.name, got)
		}
		if text := needs.Text(list, now, typed); !strings.Contains(text, "\n  bridge prove codex   (tries it again, and shows what came)\n") {
			t.Errorf("%s: it says\n%s", tt.name, text)
		}
	}
	if list := needs.List(routesFact("0.172.0"), now); len(list) != 0 {
		t.Errorf("all work, and it says %+v", list)
	}
}

func TestCAN_02_BrokenRoutesNeedTheOwnerOncePerVersion(t *testing.T) {
	wake := proof.BrokenRoute{Route: proof.Wake, Since: "1", Text: "wake is broken since 1: mail waits for the next prompt"}
	facts := routesFact("1", wake)
	facts.PutAway = []string{needs.List(facts, now)[0].ID}
	facts.Proofs[2].At = ago(0) // its owner has tried it again
	if list := needs.List(facts, now); len(list) != 0 {
		t.Errorf("dismissed, and it is there again: %+v", list)
	}
	next := routesFact("2", wake)
	next.PutAway = facts.PutAway
	if list := needs.List(next, now); len(list) != 1 || list[0].ID != "routes:codex:2" {
		t.Errorf("the next version: %+v", list)
	}
}
