package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/jobs/landing"
	"bridge/backend/network/pairing"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/network/remotejobs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// twoPCs are a laptop, whose session asks, and a desk, which does jobs for it.
type twoPCs struct {
	t            *testing.T
	laptop, desk *bench
	ends         [2]*pairingtest.End
	root         string // what the desk allows
	boss         session
	drop         atomic.Pointer[func(remote.Frame) bool] // frames of the desk that get lost
	swallow      atomic.Pointer[func(remote.Frame) bool] // frames of the laptop that get lost
	requester    *remotejobs.Requester
	patience     time.Duration                // of requests; 0 is the usual one
	diff         atomic.Pointer[landing.Diff] // what the jobs of the desk changed

	mu     sync.Mutex // guards below
	policy remote.Policy
}

// changed are jobs that changed something.
type changed struct {
	*Jobs
	diff *atomic.Pointer[landing.Diff]
}

func (c changed) Diff(context.Context, string) (landing.Diff, error) {
	if diff := c.diff.Load(); diff != nil {
		return *diff, nil
	}
	return landing.Diff{}, bridge.Errorf(bridge.NotFound, "it has not worked in a git repository")
}

// lossy loses what its owner wants lost.
type lossy struct {
	pairing.Transport
	loses *atomic.Pointer[func(remote.Frame) bool]
}

func (l lossy) Send(ctx context.Context, id string, frame remote.Frame) error {
	if loses := l.loses.Load(); loses != nil && (*loses)(frame) {
		return nil
	}
	return l.Transport.Send(ctx, id, frame)
}

func newTwoPCs(t *testing.T, join pairingtest.Join, can ...string) *twoPCs {
	t.Helper()
	p := &twoPCs{t: t, laptop: prepared(t), desk: prepared(t), root: grounds(t)}
	p.policy = remote.Policy{Enabled: true, RemoteJobs: remote.RemoteJobs{
		Enabled: true, AllowRoots: []string{p.root}, Agents: []bridge.AgentKind{bridge.Codex}, AllowPeers: []string{"laptop"},
	}}
	p.desk.up()
	p.ends[0], p.ends[1] = join(t, can...)
	log := slog.New(slog.DiscardHandler)
	executor := remotejobs.NewExecutor(remotejobs.Options{
		Owned: remotejobs.Owned{Jobs: changed{p.desk.jobs, &p.diff}, Now: p.desk.clock}, Transport: lossy{p.ends[1], &p.drop}, Log: log, CheckRoot: func(string) error { return nil },
		Policy: func() (remote.Policy, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.policy, nil
		},
	})
	t.Cleanup(executor.Close)
	p.ends[1].Serve(remotejobs.Dispatch(executor, nil, log))
	p.laptop.linked = func() {
		p.requester = remotejobs.NewRequester(remotejobs.RequesterOptions{
			Transport: lossy{p.ends[0], &p.swallow}, Jobs: p.laptop.jobs.Paired(), Log: log, Timing: remotejobs.Timing{Every: 2 * time.Millisecond, MinInterval: time.Millisecond, Timeout: p.patience},
		})
		p.ends[0].Serve(remotejobs.Dispatch(nil, p.requester, log))
		p.laptop.jobs.Paired().Reach(p.requester)
		p.requester.Run()
		t.Cleanup(p.requester.Close)
	}
	p.laptop.up()
	p.boss = p.laptop.join("boss", "s1")
	return p
}

func overBoth(t *testing.T, test func(*testing.T, *twoPCs)) {
	t.Helper()
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) { test(t, newTwoPCs(t, join, remote.Capability, remote.ReadsCapability)) })
	}
}

func (p *twoPCs) allow(change func(*remote.Policy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.policy)
}

// args are those of a job on the desk.
func (p *twoPCs) args() string {
	return fmt.Sprintf(`{"prompt":"Count.","host":"desk","cwd":%q,"access":"ask"}`, p.root)
}

// working is a job that the desk does.
func (p *twoPCs) working() *runner {
	p.t.Helper()
	p.boss.mustSpawn("01", p.args())
	r := p.desk.started()
	r.connect(api.RunnerReport{})
	r.work()
	p.until("works", func(v api.JobView) bool { return v.Status == job.Running })
	return r
}

// until waits until the laptop shows the job so.
func (p *twoPCs) until(what string, is func(api.JobView) bool) (view api.JobView) {
	p.t.Helper()
	eventually(p.t, "that the job "+what, func() bool {
		var err error
		if view, err = p.laptop.jobs.View(first); err != nil {
			p.t.Fatal(err)
		}
		return is(view)
	})
	return view
}

