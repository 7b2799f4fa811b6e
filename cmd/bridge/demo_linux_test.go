package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// shown is a `bridge demo` in a folder of its own for what is temporary.
type shown struct {
	cmd    *exec.Cmd
	folder string
	output io.ReadCloser
	errs   strings.Builder
}

func showDemo(t *testing.T, flags ...string) *shown {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	t.Cleanup(cancel)
	s := &shown{cmd: exec.CommandContext(ctx, "bridge", append([]string{"demo", "--no-open"}, flags...)...), folder: shortDir(t)}
	s.cmd.Env = append(os.Environ(), "TMPDIR="+s.folder)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stderr = &s.errs
	var err error
	if s.output, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// waitFor returns once a file of the demo's is there.
func (s *shown) waitFor(t *testing.T, pattern string) string {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(s.folder, "bridge-demo-*", pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("%s never came", pattern)
	return ""
}

// processes are the command lines of those that have to do with the demo.
func (s *shown) processes(t *testing.T) (all []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline")) // it may have ended
		environment, _ := os.ReadFile(filepath.Join(process, "environ"))
		cwd, _ := os.Readlink(filepath.Join(process, "cwd"))
		if strings.Contains(string(command)+string(environment)+cwd, s.folder) {
			all = append(all, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return all
}

// gone wants nothing of the demo left: no folder, and no process that could make one.
func (s *shown) gone(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(s.folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if all := s.processes(t); len(all) > 0 {
		t.Errorf("left: %q", all)
	}
}

func TestDSK_06_TheDemoLeavesNothingWheneverItIsEnded(t *testing.T) {
	hangups := make(chan os.Signal, 1) // what starts the tests may ignore them, and so would the demo
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for number, moment := range []string{
		"home/demo", "shop/.git/HEAD", "home/config.json", "home/token", "home/bridge.db", "home/launch-secret", "home/.storage-users/*",
		"home/jobs/*", "home/jobs/*/runner.log", "home/runs/*", "home/worktrees/*", "home/worktrees/*/src/cart.js", "home/approvals/*",
	} {
		for name, end := range map[string]struct {
			signal syscall.Signal
			group  bool // as a terminal does
		}{
			"SIGINT": {syscall.SIGINT, true}, "SIGTERM": {syscall.SIGTERM, false}, "SIGHUP": {syscall.SIGHUP, true},
		} {
			late := moment == "home/approvals/*" // ten seconds of the script
			if late != (end.signal == syscall.SIGHUP) {
				continue // ended in the same way as by SIGINT
			}
			if odd := number%2 == 1; !late && !testkit.IsLong() && odd != (end.signal == syscall.SIGTERM) {
				continue // a short run tries one signal at each moment
			}
			t.Run(name+" at "+strings.ReplaceAll(moment, "/", " "), func(t *testing.T) {
				t.Parallel()
				s := showDemo(t)
				go func() { _, _ = io.Copy(io.Discard, s.output) }() // ends with the demo
				s.waitFor(t, moment)
				pid := s.cmd.Process.Pid
				if end.group {
					pid = -pid
				}
				if err := syscall.Kill(pid, end.signal); err != nil {
					t.Fatal(err)
				}
				if err := s.cmd.Wait(); err != nil || s.errs.Len() > 0 {
					t.Errorf("it ended with %v: %s", err, s.errs.String())
				}
				s.gone(t)
			})
		}
	}
}

// A terminal's Ctrl-C ends the demo's commands, too, and one of them may end before the demo
// has heard of it.
func TestDSK_06_ADemoWhoseCommandIsEndedFirstEndsInOrder(t *testing.T) {
	bin := shortDir(t)
	script := "#!/bin/sh\n(sleep 0.1; kill -INT $PPID) >/dev/null 2>&1 &\nexit 130\n"
	if err := testkit.WriteProgram(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := showDemo(t)
	_, _ = io.Copy(io.Discard, s.output) // until it has ended
	if err := s.cmd.Wait(); err != nil || s.errs.Len() > 0 {
		t.Errorf("it ended with %v: %s", err, s.errs.String())
	}
	s.gone(t)
}

// Another program that serves a session in the demo's home cannot keep it: it starts no
// broker there, neither when the demo has ended nor when it was killed.
func TestDSK_06_NobodyElseKeepsADemosHome(t *testing.T) {
	for name, tt := range map[string]struct {
		signal syscall.Signal
		sign   string
	}{"ended": {syscall.SIGTERM, "peers refused"}, "killed": {syscall.SIGKILL, "it is the home of a demo, which has ended"}} {
		t.Run(name, func(t *testing.T) {
			s := showDemo(t, "--rounds", "1")
			lines := bufio.NewReader(s.output)
			if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "bridge: ready ") {
				t.Fatalf("%q, %v", line, err)
			}
			home := filepath.Dir(s.waitFor(t, "home/bridge.db"))
			ask, end := mcpSession(t, home)
			if answer := ask("peers"); !strings.Contains(answer, `"web"`) {
				t.Errorf("while the demo runs: %s", answer)
			}
			if err := s.cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, lines) // until it has ended
			if err := s.cmd.Wait(); tt.signal == syscall.SIGTERM && err != nil {
				t.Errorf("it ended with %v: %s", err, s.errs.String())
			}
			if answer := ask("peers"); !strings.Contains(answer, tt.sign) {
				t.Errorf("after its end: %s", answer)
			}
			for _, command := range s.processes(t) {
				if strings.Contains(command, " serve ") {
					t.Errorf("%q was started", command)
				}
			}
			end()
			if tt.signal == syscall.SIGTERM {
				s.gone(t)
			}
		})
	}
}

func TestDSK_06_ADemoThatNobodyReadsEnds(t *testing.T) {
	s := showDemo(t, "--rounds", "1")
	if err := s.output.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); exitCode(err) != 1 || !strings.Contains(s.errs.String(), "the output of the demo is closed") {
		t.Errorf("it ended with %v: %s", err, s.errs.String())
	}
	s.gone(t)
}
