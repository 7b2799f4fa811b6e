package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// builtTidy is the program that ends what tests leave.
func builtTidy(t *testing.T) string {
	t.Helper()
	tidy := filepath.Join(t.TempDir(), "tidy")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tidy, "./tidy").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tidy
}

// What a package's tests leave running makes them fail, by name, and is ended; no other
// try mends it. What ends by itself soon is no matter.
func TestProcessesThatAreLeftBehindAreNamed(t *testing.T) {
	tidy := builtTidy(t)
	for name, tt := range map[string]struct{ start, grace, left string }{
		"its child":                {`"sleep", "6000.PID1"`, "10ms", "sleep 6000.PID1"},
		"one whose parent is gone": {`"sh", "-c", "sleep 6000.PID2 & exit"`, "10ms", "sleep 6000.PID2"},
		"in a session of its own":  {`"sh", "-c", "setsid sleep 6000.PID3 & exit"`, "1s", "sleep 6000.PID3"},
		"one that is about to end": {`"sh", "-c", "sleep 0.1 & exit"`, "1m", ""},
		"one that is waited for":   {`"true"`, "1m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			unique := strings.NewReplacer("PID", strconv.Itoa(os.Getpid()))
			tt.start, tt.left = unique.Replace(tt.start), unique.Replace(tt.left)
			var output bytes.Buffer
			p := project{root: t.TempDir(), output: &output, notes: &notes{}, tidy: tidy + " -grace=" + tt.grace}
			code := "package a\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n\tif err := exec.Command(" + tt.start + ").Start(); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n"
			for file, text := range map[string]string{"go.mod": "module bridge\n\ngo 1.25\n", "a_test.go": code} {
				if err := os.WriteFile(filepath.Join(p.root, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := p.goTest(t.Context(), 2, noCgo, "-count=1", ".")
			if (err == nil) != (tt.left == "") || len(p.notes.flaky) > 0 {
				t.Fatalf("goTest = %v, flaky: %v\n%s", err, named(p.notes.flaky), &output)
			}
			if tt.left == "" {
				return
			}
			if f := p.notes.failures; len(f) != 1 || !f[0].final || !strings.Contains(f[0].output, "left behind: ") || !strings.Contains(f[0].output, tt.left) {
				t.Errorf("it failed with %+v\n%s", f, &output)
			}
			if found, _ := exec.CommandContext(t.Context(), "pgrep", "-xf", tt.left).Output(); len(found) > 0 {
				t.Errorf("it runs on: %s", found)
			}
		})
	}
}

// A run that is ended leaves none of its tests running, nor what they started.
func TestTestsEndWithTheirRun(t *testing.T) {
	tidy := builtTidy(t)
	pipe := func() (read, written *os.File) {
		t.Helper()
		read, written, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(read.Close(), written.Close()) }) // they may be closed
		return read, written
	}
	says, output := pipe()
	lives, file := pipe() // it ends when the last process that holds it has ended
	run := exec.CommandContext(t.Context(), "sh", "-c", tidy+" sh -c 'setsid sleep 6000 & echo begun; sleep 6000'; exit")
	run.Stdout, run.ExtraFiles = output, []*os.File{file}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(output.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(says).ReadString('\n'); line != "begun\n" {
		t.Fatalf("the tests say %q, %v", line, err)
	}
	// With the run ends who reads what its tests say.
	if err := errors.Join(says.Close(), run.Process.Kill(), lives.SetReadDeadline(time.Now().Add(testkit.Patience))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(lives); err != nil {
		t.Errorf("they run on: %v", err)
	}
	_ = run.Wait() // it was killed
}

// A run is ended by its keys, and as a service is.
func TestARunIsEndedByEitherSignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ctx, stop := untilEnded(t.Context())
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(testkit.Patience):
			t.Errorf("it runs on after %s", s)
		}
		stop()
	}
}

// Tests that yield, and what they start, let others have the processors first.
func TestTestsThatYieldAreNice(t *testing.T) {
	tidy := builtTidy(t)
	own, err := exec.CommandContext(t.Context(), "nice").Output()
	if err != nil {
		t.Fatal(err)
	}
	niceness, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		t.Fatal(err)
	}
	for more, yields := range map[int]bool{0: false, 5: true} {
		var output bytes.Buffer
		p := project{root: t.TempDir(), output: &output, notes: &notes{}, tidy: tidy}
		write(t, p.root, map[string]string{
			"go.mod":    "module bridge\n\ngo 1.25\n",
			"a_test.go": "package a\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n\tout, _ := exec.Command(\"nice\").Output()\n\tt.Errorf(\"nice %s\", out)\n}\n",
		})
		if err := p.goTestLanes(t.Context(), 0, []goCall{{env: noCgo, args: []string{"."}, yields: yields}}); err == nil {
			t.Error("goTestLanes = nil although a test failed")
		}
		want := fmt.Sprintf("nice %d\n", niceness+more)
		if !strings.Contains(output.String(), want) {
			t.Errorf("yields %t: the tests do not say %q:\n%s", yields, want, &output)
		}
	}
}
