package driver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/job"
)

func spec(access job.Access) job.Spec {
	return job.Spec{
		Job: "claude-job-1", Token: "the-secret", Kind: bridge.Claude, Command: []string{"/cli"}, Folder: "/folder", StateFolder: "/state",
		Prompt: job.Message{ID: "1", Text: "the-prompt"}, Access: access, Model: "--dangerously-skip-permissions", Note: "-n", Title: "$(touch x)",
		Effort: "high", Bridge: job.MCPServer{Command: "/bridge", Args: []string{"mcp"}, Env: []string{"KEY=the-secret"}},
	}
}

// Whatever the requester writes stays the value of one flag, and a command line,
// which everybody on the machine can read, holds nothing secret.
func TestJOB_13_ClaudesCommandLineHoldsValuesOnly(t *testing.T) {
	modes := map[job.Access]string{job.AccessRead: "dontAsk", job.AccessAsk: "manual", job.AccessEdit: "acceptEdits"}
	for access, mode := range modes {
		argv := (&claude{session: "s"}).argv(spec(access))
		line := strings.Join(argv, "\n") + "\n"
		for _, want := range []string{
			"--permission-mode=" + mode, "--model=--dangerously-skip-permissions", "--append-system-prompt=-n", "--name=$(touch x)",
			"--strict-mcp-config", "--setting-sources=", "--permission-prompt-tool=stdio", "--session-id=s", "--allowedTools=mcp__bridge",
		} {
			if !strings.Contains(line, "\n"+want+"\n") {
				t.Errorf("%s: no argument %s in\n%s", access, want, line)
			}
		}
		if strings.Contains(line, "the-secret") || strings.Contains(line, "the-prompt") || strings.Contains(line, "\n--dangerously") {
			t.Errorf("%s: the command line says too much:\n%s", access, line)
		}
	}
}

// A job's environment is what every program needs, what the owner lists, and its
// marks, which nobody overrides.
func TestJOB_13_TheEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("HOME", "/home")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of-the-runner")
	t.Setenv("BRIDGE_HOME", "of-the-runner")
	s := spec(job.AccessAsk)
	s.Env = []string{"LISTED=1", "BRIDGE_JOB=other", "BRIDGE_JOB_TOKEN=other", "TMPDIR=/elsewhere", "broken", "=broken"}
	env := environment(s, "OF_THE_KIND=1")
	for name, want := range map[string]string{
		"HOME": "/home", "LISTED": "1", "OF_THE_KIND": "1", "BRIDGE_JOB": "claude-job-1", "BRIDGE_JOB_TOKEN": "the-secret",
		"TMPDIR": temporary(s), "AWS_SECRET_ACCESS_KEY": "", "BRIDGE_HOME": "",
	} {
		if got := env.get(name); got != want {
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
		if floor, err := floorOf(tt.spec); floor != tt.want || bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %q, %v; want %q, %q", tt.name, floor, err, tt.want, tt.code)
		}
	}
}

// Without a floor a reading opencode has no shell at all.
func TestJOB_13_OpenCodeReadsWithoutAShell(t *testing.T) {
	last := func(rules []openCodeRule, permission string) string {
		action := ""
		for _, rule := range rules {
			if rule.Permission == permission || rule.Permission == "*" {
				action = rule.Action
			}
		}
		return action
	}
	tests := []struct {
		access           job.Access
		floor            job.Floor
		bash, edit, read string
	}{
		{job.AccessRead, job.FloorNone, "deny", "deny", "allow"},
		{job.AccessRead, job.FloorSandbox, "allow", "deny", "allow"},
		{job.AccessAsk, job.FloorNone, "ask", "ask", "ask"},
		{job.AccessEdit, job.FloorSandbox, "allow", "allow", "allow"},
	}
	for _, tt := range tests {
		rules := openCodeRules(tt.access, tt.floor)
		if bash, edit, read := last(rules, "bash"), last(rules, "edit"), last(rules, "read"); bash != tt.bash || edit != tt.edit || read != tt.read {
			t.Errorf("%s on %s: bash %s, edit %s, read %s; want %+v", tt.access, tt.floor, bash, edit, read, tt)
		}
		if out := last(rules, "external_directory"); out == "allow" {
			t.Errorf("%s on %s: outside of the folder is allowed", tt.access, tt.floor)
		}
	}
}