func (p *twoPCs) restart() {
	p.requester.Close()
	p.laptop.down()
	p.laptop.up()
	p.boss = p.laptop.join("boss", "s1")
}

func TestRMT_08_AJobOnAPairedPC(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		spawned := p.boss.mustSpawn("01", p.args())
		if spawned.Job != first || spawned.Doubt != "" || spawned.Workdir != p.root {
			t.Errorf("it is answered %+v", spawned)
		}
		if entry := p.laptop.entry(first); entry["remote"].(map[string]any)["host"] != "desk" || entry["remote"].(map[string]any)["name"] != first || entry["host"] != nil {
			t.Errorf("jobs.json has %v", entry)
		}
		r := p.desk.started()
		if r.spec.Prompt != "Count." || r.spec.Folder != p.root || r.spec.Access != job.AccessAsk {
			t.Errorf("the runner is asked for %+v", r.spec)
		}
		r.connect(api.RunnerReport{})
		r.work()
		view := p.until("works", func(v api.JobView) bool { return v.Status == job.Running })
		if view.Session != "thread-"+first || view.Model != "gpt" || view.By != "boss" || *view.Remote != (job.Remote{Host: "desk", Name: first}) { // RMT-17
			t.Errorf("it is shown as %+v", view)
		}
		r.finish("There are 12.")
		mail := p.boss.mail(1)[0]
		if mail.From.Name != "desk/"+first || mail.ConversationID != runs.Conversation(first) { // RMT-19
			t.Errorf("the result is from %+v in %s", mail.From, mail.ConversationID)
		}
		wantText(t, mail.Body, "There are 12.", "desk/"+first+" has finished")
		result, err := p.boss.JobResult(t.Context(), api.JobArgs{Job: first})
		if err != nil || !result.Ended || result.Result != "There are 12." || result.Evidence.Tokens != 42 {
			t.Errorf("what came of it is %+v, %v", result, err)
		}
		if len(p.laptop.starts) != 0 {
			t.Error("a runner was started here")
		}
		p.restart()
		p.boss.mail(0)
		if again := p.boss.mustSpawn("01", p.args()); again.Status != job.Finished || len(p.desk.starts) != 0 {
			t.Errorf("asked again it is %+v, %d more starts", again, len(p.desk.starts))
		}
	})
}

func TestRMT_08_WhatNoJobOnAPairedPCHas(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		at := fmt.Sprintf(`"prompt":"x","cwd":%q`, p.root)
		for args, code := range map[string]bridge.Code{
			`{"prompt":"x","host":"desk"}`:                     bridge.Invalid,
			`{"prompt":"x","host":"desk","cwd":"w"}`:           bridge.Invalid,
			`{` + at + `,"host":"desk","send_to":["api"]}`:     bridge.Invalid,
			`{` + at + `,"host":"other"}`:                      bridge.NotFound,
			`{` + at + `,"host":"a/b"}`:                        bridge.Invalid,
			`{` + at + `,"host":"desk","session_id":"thread"}`: bridge.Denied,
		} {
			_, err := p.boss.spawn("01", args)
			wantCode(t, args, err, code)
		}
		if len(p.laptop.jobs.Views()) != 0 || len(p.desk.jobs.Views()) != 0 {
			t.Errorf("recorded here %+v, there %+v", p.laptop.jobs.Views(), p.desk.jobs.Views())
		}
		_, err := p.boss.spawn("01", `{"prompt":"x","host":"desk","cwd":"/etc"}`)
		wantCode(t, "outside", err, bridge.Denied)
		wantText(t, err.Error(), "network.remoteJobs.allowRoots")
		view, err := p.laptop.jobs.Detail(first)
		if err != nil || view.Status != job.Failed || view.Ended != job.EndedNotStarted || view.Result == nil || !strings.Contains(view.Result.Error, "allowRoots") {
			t.Errorf("it is recorded as %+v, %v", view, err)
		}
		p.boss.mail(0)
	})
}

func TestRMT_03_APeerThatDoesNotKnowJobsHasToBeUpdated(t *testing.T) {
	for name, join := range pairingtest.Transports(t) {
		t.Run(name, func(t *testing.T) {
			p := newTwoPCs(t, join, "messages-v1")
			_, err := p.boss.spawn("01", p.args())
			wantCode(t, "the answer", err, bridge.Unsupported)
			wantText(t, err.Error(), "desk", "1.0", "remote-jobs-v1", "update")
			if len(p.laptop.jobs.Views()) != 0 {
				t.Error("it was recorded")
			}
		})
	}
}

