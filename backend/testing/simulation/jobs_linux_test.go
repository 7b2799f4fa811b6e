package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/jobs"
	"bridge/backend/network/remotejobs"
	"bridge/backend/platform/config"
	realdisk "bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
)

// shareJobs is what an owner allows a PC that may request jobs.
const shareJobs remote.Share = "jobs"

// requestAge is how old what the owner said may be when a job is recorded by it: the
// executor asks before, and the settings may be slow.
const requestAge = 30 * time.Second

// asked is a job that a session requested from another PC, with all that became of it.
type asked struct {
	name     string
	from, to *pc

	mu       sync.Mutex // guards below
	claims   []int      // the runs that a runner began
	finished []int      // the runs whose runner wrote an answer
	words    map[string]*words
}

// words are a message to a job, or its prompt.
type words struct {
	text    string
	sure    bool // the call was answered without an error
	refused bool // the call was answered with an error after which nothing was done
	runs    int  // in whose prompts they stood
}

// simulatedJobs are the jobs of a PC that runs: those that it does, and those that it has
// others do.
type simulatedJobs struct {
	*jobs.Jobs
	executor  *remotejobs.Executor
	requester *remotejobs.Requester
	frames    func(remote.PC, remote.Frame)
}

// runners are what stands for the runners of jobs on a PC. They outlive its Bridge, and end
// with the PC.
type runners struct {
	mu    sync.Mutex // guards end
	end   chan struct{}
	tasks sync.WaitGroup
}

// run runs work until the PC ends, when ended is closed.
func (r *runners) run(work func(ended <-chan struct{})) {
	r.mu.Lock()
	ended := r.end
	r.mu.Unlock()
	r.tasks.Go(func() { work(ended) })
}

// endAll ends all runners.
func (r *runners) endAll() {
	r.mu.Lock()
	close(r.end)
	r.end = make(chan struct{})
	r.mu.Unlock()
	r.tasks.Wait()
}

// taking is the jobs of a PC, which checks that its owner allows what is recorded.
type taking struct {
	*jobs.Jobs
	p *pc
}

func (t taking) Take(ctx context.Context, request job.Request, name string, caller job.Caller, worktrees string) (job.Job, error) {
	host, _, _ := strings.Cut(caller.Name, "/")
	if !t.p.allows(shareJobs, host, time.Now().Add(-requestAge)) {
		t.p.world.failf("%s records %s for %s, which its owner does not allow", t.p.name, name, host)
	}
	if request.Cwd != t.p.root {
		t.p.world.failf("%s records %s in the folder %s", t.p.name, name, request.Cwd)
	}
	return t.Jobs.Take(ctx, request, name, caller, worktrees)
}

// startJobs opens the jobs of a PC that is being switched on, and connects them with the
// other PCs.
func (p *pc) startJobs(run *running, log *slog.Logger) error {
	s := &simulatedJobs{}
	var err error
	s.Jobs, err = jobs.Open(jobs.Options{
		Home: p.home, Settings: func() (config.Jobs, error) { return config.Jobs{Enabled: true}, nil }, Broker: run.broker,
		Start: func(folder string) (int, error) { return p.startRunner(folder) },
		Now:   p.now, Log: log, Timing: jobs.Timing{PollInterval: 5 * time.Second, Grace: 20 * time.Second, Reclaim: 1000 * time.Hour},
	})
	if err != nil {
		return err
	}
	run.broker.Delegate(s.Jobs)
	way := transport{p.world.network, p, run}
	s.executor = remotejobs.NewExecutor(remotejobs.Options{
		Owned: remotejobs.Owned{Jobs: taking{s.Jobs, p}, Now: p.now}, Transport: way, Policy: p.policy, Log: log,
		CheckRoot: config.ReservedFolders(p.home, func(string) string { return "" }).Check,
		Knows:     func(id string) bool { return p.world.network.isKnown(p, id) },
	})
	s.requester = remotejobs.NewRequester(remotejobs.RequesterOptions{Transport: way, Jobs: s.Paired(), Log: log})
	s.frames = remotejobs.Dispatch(s.executor, s.requester, log)
	run.jobs = s
	s.Run()
	s.Paired().Reach(s.requester)
	s.requester.Run()
	return nil
}

// close ends the jobs of a Bridge. Runners continue.
func (s *simulatedJobs) close() {
	s.requester.Close()
	s.executor.Close()
	s.Jobs.Close()
}

// noProcess is a process id that no system gives.
const noProcess = 1 << 30

