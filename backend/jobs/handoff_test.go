package jobs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

func (s session) handOff(id, to string, names ...string) ([]string, error) {
	args := api.HandoffArgs{ID: id, Handoff: job.Handoff{To: to, Jobs: names, All: len(names) == 0, Note: "I leave early."}}
	moved, err := s.HandOff(s.b.t.Context(), args)
	return moved.Moved, err
}

func TestJOB_23_AnotherSessionSupervisesAllFromThenOn(t *testing.T) {
	b := prepared(t)
	b.allow(func(allowed *config.Jobs) { allowed.MaxJobs = 2 })
	b.up()
	boss, heir := b.join("boss", "s1"), b.join("heir", "s2")
	boss.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	running := b.begun()
	running.asks("q1") // asked before
	boss.mail(1)
	boss.mustSpawn("02", `{"prompt":"x"}`)
	ended := b.begun()
	boss.mustSpawn("03", `{"prompt":"x"}`) // in line
	moved, err := boss.handOff("h1", "heir")
	if want := []string{first, second, "codex-job-00000003"}; err != nil || !slices.Equal(moved, want) {
		t.Fatalf("moved %q, %v; want %q", moved, err, want)
	}
	if again, err := boss.handOff("h1", "heir"); err != nil || !slices.Equal(again, moved) {
		t.Errorf("asked again: %q, %v", again, err)
	}
	ended.finish("the answer")
	running.asks("q2") // asked afterwards
	bodies := ""
	for _, message := range heir.mail(4) {
		bodies += message.Body + "\n"
	}
	wantText(t, bodies, "boss has handed 3 jobs over to you", "I leave early.", `"q1"`, `"q2"`, "the answer")
	boss.mail(0)
	for _, name := range moved {
		_, err := boss.say(name, "words")
		wantCode(t, "the former one says something to "+name, err, bridge.Denied)
		_, err = boss.JobCancel(t.Context(), api.JobArgs{Job: name})
		wantCode(t, "the former one cancels "+name, err, bridge.Denied)
		if e := b.entry(name); e["owner"] != "heir" || len(e["ownershipHistory"].([]any)) != 1 {
			t.Errorf("it is recorded as %v", e)
		}
	}
	wantCode(t, "the former one allows", boss.decide(first, "q1", "allow"), bridge.Denied)
	if err := heir.decide(first, "q1", "allow"); err != nil {
		t.Errorf("the new one allows what was asked before: %v", err)
	}
	if err := heir.decide(first, "q2", "deny"); err != nil {
		t.Errorf("the new one denies what was asked afterwards: %v", err)
	}
	if _, err := heir.say(second, "and?"); err != nil {
		t.Errorf("the new one goes on with one: %v", err)
	}
	if got, err := boss.Jobs(t.Context(), api.Caller{}); err != nil || len(got.Jobs) != 0 {
		t.Errorf("the former one sees %+v, %v", got, err)
	}
	inside := running.inside()
	_, err = inside.Send(t.Context(), api.SendArgs{To: "boss", Body: "hello"})
	wantCode(t, "the job writes to the former one", err, bridge.Denied)
	if _, err = inside.Send(t.Context(), api.SendArgs{To: "heir", Body: "hello"}); err != nil {
		t.Errorf("the job writes to the new one: %v", err)
	}
	if back, err := heir.handOff("h2", "boss", first); err != nil || len(back) != 1 || len(b.entry(first)["ownershipHistory"].([]any)) != 2 {
		t.Errorf("back again: %q, %v, %v", back, err, b.entry(first)["ownershipHistory"])
	}
}