func TestRMT_15_WithoutALinkCommandsFailAtOnce(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.working()
		p.ends[0].Cut()
		for what, do := range map[string]func() error{
			"a job":          func() error { _, err := p.boss.spawn("02", p.args()); return err },
			"words":          func() error { _, err := p.boss.say(first, "Faster."); return err },
			"a cancellation": func() error { _, err := p.boss.JobCancel(t.Context(), api.JobArgs{Job: first}); return err },
		} {
			began := time.Now()
			err := do()
			wantCode(t, what, err, bridge.Unavailable)
			wantText(t, err.Error(), "no link to desk", "nothing was sent")
			testkit.Within(t, 5*time.Second, time.Since(began), what+": refused")
		}
		if len(p.laptop.jobs.Views()) != 1 {
			t.Errorf("there are %+v", p.laptop.jobs.Views())
		}
		p.laptop.setNow(func() time.Time { return time.Now().Add(90 * time.Second) })
		view, err := p.laptop.jobs.View(first)
		if err != nil || view.Status != job.Running || !strings.HasPrefix(view.Doubt, "not heard of since ") {
			t.Errorf("after 90 s it is shown as %s, %q, %v", view.Status, view.Doubt, err)
		}
	})
}

func TestRMT_13_AnUnansweredSpawnIsAmbiguousUntilAStateIsHeard(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		lose := func(remote.Frame) bool { return true }
		p.drop.Store(&lose)
		p.patience = 100 * time.Millisecond
		p.restart()
		changes, stop := p.laptop.broker.Watch()
		defer stop()
		var asked sync.Once
		shown := func(frame remote.Frame) bool {
			if strings.Contains(string(frame.Payload), first) {
				asked.Do(func() { <-changes }) // that it is asked for was shown before
			}
			return true
		}
		p.drop.Store(&shown)
		spawned, err := p.boss.spawn("01", p.args())
		select {
		case <-changes:
		case <-time.After(testkit.Patience):
			t.Error("no watcher is notified that there is a doubt")
		}
		if err != nil || spawned.Status != job.Starting || !strings.Contains(spawned.Doubt, "desk did not say whether the job was started") {
			t.Fatalf("it is answered %+v, %v", spawned, err)
		}
		r := p.desk.started()
		r.connect(api.RunnerReport{})
		r.work()
		p.restart() // what it knew then is in the record
		p.drop.Store(nil)
		p.until("works", func(v api.JobView) bool { return v.Status == job.Running && v.Doubt == "" })
		if again := p.boss.mustSpawn("01", p.args()); again.Status != job.Running || len(p.desk.starts) != 0 {
			t.Errorf("asked again it is %+v, %d more starts", again, len(p.desk.starts))
		}
		r.finish("Done.")
		p.boss.mail(1)
	})
}

func TestRMT_13_ASpawnThatNeverArrivedIsSettledAsNotStarted(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		ctx, cancel := context.WithCancel(t.Context())
		lose := func(frame remote.Frame) bool {
			lost := strings.Contains(string(frame.Payload), `"op":"spawn"`)
			if lost {
				cancel()
			}
			return lost
		}
		p.swallow.Store(&lose)
		_, _ = p.boss.Spawn(ctx, api.SpawnArgs{Kind: bridge.Codex, Name: first, Args: json.RawMessage(p.args())}) // whoever asked does not wait
		var told atomic.Int32
		note := func(frame remote.Frame) bool {
			if strings.Contains(string(frame.Payload), string(bridge.NotFound)) {
				told.Add(1)
			}
			return false
		}
		p.drop.Store(&note)
		eventually(t, "that the desk knows no such job", func() bool { return told.Load() > 1 }) // the first answer was taken before it asked again
		if state := p.laptop.state(first); state != job.Starting {
			t.Errorf("before its time it is %s", state)
		}
		p.laptop.setNow(func() time.Time { return time.Now().Add(20 * time.Second) })
		view := p.until("is settled", func(v api.JobView) bool { return v.Status.IsEnded() })
		if view.Status != job.Failed || view.Ended != job.EndedNotStarted || len(p.desk.jobs.Views()) != 0 {
			t.Errorf("it is %s, %s; there are %+v", view.Status, view.Ended, p.desk.jobs.Views())
		}
		wantText(t, p.boss.mail(1)[0].Body, "desk knows no such job: it was not started")
	})
}

// mute is a way to a PC that never answers by itself.
type mute struct{}

func (mute) Know(string) (string, error) { return strings.Repeat("d", 64), nil }
func (mute) Notify()                     {}
func (mute) Ask(_ context.Context, _ string, request remote.Request, _ json.RawMessage) (remote.Value, error) {
	return remote.Value{}, remote.ErrUnanswered("desk", request.Operation)
}

