package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/doors/worker"
	"bridge/backend/jobs/runner"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/sandbox"
	"bridge/backend/storage/store"
	"bridge/backend/testing/soak/history"
	"bridge/backend/testing/testkit"
)

// startsEnv names the file to which an agent of a job adds a line when it begins: the
// mark of its run, which no other run has.
const startsEnv = "CLAUDE_CONFIG_DIR"

func startsFile(config string) string { return filepath.Join(config, "projects", "starts") }

// written returns what agents of a home's jobs have written to the file of that name in
// their configuration: below the sandbox each job has a folder of its own for it.
func written(home, config, name string) string {
	files, _ := filepath.Glob(filepath.Join(home, "jobs", "*", "claude", "projects", name)) // the pattern is well formed
	var all strings.Builder
	for _, file := range append(files, filepath.Join(config, "projects", name)) {
		all.WriteString(read(file))
	}
	return all.String()
}

// ownConfig is how a command of an agent names a file in its configuration.
func ownConfig(name string) string { return `"$` + startsEnv + `"/projects/` + name }

func noteStart() {
	config := os.Getenv(startsEnv)
	if config == "" || !slices.Contains(os.Args, "-p") {
		return
	}
	file, err := os.OpenFile(startsFile(config), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = file.WriteString(os.Getenv(sandbox.JobVariable) + " " + os.Getenv(sandbox.TokenVariable) + "\n")
	}
	if err != nil {
		panic(err)
	}
}

// A victim is who is killed.
type victim string

const (
	theRunner     victim = "runner"
	theBroker     victim = "broker"
	theAgent      victim = "agent"
	theSupervisor victim = "supervisor"
)

// death is what happens to one run: who is killed, and when.
type death struct {
	who  victim
	with bool        // the runner, too
	at   runner.Step // "" for any moment
	soon bool        // just after the step instead of in it
}

func (d death) String() string {
	who, when := string(d.who), "any moment"
	if d.with {
		who += "+runner"
	}
	if d.at != "" {
		when = string(d.at)
	}
	if d.soon {
		when += " and soon"
	}
	return who + " at " + when
}

// stepsOf are those that a run goes through which asks before it changes something,
// and gets a worktree; or does neither.
func stepsOf(asks bool) []runner.Step {
	all := []runner.Step{
		runner.StepClaimed, runner.StepPlaced, runner.StepPrompted, runner.StepStarted, runner.StepSpawned, runner.StepAsked, runner.StepAnswered,
		runner.StepHanded, runner.StepNoted, runner.StepSent, runner.StepEnded, runner.StepReaped, runner.StepParked, runner.StepConcluded, runner.StepDelivered,
	}
	return slices.DeleteFunc(all, func(s runner.Step) bool {
		return !asks && slices.Contains([]runner.Step{runner.StepPlaced, runner.StepAsked, runner.StepAnswered, runner.StepHanded}, s)
	})
}

func isOver(at runner.Step) bool { return at == runner.StepConcluded || at == runner.StepDelivered }

// ruin is one home in which whatever jobs need is killed.
type ruin struct {
	*world
	config string // of the agent
	left   atomic.Int64
	broke  sync.Mutex // held while a broker is killed

	tally   sync.Mutex
	killed  map[victim]int
	deaths  map[string]int
	missed  map[string]int // steps that a run did not come to before its end
	repeats int            // words that were said again, because the run before was interrupted before it was known whether it had them
	outcome map[job.State]int
	runs    int
	bodies  map[string]string // of the results that came, by their id
	names   []string          // of all jobs
}

