package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/app/mark"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/storage/maintain/check"
)

var noon = time.UnixMilli(1_800_000_000_000)

func TestDSK_02_DescribeTellsTheWorstFirst(t *testing.T) {
	waiting := &needs.Facts{Mail: []needs.MailFact{{Session: "codex api", State: "idle", Messages: 2, Since: noon.Add(-20 * time.Minute).UnixMilli()}}}
	known := func(jobs ...needs.JobFact) *needs.Facts { return &needs.Facts{Jobs: jobs} }
	damaged := Storage{Summary: check.Summary{Errors: 2, Warnings: 1}, First: "jobs.json: it is not valid JSON"}
	warned := Storage{Summary: check.Summary{OK: true, Warnings: 1}, First: "x: nothing of Bridge's"}
	failed := Storage{Failed: true, Result: "Backing up failed at 14:02: the disk is full"}
	asks, ends := job.Millis(noon.UnixMilli()), job.Millis(noon.Add(time.Minute).UnixMilli())
	facts := &needs.Facts{
		Approvals: []job.Approval{{ID: "a1", Job: "codex-job-0a", State: job.ApprovalAsked, AskedAt: asks, ExpiresAt: ends}},
		Jobs:      []needs.JobFact{{Name: "codex-job-0a", Title: "an agent's words"}},
	}
	runs := Job{Name: "codex-job-0b", State: job.Running}
	spent := needs.JobFact{Name: "codex-job-0c", Title: "an agent's words", State: job.Waiting, Wait: &job.Wait{For: job.ForBudget}}
	retries := Job{Name: "codex-job-0d", State: job.Waiting}
	over := Job{Name: "codex-job-0e", State: job.Finished, EndedAt: noon}
	for name, tt := range map[string]struct {
		facts Facts
		state State
		words string
	}{
		"starting":             {Facts{Starting: true, Problem: "connecting"}, Offline, "Starting"},
		"offline":              {Facts{Problem: "the home is full", Storage: damaged, Known: waiting}, Offline, "Offline. the home is full"},
		"storage error":        {Facts{Storage: damaged, Known: waiting, Busy: 1}, StorageError, "The storage has 2 errors. jobs.json: it is not valid JSON. And 1 warning"},
		"not looked at":        {Facts{Storage: Storage{Problem: "no rights"}}, StorageError, "The storage cannot be looked at. no rights"},
		"needs you":            {Facts{Storage: warned, Known: waiting, Busy: 1}, NeedsYou, "codex api has not read 2 messages"},
		"several needs":        {Facts{Known: &needs.Facts{Mail: waiting.Mail, Jobs: []needs.JobFact{spent}}}, NeedsYou, "codex-job-0c waits for your word, and 1 more"},
		"work came to nothing": {Facts{Storage: failed, Sessions: 1}, Idle, "OK, 1 session"},
		"a warning":            {Facts{Storage: warned, Busy: 1, Sessions: 2}, StorageWarning, "The storage has 1 warning. x: nothing of Bridge's"},
		"a job asks":           {Facts{Known: facts, Jobs: []Job{runs}, Storage: warned}, NeedsYou, "codex-job-0a asks for permission"},
		"a job stopped":        {Facts{Known: known(spent)}, NeedsYou, "codex-job-0c waits for your word"},
		"a job works":          {Facts{Jobs: []Job{runs, retries}, Sessions: 1}, Working, "0 of 1 session at work, 2 jobs"},
		"jobs have ended":      {Facts{Jobs: []Job{over}, Sessions: 1}, Idle, "OK, 1 session"},
		"work":                 {Facts{Busy: 1, Sessions: 2}, Working, "1 of 2 sessions at work"},
		"idle":                 {Facts{Sessions: 1}, Idle, "OK, 1 session"},
		"idle and alone":       {Facts{}, Idle, "OK, no sessions"},
	} {
		t.Run("DSK-02 "+name, func(t *testing.T) {
			got := Describe(tt.facts, noon)
			if got.State != tt.state || got.Words != tt.words {
				t.Errorf("%q, %q, want %q, %q", got.State, got.Words, tt.state, tt.words)
			}
			if n := len(got.Needs); n > 0 && got.Line() != bridge.Counted(n, "thing")+" for you" || n == 0 && got.Line() != got.Words {
				t.Errorf("the first line is %q with the needs %v", got.Line(), got.Needs)
			}
		})
	}
}

func TestDSK_02_EveryStateHasAShapeOfItsOwn(t *testing.T) {
	seen := map[mark.Badge]State{}
	for _, state := range []State{Idle, Working, NeedsYou, StorageWarning, StorageError, Offline} {
		badge, ok := badges[state]
		if other, taken := seen[badge]; !ok || taken {
			t.Errorf("%s has no shape, or that of %s", state, other)
		}
		seen[badge] = state
	}
}