// TestRMT_13_WhatAPCDoesNotKnowForTwentySecondsWasNotStarted, however often the broker
// here ends in these seconds.
func TestRMT_13_WhatAPCDoesNotKnowForTwentySecondsWasNotStarted(t *testing.T) {
	type said struct {
		at      time.Duration
		why     error
		settled bool
	}
	none, denied := bridge.Errorf(bridge.NotFound, "x"), bridge.Errorf(bridge.Denied, "x")
	silent := remote.ErrUnanswered("desk", remote.State)
	for what, says := range map[string][]said{
		"it never knows it":                 {{0, none, false}, {19_999 * time.Millisecond, none, false}, {30 * time.Second, silent, false}, {31 * time.Second, none, true}},
		"to the very moment":                {{0, none, false}, {20 * time.Second, none, true}},
		"it does not say so for a while":    {{0, none, false}, {10 * time.Second, denied, false}, {25 * time.Second, none, false}, {44 * time.Second, none, false}, {45 * time.Second, none, true}},
		"the clock is set back in between":  {{time.Hour, none, false}, {0, none, false}, {19 * time.Second, none, false}, {20 * time.Second, none, true}},
		"it says only that it is forbidden": {{0, denied, false}, {time.Hour, denied, false}},
	} {
		t.Run(what, func(t *testing.T) {
			b, began := prepared(t), time.Now()
			b.linked = func() { b.jobs.Paired().Reach(mute{}) }
			b.up()
			b.join("boss", "s1").mustSpawn("01", `{"prompt":"Count.","host":"desk","cwd":"/x","access":"ask"}`)
			for i, statement := range says {
				b.down()
				b.setNow(func() time.Time { return began.Add(statement.at) })
				b.up()
				if err := b.jobs.Paired().RecordReport(first, remote.Value{}, statement.why); err != nil {
					t.Fatal(err)
				}
				got, err := b.jobs.View(first)
				if err != nil || got.Status.IsEnded() != statement.settled || statement.settled && got.Ended != job.EndedNotStarted {
					t.Fatalf("after step %d it is %s, %s, %v", i, got.Status, got.Ended, err)
				}
			}
		})
	}
}

func TestRMT_12_OnlyItsOwnerSteersAJobAlsoAfterARestart(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		sibling := p.laptop.join("sibling", "s2")
		_, err := sibling.say(first, "Stop.")
		wantCode(t, "words of another session", err, bridge.Denied)
		_, err = sibling.say("desk/"+first, "Stop.")
		wantCode(t, "by the name with its PC", err, bridge.Denied)
		_, err = sibling.JobCancel(t.Context(), api.JobArgs{Job: "desk/" + first})
		wantCode(t, "a cancellation of another session", err, bridge.Denied)
		_, err = sibling.JobResult(t.Context(), api.JobArgs{Job: first})
		wantCode(t, "a look of another session", err, bridge.Denied)
		p.restart()
		p.boss.Close()
		p.boss = p.laptop.join("boss-again", "s1") // the session that it was, under another connection
		if result, err := p.boss.say("desk/"+first, "Faster."); err != nil || result.Delivery == nil || *result.Delivery != job.ToRunning {
			t.Errorf("its owner says %+v, %v", result, err)
		}
		if orders := r.orders(); len(orders) != 1 || orders[0].Text != "Faster." {
			t.Errorf("its runner is told %+v", orders)
		}
	})
}

func TestRMT_10_WordsSettingsAndTheEnd(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		if _, err := p.boss.JobMessage(t.Context(), api.JobMessageArgs{ID: "m-1", Args: job.MessageArgs{Job: "desk/" + first, Title: "Counting", Effort: "high", Access: "read"}}); err != nil {
			t.Fatal(err)
		}
		p.until("has its settings", func(v api.JobView) bool {
			return v.Title == "Counting" && v.Effort == "high" && v.Access == job.AccessRead
		})
		r.finish("There are 12.")
		p.boss.mail(1)
		result, err := p.boss.say(first, "Again.")
		if err != nil || result.Delivery == nil || *result.Delivery != job.Continued {
			t.Fatalf("it goes on: %+v, %v", result, err)
		}
		r = p.desk.started()
		if r.spec.Run != 2 || r.spec.Prompt != "Again." || r.spec.Session != "thread-"+first || r.spec.Access != job.AccessRead { // RMT-11
			t.Errorf("its next run is %+v", r.spec)
		}
		r.connect(api.RunnerReport{})
		r.work()
		p.until("works again", func(v api.JobView) bool { return v.Status == job.Running })
		if _, err := p.boss.JobCancel(t.Context(), api.JobArgs{Job: "desk/" + first}); err != nil {
			t.Fatal(err)
		}
		if orders := r.orders(); orders[len(orders)-1].Kind != api.OrderCancel {
			t.Errorf("its runner is told %+v", orders)
		}
		r.report(r.end(job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}, ""))
		p.until("is cancelled", func(v api.JobView) bool { return v.Status == job.Cancelled })
		wantText(t, p.boss.mail(1)[0].Body, "was cancelled")
	})
}

