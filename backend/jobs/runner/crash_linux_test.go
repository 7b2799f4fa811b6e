package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// testRunJob is a runner's process: test-run-job HOME FOLDER SOCKET STEP. It kills
// itself at the step.
func testRunJob(args []string) int {
	home, folder, socket, step := args[0], args[1], args[2], Step(args[3])
	if err := sandbox.Adopt(); err != nil {
		println(err.Error())
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reconnector := &ipc.Reconnector{Target: ipc.Target{Socket: socket, Token: testToken}, Hello: ipc.Hello{Role: api.RoleRunner, PID: os.Getpid(), Version: "test"}}
	go reconnector.Run(ctx)
	o := testOptions(home, folder)
	o.Broker, o.Timeout = Link(reconnector), testkit.Patience
	o.At = func(at Step) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it comes at once
		}
	}
	if err := Run(context.Background(), o); err != nil {
		println(err.Error())
		if bridge.CodeOf(err) == bridge.Conflict {
			return 3
		}
		return 1
	}
	return 0
}

const testToken = "the-token-of-this-home"

// server serves memory on a real link.
type server struct {
	*memory
	mu    sync.Mutex // guards conns
	conns map[*ipc.Conn]*connection
}

func (s *server) Connected(conn *ipc.Conn) (ipc.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = &connection{memory: s.memory, given: map[string]bool{}}
	return ipc.Welcome{Version: "test", PID: os.Getpid()}, nil
}

func (s *server) Disconnected(*ipc.Conn) {}

func (s *server) Handle(ctx context.Context, conn *ipc.Conn, op string, raw json.RawMessage) (any, error) {
	s.mu.Lock()
	c := s.conns[conn]
	s.mu.Unlock()
	switch op {
	case api.OpRunnerHello.Name:
		var hello api.RunnerHello
		if err := json.Unmarshal(raw, &hello); err != nil {
			return nil, err
		}
		return c.RunnerHello(ctx, hello)
	case api.OpRunnerReport.Name:
		var report api.RunnerReport
		if err := json.Unmarshal(raw, &report); err != nil {
			return nil, err
		}
		return c.RunnerReport(ctx, report)
	case api.OpRunnerWait.Name:
		return c.RunnerWait(ctx)
	}
	return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
}

// serve puts the bench's broker on a socket.
func (b *bench) serve() (socket string) {
	b.Helper()
	folder, err := os.MkdirTemp("/tmp", "rj")
	if err != nil {
		b.Fatal(err)
	}
	socket = filepath.Join(folder, "s")
	listener, err := ipc.Listen(socket)
	if err != nil {
		b.Fatal(err)
	}
	link := ipc.NewServer(testToken, &server{memory: b.broker, conns: map[*ipc.Conn]*connection{}}, slog.New(slog.DiscardHandler))
	var serving sync.WaitGroup
	serving.Go(func() { _ = link.Serve(listener) })
	b.Cleanup(func() {
		_ = listener.Close()
		link.Close()
		serving.Wait()
		_ = os.RemoveAll(folder)
	})
	return socket
}

// process runs the runner as a process of its own, to its end.
func (b *bench) process(socket string, step Step) (code int, out string) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "test-run-job", b.home, b.folder, socket, string(step))
	var output strings.Builder
	cmd.Stderr = &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.Fatal(err)
	}
	if ctx.Err() != nil {
		b.Fatalf("the runner did not end at %q: %s", step, output.String())
	}
	return cmd.ProcessState.ExitCode(), output.String()
}

// supervise answers the first question, then sends a message, then opens the gate,
// until done is closed.
func (b *bench) supervise(gate string, done <-chan struct{}) {
	for asked, messaged := false, false; ; {
		b.broker.mu.Lock()
		reports, more := b.broker.reports, b.broker.more
		b.broker.mu.Unlock()
		for _, report := range reports {
			for _, approval := range report.Approvals {
				if !asked {
					asked = true
					b.broker.give(api.Order{ID: "answer", Kind: api.OrderAnswer, Approval: approval.ID, Decision: job.Allow, By: "boss"})
				}
			}
			for _, outcome := range report.Outcomes {
				switch {
				case outcome.ID == "answer" && !messaged:
					messaged = true
					b.broker.give(api.Order{ID: "0a1b2c3d-0000-4000-8000-000000000002", Kind: api.OrderMessage, Text: "say both done"})
				case outcome.ID != "answer":
					_ = os.WriteFile(gate, nil, 0o600)
				}
			}
		}
		select {
		case <-more:
		case <-done:
			return
		}
	}
}