// startRunner starts what stands for the runner of a job: it claims the run, works for a
// while, writes the answer, and ends. It goes with its PC.
func (p *pc) startRunner(folder string) (int, error) {
	data, err := os.ReadFile(filepath.Join(folder, "spec.json"))
	if err != nil {
		return 0, err
	}
	spec, err := runs.DecodeSpec(data, filepath.Base(folder))
	if err != nil {
		return 0, err
	}
	runner := job.Process{PID: noProcess, Identity: "simulated"}
	claim, err := json.Marshal(orphans.Claim{Runner: runner})
	if err != nil {
		return 0, err
	}
	lock, err := realdisk.Files{}.WriteNewLocked(orphans.ClaimFile(folder, spec.Run), claim)
	if errors.Is(err, fs.ErrExist) {
		return noProcess, nil // another runner was faster
	}
	if err != nil {
		return 0, err
	}
	state, err := (&runs.StateFile{Job: spec.Job, Run: spec.Run, State: job.Running, Runner: runner, Session: "thread-" + spec.Job}).Encode()
	if err == nil {
		err = realdisk.WriteAtomic(filepath.Join(folder, "state.json"), state, realdisk.PrivateFile)
	}
	if err == nil {
		err = appendLine(filepath.Join(folder, "journal.jsonl"), fmt.Sprintf(`{"run":%d,"kind":"prompt","id":%q}`, spec.Run, spec.PromptID))
	}
	if err != nil {
		return 0, errors.Join(err, lock.Release())
	}
	request := p.world.asked(spec.Job)
	request.begins(p, spec)
	p.world.trace.add("%s begins run %d of %s", p.name, spec.Run, spec.Job)
	takes := time.Duration(mix(p.world.seed, uint64(spec.Run), digits(spec.Job))%60_000) * time.Millisecond
	p.runners.run(func(ended <-chan struct{}) {
		defer func() { _ = lock.Release() }()
		select {
		case <-time.After(takes):
		case <-ended:
			return
		}
		if p.hasCrashed() {
			return
		}
		outcome := job.Outcome{State: job.Finished, Ended: job.EndAnswer}
		envelope := runs.NewEnvelope(spec.Job, spec.Run, outcome, answerOf(spec.Job, spec.Run), runs.Evidence{}, p.now())
		envelope.Session = "thread-" + spec.Job
		if err := (realdisk.Files{}).WriteAtomicBy(filepath.Join(folder, "envelope.json"), envelope.EncodeTo, realdisk.PrivateFile); err != nil {
			p.world.failf("%s cannot write the answer of %s: %v", p.name, spec.Job, err)
			return
		}
		request.ends(spec.Run)
		p.world.trace.add("%s has the answer of run %d of %s", p.name, spec.Run, spec.Job)
	})
	return noProcess, nil
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, realdisk.PrivateFile)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}

func answerOf(name string, run int) string { return fmt.Sprintf("answer %d of %s", run, name) }

// digits is a number for a name.
func digits(name string) (sum uint64) {
	for _, b := range []byte(name) {
		sum = sum*31 + uint64(b)
	}
	return sum
}

func (a *asked) begins(p *pc, spec runs.SpecFile) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p != a.to {
		p.world.failf("%s runs %s, which is for %s", p.name, a.name, a.to.name)
	}
	if slices.Contains(a.claims, spec.Run) {
		p.world.failf("run %d of %s began twice", spec.Run, a.name)
	}
	a.claims = append(a.claims, spec.Run)
	for _, word := range a.words {
		word.runs += strings.Count(spec.Prompt, word.text)
	}
}

func (a *asked) ends(run int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = append(a.finished, run)
}

// asked returns the job with that name.
func (w *world) asked(name string) *asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs[name]
}

// supervisor is the session that requests jobs.
var supervisor = broker.Asker{Address: bridge.Address{ID: "peer-docs", Name: "docs", Agent: bridge.Codex}}

// request has a session of a PC request a job from another one.
func (w *world) request(from, to *pc) {
	run := from.alive()
	if run == nil || run.jobs == nil {
		return
	}
	w.mu.Lock()
	item := &asked{from: from, to: to, words: map[string]*words{}}
	item.name = job.Name(bridge.Codex, false, [4]byte{0, 0, byte(from.number), byte(len(w.jobs))})
	w.jobs[item.name] = item
	w.mu.Unlock()
	w.tell(from, item, fmt.Sprintf("words-0-%s;", item.name), func(ctx context.Context, text string) error {
		args, err := json.Marshal(job.SpawnArgs{Prompt: text, Title: "It", Access: string(job.AccessEdit), Cwd: to.root, Host: to.name})
		if err != nil {
			return err
		}
		request, err := job.ParseSpawn(bridge.Codex, false, args)
		if err != nil {
			return err
		}
		spawned, err := run.jobs.Paired().Spawn(ctx, supervisor, request, api.SpawnArgs{Kind: bridge.Codex, Name: item.name, Args: args})
		if err == nil && spawned.Doubt != "" {
			return errUnclear
		}
		return err
	})
}

// errUnclear says that nobody knows what became of a request.
var errUnclear = errors.New("the outcome is not known")

// tell runs a call that carries words to a job beside the other steps, and notes what its
// session was told of it.
func (w *world) tell(from *pc, request *asked, text string, call func(ctx context.Context, text string) error) {
	said := &words{text: text}
	request.mu.Lock()
	request.words[text] = said
	request.mu.Unlock()
	w.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		run := from.alive()
		err := call(ctx, text)
		request.mu.Lock()
		defer request.mu.Unlock()
		isKnown := run != nil && from.isRunning(run)
		said.sure = isKnown && err == nil
		said.refused = isKnown && err != nil && !errors.Is(err, errUnclear) && !remote.IsUnanswered(err) && bridge.CodeOf(err) != bridge.Internal
		w.trace.add("%s tells %s %q: %v", from.name, request.name, text, err)
	})
}

