package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/soak/history"
)

// agentName is under which name this program is the agent of delegated jobs.
const agentName = "claude"

// asking is a world with one session that waits for a job of a stand-in.
type asking struct {
	*world
	boss  *actor
	round int
}

func newAsking(t *testing.T) *asking {
	w := emptyWorld(t)
	self, err := os.Executable()
	if err == nil {
		err = errors.Join(os.Symlink(self, filepath.Join(w.dir, agentName)), os.Mkdir(filepath.Join(w.dir, "work"), 0o700))
	}
	if err == nil {
		err = w.home.Ensure()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.home.Dir(), "config.json"), []byte(`{"jobs":{"enabled":true}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRIDGE_CLAUDE_BIN", filepath.Join(w.dir, agentName))
	a := &asking{world: w, boss: &actor{w: w, name: "boss", kind: bridge.Claude, killed: map[int]time.Time{}}}
	a.boss.start()
	if t.Failed() {
		t.FailNow()
	}
	return a
}

// asked is a job that somebody waits for.
type asked struct {
	a     *asking
	words string
	gate  string       // a file: the agent answers when it is there
	heard chan outcome // what the waiting call came to
	call  history.Call // that call
}

type outcome struct {
	answer struct {
		Job    string    `json:"job"`
		Status job.State `json:"status"`
		Result string    `json:"result"`
	}
	err error
}

// ask begins to wait for a job, and returns when its agent is at work.
func (a *asking) ask() *asked {
	a.Helper()
	a.round++
	started := filepath.Join(a.dir, "work", fmt.Sprint("started-", a.round))
	q := &asked{a: a, words: fmt.Sprintf("answer %d.", a.round), gate: filepath.Join(a.dir, fmt.Sprint("gate-", a.round)), heard: make(chan outcome, 1)}
	prompt := fmt.Sprintf("do touch %s\nwait %s\nsay %s", started, q.gate, q.words)
	s, _ := a.boss.server()
	q.call = a.history.Begin("boss")
	go func() {
		var o outcome
		o.err = s.call(context.Background(), "ask_claude", map[string]any{"prompt": prompt, "cwd": filepath.Join(a.dir, "work"), "access": "edit"}, &o.answer)
		if o.err == nil {
			q.call.End(history.Spawn{Job: o.answer.Job})
			q.call.End(history.Result{Job: o.answer.Job, Run: 1, Part: answerPart, Text: o.answer.Result, Once: true})
		}
		q.heard <- o
	}()
	a.await("the agent is at work", settle, func() bool {
		select {
		case o := <-q.heard:
			a.Fatalf("the call ended at once: %+v", o)
		default:
		}
		_, err := os.Stat(started)
		return err == nil
	})
	return q
}

// open lets the agent answer.
func (q *asked) open() {
	q.a.Helper()
	if err := os.WriteFile(q.gate, nil, 0o600); err != nil {
		q.a.Fatal(err)
	}
}

// answers waits for the call's own answer.
func (q *asked) answers() {
	q.a.Helper()
	select {
	case o := <-q.heard:
		if o.err != nil || o.answer.Result != q.words || o.answer.Status != job.Finished {
			q.a.Errorf("the call answers %+v, want %q", o, q.words)
		}
	case <-time.After(settle):
		q.a.Fatal("the call did not answer")
	}
}

// mail takes the mail of the session: messages with these words.
func (a *asking) mail(words string) (found int) {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	s, _ := a.boss.server()
	var box struct{ Messages []shown }
	call := a.history.Begin("boss")
	if err := s.call(ctx, "inbox", map[string]any{}, &box); err != nil {
		a.Fatal(err)
	}
	for _, m := range box.Messages {
		if !strings.Contains(m.Body, words) {
			a.Errorf("the session has mail that it was not to get: %q", m.Body)
		}
		if name, run, isResult := resultOf(m.ID); isResult {
			call.End(history.Result{Job: name, Run: run, Part: answerPart, Text: answerWords.FindString(m.Body), Once: true})
			a.begun.Cut(history.Spawn{Job: name}) // the call that gave it may never have been answered
		}
		found++
	}
	return found
}

// comes waits for the answer as mail.
func (q *asked) comes() {
	q.a.Helper()
	found := 0
	q.a.await("the answer comes as a message", settle, func() bool { found += q.a.mail(q.words); return found > 0 })
	if found != 1 {
		q.a.Errorf("it comes %d times", found)
	}
}

// nothingElse checks that all jobs have told their end, and that no more mail is there.
func (a *asking) nothingElse() {
	a.Helper()
	a.await("all results are sent", settle, func() bool {
		data, err := os.ReadFile(filepath.Join(a.home.Dir(), "jobs.json"))
		if err != nil {
			return false
		}
		var file struct {
			Jobs []struct {
				Delivered bool
				Run       int
			}
		}
		sent := json.Unmarshal(data, &file) == nil && len(file.Jobs) == a.round
		for _, test := range file.Jobs {
			sent = sent && test.Delivered
			if test.Run > 1 {
				a.Errorf("a job ran %d times", test.Run)
			}
		}
		return sent
	})
	if n := a.mail("\x00"); n != 0 {
		a.Errorf("%d messages too many", n)
	}
	all := a.jobs(func(job.Job) bool { return true })
	for _, entry := range all[max(0, len(all)-3):] {
		a.looksAtResult(a.boss, entry.Name, answerPart)
	}
}

// answerPart names the result of a job in the history, in whatever way it was told, and
// answerWords finds it in what told it.
const answerPart = "answer"

var answerWords = regexp.MustCompile(`answer \d+\.`)

// giveUp tells the server that nobody waits for its last request any more.
func (s *server) giveUp() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := fmt.Fprintf(s.input, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", s.last)
	return err
}

// TestJOB_01_JOB_03_JOB_20_PRF_01_AnAnswerThatIsWaitedForComesOnce whatever dies while it is
// waited for: real brokers, servers and runners, and an agent that is played.
func TestJOB_01_JOB_03_JOB_20_PRF_01_AnAnswerThatIsWaitedForComesOnce(t *testing.T) {
	a := newAsking(t)
	t.Run("JOB-01 nothing dies", func(*testing.T) {
		q := a.ask()
		q.open()
		q.answers()
		a.nothingElse()
	})
	t.Run("JOB-01 whoever waits gives up", func(t *testing.T) {
		q := a.ask()
		s, _ := a.boss.server()
		if err := s.giveUp(); err != nil {
			t.Fatal(err)
		}
		q.open()
		q.comes()
		a.nothingElse()
	})
	t.Run("JOB-03 the broker dies", func(*testing.T) {
		q := a.ask()
		a.killBroker()
		q.open()
		q.answers()
		a.nothingElse()
	})
	t.Run("JOB-03 the broker dies as the answer comes", func(t *testing.T) {
		for range min(150, kills(t, 3)) { // the registry keeps 200
			q := a.ask()
			q.open()
			pause(300 * time.Millisecond)
			a.killBroker()
			q.answers()
			a.nothingElse()
		}
	})
	t.Run("JOB-20 the supervisor's server is loaded again", func(*testing.T) {
		q := a.ask()
		a.boss.replace()
		q.open()
		q.comes()
		a.nothingElse()
	})
	t.Run("JOB-03 the server and the broker die, and the answer comes to nobody", func(t *testing.T) {
		q := a.ask()
		broker := a.broker()
		if broker == 0 || !a.ours(broker) {
			t.Fatalf("the broker is %d", broker)
		}
		s, _ := a.boss.server()
		s.kill()
		if err := syscall.Kill(broker, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		q.open()
		a.await("the runner has its result", settle, func() bool {
			found, err := filepath.Glob(filepath.Join(a.home.Dir(), "jobs", "*", "envelope.json"))
			return err == nil && len(found) == a.round
		})
		a.boss.start()
		q.comes()
		a.nothingElse()
	})
	a.history.Accept(t)
}
