package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

// spoil replaces a file by what nobody can read.
func (b *bench) spoil(path string) (restore func()) {
	b.t.Helper()
	path = filepath.Join(b.home.Dir(), path)
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(`{"run": 1, "orders": [{"id"`), 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, before, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) read(path string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.home.Dir(), path))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

const spoilt = `{"run": 1, "orders": [{"id"`

// One damaged orders.json costs its job the words of others, and nothing else.
func TestJOB_05_DamagedOrdersCostTheirJobAlone(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	s.mustSpawn("02", `{"prompt":"y"}`)
	other := b.started()
	for name, words := range map[string]string{first: "First words.", second: "Second words."} {
		if _, err := s.say(name, words); err != nil {
			t.Fatal(err)
		}
	}
	b.down()
	orders := "jobs/" + first + "/orders.json"
	restore := b.spoil(orders)
	b.up()
	s = b.join("boss", "s1")
	other.connect(api.RunnerReport{})
	if got := other.orders(); len(got) != 1 || got[0].Text != "Second words." {
		t.Errorf("the other job hears %+v", got)
	}
	r.connect(api.RunnerReport{})
	_, err := s.say(first, "More.")
	wantCode(t, "more words", err, bridge.Storage)
	if err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), orders) || strings.Contains(err.Error(), "\n") {
		t.Errorf("it says %v", err)
	}
	r.report(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: "say-F"}}}) // the agent has heard it before
	r.finish("There are 12.")
	if got := s.mail(1)[0]; !strings.Contains(got.Body, "There are 12.") {
		t.Errorf("its result is %+v", got)
	}
	if b.read(orders) != spoilt {
		t.Error("the damaged file was touched")
	}
	_, err = s.say(first, "More.")
	wantCode(t, "more words after its end", err, bridge.Storage)
	restore()
	if _, err := s.say(first, "More."); err != nil {
		t.Fatalf("mended: %v", err)
	}
	next := b.started()
	if next.spec.Run != 2 || !strings.HasSuffix(next.spec.Prompt, "More.") || strings.Contains(next.spec.Prompt, "First") {
		t.Errorf("the next run begins with %q", next.spec.Prompt)
	}
	s.mail(0)
}

// What it was told before, and nobody has heard, is there when the file is mended.
func TestJOB_05_WordsInDamagedOrdersAreHeardWhenTheyAreMended(t *testing.T) {
	for _, ended := range []bool{false, true} {
		b := newBench(t)
		s := b.join("boss", "s1")
		s.mustSpawn("01", `{"prompt":"x"}`)
		r := b.started()
		r.connect(api.RunnerReport{})
		r.work()
		if _, err := s.say(first, "First words."); err != nil {
			t.Fatal(err)
		}
		b.down()
		restore := b.spoil("jobs/" + first + "/orders.json")
		b.up()
		s = b.join("boss", "s1")
		r.connect(api.RunnerReport{})
		if ended {
			r.finish("There are 12.")
			s.mail(1)
			restore()
			if next := b.started(); next.spec.Run != 2 || !strings.Contains(next.spec.Prompt, "First words.") {
				t.Errorf("the next run begins with %q", next.spec.Prompt)
			}
			continue
		}
		restore()
		if _, err := s.say(first, "More."); err != nil {
			t.Fatal(err)
		}
		if got := r.orders(); len(got) != 2 || got[0].Text != "First words." || got[1].Text != "More." {
			t.Errorf("it hears %+v", got)
		}
	}
}

func TestJOB_06_AJobWithDamagedOrdersCanBeCancelled(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	b.down()
	b.spoil("jobs/" + first + "/orders.json")
	b.up()
	s = b.join("boss", "s1")
	r.connect(api.RunnerReport{})
	if _, err := s.JobCancel(t.Context(), api.JobArgs{Job: first}); err != nil {
		t.Fatal(err)
	}
	if got := r.orders(); len(got) != 1 || got[0].Kind != api.OrderCancel {
		t.Errorf("it is told %+v", got)
	}
	r.report(r.end(job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}, ""))
	eventually(t, "its books to be closed", func() bool { entry, _ := b.jobs.get(first); return entry.ResultSent })
	if b.read("jobs/"+first+"/orders.json") != spoilt {
		t.Error("the damaged file was touched")
	}
}

