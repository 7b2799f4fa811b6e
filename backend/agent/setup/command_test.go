package setup

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
)

// What a POSIX shell makes of a hook's line is what Bridge meant, and Bridge
// reads its own lines back.
func TestHookLinesSurviveTheShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune(`ab /\'"$ &;|*?~#!()<>`+"`\té\U0001f600")), 1, 12, -1)
		in := Input{Bridge: "/" + word.Draw(t, "binary"), BridgeHome: "/" + word.Draw(t, "home"), OS: "linux"}
		line := in.hookLine(bridge.Claude, "Stop")
		want := []string{in.Bridge, "hook", "claude", "Stop", "--home", in.BridgeHome}
		out, err := exec.CommandContext(context.Background(), "sh", "-c", "printf '%s\\0' "+line).Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); diff != "" {
			t.Fatalf("%s\n%s", line, diff)
		}
		if words, ok := splitLine(line); !ok || !cmp.Equal(words, want) {
			t.Fatalf("%s reads back as %q", line, words)
		}
	})
}

// Bridge reads back what it wrote for cmd.exe.
func TestLinesForCmdReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("ab/\\' %,é\U0001f600")), 1, 12, -1)
		want := []string{`C:\` + word.Draw(t, "program"), "codex", "Stop", "--home", word.Draw(t, "home")}
		line := cmdLine(want)
		if words := commandWords(map[string]any{"command": line}); !cmp.Equal(words, want) {
			t.Fatalf("%s reads back as %q, want %q", line, words, want)
		}
	})
}

func TestWindowsCommands(t *testing.T) {
	plain := Input{Bridge: `C:\bridge\bridge.exe`, OS: "windows"}
	spaced := Input{Bridge: `C:\Program Files\Bridge\bridge.exe`, BridgeHome: `D:\my home`, OS: "windows", CLI: agent.Found{Version: "2.1.300"}}
	lines := map[string]string{
		plain.hookLine(bridge.Claude, "Stop"):  `"C:/bridge/bridge.exe" hook claude Stop`,
		spaced.hookLine(bridge.Claude, "Stop"): `"C:/Program Files/Bridge/bridge.exe" hook claude Stop --home "D:/my home"`,
	}
	for got, want := range lines {
		if strings.ReplaceAll(got, `"C:/bridge/bridge.exe"`, `C:/bridge/bridge.exe`) != strings.ReplaceAll(want, `"C:/bridge/bridge.exe"`, `C:/bridge/bridge.exe`) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if hook := spaced.claudeHook("Stop", 5); hook.Args != nil {
		t.Errorf("an older claude gets a list: %+v", hook)
	}
	spaced.CLI.Version = claudeExecForm
	want := hookEntry{Type: "command", Command: spaced.Bridge, Args: []string{"hook", "claude", "Stop", "--home", `D:\my home`}, Timeout: 5}
	if diff := cmp.Diff(want, spaced.claudeHook("Stop", 5)); diff != "" {
		t.Error(diff)
	}
	spaced.Hook = `C:\Program Files\Bridge\bridge-hook.exe`
	want.Command, want.Args = spaced.Hook, []string{"claude", "Stop", "--home", `D:\my home`}
	if diff := cmp.Diff(want, spaced.claudeHook("Stop", 5)); diff != "" {
		t.Error(diff)
	}
	if got := spaced.hookLine(bridge.Claude, "Stop"); got != `"C:/Program Files/Bridge/bridge-hook.exe" claude Stop --home "D:/my home"` {
		t.Errorf("got %s", got)
	}
	if got := cmdLine([]string{`C:\bridge\bridge.exe`, "hook", "codex", "Stop"}); got != `C:\bridge\bridge.exe hook codex Stop` {
		t.Errorf("got %s", got)
	}
	if got := decodePowerShell(t, cmdLine([]string{`C:\it's here\bridge.exe`, "hook"})); got != `& 'C:\it''s here\bridge.exe' 'hook'` {
		t.Errorf("got %s", got)
	}
}

