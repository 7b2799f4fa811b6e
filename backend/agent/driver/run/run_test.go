package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// A job's environment is what every program needs, what the owner lists, and its
// marks, which nobody overrides.
func TestJOB_13_TheEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("HOME", "/home")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of-the-runner")
	t.Setenv("BRIDGE_HOME", "of-the-runner")
	s := job.Spec{Job: "claude-job-1", Token: "the-secret", StateFolder: "/state"}
	s.Env = []string{"LISTED=1", "BRIDGE_JOB=other", "BRIDGE_JOB_TOKEN=other", "TMPDIR=/elsewhere", "OF_THE_KIND=other", "broken", "=broken"}
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

// Of the owner's environment a job gets all but what is about other processes, or would
// say in Bridge's place what the job may do.
func TestJOB_28_WhatIsWithheld(t *testing.T) {
	environ := []string{
		"ANTHROPIC_API_KEY=canary", "HTTPS_PROXY=http://127.0.0.1:1", "SSH_AUTH_SOCK=/agent", "PATH=/bin", "EMPTY=", "MY_CLAUDECODE=1", "CODEX_HOME=/c", "OPENCODE_CONFIG=/o",
		"CLAUDE_CODE_USE_BEDROCK=1", "BRIDGED=1",
	}
	gone := []string{
		"BRIDGE_HOME", "BRIDGE_JOB_TOKEN", "TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "SHLVL", "_", "CLAUDECODE", "CLAUDE_PID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID",
		"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_TMPDIR", "CODEX_CI", "CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED",
		"OPENCODE", "OPENCODE_SERVER_PASSWORD", "OPENCODE_CONFIG_CONTENT", "NOTIFY_SOCKET", "LISTEN_FDS", "INVOCATION_ID",
	}
	of := map[string]bridge.AgentKind{"CLAUDE_CODE_PLUGIN_DIRS": bridge.Claude, "OPENCODE_PERMISSION": bridge.OpenCode}
	all := slices.Clone(environ)
	for _, name := range gone {
		all = append(all, name+"=canary")
	}
	for name := range of {
		all = append(all, name+"=canary")
	}
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode, bridge.Antigravity, job.ACP, ""} {
		want := slices.Clone(environ)
		for name, only := range of {
			if only != kind {
				want = append(want, name+"=canary")
			}
		}
		got := Inherited(kind, all)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q gets %q, want %q", kind, got, want)
		}
	}
}

// No variable that points git to a repository reaches a job: neither from the owner's
// environment, nor from the settings or from whoever asks for the job.
func TestRWM_06_NoVariableOfARepositoryReachesAJob(t *testing.T) {
	names := []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG_KEY_0", "GIT_CEILING_DIRECTORIES"}
	if local, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--local-env-vars").Output(); err == nil {
		names = append(names, strings.Fields(string(local))...)
	} else {
		t.Logf("git does not name its variables: %v", err)
	}
	environ := []string{"GIT_AUTHOR_NAME=ann", "GIT_SSH_COMMAND=ssh"}
	kept := len(environ)
	for _, name := range names {
		environ = append(environ, name+"=/elsewhere")
		t.Setenv(name, "/elsewhere")
	}
	if got := Inherited(bridge.Claude, environ); !slices.Equal(got, environ[:kept]) {
		t.Errorf("a job inherits %q, want %q", got, environ[:kept])
	}
	env := Environment(job.Spec{Job: "claude-job-1", StateFolder: "/state", Env: environ}, environ...)
	for _, name := range names {
		if env.Get(name) != "" {
			t.Errorf("a job has %s=%s", name, env.Get(name))
		}
	}
	if env.Get("GIT_AUTHOR_NAME") != "ann" {
		t.Error("a job has no GIT_AUTHOR_NAME")
	}
}

// What the owner's config takes away is gone, also of what every program needs.
func TestJOB_28_AVariableCanBeTakenAway(t *testing.T) {
	t.Setenv("LANG", "of-the-runner")
	env := Environment(job.Spec{Job: "claude-job-1", StateFolder: "/state", Env: []string{"KEY=1", "LANG", "KEY", "NEVER_THERE"}})
	for _, name := range []string{"LANG", "KEY", "NEVER_THERE"} {
		if pair, has := env[name]; has {
			t.Errorf("it has %q", pair)
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
		{name: "SEC-03 ask under it", kind: bridge.OpenCode, spec: job.Spec{Access: job.AccessAsk, Sandbox: []string{"/bridge"}}, want: job.FloorSandbox},
		{name: "ask without", kind: bridge.OpenCode, spec: job.Spec{Access: job.AccessAsk}, want: job.FloorNone},
		{name: "SEC-04 a paired PC's under it", kind: bridge.Claude, spec: job.Spec{Access: job.AccessAsk, Unlinked: true, Sandbox: []string{"/bridge"}}, want: job.FloorSandbox},
		{name: "SEC-04 a paired PC's ask without", kind: bridge.Claude, spec: job.Spec{Access: job.AccessAsk, Unlinked: true}, code: bridge.Denied},
		{name: "SEC-04 a paired PC's edit without", kind: bridge.Claude, spec: job.Spec{Access: job.AccessEdit, Unlinked: true}, code: bridge.Denied},
		{name: "SEC-04 a paired PC's where the owner allows less", kind: bridge.Claude, spec: job.Spec{Access: job.AccessRead, Unlinked: true, ToolLevelOnly: true}, code: bridge.Denied},
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

// A line over the limit that is no JSON is left out, and told of; the next one is read.
func TestReadLinesPassesOverWhatIsTooLong(t *testing.T) {
	var got []string
	ReadLines(strings.NewReader("one\n"+strings.Repeat("x", 200_000)+"\n\n  two \nthree"), 100_000, func(line Line) { got = append(got, string(line.Text)) })
	if strings.Join(got, "|") != "one||two|three" {
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

// What is told of a CLI's standard error is its end, as text, wherever that is cut.
func TestJOB_15_TheEndOfStandardErrorIsText(t *testing.T) {
	for name, written := range map[string][]string{
		"little":               {"its last words"},
		"no text":              {"\xff\xfe its last words"},
		"cut in a letter":      {strings.Repeat("é", maxStderr), "its last words."},
		"cut in another":       {strings.Repeat("é", maxStderr), "its last words"},
		"letters in two parts": {"\xc3", "\xa9 its last words"},
	} {
		var kept tail
		for _, part := range written {
			if n, err := kept.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%s: Write = %d, %v", name, n, err)
			}
		}
		// What stands for a broken letter is three bytes long.
		if got := kept.String(); !utf8.ValidString(got) || len(got) > maxStderr+2 || !strings.Contains(got, "its last words") {
			t.Errorf("%s: %d bytes are told: %q", name, len(got), got[max(0, len(got)-100):])
		}
	}
}