// speak has a session send a message to one of its jobs.
func (w *world) speak(_, _ *pc) {
	w.mu.Lock()
	names := make([]string, 0, len(w.jobs))
	for name := range w.jobs {
		names = append(names, name)
	}
	w.mu.Unlock()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	request := w.asked(names[w.random.IntN(len(names))])
	run := request.from.alive()
	if run == nil {
		return
	}
	mirror, err := run.jobs.Find(request.name)
	if err != nil || mirror.Mirror == nil {
		return
	}
	request.mu.Lock()
	text := fmt.Sprintf("words-%d-%s;", len(request.words), request.name)
	request.mu.Unlock()
	w.tell(request.from, request, text, func(ctx context.Context, text string) error {
		_, err := run.jobs.Paired().Say(ctx, mirror, "id-of-"+text, job.Control{Job: request.name, Message: text})
		return err
	})
}

// allowJobs has the owner of a PC allow another one to request jobs, or forbid it.
func (w *world) allowJobs(p, other *pc) {
	is := w.random.IntN(3) > 0
	w.trace.add("%s allows %s jobs: %v", p.name, other.name, is)
	p.allow(shareJobs, other.name, is)
}

// openJobs lists the jobs whose results are still to come.
func (w *world) openJobs() (open []string) {
	for _, name := range w.jobNames() {
		request := w.asked(name)
		mirror, err := request.from.alive().jobs.Find(name)
		if err != nil || !w.network.know(request.from, request.to) {
			continue // it was never recorded, or nobody is asked about it any more
		}
		entry, err := request.to.alive().jobs.Find(name)
		switch {
		case !mirror.State.IsEnded() || !mirror.ResultSent:
			open = append(open, fmt.Sprintf("%s of %s on %s is %s there, its result sent: %v", name, request.from.name, request.to.name, mirror.State, mirror.ResultSent))
		case err == nil && mirror.Ended != job.EndedNotStarted && (!entry.State.IsEnded() || entry.Run > mirror.Run):
			open = append(open, fmt.Sprintf("%s of %s goes on on %s", name, request.from.name, request.to.name))
		}
	}
	return open
}

func (w *world) jobNames() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.jobs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkJobs checks that each result came once, that no words were done twice, and that
// nothing was done of what was refused.
func (w *world) checkJobs() {
	for _, name := range w.jobNames() {
		request := w.asked(name)
		for _, word := range request.words {
			if word.runs > 1 {
				w.failf("%q was done %d times", word.text, word.runs)
			}
			if word.refused && word.runs > 0 {
				w.failf("%q was refused and done", word.text)
			}
			if word.sure && word.runs == 0 && w.network.know(request.from, request.to) {
				w.checkUndone(request, word)
			}
		}
		w.checkResults(request)
	}
}

// checkUndone wants a reason for words that were accepted and stood in no prompt: their job
// was interrupted, and its result says so.
func (w *world) checkUndone(request *asked, said *words) {
	entry, err := request.to.alive().jobs.Find(request.name)
	if err == nil && slices.Contains(entry.QueuedMessages, said.text) || err == nil && entry.State == job.Interrupted {
		return
	}
	w.failf("%q was accepted and never done (%v, %v)", said.text, entry.State, err)
}

// checkResults checks the messages with the results of a job.
func (w *world) checkResults(request *asked) {
	mirror, err := request.from.alive().jobs.Find(request.name)
	if err != nil {
		return
	}
	bodies := map[string][]string{}
	rows, err := request.from.alive().db.Recent(context.Background(), 20_000)
	if err != nil {
		w.failf("%s cannot tell its messages: %v", request.from.name, err)
	}
	for _, row := range rows {
		if strings.HasPrefix(row.ID, "result-"+request.name+"-") {
			bodies[row.ID] = append(bodies[row.ID], row.Body)
		}
	}
	for run := 1; run <= mirror.Run; run++ {
		got := bodies[runs.ResultID(request.name, run)]
		isFinished := slices.Contains(request.finished, run)
		switch {
		case mirror.Ended == job.EndedNotStarted && run == 1:
			if len(request.claims) > 0 {
				w.failf("%s says that %s was not started, and it was", request.from.name, request.name)
			}
		case !w.network.know(request.from, request.to):
		case len(got) != 1:
			w.failf("the result of run %d of %s came %d times", run, request.name, len(got))
		case isFinished && !strings.Contains(got[0], answerOf(request.name, run)):
			w.failf("run %d of %s has an answer, and its result is %q", run, request.name, got[0])
		case !isFinished && strings.Contains(got[0], answerOf(request.name, run)):
			w.failf("run %d of %s has no answer, and its result is %q", run, request.name, got[0])
		}
	}
}