func TestDSK_02_ANeedLeadsToItsPlace(t *testing.T) {
	f := Facts{
		Known:   &needs.Facts{Mail: []needs.MailFact{{Session: "a/b", Messages: 1, Oldest: "m1", Since: noon.UnixMilli()}}},
		Storage: Storage{Summary: check.Summary{Errors: 1}, BadSince: noon.Add(-time.Hour)},
	}
	var places []string
	for _, need := range Describe(f, noon).Needs {
		places = append(places, need.Link)
	}
	if diff := cmp.Diff([]string{"#/storage", "#/sessions/a%2Fb?m=m1"}, places); diff != "" {
		t.Error(diff)
	}
}

func TestDSK_02_TheMenuSaysHowOldTheBackupIs(t *testing.T) {
	for want, at := range map[string]*int64{
		"No backup yet":           nil,
		"Last backup: just now":   millis(noon.Add(-time.Second)),
		"Last backup: 59 min ago": millis(noon.Add(-59 * time.Minute)),
		"Last backup: 47 h ago":   millis(noon.Add(-47 * time.Hour)),
		"Last backup: 3 d ago":    millis(noon.Add(-80 * time.Hour)),
	} {
		if got := Describe(Facts{Storage: Storage{Summary: check.Summary{LastBackup: at}}}, noon).Backup; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func millis(at time.Time) *int64 {
	n := at.UnixMilli()
	return &n
}

func TestDSK_01_AnotherPortIsSaid(t *testing.T) {
	for _, tt := range []struct {
		facts Facts
		said  bool
	}{
		{Facts{URL: "http://127.0.0.1:4777", Port: 4777}, false},
		{Facts{URL: "http://127.0.0.1:4778", Port: 4777}, true},
		{Facts{URL: "http://127.0.0.1:4778", Port: 0}, false},
		{Facts{URL: "http://127.0.0.1:4778", Port: 4777, Problem: "gone"}, false},
	} {
		if got := Describe(tt.facts, noon).Address; (got != "") != tt.said || tt.said && !strings.Contains(got, "127.0.0.1:4778") {
			t.Errorf("%+v: %q", tt.facts, got)
		}
	}
}

func TestDSK_07_NoticesComeOncePerChangeAndNotTooOften(t *testing.T) {
	session := func(id string) needs.Item { return needs.Item{Sort: needs.Mail, ID: id, Title: "secret words"} }
	broken := needs.Item{Sort: needs.Storage, ID: "errors 1"}
	var a announcer
	count := func(after time.Duration, there ...needs.Item) int {
		t.Helper()
		due := a.due(there, true, false, noon.Add(after))
		for _, notice := range due {
			if strings.Contains(notice.Title+notice.Text, "secret") || notice.Title == "" || notice.Place == "" {
				t.Errorf("notice %+v", notice)
			}
		}
		return len(due)
	}
	steps := []struct {
		what  string
		after time.Duration
		there []needs.Item
		want  int
	}{
		{"nothing", 0, nil, 0},
		{"two of a kind are one notice", 0, []needs.Item{session("a"), session("b")}, 1},
		{"they are told", time.Second, []needs.Item{session("a"), session("b")}, 0},
		{"another kind", 2 * time.Second, []needs.Item{broken, session("a")}, 1},
		{"it went away", 3 * time.Second, []needs.Item{session("a")}, 0},
		{"and came back", 4 * time.Second, []needs.Item{broken, session("a")}, 1},
		{"a fourth", 5 * time.Second, []needs.Item{broken, session("c")}, 1},
		{"a fifth", 6 * time.Second, []needs.Item{broken, session("d")}, 1},
		{"a sixth is too many", 7 * time.Second, []needs.Item{broken, session("e")}, 0},
		{"and is not told later", noticesWithin + time.Minute, []needs.Item{broken, session("e")}, 0},
		{"a new one is", noticesWithin + time.Minute, []needs.Item{broken, session("f")}, 1},
	}
	for _, step := range steps {
		if got := count(step.after, step.there...); got != step.want {
			t.Errorf("%s: %d notices, want %d", step.what, got, step.want)
		}
	}
}

func TestDSK_01_TheDashboardOpensOnlyWhereABrokerAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		facts Facts
		live  bool
	}{
		"starting": {Facts{Starting: true}, false},
		"offline":  {Facts{Problem: "no broker"}, false},
		"serving":  {Facts{}, true},
	} {
		if got := Describe(tt.facts, noon); got.Live != tt.live {
			t.Errorf("%s: live %v", name, got.Live)
		}
	}
}