func TestJOB_23_AHandOffIsRefusedWhole(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	gone := b.join("gone", "s9")
	gone.Close()
	eventually(t, "it to leave", func() bool { _, err := b.broker.Live("gone"); return bridge.CodeOf(err) == bridge.Unavailable })
	before := readRegistry(t, b)
	for what, test := range map[string]struct {
		by    session
		to    string
		names []string
		code  bridge.Code
	}{
		"to no name":                       {f.boss, "", nil, bridge.Invalid},
		"to nobody":                        {f.boss, "nobody", nil, bridge.NotFound},
		"to one that is away":              {f.boss, "gone", nil, bridge.Unavailable},
		"to a job":                         {f.boss, siblingName, nil, bridge.Denied},
		"to itself":                        {f.boss, "boss", nil, bridge.Invalid},
		"to a kind":                        {f.boss, "claude", nil, ""},
		"one of another's beside its own":  {f.boss, "other", []string{jobName, otherName}, bridge.Denied},
		"one of its job's beside its own":  {f.boss, "other", []string{jobName, childName}, bridge.Denied},
		"one that is not there":            {f.boss, "other", []string{jobName, "codex-job-00000099"}, bridge.NotFound},
		"one named twice":                  {f.boss, "other", []string{jobName, jobName}, bridge.Invalid},
		"by a job":                         {f.inJob, "other", nil, bridge.Denied},
		"by whom nothing of it belongs to": {f.other, "boss", []string{jobName}, bridge.Denied},
	} {
		_, err := test.by.handOff("h-"+strings.ReplaceAll(what, " ", "-"), test.to, test.names...)
		if test.code == "" {
			if err == nil {
				t.Errorf("%s: it was accepted", what)
			}
		} else {
			wantCode(t, what, err, test.code)
		}
		if test.to == "" && !strings.Contains(err.Error(), "to must name") {
			t.Errorf("%s: it says %q", what, err)
		}
		if now := readRegistry(t, b); now != before {
			t.Errorf("%s changed jobs.json", what)
		}
	}
	f.boss.mail(0)
	f.other.mail(0)
}

func readRegistry(t *testing.T, b *bench) string {
	t.Helper()
	b.jobs.mu.Lock() // what need not be durable at once is written first
	defer b.jobs.mu.Unlock()
	if err := b.jobs.writeLocked(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.home.Dir(), "jobs.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestJOB_23_ABrokerThatDiesAroundAHandOff has made it whole or not at all, and tells of
// it once.
func TestJOB_23_ABrokerThatDiesAroundAHandOff(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	b.join("heir", "s2")
	boss.mustSpawn("01", `{"prompt":"x"}`)
	r := b.begun()
	b.fails.Store(true) // it dies before it tells anybody
	if _, err := boss.handOff("h1", "heir"); err != nil {
		t.Fatal(err)
	}
	r.end(answered, "the answer")
	for range 2 {
		b.down()
		b.fails.Store(false)
		b.up()
	}
	r.connect(r.end(answered, "the answer"))
	heir, boss := b.join("heir", "s2"), b.join("boss", "s1")
	bodies := ""
	for _, message := range heir.mail(2) {
		bodies += message.Body
	}
	if strings.Count(bodies, "has handed 1 job over") != 1 || strings.Count(bodies, "the answer") != 1 {
		t.Errorf("the new one hears %q", bodies)
	}
	boss.mail(0)
	heir.mail(0)
}

// TestJOB_23_AResultBetweenItsMessageAndItsNote: one that was stored for the former
// supervisor, and that nobody has read, goes to the new one when it is sent again.
func TestJOB_23_AResultBetweenItsMessageAndItsNote(t *testing.T) {
	b := newBench(t)
	boss, heir := b.join("boss", "s1"), b.join("heir", "s2")
	boss.mustSpawn("01", `{"prompt":"x"}`)
	r := b.begun()
	entry, err := b.jobs.get(first)
	if err != nil {
		t.Fatal(err)
	}
	report := r.end(answered, "the answer")
	body, err := b.jobs.results.body(entry)
	if err == nil {
		err = b.jobs.results.deliver(t.Context(), entry, runs.ResultID(first, 1), runs.Conversation(first), body)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boss.handOff("h1", "heir"); err != nil {
		t.Fatal(err)
	}
	if !r.report(report).Taken {
		t.Error("the result is not taken")
	}
	boss.mail(0)
	heir.mail(2)
}
