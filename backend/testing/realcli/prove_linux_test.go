package realcli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent/prove"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// TestCAN_01_EachRouteIntoTheRealAgentsWorks runs the command as its owner does: every route
// works, nothing of the owner's is touched, and nothing is left running.
func TestCAN_01_EachRouteIntoTheRealAgentsWorks(t *testing.T) {
	w := newWorld(t, "p")
	folder, err := product()
	must(t, err)
	before := filesBelow(t, w.home.Dir)
	late, cancel := context.WithTimeout(t.Context(), time.Duration(len(prove.Kinds()))*testkit.Patience) // it walks all kinds
	defer cancel()
	out, err := w.home.Run(late, w.home.Dir, "", filepath.Join(folder, "bridge"), "prove", "--json")
	must(t, err)
	var answer struct {
		OK     bool
		Agents []prove.Report
	}
	must(t, json.Unmarshal([]byte(out), &answer))
	if !answer.OK || len(answer.Agents) != 3 {
		t.Fatalf("not all of it works:\n%s", out)
	}
	for i, report := range answer.Agents {
		var want []prove.Result
		for j, result := range report.Routes {
			if result.State == prove.NotOffered && result.Why == "" {
				t.Errorf("%s: %s is not offered, without a reason", report.Kind, result.Route)
			}
			report.Routes[j].Why = ""
		}
		for _, route := range prove.Routes() {
			state := prove.Works
			if route == prove.ToChild && report.Kind != bridge.Codex {
				state = prove.NotOffered
			}
			want = append(want, prove.Result{Route: route, State: state})
		}
		if diff := cmp.Diff(want, report.Routes); diff != "" || report.Kind != prove.Kinds()[i] || report.Version == "" {
			t.Errorf("%s %q (-want +got):\n%s", report.Kind, report.Version, diff)
		}
		t.Logf("%s took %d ms", report.Kind, report.Millis)
	}
	if diff := cmp.Diff(before, filesBelow(t, w.home.Dir)); diff != "" {
		t.Errorf("the owner's home is not as it was (-before +after):\n%s", diff)
	}
	if left := w.home.Processes(); len(left) > 0 {
		t.Errorf("processes of the owner's home run on: %v", left)
	}
}

// TestCAN_01_OnlyTheNamedRoutesAreTried: the named ones, in their order, and that the
// agent connects. In a long run a job is one of them.
func TestCAN_01_OnlyTheNamedRoutesAreTried(t *testing.T) {
	last := prove.MailAtTool
	if testkit.IsLong() {
		last = prove.DelegatedJob
	}
	w := newWorld(t, "p")
	folder, err := product()
	must(t, err)
	out, err := w.home.Run(soon(t), w.home.Dir, "", filepath.Join(folder, "bridge"), "prove", "codex", "--json", "--route", string(last), "--route", "start-note")
	must(t, err)
	var answer struct{ Agents []prove.Report }
	must(t, json.Unmarshal([]byte(out), &answer))
	want := []prove.Result{{Route: prove.Connects, State: prove.Works}, {Route: prove.StartNote, State: prove.Works}, {Route: last, State: prove.Works}}
	if len(answer.Agents) != 1 || !cmp.Equal(want, answer.Agents[0].Routes) {
		t.Errorf("it tried\n%s", out)
	}
}

// TestCAN_01_ACodexThatIsOneFileHasNoBackgroundServer: it says so, is started again without
// one, and what needs one is not offered.
func TestCAN_01_ACodexThatIsOneFileHasNoBackgroundServer(t *testing.T) {
	testkit.Long(t, "a codex of one file is copied")
	w := newWorld(t, "p")
	folder, err := product()
	must(t, err)
	raw, err := os.ReadFile(filepath.Join(w.home.Bin, "codex"))
	must(t, err)
	program := filepath.Join(w.home.Root, "codex")
	must(t, testkit.WriteProgram(program, raw, 0o700))
	run := prove.Run{
		Kind: bridge.Codex, Program: program, Bridge: filepath.Join(folder, "bridge"), StepTimeout: prove.DefaultPatience,
		Only: []prove.Route{prove.Wake, prove.YourWords, prove.ToChild, prove.PermissionPrompt},
	}
	report, err := run.Walk(t.Context())
	must(t, err)
	var states []prove.State
	for _, result := range report.Routes {
		states = append(states, result.State)
	}
	want := []prove.State{prove.Works, prove.Works, prove.Works, prove.NotOffered, prove.NotOffered}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s\n%s", diff, report.Text())
	}
}

