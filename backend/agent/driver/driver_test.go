package driver

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

func spec(access job.Access) job.Spec {
	return job.Spec{
		Job: "claude-job-1", Token: "the-secret", Kind: bridge.Claude, Command: []string{"/cli"}, Folder: "/folder", StateFolder: "/state",
		Prompt: job.Message{ID: "1", Text: "the-prompt"}, Access: access, Model: "--dangerously-skip-permissions", Note: "-n", Title: "$(touch x)",
		Effort: "high", Bridge: job.MCPServer{Command: "/bridge", Args: []string{"mcp"}, Env: []string{"KEY=the-secret"}},
		Hooks: json.RawMessage(`{"Stop":[]}`),
	}
}

// Whatever the requester writes stays the value of one flag, and a command line,
// which everybody on the machine can read, holds nothing secret.
func TestJOB_13_ClaudesCommandLineHoldsValuesOnly(t *testing.T) {
	modes := map[job.Access]string{job.AccessRead: "dontAsk", job.AccessAsk: "manual", job.AccessEdit: "acceptEdits"}
	for access, mode := range modes {
		argv := (&claude{session: "s"}).argv(spec(access), job.FloorNone)
		line := strings.Join(argv, "\n") + "\n"
		for _, want := range []string{
			"--permission-mode=" + mode, "--model=--dangerously-skip-permissions", "--append-system-prompt=-n",
			"--strict-mcp-config", "--setting-sources=", "--permission-prompt-tool=stdio", "--session-id=s", "--allowedTools=mcp__bridge",
			`--settings={"hooks":{"Stop":[]}}`,
		} {
			if !strings.Contains(line, "\n"+want+"\n") {
				t.Errorf("%s: no argument %s in\n%s", access, want, line)
			}
		}
		if strings.Contains(line, "the-secret") || strings.Contains(line, "the-prompt") || strings.Contains(line, "$(touch x)") || strings.Contains(line, "\n--dangerously") {
			t.Errorf("%s: the command line says too much:\n%s", access, line)
		}
	}
}

// TestRWM_22_ClaudeAsksAboutNoCommandAboveTheSandbox: what other kinds are not asked about,
// claude is not either, where the sandbox is below it and it edits.
func TestRWM_22_ClaudeAsksAboutNoCommandAboveTheSandbox(t *testing.T) {
	for _, access := range []job.Access{job.AccessRead, job.AccessAsk, job.AccessEdit} {
		for _, floor := range []job.Floor{job.FloorNone, job.FloorSandbox} {
			for _, server := range []string{"/bridge", ""} {
				s := spec(access)
				s.Bridge.Command = server
				var want []string
				if server != "" {
					want = append(want, "mcp__bridge")
				}
				if access == job.AccessEdit && floor == job.FloorSandbox {
					want = append(want, "Bash")
				}
				var got []string
				for _, argument := range (&claude{session: "s"}).argv(s, floor) {
					if tools, is := strings.CutPrefix(argument, "--allowedTools="); is {
						got = strings.Split(tools, ",")
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s, server %q: allowed are %q, want %q", access, floor, server, got, want)
				}
			}
		}
	}
}

// TestSEC_13_ClaudeReadsItsTitleOnItsInput: neither the title, which may be the first line of
// the prompt, nor the prompt itself is on the command line.
func TestSEC_13_ClaudeReadsItsTitleOnItsInput(t *testing.T) {
	for _, title := range []string{"", "The staging password is hunter2"} {
		folder := t.TempDir()
		said, called := filepath.Join(folder, "said"), filepath.Join(folder, "called")
		s := spec(job.AccessEdit)
		s.Command = []string{"/bin/sh", "-c", `printf '%s\n' "$@" > ` + called + `; cat > ` + said, "sh"}
		s.Title, s.Folder, s.StateFolder = title, folder, folder
		started, err := startClaude(s)
		if err != nil {
			t.Skip("no shell on this system:", err)
		}
		go func() {
			for range started.Events() { //nolint:revive // they are not of interest
			}
		}()
		want := []string{`"the-prompt"`}
		if title != "" {
			want = append(want, `"subtype":"rename_session"`, `"title":"`+title+`"`)
		}
		deadline := time.Now().Add(testkit.Patience)
		for missing := "all"; missing != ""; time.Sleep(5 * time.Millisecond) {
			text, _ := os.ReadFile(said) // it may not be there so far
			missing = ""
			for _, words := range want {
				if !strings.Contains(string(text), words) {
					missing = words
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("claude reads %q, and not %s", text, missing)
			}
		}
		argv, err := os.ReadFile(called)
		if err != nil || strings.Contains(string(argv), "hunter2") || strings.Contains(string(argv), "the-prompt") || strings.Contains(string(argv), "--name") {
			t.Errorf("the command line is %s, %v", argv, err)
		}
		ended, end := context.WithCancel(t.Context())
		end() // it answers no request
		if err := started.Close(ended); err != nil {
			t.Error(err)
		}
		if text, _ := os.ReadFile(said); title == "" && strings.Contains(string(text), "rename_session") {
			t.Errorf("without a title claude reads %s", text)
		}
	}
}

// Without a floor a reading opencode has no shell at all; one that asks has no children,
// which would not ask.
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
		access                 job.Access
		floor                  job.Floor
		bash, edit, read, task string
	}{
		{job.AccessRead, job.FloorNone, "deny", "deny", "allow", "deny"},
		{job.AccessRead, job.FloorSandbox, "allow", "deny", "allow", "deny"},
		{job.AccessAsk, job.FloorNone, "ask", "ask", "ask", "deny"},
		{job.AccessEdit, job.FloorSandbox, "allow", "allow", "allow", "allow"},
	}
	for _, tt := range tests {
		rules := openCodeRules(tt.access, tt.floor)
		if bash, edit, read := last(rules, "bash"), last(rules, "edit"), last(rules, "read"); bash != tt.bash || edit != tt.edit || read != tt.read {
			t.Errorf("%s on %s: bash %s, edit %s, read %s; want %+v", tt.access, tt.floor, bash, edit, read, tt)
		}
		if task := last(rules, "task"); task != tt.task {
			t.Errorf("%s on %s: a child %s, want %s", tt.access, tt.floor, task, tt.task)
		}
		if out := last(rules, "external_directory"); out == "allow" {
			t.Errorf("%s on %s: outside of the folder is allowed", tt.access, tt.floor)
		}
	}
}

