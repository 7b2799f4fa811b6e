package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// The ways to tell the processes of a job whose runner is killed.
const (
	byCgroup = "a control group"
	byLimit  = "a resource limit alone"
	bySeen   = "having been seen alone"
)

// testLeavingRunner is a runner that writes down what a runner does, and starts its agent:
// the first line of its input says what marks the agent's processes, the second is the
// agent's command. It waits for its end.
func testLeavingRunner(folder string) int {
	input := bufio.NewReader(os.Stdin)
	how, howErr := input.ReadString('\n')
	script, scriptErr := input.ReadString('\n')
	data, readErr := os.ReadFile(filepath.Join(folder, "spec.json"))
	if errors.Join(howErr, scriptErr, readErr, sandbox.Adopt()) != nil {
		return 1
	}
	spec, err := runs.DecodeSpec(data, filepath.Base(folder))
	if err != nil {
		return 1
	}
	mark := sandbox.Mark{Job: spec.Job, Token: spec.Token}
	if how = strings.TrimSpace(how); how == byCgroup {
		mark.Cgroup = sandbox.PlanCgroup(mark)
		if sandbox.MakeCgroup(mark, 1000) != nil {
			return 1
		}
	}
	identity, _ := proc.Identity(os.Getpid())
	self := job.Process{PID: os.Getpid(), Identity: identity, Role: "runner"}
	claim, claimErr := json.Marshal(orphans.Claim{Runner: self, Token: spec.Token, Cgroup: mark.Cgroup})
	state, stateErr := runs.StateFile{Job: spec.Job, Run: spec.Run, State: job.Running, Runner: self}.Encode()
	if errors.Join(claimErr, stateErr, disk.WriteNew(orphans.ClaimFile(folder, spec.Run), claim, disk.PrivateFile),
		disk.WriteAtomic(filepath.Join(folder, "state.json"), state, disk.PrivateFile)) != nil {
		return 1
	}
	agent := exec.CommandContext(context.Background(), "/bin/sh", "-c", script)
	agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := agent.Start
	if how != bySeen {
		agent.Env = append(os.Environ(), sandbox.JobVariable+"="+spec.Job, sandbox.TokenVariable+"="+spec.Token)
		start = func() error { return sandbox.StartLeader(agent) }
	}
	if start() != nil {
		return 1
	}
	io.Copy(io.Discard, input) //nolint:errcheck // its end is the sign
	return 0
}

// left is what a process knows that an agent leaves behind to become the owner.
type left struct {
	Socket, Page       string
	Runner             int
	Ready, Go, Answers string // files: it is there, it may begin, what came of it
}