// TestCAN_01_WithoutNamespacesNoAgentIsStarted: a system that permits none is told so, with
// what to do.
func TestCAN_01_WithoutNamespacesNoAgentIsStarted(t *testing.T) {
	w := newWorld(t, "p")
	folder, err := product()
	must(t, err)
	started := filepath.Join(w.home.Root, "started")
	must(t, os.Remove(filepath.Join(w.home.Bin, "codex")))
	must(t, testkit.WriteProgram(filepath.Join(w.home.Bin, "codex"), []byte("#!/bin/sh\ntouch "+started+"\n"), 0o700))
	cmd := w.home.Command(soon(t), w.home.Dir, "/bin/sh", "-c", "echo 0 > /proc/sys/user/max_net_namespaces && exec "+filepath.Join(folder, "bridge")+" prove codex")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skipf("SKIPPED, this system permits no user namespace: %v", err)
	}
	for _, words := range []string{"bridge: Bridge starts no agent here", "this system permits no network namespace", "Allow user namespaces: set user.max_user_namespaces above 0"} {
		if !strings.Contains(string(out), words) {
			t.Errorf("it does not say %q:\n%s", words, out)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if exists(started) {
		t.Error("the agent was started")
	}
}

// filesBelow returns the files below a folder, with their times.
func filesBelow(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	files := map[string]time.Time{}
	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			files[path] = info.ModTime()
		}
		return err
	}))
	return files
}

// without returns a damage that replaces a text in a file of the home.
func without(name, old, replacement string) func(*scripted.Home) error {
	return func(home *scripted.Home) error {
		path := filepath.Join(home.Dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.Contains(string(raw), old) {
			return bridge.Errorf(bridge.NotFound, "%s holds no %q:\n%s", name, old, raw)
		}
		return os.WriteFile(path, []byte(strings.Replace(string(raw), old, replacement, 1)), 0o600)
	}
}

// edited returns a damage that changes a JSON file of the home.
func edited(name string, change func(map[string]any)) func(*scripted.Home) error {
	return func(home *scripted.Home) error { return home.Edit(name, change) }
}

// noHook returns a damage that takes out the hooks of one event.
func noHook(name, event string) func(*scripted.Home) error {
	return edited(name, func(settings map[string]any) { delete(settings["hooks"].(map[string]any), event) })
}

// noServer returns a damage that takes Bridge out of the MCP servers of a JSON file.
func noServer(name, member string) func(*scripted.Home) error {
	return edited(name, func(settings map[string]any) { delete(settings[member].(map[string]any), "bridge") })
}

// noCodexServer is a damage that takes Bridge out of codex's MCP servers.
func noCodexServer(home *scripted.Home) error {
	path := filepath.Join(home.Dir, ".codex/config.toml")
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sections := strings.Split(string(raw), "\n[")
	kept := slices.DeleteFunc(slices.Clone(sections), func(section string) bool { return strings.HasPrefix(section, "mcp_servers.bridge") })
	if len(kept) == len(sections) {
		return bridge.Errorf(bridge.NotFound, "codex has no server of Bridge:\n%s", raw)
	}
	return os.WriteFile(path, []byte(strings.Join(kept, "\n[")), 0o600)
}

const claudeSettings, codexHooks, openCodeSettings = ".claude/settings.json", ".codex/hooks.json", ".config/opencode/opencode.json"

// damaged is a home in which a person broke something.
type damaged struct {
	name   string
	damage func(*scripted.Home) error
	broken []prove.Route // exactly those; without a connection no other is tried
}

// checkDamaged wants the walk to name exactly the broken routes, with evidence. A short run
// tries these routes and one that is not broken, a long run all.
func checkDamaged(t *testing.T, kind bridge.AgentKind, homes []damaged) {
	for _, tt := range homes {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "p")
			folder, err := product()
			must(t, err)
			run := prove.Run{
				Kind: kind, Program: filepath.Join(w.home.Bin, string(kind)), Bridge: filepath.Join(folder, "bridge"), StepTimeout: prove.DefaultPatience, Installed: tt.damage,
			}
			if !testkit.IsLong() {
				run.Only = append(slices.Clone(tt.broken), prove.StartNote)
			}
			report, err := run.Walk(t.Context())
			must(t, err)
			if len(report.Routes) <= len(tt.broken) {
				t.Errorf("no other route was tried: %+v", report.Routes)
			}
			if diff := cmp.Diff(tt.broken, report.Broken()); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
			others := prove.Works
			if slices.Contains(tt.broken, prove.Connects) {
				others = prove.NotTried
			}
			for _, result := range report.Routes {
				switch {
				case result.State == prove.Broken:
					if slices.Contains([]string{result.Step, result.Expected, result.Got}, "") {
						t.Errorf("%s is broken without evidence: %+v", result.Route, result)
					}
				case result.State == prove.NotOffered: // whatever else is broken
				case result.State != others:
					t.Errorf("%s: %s, want %s", result.Route, result.State, others)
				case others == prove.NotTried && result.Why != `"connects" is broken`:
					t.Errorf("%s was not tried: %q", result.Route, result.Why)
				}
			}
			t.Log(report.Text())
		})
	}
}

// removed returns a damage that removes a file or a folder of the home.
func removed(name string) func(*scripted.Home) error {
	return func(home *scripted.Home) error {
		path := filepath.Join(home.Dir, name)
		if _, err := os.Stat(path); err != nil {
			return err
		}
		return os.RemoveAll(path)
	}
}