// results counts the results that were told, by their message.
func (m *memory) results() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := map[string]int{}
	for _, report := range m.reports {
		if report.Result != nil {
			told[report.Result.MessageID]++
		}
	}
	return told
}

var everyStep = []Step{
	StepClaimed, StepPlaced, StepPrompted, StepStarted, StepSpawned, StepAsked, StepAnswered, StepHanded, StepNoted, StepSent,
	StepEnded, StepReaped, StepParked, StepConcluded, StepDelivered,
}

// Whatever a runner has done when it is killed: a look at the files tells where the
// job is, what is left of it can be ended, nothing of it is done twice, and a result
// is there when, and only when, the envelope is.
func TestJOB_06_JOB_03_ARunnerKilledAtEachStep(t *testing.T) {
	for _, step := range everyStep {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.repository()
			socket := b.serve()
			ran, gate := filepath.Join(b.home, "ran"), filepath.Join(b.home, "gate")
			prompt := "do echo x >> " + ran + "; setsid sleep 1000 >/dev/null 2>&1 &\nrun echo y >> " + ran + "; echo new > made\nwait " + gate + "\nsay done"
			spec := b.spec(prompt, func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
			done := make(chan struct{})
			go b.supervise(gate, done)
			code, out := b.process(socket, step)
			close(done)
			if code != -1 {
				t.Fatalf("the runner did not die at the step: %d %s", code, out)
			}
			b.lookAfter(step, spec)
			before := readIfThere(t, ran)
			b.again(step, socket)
			if after := readIfThere(t, ran); after != before || strings.Count(after, "x") > 1 || strings.Count(after, "y") > 1 {
				t.Errorf("it ran %q, then %q", before, after)
			}
			b.broker.mu.Lock()
			b.broker.orders = nil // those of the first run are not the next one's
			b.broker.mu.Unlock()
			b.continued(spec, socket)
		})
	}
}

// lookAfter looks at what a killed runner left, and ends it.
func (b *bench) lookAfter(step Step, spec runs.SpecFile) {
	b.Helper()
	found, err := ReadFiles(b.folder)
	if err != nil || found.Alive {
		b.Fatalf("a look finds %+v, %v", found, err)
	}
	isOver := step == StepConcluded || step == StepDelivered
	if (found.Result != nil) != isOver {
		b.Errorf("the result is %+v", found.Result)
	}
	if err := found.End(b.Context()); err != nil {
		b.Error(err)
	}
	if left, err := sandbox.Left(sandbox.Mark{Job: spec.Job, Token: spec.Token}, found.State.Processes); err != nil || len(left) > 0 {
		b.Errorf("left are %v, %v", left, err)
	}
	index := slices.Index(everyStep, step)
	isUnclear := slices.ContainsFunc(found.Unclear, func(e Entry) bool { return e.Kind == EntryPrompt })
	if step == StepPrompted && !isUnclear || index >= slices.Index(everyStep, StepAsked) && isUnclear {
		b.Errorf("what is unclear is %+v", found.Unclear)
	}
	if step == StepAnswered && !slices.ContainsFunc(found.Unclear, func(e Entry) bool { return e.Kind == EntryAnswer }) {
		b.Errorf("an answer that may have arrived is not told: %+v", found.Unclear)
	}
	if step == StepNoted && !slices.ContainsFunc(found.Unclear, func(e Entry) bool { return e.Kind == EntryMessage }) {
		b.Errorf("a message that may have arrived is not told: %+v", found.Unclear)
	}
	if index >= slices.Index(everyStep, StepAsked) {
		questions := b.entries(EntryQuestion)
		if len(questions) != 1 {
			b.Fatalf("the journal has the questions %+v", questions)
		}
		want := map[Step]job.ApprovalState{StepAsked: job.ApprovalAsked, StepAnswered: job.ApprovalDelivered}[step]
		if a := b.approval(questions[0].ID); want != "" && a.State != want {
			b.Errorf("the question is %s, want %s", a.State, want)
		}
	}
}