// testLeft kills its runner and then speaks to Bridge by every way that the owner has.
func testLeft(raw string) int {
	var l left
	if json.Unmarshal([]byte(raw), &l) != nil || publish(l.Ready, []byte(fmt.Sprint(os.Getpid()))) != nil {
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	until(ctx, func() bool { _, err := os.Stat(l.Go); return err == nil })
	if syscall.Kill(l.Runner, syscall.SIGKILL) != nil {
		return 1
	}
	until(ctx, func() bool { return !proc.Alive(l.Runner) })
	answers := map[string]string{}
	for _, role := range []api.Role{api.RoleOwner, api.RoleDashboard, api.RoleHook, api.RoleMod, api.RolePlugin, api.RoleRunner, api.RoleSession} {
		client, err := ipc.Dial(ctx, ipc.Target{Socket: l.Socket, Token: testToken}, ipc.Hello{Role: role, PID: 1, Version: "test"})
		if err == nil && role == api.RoleOwner { // as `bridge send` does
			_, err = client.Send(ctx, api.SendArgs{To: "boss", Body: "from the owner"})
		}
		answers["link as "+string(role)] = string(bridge.CodeOf(err))
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Page)
	if err != nil {
		return 1
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return 1
	}
	answers["page"] = strings.TrimSpace(answer)
	data, _ := json.Marshal(answers)
	if publish(l.Answers, data) != nil {
		return 1
	}
	<-ctx.Done()
	return 0
}

func publish(path string, data []byte) error {
	return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

func until(ctx context.Context, done func() bool) {
	for !done() && ipc.Pause(ctx, time.Millisecond) {
	}
}

// page serves connections as the dashboard takes them: it writes the code of the error
// that JobOfConn gives, or "done".
func (b *bench) page() (address string) {
	b.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			name, err := b.jobs.JobOfConn(conn)
			answer := string(bridge.CodeOf(err))
			if err == nil && name != "" { // guard.ConnContext refuses it
				answer = string(bridge.Denied)
			}
			fmt.Fprintln(conn, answer) //nolint:errcheck // the other end says what it has read
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// What an agent leaves behind without a mark in its environment, a session or parents, and
// which kills the job's runner, is neither the owner nor anybody else on the link, on the
// page and by the command line, and the next look at the job ends it.
func TestSEC_08_WhatKillsItsRunnerIsNobodyAndGone(t *testing.T) {
	for _, how := range []string{byCgroup, byLimit, bySeen} {
		t.Run(how, func(t *testing.T) {
			if how == byCgroup && sandbox.PlanCgroup(sandbox.Mark{Job: first, Token: "x"}) == "" {
				t.Skip("SKIPPED, no control group was tried: this process can make none")
			}
			b := prepared(t)
			b.look = testkit.Patience * 10 // the test looks
			runners := b.runnersOf("test-leaving-runner")
			b.up()
			boss := b.join("boss", "s1")
			boss.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
			runner, started := <-runners, b.started()
			eventually(t, "its runner to be known", func() bool { return b.entry(first)["host"] != nil })
			folder := t.TempDir()
			at := func(name string) string { return filepath.Join(folder, name) }
			l := left{Socket: b.home.Socket(), Page: b.page(), Runner: runner.cmd.Process.Pid, Ready: at("ready"), Go: at("go"), Answers: at("answers")}
			raw, _ := json.Marshal(l)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(runner.stdin, "%s\n(env -i setsid sh -c 'env -i setsid \"$@\" &' sh %s test-left '%s' &); sleep 1000\n", how, self, raw); err != nil {
				t.Fatal(err)
			}
			var pid int
			eventually(t, "it to be left", func() bool {
				text, err := os.ReadFile(l.Ready)
				if err != nil {
					return false
				}
				_, err = fmt.Sscan(string(text), &pid)
				return err == nil
			})
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // a test that fails leaves nothing
			identity, err := proc.Identity(pid)
			if err != nil {
				t.Fatal(err)
			}
			if how == bySeen {
				b.jobs.look()
			}
			if err := os.WriteFile(l.Go, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			answers := map[string]string{}
			eventually(t, "it to try everything", func() bool {
				data, err := os.ReadFile(l.Answers)
				return err == nil && json.Unmarshal(data, &answers) == nil
			})
			for way, code := range answers {
				if code != string(bridge.Denied) {
					t.Errorf("%s: %q", way, code)
				}
			}
			if len(answers) != 8 {
				t.Errorf("it tried %v", answers)
			}
			b.jobs.look()
			if now, err := proc.Identity(pid); err == nil && now == identity {
				t.Error("it outlives its job")
			}
			if entry, err := b.jobs.get(first); err != nil || entry.State != job.Interrupted {
				t.Errorf("the job is %s, %v", entry.State, err)
			}
			mark, err := orphans.MarkOf(started.folder, 1)
			if _, statErr := os.Stat(mark.Cgroup); err != nil || (mark.Cgroup != "") != (how == byCgroup) || statErr == nil {
				t.Errorf("its group is %q, %v, and there: %v", mark.Cgroup, err, statErr == nil)
			}
		})
	}
}

// A runner that was killed before it noted its state has left an empty group.
func TestSEC_08_TheEmptyGroupOfADeadRunnerIsRemoved(t *testing.T) {
	b := newBench(t)
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	mark := sandbox.Mark{Job: first, Token: r.spec.Token}
	if mark.Cgroup = sandbox.PlanCgroup(mark); mark.Cgroup == "" {
		t.Skip("SKIPPED, no control group was tried: this process can make none")
	}
	if err := sandbox.MakeCgroup(mark, 0); err != nil {
		t.Fatal(err)
	}
	claim, err := json.Marshal(orphans.Claim{Runner: job.Process{PID: 1 << 22, Identity: "gone"}, Token: r.spec.Token, Cgroup: mark.Cgroup})
	if err == nil {
		err = disk.WriteNew(orphans.ClaimFile(r.folder, 1), claim, disk.PrivateFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the group to be removed", func() bool {
		_, err := os.Stat(mark.Cgroup)
		return errors.Is(err, os.ErrNotExist)
	})
}

// A job's processes are the job's before the broker has noted the runner, which may take as
// long as the disk does.
func TestSEC_08_AJobsProcessesAreKnownBeforeItsRunnerIs(t *testing.T) {
	b := prepared(t)
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer, 1)
	b.start = func(folder string) (int, error) {
		r := b.runnerIn(folder)
		agent := exec.CommandContext(t.Context(), "sleep", "1000")
		agent.Env = []string{sandbox.JobVariable + "=" + r.spec.Job, sandbox.TokenVariable + "=" + r.spec.Token}
		if err := sandbox.StartLeader(agent); err != nil {
			return 0, err
		}
		name, err := b.jobs.JobOf(job.Process{PID: agent.Process.Pid})
		answers <- answer{name, err}
		_, _ = agent.Process.Kill(), agent.Wait()
		sandbox.Collected(agent.Process.Pid)
		return os.Getpid(), nil
	}
	b.up()
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	if got := <-answers; got.name != first || got.err != nil {
		t.Errorf("it is of %q, %v", got.name, got.err)
	}
}

// Where the end of what a runner left fails, its processes stay the job's.
func TestSEC_08_WhatCouldNotBeEndedStaysTheJobs(t *testing.T) {
	b := newBench(t)
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	b.begun()
	b.jobs.mu.Lock()
	r := b.jobs.runs[first]
	b.jobs.mu.Unlock()
	if err := os.WriteFile(filepath.Join(b.jobs.files.Folder(first), "state.json"), []byte(`{"job":`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.jobs.results.reap(job.Job{Name: first, Run: 1})
	b.jobs.mu.Lock()
	if !r.isLeft {
		t.Error("an end that failed is not noted")
	}
	b.jobs.mu.Unlock()
	for _, isLeft := range []bool{true, false} {
		b.jobs.trees.Set(sandbox.Mark{Job: first, Token: r.token}, job.Process{PID: os.Getppid()}, nil)
		b.jobs.mu.Lock()
		b.jobs.runs[first], r.isLeft = r, isLeft
		b.jobs.mu.Unlock()
		b.jobs.results.forget(r)
		if name, err := b.jobs.JobOf(job.Process{PID: os.Getpid()}); (name == first) != isLeft || err != nil {
			t.Errorf("where something is left %t: %q, %v", isLeft, name, err)
		}
	}
}