func TestRMT_16_AnAnswerIsDoneWhenTheRunnerThereHasIt(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		r.ask(job.ApprovalAsked)
		mail := p.boss.mail(1)[0]
		if mail.From.Name != "desk/"+first {
			t.Errorf("the question is from %+v", mail.From)
		}
		wantText(t, mail.Body, first, "rm -rf build", "q1", "message_subagent")
		got := p.laptop.jobs.Approvals()
		if len(got) != 1 || got[0].By != "boss" || got[0].Job != first || got[0].Detail != "rm -rf build" || got[0].Token != "" || !got[0].IsOpen(time.Now()) {
			t.Fatalf("it is published as %+v", got)
		}
		sibling := p.laptop.join("sibling", "s2")
		_, err := sibling.answer("allow")
		wantCode(t, "another session's answer", err, bridge.Denied)
		done := make(chan error, 1)
		go func() {
			_, err := p.boss.answer("allow")
			done <- err
		}()
		orders := r.orders()
		if last := orders[len(orders)-1]; last.Kind != api.OrderAnswer || last.Approval != "q1" || last.Decision != job.Allow || last.Reason != "too much" {
			t.Errorf("the runner is told %+v", last)
		}
		select {
		case err := <-done:
			t.Errorf("it was answered before the runner had it: %v", err)
		default:
		}
		r.ask(job.ApprovalDelivered)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := p.laptop.jobs.Approvals(); got[0].State != job.ApprovalDelivered || got[0].AnsweredBy != "boss" || got[0].Decision != job.Allow {
			t.Errorf("then it is %+v", got)
		}
		_, err = p.laptop.jobs.Answer("q1", job.Deny, "")
		wantCode(t, "a second answer", err, bridge.Conflict)
		r.ask(job.ApprovalApplied)
		eventually(t, "that it was applied", func() bool { return p.laptop.jobs.Approvals()[0].State == job.ApprovalApplied })
	})
}

func TestRMT_19_ProgressNotesComeOnceAndWakeNobody(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		inside := r.inside()
		percent := 40.0
		for range 3 {
			if err := inside.JobProgress(t.Context(), api.JobProgressArgs{Job: first, Token: r.spec.Token, Args: job.ProgressArgs{Percent: &percent, Note: "half way"}}); err != nil {
				t.Fatal(err)
			}
		}
		mail := p.boss.mail(1)[0]
		if mail.From.Name != "desk/"+first || mail.Body != "40 %: half way" || !strings.HasSuffix(mail.ConversationID, ":note") {
			t.Errorf("the note is %+v", mail)
		}
		p.until("tells of it", func(v api.JobView) bool {
			return v.Progress.Percent != nil && *v.Progress.Percent == 40 && v.Progress.Note == "half way"
		})
		p.restart()
		r.finish("Done.")
		p.boss.mail(1)
	})
}

func TestRMT_15_NoResultIsLostWhileTheLinkWasSilent(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		lose := func(remote.Frame) bool { return true }
		p.drop.Store(&lose)
		owner := remote.Peer{ID: p.ends[0].Self.ID, Supervisor: p.boss.ID}
		for run := 1; run < 4; run++ {
			r.finish(fmt.Sprintf("Result %d.", run))
			if _, err := (remotejobs.Owned{Jobs: p.desk.jobs, Now: time.Now}).Say(first, owner, fmt.Sprint("m-", run), job.Control{Job: first, Message: "Again."}); err != nil {
				t.Fatal(err)
			}
			r = p.desk.started()
			r.connect(api.RunnerReport{})
			r.work()
		}
		p.drop.Store(nil)
		mail := p.boss.mail(3)
		for i, message := range mail {
			wantText(t, message.Body, fmt.Sprintf("Result %d.", i+1))
		}
		p.restart()
		r.finish("Result 4.")
		wantText(t, p.boss.mail(1)[0].Body, "Result 4.")
	})
}

func TestRMT_15_AResultThatCannotBeStoredComesLater(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		p.laptop.fails.Store(true)
		r.finish("There are 12.")
		p.until("has ended", func(v api.JobView) bool { return v.Status == job.Finished })
		p.boss.mail(0)
		p.laptop.fails.Store(false)
		wantText(t, p.boss.mail(1)[0].Body, "There are 12.")
	})
}