func newRuin(t *testing.T) *ruin {
	w := emptyWorld(t)
	r := &ruin{
		world: w, config: filepath.Join(w.dir, "config"), killed: map[victim]int{}, deaths: map[string]int{}, outcome: map[job.State]int{}, missed: map[string]int{}, bodies: map[string]string{},
	}
	waitAtSteps(t)
	self, err := os.Executable()
	for _, step := range []func() error{
		func() error { return err },
		func() error { return os.Symlink(self, filepath.Join(w.dir, agentName)) },
		func() error { return os.MkdirAll(filepath.Join(r.config, "projects"), 0o700) },
		func() error {
			return os.WriteFile(filepath.Join(w.dir, ".gitconfig"), []byte("[user]\nname=n\nemail=e@x\n"), 0o600)
		},
		w.home.Ensure,
		func() error {
			return os.WriteFile(filepath.Join(w.home.Dir(), "config.json"), []byte(`{"jobs":{"enabled":true,"maxJobs":50}}`), 0o600)
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", w.dir)
	t.Setenv(startsEnv, r.config)
	t.Setenv("BRIDGE_CLAUDE_BIN", filepath.Join(w.dir, agentName))
	return r
}

// waitAtSteps has this test use programs whose runners wait at their steps.
func waitAtSteps(t *testing.T) {
	t.Helper()
	binary, err := stepped()
	if err != nil {
		t.Fatal(err)
	}
	usual := program
	program = binary
	t.Cleanup(func() { program = usual })
}

// stepped puts these programs down, once: such a bridge-worker, and the others as they are.
var stepped = sync.OnceValues(func() (binary string, err error) {
	to := filepath.Join(folder, "stepped")
	if err := testkit.Build(filepath.Join(to, worker.RunnerName), "./testdata/worker"); err != nil {
		return "", err
	}
	for _, name := range testkit.Programs {
		if name == worker.RunnerName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(program), name))
		if err == nil {
			err = testkit.WriteProgram(filepath.Join(to, name), data, 0o700)
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(to, "bridge"), nil
})

// take counts one kill; false when there were enough.
func (r *ruin) take(who victim) bool {
	if r.left.Add(-1) < 0 {
		return false
	}
	r.tally.Lock()
	defer r.tally.Unlock()
	r.killed[who]++
	return true
}

// killBroker ends the broker that serves, and waits for another.
func (r *ruin) killBroker() error {
	r.broke.Lock()
	defer r.broke.Unlock()
	pid := 0
	for deadline := time.Now().Add(settle); pid == 0; pid = r.broker() {
		if time.Now().After(deadline) {
			return errors.New("no broker serves")
		}
	}
	if !r.ours(pid) || !r.take(theBroker) {
		return nil
	}
	killing := r.history.Begin("test")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the broker %d: %w", pid, err)
	}
	for deadline := time.Now().Add(settle); ; {
		if next := r.broker(); next != 0 && next != pid {
			killing.End(history.Crash{})
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("no other broker serves")
		}
	}
}

// ofJob finds the processes that carry the mark of a job, and of these those that have
// the words in their command line.
func ofJob(name, words string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil || !strings.Contains("\x00"+string(environ), "\x00"+sandbox.JobVariable+"="+name) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		pid := 0
		if _, err := fmt.Sscan(entry.Name(), &pid); err == nil && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), words) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// answers allows whatever is asked, until ctx ends.