// The commands of a reading opencode have a floor of their own, which opencode itself
// cannot have: it is in the one shell that opencode is told of, where no job writes.
func TestJOB_14_OpenCodesCommandsReachNoNetworkUnderRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no floor")
	}
	at := spec(job.AccessRead)
	at.StateFolder, at.Sandbox = filepath.Join(t.TempDir(), "it's a job"), []string{"/bin/echo", "sandbox"}
	t.Setenv("PATH", "relative:/nowhere:/bin:/usr/bin")
	for own, name := range map[string]string{"": "bash", "/bin/sh": "sh", "/usr/bin/fish": "bash", "sh": "bash", "/nowhere/zsh": "bash"} {
		t.Setenv("SHELL", own)
		shell, err := openCodeShell(at, job.FloorSandbox)
		if err != nil || filepath.Base(shell) != name || strings.HasPrefix(shell, run.Temporary(at)) {
			t.Errorf("with SHELL=%s it is %q, %v; want a %s outside of what it writes", own, shell, err, name)
			continue
		}
		said, err := exec.CommandContext(t.Context(), shell, "-c", "a  b").CombinedOutput()
		want := "sandbox --writable=" + run.Temporary(at) + " --no-network --keep-attributes -- /bin/" + name + " -c a  b\n"
		if err != nil || string(said) != want {
			t.Errorf("with SHELL=%s it runs %q, %v; want %q", own, said, err, want)
		}
	}
	for _, access := range []job.Access{job.AccessRead, job.AccessAsk, job.AccessEdit} {
		at.Access = access
		if shell, err := openCodeShell(at, job.FloorNone); shell != "" || err != nil {
			t.Errorf("%s without a floor has the shell %q, %v", access, shell, err)
		}
	}
}