func TestRMT_12_APCThatIsPairedNoMoreEndsWhatIsKnownOfIt(t *testing.T) {
	p := newTwoPCs(t, pairingtest.InMemory, remote.Capability)
	p.working()
	p.requester.Close()
	entry, _ := p.laptop.jobs.Find(first)
	if err := p.laptop.jobs.paired.RecordReport(entry.Name, remote.Value{}, bridge.Errorf(bridge.Unauthorized, "x")); err != nil {
		t.Fatal(err)
	}
	if state := p.laptop.state(first); state != job.Interrupted {
		t.Errorf("it is %s", state)
	}
	wantText(t, p.boss.mail(1)[0].Body, "desk is neither paired with this PC nor in its team any more")
}

// Words whose answer is lost may have continued a job that had ended, also where this
// PC's broker died meanwhile: what comes of them is told all the same.
func TestRMT_10_WordsThatWereNotAnsweredAreFollowed(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("the broker dies: %t", dies), func(t *testing.T) {
			overBoth(t, func(t *testing.T, p *twoPCs) {
				p.patience = 200 * time.Millisecond
				p.restart()
				p.working().finish("Result 1.")
				p.boss.mail(1)
				p.until("has ended, and that is told", func(api.JobView) bool { return len(p.laptop.jobs.paired.Followed()) == 0 })
				lose := func(remote.Frame) bool { return true }
				p.drop.Store(&lose)
				if _, err := p.boss.say(first, "more"); bridge.CodeOf(err) != bridge.Unavailable {
					t.Fatalf("words that are not answered: %v", err)
				}
				if dies {
					p.restart()
				}
				again := p.desk.started()
				again.connect(api.RunnerReport{})
				again.work()
				again.finish("Result 2.")
				p.drop.Store(nil)
				wantText(t, p.boss.mail(1)[0].Body, "Result 2.")
				p.laptop.setNow(func() time.Time { return time.Now().Add(remote.SpawnTimeout) })
				p.until("is followed no more", func(api.JobView) bool { return len(p.laptop.jobs.paired.Followed()) == 0 })
			})
		})
	}
}

// Words that were refused continue nothing.
func TestRMT_10_WordsThatWereRefusedAreNotFollowed(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.working().finish("Result 1.")
		p.boss.mail(1)
		p.until("has ended, and that is told", func(api.JobView) bool { return len(p.laptop.jobs.paired.Followed()) == 0 })
		p.allow(func(policy *remote.Policy) { policy.Enabled = false })
		_, err := p.boss.say(first, "more")
		wantCode(t, "words to a PC that allows nothing", err, bridge.Denied)
		if followed := p.laptop.jobs.paired.Followed(); len(followed) != 0 {
			t.Errorf("it is followed: %+v", followed)
		}
	})
}

func TestRMT_18_TheLogIsReadFromThereAndKeptHere(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		want := strings.Repeat("a line of the log ✓\n", 20_000) // more than one part
		path := filepath.Join(p.desk.home.Dir(), "runs", first+".log")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		read := func(from int64) (text string, next int64) {
			for next = from; ; {
				log, err := p.laptop.jobs.ReadLog(first, next)
				if err != nil {
					t.Fatal(err)
				}
				text, next = text+log.Text, log.Next
				if next >= log.Size {
					return text, next
				}
			}
		}
		got, next := read(0)
		if got != want || next != int64(len(want)) {
			t.Fatalf("%d bytes were read, up to %d, of %d", len(got), next, len(want))
		}
		add := func(more string) {
			t.Helper()
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = file.WriteString(more)
			}
			if err != nil || file.Close() != nil {
				t.Fatal(err)
			}
		}
		add("more")
		later := time.Now().Add(time.Second) // it asks once a second
		p.laptop.setNow(func() time.Time { return later })
		if got, next = read(next); got != "more" {
			t.Errorf("then it reads %q", got)
		}
		for i, end := range []string{"", " and the end"} {
			add(end)
			if got, _ := read(next); got != "" {
				t.Errorf("%d: in the same second it reads %q", i, got)
			}
		}
		r.finish("Done.")
		p.boss.mail(1)
		if last, _ := read(next); last != " and the end" { // and when the run has ended
			t.Errorf("after the end it reads %q", last)
		}
		p.ends[0].Cut()
		p.laptop.setNow(func() time.Time { return time.Now().Add(time.Hour) })
		if all, _ := read(0); all != want+"more and the end" {
			t.Errorf("without a link %d bytes are read", len(all))
		}
		if _, err := p.laptop.jobs.ReadLog(first, 1<<40); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("from behind its end: %v", err)
		}
	})
}