func TestDSK_07_JOB_20_NED_05_JobsThatAskEndAndFailAreToldOnce(t *testing.T) {
	asks := func(id string) *needs.Facts {
		return &needs.Facts{Approvals: []job.Approval{{ID: id, Job: "secret", State: job.ApprovalAsked, ExpiresAt: job.Millis(noon.Add(time.Hour).UnixMilli())}}}
	}
	failed := func(after time.Duration) *needs.Facts {
		return &needs.Facts{Jobs: []needs.JobFact{{Name: "secret", State: job.Limit, EndedAt: noon.Add(after).UnixMilli()}}}
	}
	over := func(state job.State, after time.Duration) []Job {
		return []Job{{Name: "secret", State: state, EndedAt: noon.Add(after)}}
	}
	var a announcer
	nothing := &needs.Facts{}
	steps := []struct {
		what  string
		known *needs.Facts
		jobs  []Job
		want  []string
	}{
		{"what ended before the app began", failed(-time.Second), over(job.Finished, -time.Second), nil},
		{"a question", asks("a1"), []Job{}, []string{"An agent asks for permission"}},
		{"the same one", asks("a1"), []Job{}, nil},
		{"another one of the same job", asks("a2"), []Job{}, []string{"An agent asks for permission"}},
		{"nobody can tell what there is", nil, nil, nil},
		{"it is still there", asks("a2"), []Job{}, nil},
		{"the end", nothing, over(job.Finished, time.Second), []string{"A job has finished"}},
		{"nobody can tell", nil, nil, nil},
		{"the end is told once", nothing, over(job.Finished, time.Second), nil},
		{"its next run", failed(time.Minute), over(job.Limit, time.Minute), []string{"A job has failed"}},
		{"on somebody's word", nothing, over(job.Cancelled, 2*time.Minute), nil},
	}
	for _, step := range steps {
		status := Describe(Facts{Known: step.known, Jobs: step.jobs, Since: noon}, noon)
		var told []string
		for _, notice := range a.due(status.Told, status.Whole, false, noon) {
			told = append(told, notice.Title)
			if strings.Contains(notice.Title+notice.Text+notice.Place, "secret") {
				t.Errorf("notice %+v", notice)
			}
		}
		if diff := cmp.Diff(step.want, told); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
}

func TestNED_05_EverySortOfNeedHasAFixedText(t *testing.T) {
	for _, sort := range needs.Sorts() {
		text, has := texts[sort]
		if silent := sort == needs.Offline || sort == needs.JobReview; has == silent || has && (text.Title == "" || text.Text == "" || text.Place == "") {
			t.Errorf("%s: the notice is %+v", sort, text)
		}
	}
}

// The desktop app and the page announce the same need in the same words.
func TestPGE_14_TheNoticesOfThePageHaveTheSameTexts(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "frontend", "src", "features", "needs", "notices.ts"))
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`(?s)\n  '?([a-z-]+)'?: \{\s+title: (?:'([^']+)'|"([^"]+)"),\s+text: '([^']+)',`)
	found := map[needs.Sort]Notice{}
	for _, match := range entry.FindAllStringSubmatch(string(source), -1) {
		found[needs.Sort(match[1])] = Notice{Title: match[2] + match[3], Text: match[4]}
	}
	for sort, want := range texts {
		got, has := found[sort]
		if slices.Contains(needs.Sorts(), sort) && (!has || got.Title != want.Title || got.Text != want.Text) {
			t.Errorf("%s: the page says %+v, and the app %+v", sort, got, want)
		}
	}
}

func TestQUI_02_APauseOfTheOwnersIsNoNotice(t *testing.T) {
	a := &announcer{}
	item := func(id string, paused bool) []needs.Item {
		return []needs.Item{{ID: id, Sort: needs.Exchange, Exchange: &needs.ExchangeItem{Paused: paused}}}
	}
	if got := a.due(item("1", true), true, false, noon); len(got) != 0 {
		t.Errorf("a pause is told: %+v", got)
	}
	if got := a.due(item("2", false), true, false, noon); len(got) != 1 || got[0] != texts[needs.Exchange] {
		t.Errorf("a card is told as %+v", got)
	}
}

func TestNED_05_QuietHoursHoldBackNoticesAndNotTheList(t *testing.T) {
	known := &needs.Facts{Questions: []needs.QuestionFact{{ID: "q-1"}, {ID: "q-2"}}}
	status := Describe(Facts{Known: known, Jobs: []Job{}}, noon)
	if len(status.Needs) != 2 {
		t.Fatalf("the list is %+v", status.Needs)
	}
	var a announcer
	for range 2 {
		if due := a.due(status.Told, status.Whole, true, noon); len(due) != 0 {
			t.Errorf("in quiet hours %+v", due)
		}
	}
	after := Describe(Facts{Known: &needs.Facts{Questions: known.Questions[:1]}, Jobs: []Job{}}, noon)
	if due := a.due(after.Told, after.Whole, false, noon); len(due) != 1 || due[0].Title != "A session has a question" {
		t.Errorf("afterwards %+v", due)
	}
	if due := a.due(after.Told, after.Whole, false, noon); len(due) != 0 {
		t.Errorf("told again: %+v", due)
	}
}
