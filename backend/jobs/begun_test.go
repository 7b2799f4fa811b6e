package jobs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

// rewind has the book say what a broker had written that died while it began run n.
func (b *bench) rewind(n int, change func(*job.Job)) {
	b.t.Helper()
	path := filepath.Join(b.home.Dir(), "jobs.json")
	data, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	file, err := job.DecodeFile(data)
	if err == nil {
		file.Jobs[0].State, file.Jobs[0].Run, file.Jobs[0].Host, file.Jobs[0].QueuedMessages = job.Starting, n, nil, []string{"once more"}
		change(&file.Jobs[0])
		data, err = file.Encode()
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// A run whose start a broker died in is begun by the next one, once: whoever claims it
// first has it.
func TestJOB_02_ABrokerThatDiesAsItBeginsARunBeginsItStill(t *testing.T) {
	for _, tt := range []struct {
		name             string
		laidOut, claimed bool
		cancelled        bool
	}{
		{name: "JOB-02 before anything was laid out"},
		{name: "JOB-06 before anything was laid out, cancelled", cancelled: true},
		{name: "JOB-02 before its runner was started or noted", laidOut: true},
		{name: "JOB-02 when its runner had it already", laidOut: true, claimed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x"}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.finish("12")
			s.mail(1)
			b.down()
			spec := r.spec
			if tt.laidOut {
				spec.Run, spec.Token, spec.Prompt = 2, "the second secret", "once more"
				b.writeFile(r.folder, "spec.json", spec.Encode)
			}
			if tt.claimed {
				identity, err := proc.Identity(os.Getppid())
				if err != nil {
					t.Fatal(err)
				}
				claim := orphans.Claim{Runner: job.Process{PID: os.Getppid(), Identity: identity}, Token: spec.Token}
				b.writeFile(r.folder, "run-2.json", func() ([]byte, error) { return json.Marshal(claim) })
			}
			b.rewind(2, func(entry *job.Job) { entry.CancelAsked, entry.ResultSent = tt.cancelled, false })
			b.up()
			if tt.claimed {
				b.notStarted()
				return
			}
			again := b.started()
			if again.spec.Run != 2 || !strings.HasSuffix(again.spec.Prompt, "once more") || again.spec.Token == r.spec.Token || tt.laidOut && again.spec.Token != spec.Token {
				t.Errorf("it is asked for %+v", again.spec)
			}
			again.connect(api.RunnerReport{})
			if tt.cancelled {
				if orders := again.orders(); len(orders) != 1 || orders[0].Kind != api.OrderCancel {
					t.Errorf("its orders are %+v", orders)
				}
			}
			again.finish("13")
			wantText(t, b.join("boss", "s1").mail(1)[0].Body, "13")
			b.notStarted()
		})
	}
}

func (b *bench) writeFile(folder, name string, encode func() ([]byte, error)) {
	b.t.Helper()
	data, err := encode()
	if err == nil {
		err = disk.WriteAtomic(filepath.Join(folder, name), data, disk.PrivateFile)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// notStarted looks a few times after the jobs, and wants no runner of them.
func (b *bench) notStarted() {
	b.t.Helper()
	before := b.state(first)
	for range 3 {
		b.jobs.look()
	}
	select {
	case folder := <-b.starts:
		b.t.Errorf("a runner was started in %s", folder)
	default:
	}
	if state := b.state(first); state != before || state == job.Interrupted {
		b.t.Errorf("it was %s and is %s", before, state)
	}
}

// The runner of an earlier run says nothing about this one's.
func TestJOB_02_ADeadRunnerOfAnEarlierRunIsNotThisOnes(t *testing.T) {
	b := prepared(t)
	pid, end := sleeper(t)
	b.start = func(folder string) (int, error) { b.starts <- folder; return pid, nil }
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
	r.end(answered, "12")
	end()
	s.mail(1)
	begun, release := make(chan job.Job, 1), make(chan struct{})
	b.start = func(folder string) (int, error) {
		entry, _ := b.jobs.get(first)
		begun <- entry
		<-release
		return os.Getpid(), nil
	}
	defer close(release)
	if _, err := s.say(first, "once more"); err != nil {
		t.Fatal(err)
	}
	select {
	case entry := <-begun:
		if entry.Run != 2 || entry.Host != nil {
			t.Errorf("as its next runner is started it has %+v", entry.Host)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("it is not continued")
	}
}

// Words that a dead runner had begun to hand over are not said again by themselves:
// whoever continues the job is told.
func TestJOB_05_WordsOfWhichNobodyKnowsAreNotSaidAgain(t *testing.T) {
	for _, tt := range []struct {
		name, journal string
		again         bool
	}{
		{name: "JOB-05 never begun", again: true},
		{name: "JOB-05 begun in another run", journal: `{"run":7,"kind":"message","id":"say-l"}` + "\n", again: true},
		{name: "JOB-05 begun, no end", journal: `{"run":1,"kind":"message","id":"say-l"}` + "\n"},
		{name: "JOB-05 taken, not told", journal: `{"run":1,"kind":"message","id":"say-l"}` + "\n" + `{"run":1,"kind":"sent","id":"say-l"}` + "\n"},
		{name: "JOB-05 refused, not told", journal: `{"run":1,"kind":"message","id":"say-l"}` + "\n" + `{"run":1,"kind":"sent","id":"say-l","error":"no"}` + "\n", again: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := prepared(t)
			pid, end := sleeper(t)
			var again atomic.Bool
			b.start = func(folder string) (int, error) {
				b.starts <- folder
				if again.Swap(true) { // that of the next run lives on
					return os.Getpid(), nil
				}
				return pid, nil
			}
			b.up()
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x"}`)
			r := b.started()
			b.writeFile(r.folder, "journal.jsonl", func() ([]byte, error) { return []byte(tt.journal), nil })
			eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
			if _, err := s.say(first, "late words"); err != nil {
				t.Fatal(err)
			}
			end()
			body := s.mail(1)[0].Body
			if told := strings.Contains(body, "late words"); told == tt.again {
				t.Errorf("it tells %q", body)
			}
			if !tt.again {
				b.notStartedAgain()
				return
			}
			if next := b.started(); next.spec.Run != 2 || !strings.HasSuffix(next.spec.Prompt, "late words") {
				t.Errorf("its next run is asked for %+v", next.spec)
			}
		})
	}
}

// notStartedAgain wants the job to wait for somebody's word.
func (b *bench) notStartedAgain() {
	b.t.Helper()
	eventually(b.t, "its books to be closed", func() bool { entry, _ := b.jobs.get(first); return entry.ResultSent })
	b.jobs.look()
	if entry, _ := b.jobs.get(first); entry.State != job.Interrupted || len(entry.QueuedMessages) > 1 {
		b.t.Errorf("it is %s with %q", entry.State, entry.QueuedMessages)
	}
}

// What a dead runner wrote down last counts, also where no broker has heard it.
func TestJOB_05_TheSessionOfADeadRunnerIsGoneOnWith(t *testing.T) {
	b := prepared(t)
	pid, end := sleeper(t)
	b.start = func(folder string) (int, error) { b.starts <- folder; return pid, nil }
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
	identity, err := proc.Identity(pid)
	if err != nil {
		t.Fatal(err)
	}
	state := r.state(job.Running)
	state.Runner = job.Process{PID: pid, Identity: identity}
	b.writeFile(r.folder, "state.json", state.Encode)
	end()
	s.mail(1)
	if _, err := s.say(first, "go on"); err != nil {
		t.Fatal(err)
	}
	if next := b.started(); next.spec.Session != state.Session || state.Session == "" {
		t.Errorf("it goes on with the session %q, want %q", next.spec.Session, state.Session)
	}
}

// A runner may die after it gave its agent the prompt, while no broker heard that its agent
// works. What the prompt contained is not sent again by the next message.
func TestJOB_05_PRF_03_ThePromptOfALostRunIsNotSentAgain(t *testing.T) {
	for _, tt := range []struct {
		name, journal string
		want          string // the prompt of the third run
	}{
		{"the agent may have it", `{"run":2,"kind":"prompt","id":"p2"}` + "\n", "third"},
		{"the journal ends in a half line", `{"run":2,"kind":"prompt"`, "second\n\nthird"},
		{"the agent was never given it", `{"run":1,"kind":"prompt","id":"p1"}` + "\n", "second\n\nthird"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := prepared(t)
			pid, end := sleeper(t)
			var starts atomic.Int32
			b.start = func(folder string) (int, error) {
				b.starts <- folder
				if starts.Add(1) == 2 {
					return pid, nil
				}
				return os.Getpid(), nil
			}
			b.up()
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"first"}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.work()
			r.finish("12")
			s.mail(1)
			r.Close()
			if _, err := s.say(first, "second"); err != nil {
				t.Fatal(err)
			}
			lost := b.started()
			b.writeFile(lost.folder, "journal.jsonl", func() ([]byte, error) { return []byte(tt.journal), nil })
			eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
			end()
			s.mail(1)
			if _, err := s.say(first, "third"); err != nil {
				t.Fatal(err)
			}
			if next := b.started(); next.spec.Run != 3 || next.spec.Prompt != tt.want {
				t.Errorf("run %d is asked for %q, want %q", next.spec.Run, next.spec.Prompt, tt.want)
			}
		})
	}
}

// A broker may die when the last run's envelope has its new name beside the old one.
func TestJOB_03_AnEnvelopeThatWasHalfPutAsideHindersNoStart(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.finish("12")
	s.mail(1)
	b.down()
	now, aside := filepath.Join(r.folder, "envelope.json"), filepath.Join(r.folder, "envelope-1.json")
	if err := os.Link(now, aside); err != nil {
		t.Fatal(err)
	}
	b.rewind(2, func(entry *job.Job) { entry.ResultSent = false })
	b.up()
	again := b.started()
	again.connect(api.RunnerReport{})
	again.finish("13")
	wantText(t, b.join("boss", "s1").mail(1)[0].Body, "13")
	if data, err := os.ReadFile(aside); err != nil || !strings.Contains(string(data), "12") {
		t.Errorf("the first run's envelope is %s, %v", data, err)
	}
}