// Who watches a job sees it through a link that is down for a moment, also before
// anything of its log was read.
func TestRMT_18_ALogIsWaitedForWithoutALink(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.working()
		p.ends[0].Cut()
		if log, err := p.laptop.jobs.ReadLog(first, 0); err != nil || log != (jobfiles.Log{}) {
			t.Errorf("of a job that goes on %+v is read, %v", log, err)
		}
	})
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.working().finish("Done.")
		p.boss.mail(1)
		p.ends[0].Cut()
		_, err := p.laptop.jobs.ReadLog(first, 0)
		wantCode(t, "of one that has ended, of which nothing was read,", err, bridge.Unavailable)
	})
}

func TestRMT_18_WhatAJobChangedIsReadInParts(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.working()
		_, err := p.laptop.jobs.Diff(t.Context(), first)
		wantCode(t, "without a repository", err, bridge.NotFound)
		want := landing.Diff{Base: "b", Head: "h", Files: []gitwork.FileChange{{Path: "parser.go", Status: "modified", Added: 1, Patch: strings.Repeat("+x\n", 300_000)}}}
		p.diff.Store(&want)
		got, err := p.laptop.jobs.Diff(t.Context(), first)
		if err != nil || got.Head != "h" || len(got.Files) != 1 || got.Files[0].Patch != want.Files[0].Patch {
			t.Fatalf("it is read as %d files, %v", len(got.Files), err)
		}
		_, err = p.laptop.jobs.Finish(t.Context(), api.JobFinishArgs{Job: first, Action: "merge"})
		wantCode(t, "landing it from here", err, bridge.Unsupported)

		// Nobody but its owner reads it there, nor with what the owner of that PC took back.
		other := remote.Peer{ID: p.ends[0].Self.ID, Supervisor: "somebody"}
		_, err = p.desk.owned().Read(t.Context(), remote.Request{Operation: remote.ReadLog, Job: first, Peer: other})
		wantCode(t, "another session", err, bridge.NotFound)
		p.allow(func(policy *remote.Policy) { policy.RemoteJobs.AllowPeers = nil })
		_, err = p.laptop.jobs.Diff(t.Context(), first)
		wantCode(t, "when it is not allowed any more", err, bridge.Denied)
	})
}

func TestRMT_18_APeerThatDoesNotLetReadHasToBeUpdated(t *testing.T) {
	p := newTwoPCs(t, pairingtest.InMemory, remote.Capability)
	p.working()
	_, err := p.laptop.jobs.ReadLog(first, 0)
	wantCode(t, "the log", err, bridge.Unsupported)
	wantText(t, err.Error(), "remote-reads-v1", "desk")
}

func TestRMT_13_TheJobIsRecordedBeforeAnythingGoesOut(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		looked := make(chan map[string]any, 1)
		look := func(frame remote.Frame) bool {
			if strings.Contains(string(frame.Payload), `"op":"spawn"`) {
				looked <- p.laptop.entry(first)
			}
			return false
		}
		p.swallow.Store(&look)
		p.boss.mustSpawn("01", p.args())
		if entry := <-looked; entry == nil || entry["status"] != "running" || entry["mirror"].(map[string]any)["pc"] != p.ends[1].Self.ID || entry["supervisor"] != p.boss.ID {
			t.Errorf("when its request went out jobs.json had %v", entry)
		}
	})
}

func TestRMT_08_ItTakesNoSlotOfThisPC(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.laptop.allow(func(c *config.Jobs) { c.MaxJobs = 1 })
		p.working()
		p.boss.mustSpawn("02", `{"prompt":"x"}`)
		local := p.laptop.started()
		local.connect(api.RunnerReport{})
		local.work()
		if _, err := local.inside().Spawn(t.Context(), api.SpawnArgs{Kind: bridge.Codex, Name: "codex-job-00000003", Args: json.RawMessage(p.args())}); bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("a job hands work to another PC: %v", err)
		}
		if p.laptop.entry(first)["host"] != nil {
			t.Error("it has a process here")
		}
	})
}

func TestRMT_17_AnAskHasItsLocalNameAndIsWaitedFor(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		const name = "codex-ask-00000001"
		spawned, err := p.boss.Spawn(t.Context(), api.SpawnArgs{Kind: bridge.Codex, Name: name, Args: json.RawMessage(p.args())})
		if err != nil || spawned.Job != name {
			t.Fatalf("it is answered %+v, %v", spawned, err)
		}
		waiting := make(chan api.WaitResult, 1)
		go func() {
			found, err := p.boss.Wait(t.Context(), api.WaitArgs{ConversationID: runs.Conversation(name), TimeoutMillis: 100_000})
			if err != nil {
				t.Error(err)
			}
			waiting <- found
		}()
		r := p.desk.started()
		r.connect(api.RunnerReport{})
		r.work()
		r.finish("There are 12.")
		found := <-waiting
		if found.Message == nil || found.Message.From.Name != "desk/"+name || !strings.Contains(found.Message.Body, "There are 12.") {
			t.Errorf("who waits is given %+v", found.Message)
		}
		view, err := p.laptop.jobs.View(name)
		if err != nil || view.Job != name || *view.Remote != (job.Remote{Host: "desk", Name: name}) {
			t.Errorf("it is shown as %+v, %v", view, err)
		}
	})
}

