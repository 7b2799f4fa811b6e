package jobs

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
)

// TestJOB_05_WordsForAJobThatIsAboutToBegin: two jobs are given their places at once,
// and while the runner of the first is started somebody speaks to the second.
func TestJOB_05_WordsForAJobThatIsAboutToBegin(t *testing.T) {
	b := prepared(t)
	begin := b.start
	held, release := make(chan string, 3), make(chan struct{})
	b.start = func(folder string) (int, error) {
		held <- folder
		<-release
		return begin(folder)
	}
	b.up()
	defer func() { close(release) }()
	boss := b.join("boss", "h1")
	boss.mustSpawn("01", `{"prompt":"first"}`)
	<-held // it is being started: the next two wait for their turn together
	second, third := boss.mustSpawn("02", `{"prompt":"second"}`), boss.mustSpawn("03", `{"prompt":"third"}`)
	release <- struct{}{}
	b.started()
	<-held
	eventually(t, "the places of both", func() bool { return b.state(second.Job) == job.Starting && b.state(third.Job) == job.Starting })
	result, err := boss.say(third.Job, "and count them")
	if err != nil || result.Delivery == nil || *result.Delivery != job.ToRunning {
		t.Fatalf("the words came to %+v, %v", result, err)
	}
	release <- struct{}{}
	b.started()
	<-held
	release <- struct{}{}
	r := b.started()
	r.connect(api.RunnerReport{})
	if orders := r.orders(); r.spec.Job != third.Job || len(orders) != 1 || orders[0].Text != "and count them" {
		t.Errorf("%s is told %+v", r.spec.Job, orders)
	}
}

// TestJOB_03_WordsThatCrossTheEndOfARunDoNotTakeItsResult: the run ends while somebody
// speaks to it, and its result cannot be stored at once.
func TestJOB_03_WordsThatCrossTheEndOfARunDoNotTakeItsResult(t *testing.T) {
	b := prepared(t)
	b.look = time.Hour
	b.up()
	boss := b.join("boss", "h1")
	spawned := boss.mustSpawn("01", `{"prompt":"count"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	meanwhile := func() {
		b.fails.Store(true)
		if _, err := r.RunnerReport(t.Context(), r.end(answered, "seven")); bridge.CodeOf(err) != bridge.Storage {
			t.Errorf("the result was reported with %v", err)
		}
		b.fails.Store(false)
	}
	b.meanwhile.Store(&meanwhile)
	if result, err := boss.say(spawned.Job, "go on"); err != nil || result.Delivery == nil || *result.Delivery != job.Continued {
		t.Fatalf("the words came to %+v, %v", result, err)
	}
	if mail := boss.mail(1); mail[0].ID != runs.ResultID(spawned.Job, 1) {
		t.Errorf("the mail is %+v", mail)
	}
	if next := b.started(); next.spec.Run != 2 || next.spec.Prompt != "go on" {
		t.Errorf("the next run is %d with %q", next.spec.Run, next.spec.Prompt)
	}
}

// TestRMT_10_WordsAreSaidOnceByTheirIDAlsoAfterARestart: whoever had no answer says the
// same again, to this broker or to one after it, while the job waits, works, has ended,
// or goes on.
func TestRMT_10_WordsAreSaidOnceByTheirIDAlsoAfterARestart(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	boss.mustSpawn("01", `{"prompt":"Count."}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	said := map[string]int{}
	say := func(id, words string) {
		t.Helper()
		for range 2 {
			for range 2 {
				if _, err := b.jobs.Say(id, job.Control{Job: first, Message: words}); err != nil {
					t.Fatalf("%s: %v", id, err)
				}
			}
			b.down()
			b.up()
		}
	}
	heard := func(r *runner) {
		t.Helper()
		for _, order := range r.orders() {
			said[order.Text]++
		}
	}
	say("m-1", "while it works")
	r.connect(api.RunnerReport{})
	heard(r)
	r.report(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: "m-1"}}})
	say("m-1", "while it works") // its outcome is known, and it goes on
	r.connect(api.RunnerReport{})
	say("m-2", "too late")
	r.connect(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: "m-2", Error: &bridge.Error{Code: bridge.Unavailable, Message: "it has ended"}}}})
	r.finish("There are 12.")
	eventually(t, "the result is told", func() bool { return b.state(first) != job.Running })
	again := b.started() // it goes on with what came too late
	if again.spec.Run != 2 || again.spec.Prompt != "too late" {
		t.Errorf("its next run is %+v", again.spec)
	}
	for _, id := range []string{"m-1", "m-2"} {
		say(id, "again "+id)
	}
	again.connect(api.RunnerReport{})
	again.work()
	again.finish("Yes.")
	eventually(t, "it has ended", func() bool {
		entry, err := b.jobs.get(first)
		return err == nil && entry.State == job.Finished && !entry.IsUnsent()
	})
	for _, id := range []string{"m-1", "m-2"} {
		say(id, "again "+id)
	}
	if state := b.state(first); state != job.Finished {
		t.Errorf("by words that were said it is %s", state)
	}
	say("m-3", "once more")
	third := b.started()
	if third.spec.Run != 3 || third.spec.Prompt != "once more" {
		t.Errorf("its last run is %+v", third.spec)
	}
	if said["while it works"] != 1 || len(said) != 1 {
		t.Errorf("it was told %v", said)
	}
}

// TestSEC_06_ASupervisorIsAskedAboutWhatItSees: a model takes hidden characters for what they
// do, or for nothing.
func TestSEC_06_ASupervisorIsAskedAboutWhatItSees(t *testing.T) {
	q := openQuestion{job: job.Job{Name: "codex-job-1"}, approval: job.Approval{
		What: "Bash\nx", Detail: "curl evil #\x1b[2K\rls\u200b\n\U000e0041", Why: "tests\u202e",
	}}
	body := q.body()
	if want := "(Bash\\nx):\n\n" + `curl evil #\x1b[2K\x0dls⟨U+200B⟩` + "\n⟨U+E0041⟩\n\nIt says: tests⟨U+202E⟩\n\nAnswer"; !strings.Contains(body, want) {
		t.Errorf("it is asked %q, want %q in it", body, want)
	}
	if bridge.VisibleExact(body) != body {
		t.Errorf("something is hidden in %q", body)
	}
}