func (r *ruin) answers(ctx context.Context) {
	for ; ctx.Err() == nil; <-time.After(40 * time.Millisecond) {
		client, err := r.owner(ctx)
		if err != nil {
			continue
		}
		for err == nil {
			var runs api.Runs
			if runs, err = client.Runs(ctx, api.RunsArgs{}); err != nil {
				break
			}
			for _, approval := range runs.Approvals {
				if approval.State == job.ApprovalAsked {
					_, _ = client.Approve(ctx, api.ApproveArgs{Approval: approval.ID, Decision: job.Allow}) // it may be gone
				}
			}
			select {
			case <-time.After(40 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		client.Close()
	}
}

// lane is one supervisor that gives one job after the other.
type lane struct {
	*ruin
	boss  *actor
	yards []*yard
	lives int
	words int
	done  []string // names of jobs that have ended
}

// collect takes the lane's mail.
func (l *lane) collect() {
	s, life := l.boss.server()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	var box struct{ Messages []shown }
	call := l.history.Begin(l.boss.name)
	if s.call(ctx, "inbox", map[string]any{"limit": inboxMost}, &box) != nil {
		call.Cut(history.Inbox{To: l.boss.name, Conn: l.boss.conn(life)})
		return // its process is being replaced
	}
	l.notesResults(call, life, box.Messages)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range box.Messages {
		key := l.boss.name + " " + m.ID
		l.seen[key] = append(l.seen[key], sighting{time.Now(), life, "inbox"})
		l.tally.Lock()
		l.bodies[m.ID] = m.Body
		l.tally.Unlock()
	}
}

func (l *lane) body(id string) (string, bool) {
	l.tally.Lock()
	defer l.tally.Unlock()
	body, has := l.bodies[id]
	return body, has
}

// life is one job with its runs.
type life struct {
	*lane
	id     string // part of each of its words
	name   string
	yard   *yard
	bereft bool // the runner of its last run was killed
	asks   bool // it has a worktree and asks; else it works in the folder itself
	folder string
	said   []string        // tokens of what it was told
	broken map[string]bool // those of runs that came to nothing: whether they were heard nobody knows
}

func (l *life) work() string { return "work-" + l.id + ".txt" }

func (l *life) ledger() string  { return written(l.home.Dir(), l.config, "ledger-"+l.id) }
func (l *life) commits() string { return written(l.home.Dir(), l.config, "commits-"+l.id) }

// doing is what the agent does on one word: its file, its ledger.
func (l *life) doing() (token, line string) {
	l.words++
	token = fmt.Sprintf("%s.%d", l.id, l.words)
	l.said = append(l.said, token)
	return token, fmt.Sprintf("do echo %s >> %s && echo %s >> %s", token, l.work(), token, ownConfig("ledger-"+l.id))
}

// script is the prompt of a run that comes to that death.
func (l *life) script(d death) (token, gate, prompt string) {
	token, line := l.doing()
	gate = filepath.Join(l.dir, "gate-"+token)
	lines := []string{line, "do (setsid sleep 1000 & sleep 1000) >/dev/null 2>&1 &"}
	if l.asks {
		lines = append(lines, "run echo asked", fmt.Sprintf("do git add -A && git commit -qm %s && git rev-parse HEAD >> %s", token, ownConfig("commits-"+l.id)))
	}
	lines = append(lines, "do echo more >> "+l.work(), "wait "+gate, "say done "+token)
	if d.at != "" {
		lines = append(lines, "at "+string(d.at))
	}
	return token, gate, strings.Join(lines, "\n")
}

// spec is what the job's runner was asked last.
func (l *life) spec() (spec runs.SpecFile) {
	data, err := os.ReadFile(filepath.Join(l.folder, "spec.json"))
	if err == nil {
		spec, _ = runs.DecodeSpec(data, l.name)
	}
	return spec
}

// run is one run with its death; d is nil for one that nobody disturbs.
func (l *life) run(d death, disturbed bool) error {
	token, gate, prompt := l.script(d)
	if err := l.begin(token, prompt); err != nil {
		return err
	}
	number := 0
	within(5*time.Second, func() bool {
		if spec := l.spec(); strings.Contains(spec.Prompt, token) {
			number = spec.Run
		}
		return number != 0 || slices.Contains(strings.Fields(l.ledger()), token) // said to one that went on
	})
	if !disturbed {
		touch(gate)
		return l.settled(number, token, nil)
	}
	began := time.Now()
	killed, err := l.carryOut(d, number, token, gate)
	if took := time.Since(began); took > 15*time.Second {
		l.Logf("%s, run %d: %s took %s, killed: %t", l.name, number, d, took, killed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	if !killed {
		return l.settled(number, token, nil)
	}
	l.tally.Lock()
	l.deaths[d.String()]++
	l.tally.Unlock()
	if err := l.settled(number, token, &d); err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	return nil
}

// begin has the words reach the job: as its first, or as its next run.
func (l *life) begin(token, prompt string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*settle)
	defer cancel()
	for {
		s, _ := l.boss.server()
		var answer struct{ Job string }
		var err error
		call := l.history.Begin(l.boss.name)
		if l.name == "" {
			args := map[string]any{"prompt": prompt, "title": l.id, "cwd": l.yard.dir, "access": "edit"}
			if l.asks {
				args["access"], args["worktree"] = "ask", true
			}
			err = s.call(ctx, "spawn_claude", args, &answer)
		} else {
			err = s.call(ctx, "message_subagent", map[string]any{"job": l.name, "message": prompt}, &answer)
		}
		if err == nil {
			if l.name == "" {
				call.End(history.Spawn{Job: answer.Job})
			}
			l.name = cmp.Or(l.name, answer.Job)
			l.folder = filepath.Join(l.home.Dir(), "jobs", l.name)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it is never told: %w", err)
		}
		// It may have been taken all the same.
		var found []job.Job
		within(3*time.Second, func() bool {
			found = l.jobs(func(entry job.Job) bool { return entry.Title == l.id })
			return len(found) == 1 && (l.name == "" || strings.Contains(l.spec().Prompt+strings.Join(found[0].QueuedMessages, ""), token))
		})
		if len(found) == 1 {
			if l.name == "" {
				call.Cut(history.Spawn{Job: found[0].Name})
			}
			l.name = found[0].Name
			l.folder = filepath.Join(l.home.Dir(), "jobs", l.name)
			if strings.Contains(found[0].Prompt+l.spec().Prompt+strings.Join(found[0].QueuedMessages, ""), token) {
				return nil
			}
		}
	}
}

// carryOut kills as it is due; killed is false where the moment did not come.
func (l *life) carryOut(d death, number int, token, gate string) (killed bool, err error) {
	name := fmt.Sprintf("-%d-%s", number, d.at)
	switch {
	case number == 0: // it was told to a run that went on
		touch(gate)
		return false, nil
	case d.at == runner.StepNoted || d.at == runner.StepSent:
		within(settle, func() bool {
			l.release(name)
			return slices.Contains(strings.Fields(l.ledger()), token) || l.isTold(number)
		})
		_, line := l.doing()
		s, _ := l.boss.server()
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		if err := s.call(ctx, "message_subagent", map[string]any{"job": l.name, "message": line + "\nsay more"}, &struct{}{}); err != nil {
			l.Logf("%s: a message to a running job: %v", l.name, err)
		}
	}
	defer touch(gate)
	if d.at == "" {
		pause(700 * time.Millisecond)
		if rand.IntN(2) == 0 {
			touch(gate)
			pause(100 * time.Millisecond)
		}
		return l.kill(d)
	}
	if slices.Index(stepsOf(true), d.at) >= slices.Index(stepsOf(true), runner.StepNoted) {
		defer touch(gate)
		if d.at != runner.StepNoted && d.at != runner.StepSent {
			touch(gate)
		}
	}
	reached := within(settle, func() bool {
		l.release(name) // a prompt that is said again names its own steps
		return there(filepath.Join(l.folder, "at"+name)) || d.at != runner.StepDelivered && l.isTold(number)
	}) && there(filepath.Join(l.folder, "at"+name))
	if !reached {
		l.tally.Lock()
		l.missed[string(d.at)]++
		l.tally.Unlock()
		return false, nil
	}
	defer touch(filepath.Join(l.folder, "go"+name))
	if d.soon {
		touch(filepath.Join(l.folder, "go"+name))
		pause(30 * time.Millisecond)
	}
	return l.kill(d)
}

// isTold reports whether the result of a run has come.
func (l *life) isTold(number int) bool {
	l.collect()
	_, has := l.body(runs.ResultID(l.name, number))
	return has
}

func (l *life) kill(d death) (bool, error) {
	killed := (d.who == theRunner || d.with) && l.killRunner()
	l.bereft = killed
	switch d.who {
	case theBroker:
		return true, l.killBroker()
	case theSupervisor:
		if !l.take(theSupervisor) {
			return killed, nil
		}
		l.boss.replace()
		return true, nil
	case theAgent:
		for _, pid := range ofJob(l.name, agentName+" -p") {
			if l.take(theAgent) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed = true
			}
		}
	case theRunner:
	}
	return killed, nil
}

// killRunner ends the job's runner, by the claim of its run.
func (l *life) killRunner() bool {
	for _, pid := range l.processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "run-job\x00"+l.folder+"\x00") && l.take(theRunner) {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

// settled waits until the run has told what came of it, and judges that.
func (l *life) settled(number int, token string, d *death) error {
	told := within(3*settle, func() bool {
		l.release("")
		if number == 0 {
			if spec := l.spec(); strings.Contains(spec.Prompt, token) || slices.Contains(strings.Fields(l.ledger()), token) {
				number = spec.Run
			}
		}
		return number != 0 && l.isTold(number)
	})
	l.release("")
	if !told {
		return fmt.Errorf("%s: run %d never tells its end; it was told %s, and what there is of it: %s", l.name, number, token, l.files())
	}
	l.looksAtResult(l.boss, l.name, resultPart)
	envelope, err := l.envelope(number)
	if err != nil {
		return err
	}
	body, _ := l.body(envelope.MessageID)
	l.tally.Lock()
	l.outcome[envelope.State]++
	l.tally.Unlock()
	finished := envelope.State == job.Finished
	if prompt := l.spec().Prompt; !finished { // all that the run was asked for may be asked for again
		for _, said := range append(l.said, token) {
			l.broken[said] = l.broken[said] || said == token || strings.Contains(prompt, said+" ")
		}
	}
	switch {
	case finished && !strings.Contains(body, envelope.Result):
		return fmt.Errorf("%s: run %d came to %q, and its message says %q", l.name, number, envelope.Result, body)
	case d == nil, d.who != theAgent && !l.bereft:
		if !finished {
			return fmt.Errorf("%s: run %d came to %s: %s", l.name, number, envelope.State, envelope.Error)
		}
	case l.bereft && d.at != "" && !d.soon:
		if want := isOver(d.at); want != finished || !want && envelope.State != job.Interrupted {
			return fmt.Errorf("%s: run %d came to %s", l.name, number, envelope.State)
		}
	}
	return nil
}

// files are what there is of the job, for whoever has to find out what went wrong.
func (l *life) files() string {
	text := fmt.Sprintf("%+v\n", l.jobs(func(entry job.Job) bool { return entry.Name == l.name }))
	for _, name := range []string{"spec.json", "state.json", "journal.jsonl", "envelope.json"} {
		text += name + ":\n" + read(filepath.Join(l.folder, name)) + "\n"
	}
	return text + "log:\n" + read(filepath.Join(l.home.Dir(), "runs", l.name+".log"))
}

// release lets whatever waits at a step go on, but where this plan has it wait.
func (l *life) release(but string) {
	at, _ := filepath.Glob(filepath.Join(l.folder, "at-*"))
	for _, path := range at {
		if name := strings.TrimPrefix(filepath.Base(path), "at"); name != but {
			touch(filepath.Join(l.folder, "go"+name))
		}
	}
	for _, token := range l.said[:len(l.said)-1] {
		touch(filepath.Join(l.dir, "gate-"+token))
	}
}

func (l *life) envelope(number int) (envelope runs.Envelope, err error) {
	for _, name := range []string{"envelope.json", fmt.Sprintf("envelope-%d.json", number), "envelope.json"} {
		var data []byte
		if data, err = os.ReadFile(filepath.Join(l.folder, name)); err == nil {
			if envelope, err = runs.DecodeEnvelope(data, l.name); err == nil && envelope.Run == number {
				return envelope, nil
			}
		}
	}
	return envelope, fmt.Errorf("%s: run %d has told its end and has no envelope: %w", l.name, number, err)
}

// jobs are those of jobs.json that are wanted.
func (w *world) jobs(wanted func(job.Job) bool) (found []job.Job) {
	w.registry.Lock()
	defer w.registry.Unlock()
	for _, entry := range w.registry.read(w) {
		if wanted(entry) {
			found = append(found, entry)
		}
	}
	return found
}

// registry is jobs.json as it was read last: many look into it all the time, and it is
// replaced as a whole where it changes. What was just written when it was read is read
// again: the next one may look the same to the file system's clock.
type registry struct {
	sync.Mutex
	file os.FileInfo // nil where it is read again
	jobs []job.Job
}

func (r *registry) read(w *world) []job.Job {
	path := filepath.Join(w.home.Dir(), "jobs.json")
	file, err := os.Stat(path) // before it is read: what is newer is read again
	if err != nil {
		return nil
	}
	if r.file != nil && os.SameFile(r.file, file) && r.file.ModTime().Equal(file.ModTime()) {
		return r.jobs
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	decoded, err := job.DecodeFile(data)
	if err != nil {
		w.Errorf("jobs.json: %v", err)
	}
	r.file, r.jobs = nil, decoded.Jobs
	if time.Since(file.ModTime()) > 100*time.Millisecond {
		r.file = file
	}
	return r.jobs
}

// over is the end of a life: all its runs are told, once, and its work is there.
func (l *life) over() error {
	var entry job.Job
	ended := within(3*settle, func() bool {
		l.release("")
		l.collect()
		found := l.jobs(func(entry job.Job) bool { return entry.Title == l.id })
		if len(found) != 1 {
			return false
		}
		entry = found[0]
		_, told := l.body(runs.ResultID(l.name, entry.Run))
		return entry.State.IsEnded() && entry.ResultSent && len(entry.QueuedMessages) == 0 && told
	})
	if !ended {
		return fmt.Errorf("%s does not come to its end: %+v", l.name, entry)
	}
	l.tally.Lock()
	l.names, l.runs = append(l.names, l.name), l.runs+entry.Run
	l.tally.Unlock()
	l.done = append(l.done, l.name)
	l.looksAtResult(l.boss, oneOf(l.done), resultPart)
	for number := 1; number <= entry.Run; number++ {
		if _, told := l.body(runs.ResultID(l.name, number)); !told {
			return fmt.Errorf("the result of run %d of %s is lost", number, l.name)
		}
	}
	return l.workIsThere(entry)
}

// workIsThere compares what the agent noted to have done with what there is of it.
func (l *life) workIsThere(entry job.Job) error {
	have := read(filepath.Join(l.yard.dir, l.work()))
	if l.asks && entry.Worktree.IsMade() {
		onBranch, _ := l.yard.try("show", entry.Worktree.Branch+":"+l.work())
		have = read(filepath.Join(entry.Worktree.Path, l.work())) + onBranch
		for _, commit := range strings.Fields(l.commits()) {
			if out, err := l.yard.try("merge-base", "--is-ancestor", commit, entry.Worktree.Branch); err != nil {
				return fmt.Errorf("%s: the commit %s is not on %s: %s", l.name, commit, entry.Worktree.Branch, out)
			}
		}
	}
	done := strings.Fields(l.ledger())
	for i, token := range done {
		switch said := slices.Contains(done[:i], token); {
		case said && l.broken[token]:
			l.tally.Lock()
			l.repeats++
			l.tally.Unlock()
		case said:
			return fmt.Errorf("%s did %s twice", l.name, token)
		}
		if !strings.Contains(have, token+"\n") && !strings.HasSuffix(have, token) {
			return fmt.Errorf("%s: the work of %s is lost: there is %q", l.name, token, have)
		}
	}
	return nil
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func touch(path string) { _ = os.WriteFile(path, nil, 0o600) } // whoever waits for it says so

func within(patience time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(patience); !done(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// deathsOfALife is how many runs of a job are disturbed before one that is not.
const deathsOfALife = 6

// live gives a job and has its runs killed.
func (l *lane) live() error {
	l.lives++
	item := &life{lane: l, id: fmt.Sprintf("%s-%d", l.boss.name, l.lives), yard: l.yards[l.lives%len(l.yards)], asks: rand.IntN(4) != 0, broken: map[string]bool{}}
	for range deathsOfALife {
		if l.left.Load() <= 0 {
			break
		}
		if err := item.run(item.plan(), true); err != nil {
			return err
		}
	}
	if err := item.run(death{}, false); err != nil {
		return fmt.Errorf("it cannot be continued: %w", err)
	}
	return item.over()
}

func (l *life) plan() death {
	d := death{who: oneOf([]victim{theRunner, theRunner, theRunner, theBroker, theBroker, theAgent, theAgent, theSupervisor}), soon: rand.IntN(3) == 0}
	if rand.IntN(4) != 0 {
		steps := stepsOf(l.asks)
		if d.who == theAgent {
			steps = slices.DeleteFunc(steps, func(s runner.Step) bool {
				return slices.Index(stepsOf(true), s) < slices.Index(stepsOf(true), runner.StepStarted) || slices.Index(stepsOf(true), s) >= slices.Index(stepsOf(true), runner.StepEnded)
			})
		}
		if l.name != "" {
			steps = slices.DeleteFunc(steps, func(s runner.Step) bool { return s == runner.StepPlaced })
		}
		d.at = oneOf(steps)
	} else {
		d.soon = false
	}
	d.with = d.who == theBroker && rand.IntN(4) == 0
	return d
}

// TestJOB_01_JOB_03_JOB_06_JOB_08_PRF_01_WhateverJobsNeedIsKilled: runners, brokers, agents
// and supervisors die at the named steps of runs and at random moments, and a run whose
// runner died is continued. Every result comes once, no run is begun twice, no process
// is left, and repositories keep all that they had and all that was done in them.
func TestJOB_01_JOB_03_JOB_06_JOB_08_PRF_01_WhateverJobsNeedIsKilled(t *testing.T) {
	r := newRuin(t)
	n, lanes := kills(t, 12), 5
	if n > 500 {
		lanes = 10
	}
	r.left.Store(int64(n))
	var all []*lane
	var yards []*yard
	for i := range lanes {
		l := &lane{ruin: r, boss: &actor{w: r.world, name: fmt.Sprintf("boss%d", i), kind: bridge.Claude, killed: map[int]time.Time{}}}
		for k := range max(1, min(40, n/10/lanes)) {
			l.yards = append(l.yards, newYard(r, fmt.Sprintf("repo-%d-%d", i, k)))
		}
		yards, all = append(yards, l.yards...), append(all, l)
		l.boss.start()
		r.actors = append(r.actors, l.boss)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var answering, running sync.WaitGroup
	answering.Go(func() { r.answers(ctx) })
	began := time.Now()
	for _, l := range all {
		running.Go(func() {
			for r.left.Load() > 0 && !t.Failed() {
				if err := l.live(); err != nil {
					t.Errorf("%s, job %d: %v", l.boss.name, l.lives, err)
					return
				}
			}
		})
	}
	running.Wait()
	cancel()
	answering.Wait()
	r.count(all, yards, time.Since(began))
}

// count is what is found at the end.
func (r *ruin) count(all []*lane, yards []*yard, took time.Duration) {
	r.Helper()
	for _, l := range all {
		l.collect()
		l.collect() // what the first has shown counts as read
	}
	allowed := r.noneTwice()
	r.history.Accept(r)
	r.storedOnce()
	starts := map[string]int{}
	lines := strings.Split(strings.TrimSpace(written(r.home.Dir(), r.config, "starts")), "\n")
	twice := 0
	for _, line := range lines {
		if starts[line]++; starts[line] > 1 {
			twice++
			r.Errorf("a run was begun twice: %s", line)
		}
	}
	r.quiet()
	left := 0
	for _, name := range r.names {
		if pids := ofJob(name, ""); len(pids) > 0 {
			left += len(pids)
			r.Errorf("of %s the processes %v are left", name, pids)
		}
	}
	for _, y := range yards {
		y.check()
	}
	sum := 0
	for _, k := range r.killed {
		sum += k
	}
	r.Logf("%d kills in %s: %v; %d jobs in %d repositories, %d runs, %d starts of an agent; came to %v; steps not reached: %v; words said again after an interrupted run: %d; results shown again after a supervisor's death: %d; begun twice: %d; processes left: %d",
		sum, took.Round(time.Second), r.killed, len(r.names), len(yards), r.runs, len(lines), r.outcome, r.missed, r.repeats, allowed, twice, left)
	var kinds []string
	for what, k := range r.deaths {
		kinds = append(kinds, fmt.Sprintf("%s: %d", what, k))
	}
	slices.Sort(kinds)
	r.Logf("deaths: %s", strings.Join(kinds, "; "))
}

// storedOnce wants the message of each result once in the store.
func (r *ruin) storedOnce() {
	r.Helper()
	reader, err := store.OpenReader(context.Background(), r.home.DB())
	if err != nil {
		r.Fatal(err)
	}
	defer reader.Close()
	for id := range r.bodies {
		if row, err := reader.Find(context.Background(), id); err != nil || len(row.Deliveries) != 1 {
			r.Errorf("%s is stored %d times: %v", id, len(row.Deliveries), err)
		}
	}
}

// yard is one repository of the owner's, with work of his own that is not committed.
type yard struct {
	r       *ruin
	dir     string
	objects []string
	refs    string
	files   string
	status  string
}

func newYard(r *ruin, name string) *yard {
	y := &yard{r: r, dir: filepath.Join(r.dir, name)}
	script := `git init -q -b main . && echo one > a.txt && echo '*.log' > .gitignore && git add -A && git commit -qm first &&
		git checkout -q -b other && echo two > b.txt && git add -A && git commit -qm second && git tag mark && git checkout -q main &&
		mkdir sub && echo three > sub/c.txt && git add -A && git commit -qm third &&
		echo changed >> a.txt && echo new > mine.txt && echo staged > staged.txt && git add staged.txt && echo ignored > own.log`
	err := os.Mkdir(y.dir, 0o700)
	if err == nil {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Dir = y.dir
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		r.Fatal(err)
	}
	y.objects, y.refs, y.files, y.status = y.all()
	return y
}

func (y *yard) try(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", y.dir}, args...)...).CombinedOutput()
	return string(out), err
}

func (y *yard) git(args ...string) string {
	out, err := y.try(args...)
	if err != nil {
		y.r.Errorf("%s: git %v: %v %s", y.dir, args, err, out)
	}
	return out
}

// all is what the repository holds of the owner's.
func (y *yard) all() (objects []string, refs, files, status string) {
	objects = strings.Fields(y.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
	for line := range strings.Lines(y.git("for-each-ref", "--format=%(refname) %(objectname)")) {
		if !strings.Contains(line, "bridge/") {
			refs += line
		}
	}
	refs += y.git("symbolic-ref", "HEAD") + y.git("stash", "list")
	for line := range strings.Lines(y.git("status", "--porcelain", "--ignored")) {
		if !strings.Contains(line, "work-") {
			status += line
		}
	}
	err := filepath.WalkDir(y.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && !entry.IsDir() && !strings.HasPrefix(entry.Name(), "work-") {
			files += path + "\n" + read(path)
		}
		return err
	})
	if err != nil {
		y.r.Error(err)
	}
	return objects, refs, files, status
}

// check wants all that there was, and a sound repository.
func (y *yard) check() {
	y.r.Helper()
	objects, refs, files, status := y.all()
	has := map[string]bool{}
	for _, object := range objects {
		has[object] = true
	}
	for _, object := range y.objects {
		if !has[object] {
			y.r.Errorf("%s has lost %s", y.dir, object)
		}
	}
	for what, pair := range map[string][2]string{"refs": {refs, y.refs}, "files": {files, y.files}, "status": {status, y.status}} {
		if pair[0] != pair[1] {
			y.r.Errorf("%s: its %s are %q, and were %q", y.dir, what, pair[0], pair[1])
		}
	}
	if out, err := y.try("fsck", "--connectivity-only"); err != nil || strings.Contains(out, "missing") || strings.Contains(out, "broken") {
		y.r.Errorf("%s: %v: %s", y.dir, err, out)
	}
}