// An answer that is older than what was heard already shows nothing: the job that it
// tells of is followed all the same.
func TestRMT_10_WordsWhoseAnswerComesLateAreFollowed(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		p.working().finish("Result 1.")
		p.boss.mail(1)
		p.until("has ended, and that is told", func(api.JobView) bool { return len(p.laptop.jobs.paired.Followed()) == 0 })
		entry, err := p.laptop.jobs.get(first)
		if err != nil {
			t.Fatal(err)
		}
		later := remote.JobState{Job: entry.Remote.Name, Status: job.Finished, Run: 1, Results: 1, Now: time.Now().Add(500 * time.Millisecond).UnixMilli()}
		if err := p.laptop.jobs.paired.RecordReport(entry.Name, remote.Value{State: &later}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := p.boss.say(first, "more"); err != nil {
			t.Fatal(err)
		}
		again := p.desk.started()
		again.connect(api.RunnerReport{})
		again.work()
		again.finish("Result 2.")
		wantText(t, p.boss.mail(1)[0].Body, "Result 2.")
	})
}

// One frame does not carry it: it arrives whole all the same, and the message names the
// file here that has it.
func TestRMT_18_AResultOfAnyLengthArrivesWhole(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		want := strings.Repeat("<é\x01 line\n", 300_000)
		r.finish(want)
		mail := p.boss.mail(1)[0]
		wantText(t, mail.Body, "desk/"+first+" has finished", "The result has 2700000 characters, more than a message holds. It is kept whole in "+p.laptop.jobs.files.Envelope(first))
		if mail.ID != runs.ResultID(first, 1) || len([]rune(mail.Body)) != bridge.MaxBodyChars {
			t.Errorf("it is told by %s with %d characters", mail.ID, len([]rune(mail.Body)))
		}
		found, err := p.boss.JobResult(t.Context(), api.JobArgs{Job: first})
		if note := "It is kept whole in " + p.laptop.jobs.files.Envelope(first); err != nil || !strings.Contains(found.Result, note) || !strings.Contains(found.Result, want[:1000]) {
			t.Errorf("the tool has %.200q, %v", found.Result, err)
		}
		if shown, err := p.laptop.jobs.Detail(first); err != nil || shown.Result == nil || shown.Result.Result != want {
			t.Errorf("the page has %+v, %v", shown.JobView, err)
		}
		p.restart()
		p.boss.mail(0)
	})
}

// A part of a result is lost: it is read on from there, and told once.
func TestRMT_18_AResultThatIsCutOffIsReadOn(t *testing.T) {
	overBoth(t, func(t *testing.T, p *twoPCs) {
		r := p.working()
		var parts atomic.Int32
		third := func(frame remote.Frame) bool { // of the answers of the desk the third part is lost, once
			return strings.Contains(string(frame.Payload), `"part"`) && parts.Add(1) == 3
		}
		p.drop.Store(&third)
		var mu sync.Mutex
		var from []int64 // where each part that is asked for begins
		note := func(frame remote.Frame) bool {
			var asked struct {
				Request struct {
					Op   remote.Operation
					From int64
				}
			}
			if json.Unmarshal(frame.Payload, &asked) == nil && asked.Request.Op == remote.ReadResult {
				mu.Lock()
				defer mu.Unlock()
				from = append(from, asked.Request.From)
			}
			return false
		}
		p.swallow.Store(&note)
		p.patience = 2 * time.Second
		p.restart()
		want := strings.Repeat("word ", 300_000)
		r.finish(want)
		p.boss.mail(1)
		if found, err := p.boss.JobResult(t.Context(), api.JobArgs{Job: first}); err != nil || found.Result != want {
			t.Errorf("it has %d bytes of %d, %v", len(found.Result), len(want), err)
		}
		mu.Lock()
		defer mu.Unlock()
		// Six, and the lost one again: where the machine is slow, another one again, too, but none from before it.
		if len(slices.Compact(slices.Clone(from))) != 6 || !slices.IsSorted(from) || len(from) < 7 {
			t.Errorf("parts were asked for from %v", from)
		}
		p.boss.mail(0)
	})
}