// shimmed returns a damage that puts a script in the place of the program that the broker
// starts. cases are those of a shell's case over all arguments; $real is the program.
func shimmed(kind bridge.AgentKind, cases string) func(*scripted.Home) error {
	return func(home *scripted.Home) error {
		path := filepath.Join(home.Root, "shim")
		script := "#!/bin/sh\nreal=" + filepath.Join(home.Bin, string(kind)) + "\ncase \" $* \" in\n" + cases + "\n*) exec $real \"$@\";;\nesac\n"
		home.More = append(home.More, "BRIDGE_"+strings.ToUpper(string(kind))+"_BIN="+path)
		return testkit.WriteProgram(path, []byte(script), 0o700)
	}
}

// otherOutput is a case of a shim that replaces a text in what the program prints when it
// runs with these arguments.
func otherOutput(arguments, text, replacement string) string {
	return "*\" " + arguments + " \"*) $real \"$@\" | sed -u 's#" + text + "#" + replacement + "#';;"
}

// refusedQueue is a case of a shim whose queue takes no message that begins like this.
func refusedQueue(message string) string {
	return "*\" queue --thread \"*\" --message " + message + "\"*) echo \"Error: No active session found matching '$3'.\" >&2; exit 1;;"
}

// inShort returns what a short run tries: one damage of each kind of agent.
func inShort(homes []damaged) []damaged {
	if testkit.IsLong() {
		return homes
	}
	return homes[:1]
}

// The start note of claude is also in the instructions of its MCP server.
func TestCAN_04_ABrokenRouteIntoClaudeIsNamed(t *testing.T) {
	checkDamaged(t, bridge.Claude, inShort([]damaged{
		{"no hook of permission requests", noHook(claudeSettings, "PermissionRequest"), []prove.Route{prove.PermissionPrompt}},
		{"hooks are off", edited(claudeSettings, func(s map[string]any) { s["disableAllHooks"] = true }), []prove.Route{
			prove.MailAtPrompt, prove.MailAtTool, prove.MailAtStop, prove.Wake, prove.YourWords, prove.PermissionPrompt,
		}},
		{"no hook of tools", noHook(claudeSettings, "PostToolUse"), []prove.Route{prove.MailAtTool}},
		{"no server", noServer(".claude.json", "mcpServers"), []prove.Route{prove.Connects}},
		{"no mod", removed(modFolder), []prove.Route{prove.YourWords}},
		{"the mod of another version", without(modFolder+"/hooks/register.js", `on("turn.complete"`, `on("turn.completed"`), []prove.Route{prove.YourWords}},
		{"another output format in jobs", shimmed(bridge.Claude, otherOutput("--output-format=stream-json", `"type":"result"`, `"type":"outcome"`)), []prove.Route{prove.DelegatedJob}},
	}))
}

func TestCAN_04_ABrokenRouteIntoCodexIsNamed(t *testing.T) {
	checkDamaged(t, bridge.Codex, inShort([]damaged{
		{"its queue refuses the owner's words", shimmed(bridge.Codex, refusedQueue("[From")), []prove.Route{prove.YourWords, prove.ToChild}},
		{"its queue refuses everything", shimmed(bridge.Codex, refusedQueue("")), []prove.Route{prove.Wake, prove.YourWords, prove.ToChild}},
		{"hooks are off", without(".codex/config.toml", "[features]\n", "[features]\nhooks = false\n"), []prove.Route{
			prove.StartNote, prove.MailAtPrompt, prove.MailAtTool, prove.MailAtStop, prove.Wake, prove.ToChild,
		}},
		{"no hook of the start", noHook(codexHooks, "SessionStart"), []prove.Route{prove.StartNote}},
		{"no hook of prompts", noHook(codexHooks, "UserPromptSubmit"), []prove.Route{prove.MailAtPrompt}},
		{"no server", noCodexServer, []prove.Route{prove.Connects}},
		{"another output format in jobs", shimmed(bridge.Codex, otherOutput("app-server", `"turn/completed"`, `"turn/finished"`)), []prove.Route{prove.DelegatedJob}},
	}))
}

func TestCAN_04_ABrokenRouteIntoOpenCodeIsNamed(t *testing.T) {
	const plugin = ".config/opencode/plugin/bridge.js"
	checkDamaged(t, bridge.OpenCode, inShort([]damaged{
		{"another output format in jobs", shimmed(bridge.OpenCode, otherOutput("serve", "opencode server listening on", "opencode listens at")), []prove.Route{prove.DelegatedJob}},
		{"no plugins", func(home *scripted.Home) error {
			home.More = append(home.More, "OPENCODE_PURE=1")
			return nil
		}, []prove.Route{prove.Connects}},
		{"the plugin is gone", removed(plugin), []prove.Route{prove.Connects}},
		{"a plugin that knows another event of permissions", without(plugin, `"permission.asked"`, `"permission.wanted"`), []prove.Route{prove.PermissionPrompt}},
		{"no server", noServer(openCodeSettings, "mcp"), []prove.Route{prove.Connects}},
	}))
}
