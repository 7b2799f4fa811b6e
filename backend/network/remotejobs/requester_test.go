package remotejobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
)

// far is a transport to PCs that answer, or do not.
type far struct {
	mu     sync.Mutex
	asked  map[string][]time.Time                  // when, by job
	since  time.Time                               // when the link came up
	answer func(pc string, request remote.Request) // nil answers nothing
}

func (f *far) Send(_ context.Context, pc string, frame remote.Frame) error {
	request, _, err := remote.Parse(frame.Payload, remote.Peer{})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.asked[request.Job] = append(f.asked[request.Job], time.Now())
	f.mu.Unlock()
	if f.answer != nil {
		f.answer(pc, *request)
	}
	return nil
}

func (f *far) SendBulk(ctx context.Context, pc string, frame remote.Frame) error {
	return f.Send(ctx, pc, frame)
}

func (f *far) Of(pc string) (remote.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return remote.Status{PC: remote.PC{ID: pc, Name: pc}, Up: true, Since: f.since, Release: "1.0", Capabilities: []string{remote.Capability}}, nil
}

func (f *far) Status() []remote.Status { return nil }

// given are jobs that go on for ever.
type given struct{ jobs []job.Job }

func (g given) Followed() []job.Job                               { return g.jobs }
func (g given) RecordReport(string, remote.Value, error) error    { return nil }
func (g given) Missing(string) int                                { return 0 }
func (g given) Came(context.Context, string, runs.Envelope) error { return nil }

// running are jobs that so many PCs do, so many each.
func running(pcs, each int) (jobs []job.Job) {
	for pc := range pcs {
		for i := range each {
			name := job.Name(bridge.Codex, false, [4]byte{0, 0, byte(pc), byte(i)})
			host := fmt.Sprintf("desk-%d", pc)
			jobs = append(jobs, job.Job{Name: name, State: job.Running, Supervisor: "s-1", Remote: &job.Remote{Host: host, Name: name}, Mirror: &job.Mirror{PC: host}})
		}
	}
	return jobs
}

func TestRMT_15_EachJobIsAskedForEveryTwoSecondsAndAPairBelowItsLimit(t *testing.T) {
	for _, tt := range []struct {
		pcs, each int
		least     int // polls of each job in a minute
	}{{1, 1, 29}, {1, 9, 28}, {1, 50, 5}, {3, 40, 6}} {
		t.Run(fmt.Sprintf("%d PCs with %d jobs", tt.pcs, tt.each), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &far{asked: map[string][]time.Time{}}
				r := NewRequester(RequesterOptions{Transport: f, Jobs: given{running(tt.pcs, tt.each)}, Log: slog.New(slog.DiscardHandler)})
				f.answer = func(pc string, request remote.Request) {
					r.take(remote.PC{ID: pc}, remote.Response{Rid: request.Rid, Value: remote.Value{State: &remote.JobState{Job: request.Job}}})
				}
				r.Run()
				for range 6000 { // a minute of the bubble's own clock, in which there is always more to follow
					<-time.After(10 * time.Millisecond)
					r.Notify()
				}
				r.Close()
				total := 0
				for name, at := range f.asked {
					total += len(at)
					if len(at) < tt.least || len(at) > 31 {
						t.Errorf("%s was asked for %d times in a minute, want %d to 31", name, len(at), tt.least)
					}
					for i := 1; i < len(at); i++ {
						if at[i].Sub(at[i-1]) < 2*time.Second {
							t.Fatalf("%s was asked for again after %s", name, at[i].Sub(at[i-1]))
						}
					}
				}
				if len(f.asked) != tt.pcs*tt.each || total > tt.pcs*301 {
					t.Errorf("%d jobs were asked for %d times, want %d jobs and at most half of 600 each PC", len(f.asked), total, tt.pcs*tt.each)
				}
			})
		})
	}
}

func TestRMT_15_AJobIsAskedForAgainAsSoonAsItsLinkIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{asked: map[string][]time.Time{}, since: time.Now()}
		jobs := running(1, 1)
		r := NewRequester(RequesterOptions{Transport: f, Jobs: given{jobs}, Log: slog.New(slog.DiscardHandler)})
		r.Run()
		defer r.Close()
		began := time.Now()
		asked := func(want ...time.Duration) {
			t.Helper()
			f.mu.Lock()
			defer f.mu.Unlock()
			at := f.asked[jobs[0].Name]
			if len(at) != len(want) {
				t.Fatalf("it was asked for %d times in %s, want %d", len(at), time.Since(began), len(want))
			}
			for i, want := range want {
				if got := at[i].Sub(began); got < want || got > want+time.Second {
					t.Errorf("it was asked for after %s, want %s", got, want)
				}
			}
		}
		<-time.After(3 * time.Second) // nothing answers
		asked(0)
		f.mu.Lock()
		f.since = time.Now()
		f.mu.Unlock()
		<-time.After(time.Second)
		asked(0, 3*time.Second)
		<-time.After(8 * time.Second)
		asked(0, 3*time.Second)
		<-time.After(2 * time.Second)
		asked(0, 3*time.Second, 13*time.Second)
	})
}

