package store

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// TestMain plays a part in another process when the environment asks for it.
func TestMain(m *testing.M) {
	part, ok := helperParts[os.Getenv(helperEnv)]
	if !ok {
		// Every action of the model is a synced commit; -rapid.checks asks for more.
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m)
		return
	}
	if err := part(context.Background(), os.Getenv(helperArgs)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var helperParts = map[string]func(ctx context.Context, args string) error{
	"index": indexUntilKilled,
}

// helperEnv makes the test binary play a part in another process: its value is
// the part, helperArgs the rest.
const helperEnv, helperArgs = "BRIDGE_STORE_HELPER", "BRIDGE_STORE_HELPER_ARGS"

// child is this test binary in another process.
type child struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
}

func helper(t testing.TB, part, args string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+part, helperArgs+"="+args)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // stays open as long as the parent lives
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	return c
}

// line returns the next line the child prints, "" when there is none.
func (c *child) line(t testing.TB) string {
	t.Helper()
	if !c.lines.Scan() {
		return ""
	}
	return c.lines.Text()
}

// ask sends the child an empty line.
func (c *child) ask(t testing.TB) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil {
		t.Fatal(err)
	}
}

// kill ends the child and returns what it had printed before that nobody read.
func (c *child) kill(t testing.TB) (rest []string) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for c.lines.Scan() { // to the end: Wait closes the pipe, in the middle of a line
		rest = append(rest, c.lines.Text())
	}
	_ = c.cmd.Wait() // it reports the kill
	return rest
}