// again has another runner begin the same run: it only tells a result that is there.
func (b *bench) again(step Step, socket string) {
	b.Helper()
	code, out := b.process(socket, "")
	told := b.broker.results()
	if step == StepConcluded || step == StepDelivered {
		if code != 0 || len(told) != 1 || told[runs.ResultID(jobName, 1)] == 0 {
			b.Errorf("the result was told as %v: %d %s", told, code, out)
		}
		return
	}
	if code != 3 || len(told) != 0 {
		b.Errorf("a second runner ended with %d (%s) and told %v", code, out, told)
	}
}

// continued runs the job's next run, in the same worktree: no work is lost.
func (b *bench) continued(spec runs.SpecFile, socket string) {
	b.Helper()
	state := b.state()
	worktree := filepath.Join(b.home, "worktrees", filepath.Base(b.work)+"-"+jobName)
	work, err := os.ReadFile(filepath.Join(worktree, "made")) // all of it that was written when the agent was killed
	hadWork := err == nil
	b.spec("say again", func(s *runs.SpecFile) { s.Run, s.Worktree = 2, &job.Worktree{} })
	if code, out := b.process(socket, ""); code != 0 {
		b.Fatalf("the next run ended with %d: %s", code, out)
	}
	envelope := b.envelope()
	if envelope.State != job.Finished || envelope.Result != "again" || envelope.Workdir != worktree || envelope.Branch != "bridge/"+jobName {
		b.Errorf("the next run came to %+v", envelope)
	}
	if state.BaseTree != "" && b.state().BaseTree != state.BaseTree {
		b.Errorf("the start was %s and is %s now", state.BaseTree, b.state().BaseTree)
	}
	if hadWork {
		if made := b.git(b.work, "show", envelope.Branch+":made"); made != strings.TrimSpace(string(work)) {
			b.Errorf("the branch has %q, the worktree had %q", made, work)
		}
		if files := envelope.Evidence.Files; len(files) != 1 || files[0].Path != "made" || files[0].Status != "added" {
			b.Errorf("the evidence has the files %+v", files)
		}
	}
	if left, err := sandbox.Left(sandbox.Mark{Job: spec.Job, Token: spec.Token}, nil); err != nil || len(left) > 0 {
		b.Errorf("left are %v, %v", left, err)
	}
}

func readIfThere(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// The next run ends what the last one left, though its spec has another secret.
func TestJOB_06_TheNextRunEndsWhatADeadRunnerLeft(t *testing.T) {
	b := newBench(t)
	socket := b.serve()
	spec := b.spec("do setsid sleep 1000 >/dev/null 2>&1 &\nrun sleep 1000\nsay done")
	if code, out := b.process(socket, StepAsked); code != -1 {
		t.Fatalf("the runner did not die: %d %s", code, out)
	}
	mark := sandbox.Mark{Job: spec.Job, Token: spec.Token}
	for left := 0; left == 0; {
		processes, err := sandbox.Left(mark, nil)
		if left = len(processes); err != nil || t.Context().Err() != nil {
			t.Fatalf("nothing was left: %v", err)
		}
	}
	b.spec("say again", func(s *runs.SpecFile) { s.Run, s.Token = 2, "another"+spec.Token })
	if code, out := b.process(socket, ""); code != 0 {
		t.Fatalf("the next run ended with %d: %s", code, out)
	}
	if left, err := sandbox.Left(mark, nil); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// The whole tree of a job ends with it, whatever left its session and group.
func TestJOB_06_ACancelledJobLeavesNoProcess(t *testing.T) {
	b := newBench(t)
	socket := b.serve()
	spec := b.spec("do setsid sleep 1000 >/dev/null 2>&1 &\ndo (setsid sh -c 'sleep 1000 & sleep 1000') >/dev/null 2>&1 &\nrun sleep 1000\nsay done")
	mark := sandbox.Mark{Job: spec.Job, Token: spec.Token}
	other := exec.Command("sleep", "1000")
	other.Env = []string{sandbox.JobVariable + "=" + spec.Job, sandbox.TokenVariable + "=another"}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()
	ended := make(chan string, 1)
	go func() {
		_, out := b.process(socket, "")
		ended <- out
	}()
	b.broker.asked(b, 1)
	for begun := 0; begun < 5; { // the CLI, and what left its session and group
		left, err := sandbox.Left(mark, nil)
		if begun = len(left); err != nil || t.Context().Err() != nil {
			t.Fatalf("before the end there are %v, %v", left, err)
		}
	}
	if refused := b.broker.order(b, api.Order{ID: "o1", Kind: api.OrderCancel, By: "boss"}); refused != nil {
		t.Fatal(refused)
	}
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Fatal("the job did not end")
	}
	if left, err := sandbox.Left(mark, nil); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another job's process is gone: %v", err)
	}
	if envelope := b.envelope(); envelope.State != job.Cancelled {
		t.Errorf("the envelope says %+v", envelope)
	}
}