// On Windows a hook's line has the home with forward slashes, and names differ in case.
func TestPRF_07_OnWindowsAnEntryOfThisHomeIsFound(t *testing.T) {
	for _, tt := range []struct {
		os, home string
		own      bool
	}{
		{"windows", `D:\my home`, true}, {"windows", "D:/my home", true}, {"windows", `d:\My Home`, true}, {"windows", `D:\other`, false}, {"windows", "", false},
		{"linux", `D:\my home`, true}, {"linux", "D:/my home", false}, {"linux", `d:\My Home`, false},
	} {
		in := Input{Bridge: `C:\bridge\bridge.exe`, BridgeHome: `D:\my home`, OS: tt.os}
		entry := map[string]any{"command": in.Bridge, "args": []any{"mcp", "--agent", "claude", "--home", tt.home}}
		want := map[bool]verdict{true: ours, false: another}[tt.own]
		if got := in.verdict(entry); got != want {
			t.Errorf("on %s an entry of the home %q is %v, want %v", tt.os, tt.home, got, want)
		}
	}
	in := Input{Bridge: `C:\bridge\bridge.exe`, BridgeHome: `D:\my home`, OS: "windows"}
	hook := map[string]any{"hooks": []any{map[string]any{"type": "command", "command": in.hookLine(bridge.Claude, "Stop")}}}
	if got := in.verdict(hook); got != ours {
		t.Errorf("the hook that Bridge writes there is %v", got)
	}
}

func decodePowerShell(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	raw, err := base64.StdEncoding.DecodeString(words[len(words)-1])
	if err != nil {
		t.Fatal(err)
	}
	var units []uint16
	for i := 0; i+1 < len(raw); i += 2 {
		units = append(units, binary.LittleEndian.Uint16(raw[i:]))
	}
	return string(utf16.Decode(units))
}

func TestWhoseAnEntryIs(t *testing.T) {
	in := Input{BridgeHome: "/h"}
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	group := func(commands ...string) any {
		var hooks []any
		for _, command := range commands {
			hooks = append(hooks, object("type", "command", "command", command))
		}
		return object("hooks", hooks)
	}
	tests := []struct {
		name  string
		entry any
		want  verdict
	}{
		{"server of ours", object("command", "/x y/bridge", "args", []any{"mcp", "--agent", "claude", "--home", "/h"}), ours},
		{"server as a list", object("command", []any{"/x/bridge", "mcp", "--agent", "opencode", "--home", "/h"}), ours},
		{"by its package name", object("command", "/usr/bin/bridgectl", "args", []any{"mcp", "--agent", "codex", "--home", "/h"}), ours},
		{"on Windows", object("command", `C:\x\bridge.exe`, "args", []any{"mcp", "--agent", "codex", "--home", "/h"}), ours},
		{"that has its CLI ask", object("command", "/x/bridge", "args", []any{"mcp", "--agent", "claude", "--asks", "--home", "/h"}), ours},
		{"with another flag", object("command", "/x/bridge", "args", []any{"mcp", "--agent", "claude", "--else", "--home", "/h"}), unrelated},
		{"another home", object("command", "/x/bridge", "args", []any{"mcp", "--agent", "claude"}), another},
		{"another program", object("command", "/x/other", "args", []any{"mcp", "--agent", "claude", "--home", "/h"}), unrelated},
		{"the network tool", object("command", "/sbin/bridge", "args", []any{"link", "show", "dev"}), unrelated},
		{"an unknown kind", object("command", "/x/bridge", "args", []any{"mcp", "--agent", "else", "--home", "/h"}), unrelated},
		{"hook of ours", group("'/x y/bridge' hook claude Stop --home /h"), ours},
		{"hook of ours by its own program", group("'/x y/bridge-hook' claude Stop --home /h"), ours},
		{"by its own program on Windows", object("command", `C:\x\bridge-hook.exe`, "args", []any{"claude", "Stop", "--home", "/h"}), ours},
		{"for cmd.exe", group(`C:\x\bridge-hook.exe codex Stop --home /h`), ours},
		{"for PowerShell", group(cmdLine([]string{`C:\it's here\bridge-hook.exe`, "codex", "Stop", "--home", "/h"})), ours},
		{"the long form for PowerShell", group(cmdLine([]string{`C:\it's here\bridge.exe`, "hook", "codex", "Stop", "--home", "/h"})), ours},
		{"by its own program for another home", group("/x/bridge-hook claude Stop"), another},
		{"its own program of an unknown kind", group("/x/bridge-hook else Stop --home /h"), unrelated},
		{"another program of that shape", group("/x/other claude Stop --home /h"), unrelated},
		{"another encoded word", group(encodedCommand + "JgA="), unrelated},
		{"hook of another", group("/x/bridge hook claude Stop --home /other"), another},
		{"ours beside a foreign hook", group("/x/bridge hook claude Stop --home /h", "say hi"), another},
		{"a shell program", group("/x/bridge hook claude Stop --home /h; rm x"), unrelated},
		{"a foreign hook", group("say hi"), unrelated},
		{"nothing", nil, unrelated},
	}
	for _, test := range tests {
		if got := in.verdict(test.entry); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
