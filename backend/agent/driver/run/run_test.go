package run

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/job"
)

// A job's environment is what every program needs, what the owner lists, and its
// marks, which nobody overrides.
func TestJOB_13_TheEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("HOME", "/home")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of-the-runner")
	t.Setenv("BRIDGE_HOME", "of-the-runner")
	s := job.Spec{Job: "claude-job-1", Token: "the-secret", StateFolder: "/state"}
	s.Env = []string{"LISTED=1", "BRIDGE_JOB=other", "BRIDGE_JOB_TOKEN=other", "TMPDIR=/elsewhere", "broken", "=broken"}
	env := Environment(s, "OF_THE_KIND=1")
	for name, want := range map[string]string{
		"HOME": "/home", "LISTED": "1", "OF_THE_KIND": "1", "BRIDGE_JOB": "claude-job-1", "BRIDGE_JOB_TOKEN": "the-secret",
		"TMPDIR": Temporary(s), "AWS_SECRET_ACCESS_KEY": "", "BRIDGE_HOME": "",
	} {
		if got := env.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestJOB_14_WhoMayGoWithoutAFloor(t *testing.T) {
	tests := []struct {
		name string
		kind bridge.AgentKind
		spec job.Spec
		want job.Floor
		code bridge.Code
	}{
		{name: "read under it", kind: bridge.Claude, spec: job.Spec{Access: job.AccessRead, Sandbox: []string{"/bridge"}}, want: job.FloorSandbox},
		{name: "edit under it", kind: bridge.OpenCode, spec: job.Spec{Access: job.AccessEdit, Sandbox: []string{"/bridge"}}, want: job.FloorSandbox},
		{name: "ask", kind: bridge.OpenCode, spec: job.Spec{Access: job.AccessAsk, Sandbox: []string{"/bridge"}}, want: job.FloorNone},
		{name: "read without", kind: bridge.Claude, spec: job.Spec{Access: job.AccessRead}, code: bridge.Denied},
		{name: "opencode's edit without", kind: bridge.OpenCode, spec: job.Spec{Access: job.AccessEdit}, code: bridge.Denied},
		{name: "claude's edit without", kind: bridge.Claude, spec: job.Spec{Access: job.AccessEdit}, want: job.FloorNone},
		{name: "read where the owner allows it", kind: bridge.Claude, spec: job.Spec{Access: job.AccessRead, ToolLevelOnly: true}, want: job.FloorNone},
	}
	for _, tt := range tests {
		tt.spec.Kind = tt.kind
		if floor, err := FloorOf(tt.spec); floor != tt.want || bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %q, %v; want %q, %q", tt.name, floor, err, tt.want, tt.code)
		}
	}
}

// A line over the limit is left out; the next one is read.
func TestReadLinesPassesOverWhatIsTooLong(t *testing.T) {
	var got []string
	ReadLines(strings.NewReader("one\n"+strings.Repeat("x", 200_000)+"\n\n  two \nthree"), 100_000, func(line []byte) { got = append(got, string(line)) })
	if strings.Join(got, "|") != "one|two|three" {
		t.Errorf("lines = %q", got)
	}
}

// An answer that does not come is not known, and one after the end was not asked.
func TestCallsThatAreNotAnswered(t *testing.T) {
	p := &Process{ended: make(chan struct{}), writing: make(chan struct{}, 1)}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = write
	defer read.Close() //nolint:errcheck // only read
	var c Calls
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // it is asked, and whoever asks waits no longer
		_, _ = read.Read(make([]byte, 100))
		cancel()
	}()
	if _, err := c.Call(ctx, p, func(string) any { return "x" }); !errors.Is(err, job.ErrUnconfirmed) {
		t.Errorf("without an answer: %v, want ErrUnconfirmed", err)
	}
	asked := make(chan struct{})
	go func() {
		<-asked
		c.End()
	}()
	if _, err := c.Call(t.Context(), p, func(string) any { close(asked); return "x" }); !errors.Is(err, job.ErrUnconfirmed) && !errors.Is(err, job.ErrEnded) {
		t.Errorf("when the stream ends: %v, want ErrUnconfirmed", err)
	}
	if _, err := c.Call(t.Context(), p, func(string) any { return "x" }); !errors.Is(err, job.ErrEnded) {
		t.Errorf("after the end: %v, want ErrEnded", err)
	}
	read.Close() //nolint:errcheck // that is the case
	if err := p.Send(t.Context(), []byte("x")); !errors.Is(err, job.ErrEnded) {
		t.Errorf("to a process that reads no more: %v, want ErrEnded", err)
	}
}
