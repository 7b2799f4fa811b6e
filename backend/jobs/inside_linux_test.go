package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	leases "bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// The test's own program is also a runner, what runs inside its job, and a
// broker that finishes one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "test-runner":
			os.Exit(testRunner(os.Args[2]))
		case "test-inside":
			os.Exit(testInside(os.Args[2]))
		case "test-leaving-runner":
			os.Exit(testLeavingRunner(os.Args[2]))
		case "test-left":
			os.Exit(testLeft(os.Args[2]))
		}
	}
	if len(os.Args) == 5 && os.Args[1] == "test-finish" {
		os.Exit(testFinish(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

// testRunner is a runner that starts what it is told line by line, until its input
// ends. What it starts may leave everything but this process.
func testRunner(string) int {
	if sandbox.Adopt() != nil {
		return 1
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if exec.CommandContext(context.Background(), "/bin/sh", "-c", lines.Text()).Start() != nil {
			return 1
		}
	}
	return 0
}

// inside is what an agent that tries everything knows. It can read the files of its
// user, so it knows every secret of the home.
type inside struct {
	Socket, Answers      string
	Job, Token           string
	OtherJob, OtherToken string
	Boss, BossSession    string // its supervisor
	Mail                 string // a message that waits for that one
}

// testInside tries everything, and writes down what came of each.
func testInside(raw string) int {
	var in inside
	if json.Unmarshal([]byte(raw), &in) != nil {
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	answers := map[string]string{}
	for name, try := range in.ways() {
		answers[name] = "done"
		if err := try(ctx); err != nil {
			answers[name] = string(bridge.CodeOf(err)) + ": " + err.Error()
		}
	}
	data, _ := json.Marshal(answers)
	if os.WriteFile(in.Answers+".new", data, 0o600) != nil || os.Rename(in.Answers+".new", in.Answers) != nil {
		return 1
	}
	return 0
}

func (in inside) dial(ctx context.Context, role api.Role) (*ipc.Client, error) {
	return ipc.Dial(ctx, ipc.Target{Socket: in.Socket, Token: testToken}, ipc.Hello{Role: role, PID: 1, Version: "test"})
}

// itself is a connection that registered as the job that it is, with claims that are
// not its own beside it.
func (in inside) itself(ctx context.Context) (*ipc.Client, error) {
	client, err := in.dial(ctx, api.RoleSession)
	if err == nil {
		stolen := leases.Lease{ID: "stolen", Recipient: in.Boss, Messages: []string{in.Mail}}
		_, err = client.Register(ctx, api.Register{
			Kind: bridge.Claude, Name: in.Job, Runner: true, JobToken: in.Token, Cwd: "/", SessionID: in.BossSession, Previous: in.Boss, Leases: []leases.Lease{stolen},
		})
	}
	return client, err
}

type way func(context.Context) error

// ways is the table of ways. Each that begins with "may" is open to the job.
func (in inside) ways() map[string]way {
	ways := map[string]way{}
	for _, role := range []api.Role{api.RolePlugin, api.RoleHook, api.RoleMod, api.RoleRunner, api.RoleOwner, api.RoleDashboard} {
		ways["link as "+string(role)] = func(ctx context.Context) error {
			_, err := in.dial(ctx, role)
			return err
		}
	}
	in.registering(ways)
	in.asItself(ways)
	return ways
}

// registering are the ways to be somebody else.
func (in inside) registering(ways map[string]way) {
	for name, args := range map[string]api.Register{
		"be an ordinary session":       {Name: "somebody"},
		"be an ordinary nameless one":  {},
		"be its supervisor":            {Name: "boss", SessionID: in.BossSession, Previous: in.Boss},
		"be another job":               {Name: in.OtherJob, Runner: true, JobToken: in.OtherToken},
		"be itself without its secret": {Name: in.Job, Runner: true},
		"be itself with another's":     {Name: in.Job, Runner: true, JobToken: in.OtherToken},
		"be a session of its own name": {Name: in.Job, JobToken: in.Token},
	} {
		ways[name] = func(ctx context.Context) error {
			client, err := in.dial(ctx, api.RoleSession)
			if err == nil {
				args.Kind, args.Cwd = bridge.Claude, "/"
				_, err = client.Register(ctx, args)
			}
			return err
		}
	}
	ways["read without registering"] = func(ctx context.Context) error {
		client, err := in.dial(ctx, api.RoleSession)
		if err == nil {
			_, err = client.Inbox(ctx, api.InboxArgs{Caller: api.Caller{SessionID: in.BossSession}})
		}
		return err
	}
}

// asItself are the ways of the session that the job is.
func (in inside) asItself(ways map[string]way) {
	as := func(name string, try func(context.Context, *ipc.Client) error) {
		ways[name] = func(ctx context.Context) error {
			client, err := in.itself(ctx)
			if err == nil {
				err = try(ctx, client)
			}
			return err
		}
	}
	for _, op := range api.Operations() {
		if op.Name != api.OpShow.Name && op.CheckJob("") != nil { // that one is served elsewhere
			as("call "+op.Name, func(ctx context.Context, c *ipc.Client) error {
				var answer any
				return c.Call(ctx, op.Name, api.Empty{}, &answer)
			})
		}
	}
	for name, args := range map[string]job.MessageArgs{
		"approve":            {Job: in.OtherJob, ApprovalID: "q1", Decision: "allow"},
		"approve its own":    {Job: in.Job, ApprovalID: "q1", Decision: "allow"},
		"steer a sibling":    {Job: in.OtherJob, Message: "stop"},
		"steer itself":       {Job: in.Job, Access: "edit"},
		"raise another's":    {Job: in.OtherJob, Access: "edit"},
		"continue a sibling": {Job: in.OtherJob},
	} {
		as(name, func(ctx context.Context, c *ipc.Client) error {
			_, err := c.JobMessage(ctx, api.JobMessageArgs{Caller: api.Caller{SessionID: in.BossSession}, ID: "m-1", Args: args})
			return err
		})
	}
	as("cancel a sibling", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.JobCancel(ctx, api.JobArgs{Job: in.OtherJob})
		return err
	})
	as("read a sibling's result", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.JobResult(ctx, api.JobArgs{Job: in.OtherJob})
		return err
	})
	as("speak for a sibling", func(ctx context.Context, c *ipc.Client) error {
		return c.JobProgress(ctx, api.JobProgressArgs{Job: in.OtherJob, Token: in.OtherToken, Args: job.ProgressArgs{Note: "done"}})
	})
	as("write to a stranger", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Send(ctx, api.SendArgs{To: "stranger", Body: "hello"})
		return err
	})
	as("write to all", func(ctx context.Context, c *ipc.Client) error {
		_, err := c.Send(ctx, api.SendArgs{To: "*", Body: "hello"})
		return err
	})
	as("say that another's mail was read", func(ctx context.Context, c *ipc.Client) error {
		return c.Ack(ctx, api.Ack{Lease: leases.Lease{ID: "x", Recipient: in.Boss, Messages: []string{in.Mail}}, Stage: bridge.StageConsumed, Via: "tool", Detail: "inbox"})
	})
	as("call for a session of its supervisor's id", func(ctx context.Context, c *ipc.Client) error {
		box, err := c.Inbox(ctx, api.InboxArgs{Caller: api.Caller{SessionID: in.BossSession}, MarkRead: true})
		if err == nil && len(box.Messages) == 0 {
			return bridge.Errorf(bridge.Denied, "it reads its own mail, and there is none")
		}
		return err
	})
	as("may write to its supervisor", func(ctx context.Context, c *ipc.Client) error {
		sent, err := c.Send(ctx, api.SendArgs{Caller: api.Caller{SessionID: in.BossSession}, To: "boss", Body: "hello from inside"})
		if err == nil && len(sent.Recipients) != 1 {
			err = fmt.Errorf("it goes to %v", sent.Recipients)
		}
		return err
	})
	as("may say how far it is", func(ctx context.Context, c *ipc.Client) error {
		return c.JobProgress(ctx, api.JobProgressArgs{Job: in.Job, Token: in.Token, Args: job.ProgressArgs{Note: "half"}})
	})
}

// runnersStarted are processes of runners that take commands.
type running struct {
	stdin io.WriteCloser
	cmd   *exec.Cmd
}

// realRunners has the bench start a process of its own for each runner.
func (b *bench) realRunners() <-chan running { return b.runnersOf("test-runner") }

// runnersOf is realRunners for another one of the test's own programs.
func (b *bench) runnersOf(program string) <-chan running {
	started := make(chan running, 10)
	b.start = func(folder string) (int, error) {
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		r := running{cmd: exec.CommandContext(context.WithoutCancel(b.t.Context()), self, program, folder)}
		if r.stdin, err = r.cmd.StdinPipe(); err != nil {
			return 0, err
		}
		if err := r.cmd.Start(); err != nil {
			return 0, err
		}
		b.t.Cleanup(func() {
			r.stdin.Close() //nolint:errcheck // its end is the sign
			r.cmd.Wait()    //nolint:errcheck // how it ends is nobody's business
		})
		started <- r
		b.starts <- folder
		return r.cmd.Process.Pid, nil
	}
	return started
}

// An agent inside a job tries to approve, steer, cancel or read what is not its own by
// every role and operation of the local link, with every secret of the home in its
// hands: as it was started, without its marks, with another job's, out of its session,
// and after its parent has ended.
func TestJOB_11_JOB_12_TheTableOfWays(t *testing.T) {
	b := prepared(t)
	runners := b.realRunners()
	b.up()
	boss := b.join("boss", "s1")
	b.join("stranger", "s2")
	boss.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	r, spec := <-runners, b.started().spec
	boss.mustSpawn("02", `{"prompt":"y","access":"ask"}`)
	<-runners
	other := b.started()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mail, err := boss.Send(t.Context(), api.SendArgs{To: "boss", Body: "for boss alone"})
	if err != nil {
		t.Fatal(err)
	}
	marks := func(name, token string) string { return "BRIDGE_JOB=" + name + " BRIDGE_JOB_TOKEN=" + token + " " }
	for name, prefix := range map[string]string{
		"as it was started":         "env " + marks(first, spec.Token),
		"without its marks":         "env -i ",
		"with another job's":        "env -i " + marks(second, other.spec.Token),
		"out of its session":        "env -i setsid ",
		"after its parent's end":    "env -i setsid sh -c '(sleep 0.1; \"$@\") & exit' sh ",
		"deep below its own shells": strings.Repeat("env -i sh -c '\"$@\"; true' sh ", 20),
	} {
		t.Run("JOB-11 "+name, func(t *testing.T) {
			in := inside{
				Socket: b.home.Socket(), Answers: filepath.Join(t.TempDir(), "answers"), Job: first, Token: spec.Token, OtherJob: second,
				OtherToken: other.spec.Token, Boss: boss.ID, BossSession: "s1", Mail: mail.ID,
			}
			raw, _ := json.Marshal(in)
			if _, err := fmt.Fprintf(r.stdin, "%s%s test-inside '%s'\n", prefix, self, raw); err != nil {
				t.Fatal(err)
			}
			answers := map[string]string{}
			eventually(t, "it to try everything", func() bool {
				data, err := os.ReadFile(in.Answers)
				return err == nil && json.Unmarshal(data, &answers) == nil
			})
			if want := len(in.ways()); len(answers) != want {
				t.Errorf("it tried %d of %d ways", len(answers), want)
			}
			for way, answer := range answers {
				code, _, _ := strings.Cut(answer, ":")
				refused := code == string(bridge.Denied) || code == string(bridge.Unauthorized)
				if may := strings.HasPrefix(way, "may "); may == refused || may != (answer == "done") {
					t.Errorf("%s: %s", way, answer)
				}
			}
		})
	}
	boss.mail(7) // its own, and one from each way to start
	if view, err := b.jobs.View(second); err != nil || view.Status != job.Starting || view.Progress.Note != "" || view.Access != job.AccessAsk {
		t.Errorf("the sibling is %+v, %v", view, err)
	}
}

// A connection whose process is gone is nobody's while jobs run: it may have been
// handed on from inside of one.
func TestJOB_11_AConnectionOfNobodyIsRefused(t *testing.T) {
	b := prepared(t)
	runners := b.realRunners()
	b.up()
	if _, err := b.jobs.JobOf(job.Process{PID: 1 << 22}); err != nil {
		t.Errorf("where no job runs: %v", err)
	}
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	<-runners
	b.started()
	eventually(t, "its runner to be known", func() bool {
		_, err := b.jobs.JobOf(job.Process{PID: 1 << 22})
		return bridge.CodeOf(err) == bridge.Denied
	})
	if name, err := b.jobs.JobOf(job.Process{PID: os.Getpid()}); name != "" || err != nil {
		t.Errorf("a process outside of it is %q, %v", name, err)
	}
}

// Nobody speaks for a runner that runs, whoever knows its secret.
func TestJOB_11_ARunnerThatRunsIsNobodyElse(t *testing.T) {
	b := prepared(t)
	runners := b.realRunners()
	b.up()
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	real, r := <-runners, b.started()
	hello := func() error {
		_, err := b.dial(api.RoleRunner).RunnerHello(t.Context(), api.RunnerHello{Job: first, Run: 1, Token: r.spec.Token})
		return err
	}
	eventually(t, "its runner to be known", func() bool { return b.entry(first)["host"] != nil })
	wantCode(t, "beside it", hello(), bridge.Denied)
	if err := real.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	real.cmd.Wait() //nolint:errcheck // it has ended
	if err := hello(); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

// An agent that calls the owner's command sees its own jobs, and what those ask.
func TestJOB_11_AnAgentSeesWhatItsOwnJobsAsk(t *testing.T) {
	b := newBench(t)
	s, other := b.join("boss", "s1"), b.join("other", "s2")
	r := working(b, s)
	r.wants("q1", "make")
	other.mustSpawn("02", `{"prompt":"x","access":"ask"}`)
	runner := b.begun()
	runner.wants("q2", "make")
	seen := func() (names, asked []string) {
		got, err := b.dial(api.RoleOwner).Runs(t.Context(), api.RunsArgs{})
		if err != nil {
			t.Fatal(err)
		}
		for _, view := range got.Jobs {
			names = append(names, view.Job)
		}
		for _, approval := range got.Approvals {
			asked = append(asked, approval.ID)
		}
		slices.Sort(names)
		return names, asked
	}
	if names, asked := seen(); !slices.Equal(names, []string{first, second}) || len(asked) != 2 {
		t.Errorf("the owner sees %q, and what is asked as %q", names, asked)
	}
	agent := b.dial(api.RoleSession) // from now on this process is below that session's agent
	if _, err := agent.Register(t.Context(), api.Register{Kind: bridge.Claude, Name: "other", SessionID: "s2", Cwd: b.work(), AgentPID: os.Getppid(), HostKnown: true}); err != nil {
		t.Fatal(err)
	}
	if names, asked := seen(); !slices.Equal(names, []string{second}) || !slices.Equal(asked, []string{"q2"}) {
		t.Errorf("the agent sees %q, and what is asked as %q", names, asked)
	}
}