// Commands of a job that writes have a floor inside opencode's, too: they write in the
// job's folder and none of opencode's state, and do not see its server's password.
func TestSEC_05_OpenCodesCommandsWriteNoneOfItsState(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no floor")
	}
	at := spec(job.AccessEdit)
	at.StateFolder, at.Folder, at.Writable, at.Sandbox = t.TempDir(), "/work", []string{"/work/.git"}, []string{"/bin/echo", "sandbox"}
	for _, access := range []job.Access{job.AccessAsk, job.AccessEdit} {
		at.Access = access
		shell, err := openCodeShell(at, job.FloorSandbox)
		if err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), shell, "-c", "x").CombinedOutput()
		want := "sandbox --writable=" + run.Temporary(at) + " --writable=/work --writable=/work/.git --own-devices -- /"
		if err != nil || !strings.HasPrefix(string(said), want) {
			t.Errorf("under %s it runs %q, %v; want %q", access, said, err, want)
		}
		at.Sandbox = []string{"/bin/sh", "-c", "echo \"password=$OPENCODE_SERVER_PASSWORD\""}
		if shell, err = openCodeShell(at, job.FloorSandbox); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), shell)
		cmd.Env = append(os.Environ(), "OPENCODE_SERVER_PASSWORD=secret")
		if said, err := cmd.CombinedOutput(); err != nil || string(said) != "password=\n" {
			t.Errorf("under %s a command sees %q, %v", access, said, err)
		}
		at.Sandbox = []string{"/bin/echo", "sandbox"}
	}
}

// Claude's verdict never allows anything for later, and gives the input back as
// it came.
func TestJOB_07_ClaudesVerdict(t *testing.T) {
	question := job.Question{Kind: job.QuestionTool, Input: json.RawMessage(`{"n":12345678901234567890,"s":"<&>"}`)}
	got := run.AsJSON(claudeVerdict(question, job.Answer{Allow: true}))
	if !strings.Contains(got, "12345678901234567890") || strings.Contains(got, "updatedPermissions") {
		t.Errorf("verdict = %s", got)
	}
	question = job.Question{Kind: job.QuestionChoice, Input: json.RawMessage(`{"questions":[]}`), Choices: []job.Choice{{Question: "Which?"}}}
	if got := run.AsJSON(claudeVerdict(question, job.Answer{Allow: true, Choices: [][]string{{"A", "B"}}})); !strings.Contains(got, `"answers":{"Which?":"A, B"}`) {
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
	if _, err := For("other"); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("a kind without a driver: %v", err)
	}
}

// What codex's own sandbox holds is what the job may do: nothing but its own and the
// temporary folder is written, and there is no network.
func TestJOB_14_WhatACodexTurnMayDo(t *testing.T) {
	tests := map[job.Access]struct{ policy, sandbox string }{
		job.AccessRead: {"never", `{"type":"readOnly"}`},
		job.AccessAsk:  {"untrusted", `{"excludeSlashTmp":true,"excludeTmpdirEnvVar":true,"networkAccess":false,"type":"workspaceWrite","writableRoots":["TMP","/also"]}`},
		job.AccessEdit: {"on-request", `{"excludeSlashTmp":true,"excludeTmpdirEnvVar":true,"networkAccess":false,"type":"workspaceWrite","writableRoots":["TMP","/also"]}`},
	}
	for access, want := range tests {
		s := spec(access)
		s.Writable = []string{"/also"}
		c := &codex{spec: s}
		sandbox := strings.Replace(want.sandbox, "TMP", filepath.ToSlash(run.Temporary(s)), 1)
		if got := strings.ReplaceAll(run.AsJSON(c.sandboxPolicy()), `\\`, "/"); c.policy() != want.policy || got != sandbox {
			t.Errorf("%s: %s in %s, want %s in %s", access, c.policy(), got, want.policy, sandbox)
		}
	}
}

// Only a floor lets agy go without its own rules.
func TestJOB_13_AntigravityKeepsItsRulesWithoutAFloor(t *testing.T) {
	tests := []struct {
		access job.Access
		floor  job.Floor
		free   bool
	}{
		{job.AccessRead, job.FloorSandbox, false},
		{job.AccessRead, job.FloorNone, false},
		{job.AccessEdit, job.FloorNone, false},
		{job.AccessEdit, job.FloorSandbox, true},
	}
	for _, tt := range tests {
		if free := slices.Contains(antigravityArgv(spec(tt.access), tt.floor), "--dangerously-skip-permissions"); free != tt.free {
			t.Errorf("%s on %s: without rules is %v, want %v", tt.access, tt.floor, free, tt.free)
		}
	}
}