// A broker that died beside the start of a run has its successor start another runner,
// which may find that the first has claimed the run and has not noted its state yet.
func TestJOB_06_ARunnerThatComesSecondEndsNothingOfTheFirst(t *testing.T) {
	b := newBench(t)
	spec := b.spec("say again", func(s *runs.SpecFile) { s.Run = 2 })
	state := runs.StateFile{Job: jobName, Run: 1, State: job.Finished, Runner: job.Process{PID: os.Getpid(), Identity: "gone", Role: "runner"}}
	if err := files(b.folder).saveState(state); err != nil {
		t.Fatal(err)
	}
	begin := func(env ...string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	first, agent := begin(), begin(sandbox.JobVariable+"="+jobName, sandbox.TokenVariable+"="+spec.Token)
	identity, err := proc.Identity(first.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	claim := orphans.Claim{Runner: job.Process{PID: first.Process.Pid, Identity: identity, Role: "runner"}, Token: spec.Token}
	lock, err := files(b.folder).claim(2, claim)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-b.begin(); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("is driven by process %d", first.Process.Pid)) {
		t.Errorf("the second runner ends with %v", err)
	}
	if left, err := sandbox.Left(sandbox.Mark{Job: jobName, Token: spec.Token}, nil); err != nil || len(left) != 1 || left[0].PID != agent.Process.Pid {
		t.Errorf("of the first one's agent there is %v, %v", left, err)
	}
}

// A runner in a container names itself by a number that says nothing here, or is this
// process's own. The lock of its claim tells that it runs.
func TestRWM_05_ARunnerInAnotherNamespaceKeepsItsRun(t *testing.T) {
	for _, pid := range []int{os.Getpid(), 1 << 22} {
		b := newBench(t)
		spec := b.spec("say again", func(s *runs.SpecFile) { s.Run = 2 })
		lock, err := files(b.folder).claim(2, orphans.Claim{Runner: job.Process{PID: pid, Identity: "elsewhere", Role: "runner"}, Token: spec.Token})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-b.begin(); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("is driven by process %d", pid)) {
			t.Errorf("beside process %d the second runner ends with %v", pid, err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		if err := <-b.begin(); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "was begun before") {
			t.Errorf("after its end: %v", err)
		}
	}
}

func TestRWM_05_ARunnerHoldsTheLockOfItsClaim(t *testing.T) {
	b := newBench(t)
	spec := b.spec("say again")
	claim := orphans.ClaimFile(b.folder, spec.Run)
	looked := false
	b.at = func(Step) {
		looked = true
		if isLocked, err := disk.IsLocked(claim); err != nil || !isLocked {
			t.Errorf("while it runs: %v, %v", isLocked, err)
		}
	}
	if err := <-b.begin(); err != nil || !looked {
		t.Errorf("the run: %v, looked: %v", err, looked)
	}
	if isLocked, err := disk.IsLocked(claim); err != nil || isLocked {
		t.Errorf("after its end: %v, %v", isLocked, err)
	}
}

// The next run may be begun before the runner of the last one, whose result is taken,
// has left.
func TestJOB_05_TheNextRunWaitsForTheLastRunnerToLeave(t *testing.T) {
	b := newBench(t)
	last := exec.Command("sleep", "1000")
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	leave := sync.OnceFunc(func() {
		_ = last.Process.Kill()
		_ = last.Wait()
	})
	defer leave()
	identity, err := proc.Identity(last.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	b.spec("say again", func(s *runs.SpecFile) { s.Run = 2 })
	state := runs.StateFile{Job: jobName, Run: 1, State: job.Finished, Runner: job.Process{PID: last.Process.Pid, Identity: identity, Role: "runner"}}
	if err := files(b.folder).saveState(state); err != nil {
		t.Fatal(err)
	}
	done := b.begin()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if b.exists(filepath.Join(b.folder, "run-2.json")) {
		t.Error("the run is claimed beside the last runner")
	}
	leave()
	b.ended(done)
	if envelope := b.envelope(); envelope.Run != 2 || envelope.Result != "again" {
		t.Errorf("it came to %+v", envelope)
	}
}