// A damaged spec keeps the runner waiting until it is mended, and no longer.
func TestJOB_02_ARunnerWhoseSpecIsDamagedComesAgain(t *testing.T) {
	b := newBench(t)
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	b.down()
	restore := b.spoil("jobs/" + first + "/spec.json")
	b.up()
	client := b.dial(api.RoleRunner)
	hello := api.RunnerHello{Job: first, Run: 1, Token: r.spec.Token}
	_, err := client.RunnerHello(t.Context(), hello)
	wantCode(t, "with a damaged spec", err, bridge.Storage)
	for _, token := range []string{"", "guess"} { // its secret is in there, and no other is as good
		_, err := b.dial(api.RoleSession).Register(t.Context(), api.Register{Kind: bridge.Codex, Name: first, SessionID: "s2", Runner: true, JobToken: token, Cwd: "/"})
		wantCode(t, fmt.Sprintf("a session with the secret %q", token), err, bridge.Unauthorized)
	}
	restore()
	if _, err := client.RunnerHello(t.Context(), hello); err != nil {
		t.Errorf("mended: %v", err)
	}
	if err := b.jobs.Prove(first, r.spec.Token); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func TestJOB_07_ADamagedApprovalKeepsNoResult(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	approval := job.NewApproval(job.Approval{ID: "q1", Job: first, Run: 1, By: "boss", What: "Bash", Detail: "ls", Kind: "command"}, b.now())
	r.report(api.RunnerReport{Approvals: []job.Approval{approval}})
	if err := os.MkdirAll(filepath.Join(b.home.Dir(), "approvals"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.home.Dir(), "approvals/q1.json"), []byte(spoilt), 0o600); err != nil {
		t.Fatal(err)
	}
	r.finish("There are 12.")
	s.mail(2)
	eventually(t, "its books to be closed", func() bool { entry, _ := b.jobs.get(first); return entry.ResultSent })
	if b.read("approvals/q1.json") != spoilt {
		t.Error("the damaged file was touched")
	}
}

// Two jobs of one name: nobody can tell which is meant, and neither is lost.
func TestVER_06_TwoJobsOfOneNameStayAndAreNotServed(t *testing.T) {
	b := prepared(t)
	const twin = `{"name":"` + first + `","agent":"codex","prompt":"%s","owner":"boss","status":"running","run":1,"mark":"%s<&>"}`
	twins := []string{strings.ReplaceAll(twin, "%s", "one"), strings.ReplaceAll(twin, "%s", "two"), `{"agent":"codex","prompt":"no name","owner":"boss","status":"done"}`}
	write := func(entries ...string) {
		t.Helper()
		text := `{"version":4,"jobs":[` + strings.Join(entries, ", ") + `],"handoffs":[{"odd":1}],"x":[2]}`
		if err := os.WriteFile(filepath.Join(b.home.Dir(), "jobs.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(twins...)
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("02", `{"prompt":"y"}`)
	b.started().connect(api.RunnerReport{})
	_, err := s.spawn("01", `{"prompt":"z"}`)
	wantCode(t, "another of that name", err, bridge.Storage)
	_, err = s.say(first, "Go on.")
	wantCode(t, "words for it", err, bridge.Storage)
	if err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("it says %v", err)
	}
	for range 2 { // also after another reading
		text := b.read("jobs.json")
		for _, twin := range append(twins, `"handoffs":[{"odd":1}]`, `"x":[2]`, second) {
			if strings.Count(text, twin) != 1 {
				t.Errorf("jobs.json has %d of %s: %s", strings.Count(text, twin), twin, text)
			}
		}
		b.down()
		b.up()
	}
	b.down()
	write(twins[1])
	b.up()
	if entry, err := b.jobs.get(first); err != nil || entry.Prompt != "two" {
		t.Errorf("mended it is %+v, %v", entry, err)
	}
}