// Claude's verdict never allows anything for later, and gives the input back as
// it came.
func TestJOB_07_ClaudesVerdict(t *testing.T) {
	question := job.Question{Kind: job.QuestionTool, Input: json.RawMessage(`{"n":12345678901234567890,"s":"<&>"}`)}
	got := asJSON(claudeVerdict(question, job.Answer{Allow: true}))
	if !strings.Contains(got, "12345678901234567890") || strings.Contains(got, "updatedPermissions") {
		t.Errorf("verdict = %s", got)
	}
	question = job.Question{Kind: job.QuestionChoice, Input: json.RawMessage(`{"questions":[]}`), Choices: []job.Choice{{Question: "Which?"}}}
	if got := asJSON(claudeVerdict(question, job.Answer{Allow: true, Choices: [][]string{{"A", "B"}}})); !strings.Contains(got, `"answers":{"Which?":"A, B"}`) {
		t.Errorf("choice = %s", got)
	}
	if got := claudeVerdict(question, job.Answer{})["message"]; got == "" {
		t.Error("a refusal without words")
	}
}

func TestJOB_16_CodexSaysWhenItsLimitIsOver(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 20, 0, 0, time.UTC)
	tests := map[string]time.Time{
		"You’ve hit your usage limit. Upgrade or try again at 7:18 AM.": time.Date(2026, 11, 22, 7, 18, 0, 0, time.UTC),
		"You’ve hit your usage limit. Try later, try again at 5:00 AM.": time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC),
		"limit; try again at Nov 24th, 2026 7:18 AM.":                   time.Date(2026, 11, 24, 7, 18, 0, 0, time.UTC),
		"limit; try again at Dec 1st, 2026 7:18 PM.":                    time.Date(2026, 12, 1, 19, 18, 0, 0, time.UTC),
		"You’ve hit your usage limit.":                                  {},
		"try again at some time":                                        {},
	}
	for message, want := range tests {
		if got := codexReset(message, now); !got.Equal(want) {
			t.Errorf("codexReset(%q) = %v, want %v", message, got, want)
		}
	}
}

// A line over the limit is left out; the next one is read.
func TestReadLinesPassesOverWhatIsTooLong(t *testing.T) {
	var got []string
	readLines(strings.NewReader("one\n"+strings.Repeat("x", 200_000)+"\n\n  two \nthree"), 100_000, func(line []byte) { got = append(got, string(line)) })
	if strings.Join(got, "|") != "one|two|three" {
		t.Errorf("lines = %q", got)
	}
}

// An answer that does not come is not known, and one after the end was not asked.
func TestCallsThatAreNotAnswered(t *testing.T) {
	p := &process{ended: make(chan struct{}), writing: make(chan struct{}, 1)}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = write
	defer read.Close() //nolint:errcheck // only read
	var c calls
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.call(ctx, p, func(string) any { return "x" }); !errors.Is(err, job.ErrUnconfirmed) {
		t.Errorf("without an answer: %v, want ErrUnconfirmed", err)
	}
	asked := make(chan struct{})
	go func() {
		<-asked
		c.end()
	}()
	if _, err := c.call(t.Context(), p, func(string) any { close(asked); return "x" }); !errors.Is(err, job.ErrUnconfirmed) && !errors.Is(err, job.ErrEnded) {
		t.Errorf("when the stream ends: %v, want ErrUnconfirmed", err)
	}
	if _, err := c.call(t.Context(), p, func(string) any { return "x" }); !errors.Is(err, job.ErrEnded) {
		t.Errorf("after the end: %v, want ErrEnded", err)
	}
	read.Close() //nolint:errcheck // that is the case
	if err := p.send(t.Context(), []byte("x")); !errors.Is(err, job.ErrEnded) {
		t.Errorf("to a process that reads no more: %v, want ErrEnded", err)
	}
}

// A spec that cannot be started starts nothing.
func TestStartRefuses(t *testing.T) {
	good := spec(job.AccessAsk)
	for name, change := range map[string]func(*job.Spec){
		"no name":           func(s *job.Spec) { s.Job = "" },
		"no program":        func(s *job.Spec) { s.Command = nil },
		"a program by PATH": func(s *job.Spec) { s.Command = []string{"claude"} },
		"a relative folder": func(s *job.Spec) { s.Folder = "." },
		"no prompt":         func(s *job.Spec) { s.Prompt.Text = " \n" },
		"no access":         func(s *job.Spec) { s.Access = "" },
	} {
		bad := good
		change(&bad)
		d, err := For(bridge.Claude)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Start(t.Context(), bad); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%s: %v, want it to be invalid", name, err)
		}
	}
	if _, err := For(bridge.Antigravity); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("a kind without a driver: %v", err)
	}
}