func TestRMT_13_EachRequestWaitsAsLongAsItMay(t *testing.T) {
	name := job.Name(bridge.Codex, false, [4]byte{})
	for _, tt := range []struct {
		request remote.Request
		args    string
		want    time.Duration
	}{
		{remote.Request{Operation: remote.Spawn, Spawn: job.Request{Kind: bridge.Codex}}, `{"prompt":"x","cwd":"/w"}`, 20 * time.Second},
		{remote.Request{Operation: remote.Approval, Approval: "q1", Decision: job.Deny}, ``, 20 * time.Second},
		{remote.Request{Operation: remote.State}, ``, 10 * time.Second},
		{remote.Request{Operation: remote.Control, Control: remote.ControlArgs{Cancel: true}}, ``, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{asked: map[string][]time.Time{}}
			r := NewRequester(RequesterOptions{Transport: f, Jobs: given{}, Log: slog.New(slog.DiscardHandler)})
			defer r.Close()
			tt.request.Job, tt.request.Peer.Supervisor = name, "s-1"
			began := time.Now()
			_, err := r.Ask(t.Context(), "desk", tt.request, json.RawMessage(tt.args))
			if took := time.Since(began); took != tt.want || !remote.IsUnanswered(err) || bridge.CodeOf(err) != bridge.Unavailable {
				t.Errorf("%s ended after %s: %v", tt.request.Operation, took, err)
			}
			if !strings.Contains(err.Error(), "not known") || len(f.asked[name]) != 1 {
				t.Errorf("%s says %q and was asked %d times", tt.request.Operation, err, len(f.asked[name]))
			}
			if len(r.waiting) != 0 {
				t.Errorf("%d are waited for still", len(r.waiting))
			}
		})
	}
}

// An answer counts when it comes from the PC that was asked, and once.
func TestRMT_02_NobodyAnswersForAnotherPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{asked: map[string][]time.Time{}}
		r := NewRequester(RequesterOptions{Transport: f, Jobs: given{}, Log: slog.New(slog.DiscardHandler)})
		defer r.Close()
		f.answer = func(pc string, request remote.Request) {
			said := func(title string) remote.Response {
				return remote.Response{Rid: request.Rid, Value: remote.Value{State: &remote.JobState{Job: request.Job, Title: title}}}
			}
			r.take(remote.PC{ID: "another", Name: pc}, said("forged"))
			r.take(remote.PC{ID: pc}, remote.Response{Rid: "of nothing"})
			r.take(remote.PC{ID: pc}, said("true"))
			r.take(remote.PC{ID: pc}, said("again"))
		}
		request := remote.Request{Operation: remote.State, Job: job.Name(bridge.Codex, false, [4]byte{}), Peer: remote.Peer{Supervisor: "s-1"}}
		value, err := r.Ask(t.Context(), "desk", request, nil)
		if err != nil || value.State.Title != "true" {
			t.Errorf("the answer is %+v, %v", value.State, err)
		}
		f.answer = func(pc string, request remote.Request) {
			r.take(remote.PC{ID: pc}, remote.Response{Rid: request.Rid, Value: remote.Value{State: &remote.JobState{Job: "codex-job-99999999"}}})
		}
		if _, err = r.Ask(t.Context(), "desk", request, nil); bridge.CodeOf(err) != bridge.Internal {
			t.Errorf("an answer about another job: %v", err)
		}
	})
}

func TestRMT_15_AResultTooLargeForTheLinkSaysSo(t *testing.T) {
	e := runs.NewEnvelope("codex-job-00000001", 1, job.Outcome{State: job.Finished, Ended: job.EndAnswer}, strings.Repeat("<\x01é", 400_000), runs.Evidence{
		Files: []runs.Changed{{Path: strings.Repeat("x", 1<<20)}},
	}, time.Now())
	payload, err := encode(remote.Response{Rid: "3f0e8a52-5d5c-4d7e-9d0e-5f6f1c7d8e90", Value: remote.Value{Result: &e}})
	if err != nil || len(payload) > remote.MaxFrameBytes-1<<10 {
		t.Fatalf("it has %d bytes, %v", len(payload), err)
	}
	_, response, err := remote.Parse(payload, remote.Peer{})
	if err != nil || !strings.HasPrefix(response.Value.Result.Result, "This result has 1200000 characters") || !strings.Contains(response.Value.Result.Result, "kept whole on the PC that did the job") {
		t.Errorf("it arrives as %.100q, %v", response.Value.Result.Result, err)
	}
}
