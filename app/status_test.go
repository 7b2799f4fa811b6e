package app

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/app/mark"
	"bridge/backend/bridge"
	"bridge/backend/mail"
	"bridge/backend/maintain/check"
)

var noon = time.UnixMilli(1_800_000_000_000)

func TestDSK_02_DescribeTellsTheWorstFirst(t *testing.T) {
	waiting := []Waiting{{Session: "codex api", Messages: 2, Since: noon.Add(-20 * time.Minute)}}
	damaged := Storage{Summary: check.Summary{Errors: 2, Warnings: 1}, First: "jobs.json: it is not valid JSON"}
	warned := Storage{Summary: check.Summary{OK: true, Warnings: 1}, First: "x: nothing of Bridge's"}
	failed := Storage{Failed: true, Result: "Backing up failed at 14:02: the disk is full"}
	for name, tt := range map[string]struct {
		facts Facts
		state State
		words string
	}{
		"starting":       {Facts{Starting: true, Problem: "connecting"}, Offline, "Starting"},
		"offline":        {Facts{Problem: "the home is full", Storage: damaged, Waiting: waiting}, Offline, "Offline. the home is full"},
		"storage error":  {Facts{Storage: damaged, Waiting: waiting, Busy: 1}, StorageError, "The storage has 2 errors. jobs.json: it is not valid JSON"},
		"not looked at":  {Facts{Storage: Storage{Problem: "no rights"}}, StorageError, "The storage cannot be looked at: no rights"},
		"needs you":      {Facts{Storage: warned, Waiting: waiting, Busy: 1}, NeedsYou, "codex api has not read 2 messages for 20 min"},
		"several needs":  {Facts{Storage: failed, Waiting: waiting}, NeedsYou, failed.Result + ", and 1 more"},
		"a warning":      {Facts{Storage: warned, Busy: 1, Sessions: 2}, StorageWarning, "The storage has 1 warning. x: nothing of Bridge's"},
		"work":           {Facts{Busy: 1, Sessions: 2}, Working, "1 of 2 sessions at work"},
		"idle":           {Facts{Sessions: 1}, Idle, "OK, 1 session"},
		"idle and alone": {Facts{}, Idle, "OK, no sessions"},
	} {
		t.Run("DSK-02 "+name, func(t *testing.T) {
			got := Describe(tt.facts, noon)
			if got.State != tt.state || got.Words != tt.words {
				t.Errorf("%q, %q, want %q, %q", got.State, got.Words, tt.state, tt.words)
			}
			if (got.Line() == "") != (len(got.Needs) > 0) {
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
	f := Facts{Waiting: []Waiting{{Session: "a/b", Messages: 1, Since: noon.Add(-time.Hour)}}, Storage: Storage{Summary: check.Summary{Errors: 1}}}
	var places []string
	for _, need := range Describe(f, noon).Needs {
		places = append(places, need.Place)
	}
	if diff := cmp.Diff([]string{"#/storage", "#/sessions/a%2Fb"}, places); diff != "" {
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

// Only what an idle session has had unread for long is the owner's business, and
// an answer to a decision is a message as others are: the page lists it, too.
func TestDSK_02_WhoWaitsForTheOwner(t *testing.T) {
	row := func(id string, ago time.Duration, deliveries ...mail.Delivery) mail.HistoryRow {
		return mail.HistoryRow{ID: id, CreatedAt: noon.Add(-ago).UnixMilli(), Deliveries: deliveries}
	}
	to := func(recipient string) mail.Delivery {
		return mail.Delivery{Message: bridge.Message{Recipient: recipient}}
	}
	answer := row("m2", 45*time.Minute, to("two"))
	answer.Hop, answer.ReplyTo, answer.ConversationID = 100, "m1", "decision-d1"
	rows := []mail.HistoryRow{ // the newest first, as the store lists them
		row("m5", 14*time.Minute, to("one")),
		row("m4", 20*time.Minute, to("one"), to("busy")),
		row("m3", 30*time.Minute, to("one")),
		answer,
	}
	got := waitingIn(rows, map[string]string{"one": "alpha", "two": "beta"}, noon)
	want := []Waiting{
		{"beta", 1, noon.Add(-45 * time.Minute)},
		{"alpha", 2, noon.Add(-30 * time.Minute)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDSK_07_NoticesComeOncePerChangeAndNotTooOften(t *testing.T) {
	session := func(id string) Need { return Need{Kind: SessionWaits, ID: id, Title: "secret words"} }
	broken := Need{Kind: StorageBroken, ID: "errors 1"}
	var a announcer
	count := func(after time.Duration, needs ...Need) int {
		t.Helper()
		due := a.due(needs, noon.Add(after))
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
		needs []Need
		want  int
	}{
		{"nothing", 0, nil, 0},
		{"two of a kind are one notice", 0, []Need{session("a"), session("b")}, 1},
		{"they are told", time.Second, []Need{session("a"), session("b")}, 0},
		{"another kind", 2 * time.Second, []Need{broken, session("a")}, 1},
		{"it went away", 3 * time.Second, []Need{session("a")}, 0},
		{"and came back", 4 * time.Second, []Need{broken, session("a")}, 1},
		{"a fourth", 5 * time.Second, []Need{broken, session("c")}, 1},
		{"a fifth", 6 * time.Second, []Need{broken, session("d")}, 1},
		{"a sixth is too many", 7 * time.Second, []Need{broken, session("e")}, 0},
		{"and is not told later", noticesWithin + time.Minute, []Need{broken, session("e")}, 0},
		{"a new one is", noticesWithin + time.Minute, []Need{broken, session("f")}, 1},
	}
	for _, step := range steps {
		if got := count(step.after, step.needs...); got != step.want {
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
