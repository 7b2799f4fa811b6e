package setup_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent"
	"bridge/backend/agent/kinds"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/testing/testkit"
)

// world is a home with the real CLIs, the model behind them, and the stand-in
// under a path with spaces and a quote.
type world struct {
	*testing.T
	home  *scripted.Home
	model *scripted.FakeModel
	in    setup.Input
	log   string
}

func newWorld(t *testing.T, kind bridge.AgentKind) *world {
	t.Helper()
	if unusable != nil {
		if os.Getenv("BRIDGE_REQUIRE_CLIS") == "1" {
			t.Fatal(unusable)
		}
		t.Skipf("SKIPPED, no real CLI was run: %v", unusable)
	}
	clis, err := findCLIs()
	must(t, err)
	model, err := scripted.StartFakeModel()
	must(t, err)
	root, err := os.MkdirTemp("", "agent")
	must(t, err)
	home, err := scripted.NewHome(root, clis, model, "p")
	must(t, err)
	program, bridgeHome := filepath.Join(root, "pro gram's", "bridge"), filepath.Join(root, "bridge home")
	for _, dir := range []string{filepath.Dir(program), bridgeHome} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, program))
	must(t, os.Symlink(self, program+"-hook"))
	env := map[string]string{}
	for _, pair := range home.Env() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	lookup := func(name string) string { return env[name] }
	found, err := agent.Detect(context.Background(), kind, agent.Lookup{Env: lookup})
	must(t, err)
	if found.Version == "" || found.Note != "" {
		t.Errorf("found %+v", found)
	}
	w := &world{t, home, model, setup.Input{
		Home: home.Dir, Env: lookup, Bridge: program, Hook: program + "-hook", BridgeHome: bridgeHome, State: filepath.Join(bridgeHome, "install"), CLI: found,
	}, filepath.Join(bridgeHome, "log")}
	t.Cleanup(w.close)
	return w
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if w.Failed() {
		log, _ := os.ReadFile(w.log)
		w.Logf("the stand-in's log:\n%s\nthe model's last requests:\n%s", log, w.model.Tail(20))
	}
	if err := w.home.Close(ctx); err != nil {
		w.Error(err)
	}
	if err := w.model.Close(); err != nil {
		w.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	w.Cleanup(cancel)
	return ctx
}

// entry is one line of the stand-in's log.
type entry struct {
	MCP    string
	Kind   string
	Tool   string
	Args   map[string]any
	Meta   map[string]any
	Hook   string
	Plugin string
	Call   struct{ Event, SessionID, ChildID, Cwd, Prompt, ToolUseID string }
	Stdin  struct {
		ToolName string `json:"tool_name"`
	}
	Ack    hooks.PluginAck `json:"confirm"`
	Failed string
}

func (w *world) entries() []entry {
	w.Helper()
	data, err := os.ReadFile(w.log)
	must(w.T, err)
	var all []entry
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var e entry
		must(w.T, json.Unmarshal([]byte(line), &e))
		if e.Failed != "" {
			w.Error(e.Failed)
		}
		all = append(all, e)
	}
	return all
}

// first returns the first entry that fits and fails without one.
func (w *world) first(what string, fits func(entry) bool) entry {
	w.Helper()
	for _, e := range w.entries() {
		if fits(e) {
			return e
		}
	}
	w.Fatalf("the stand-in saw no %s", what)
	return entry{}
}

func (w *world) count(fits func(entry) bool) int {
	w.Helper()
	n := 0
	for _, e := range w.entries() {
		if fits(e) {
			n++
		}
	}
	return n
}

func (w *world) install(kind bridge.AgentKind) {
	w.Helper()
	plan, err := kinds.PlanInstall(w.soon(), kind, w.in)
	must(w.T, err)
	if len(plan.Notes) > 0 {
		w.Errorf("notes: %v", plan.Notes)
	}
	must(w.T, setup.Apply(plan))
}

// uninstall takes everything back and looks for traces, in settings that the CLI
// may have rewritten since.
func (w *world) uninstall(kind bridge.AgentKind, before map[string]string) {
	w.Helper()
	plan, err := setup.PlanRemoval(kind, w.in.State)
	must(w.T, err)
	must(w.T, setup.Apply(plan))
	for name, want := range w.settings() {
		if strings.Contains(want, "pro gram") || strings.Contains(want, "mcp__bridge") || strings.Contains(want, "trusted_hash") {
			w.Errorf("%s still holds what Bridge wrote:\n%s", name, want)
		}
		if name != ".claude.json" && want != before[name] { // claude rewrites that one at every start
			w.Errorf("%s is not what it was:\n%s\nbut\n%s", name, before[name], want)
		}
		delete(before, name)
	}
	for name := range before {
		w.Errorf("%s is gone", name)
	}
}

// settings reads every file that an installation touches.
func (w *world) settings() map[string]string {
	w.Helper()
	files := map[string]string{}
	for _, pattern := range []string{
		".claude.json", ".claude/settings.json", ".codex/config.toml", ".codex/hooks.json",
		".config/opencode/*.json*", ".config/opencode/.npmrc", ".config/opencode/plugin/*",
	} {
		paths, err := filepath.Glob(filepath.Join(w.home.Dir, pattern))
		must(w.T, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			must(w.T, err)
			name, err := filepath.Rel(w.home.Dir, path)
			must(w.T, err)
			if base := filepath.Base(name); base == "package.json" || base == "package-lock.json" {
				continue // opencode's own
			}
			files[name] = string(data)
		}
	}
	return files
}

func TestMSG_11_RealClaude(t *testing.T) {
	w := newWorld(t, bridge.Claude)
	before := w.settings()
	w.install(bridge.Claude)

	list, err := w.home.Run(w.soon(), w.home.Project("p"), "", "claude", "mcp", "list")
	must(t, err)
	if !strings.Contains(list, "bridge") || !strings.Contains(strings.ToLower(list), "connected") {
		t.Errorf("claude mcp list:\n%s", list)
	}
	w.model.Script("turn",
		scripted.Call("Bash", map[string]any{"command": "echo hi", "description": "greet"}),
		scripted.Call("mcp__bridge__inbox", map[string]any{}),
		scripted.Call("Task", map[string]any{"description": "a child", "prompt": "play script:child", "subagent_type": "general-purpose"}),
		scripted.Say("all-said"), scripted.Say("again-said"), scripted.Say("and-again"))
	w.model.Script("child", scripted.Call("mcp__bridge__inbox", map[string]any{"limit": 1}), scripted.Say("child-said"))
	_, err = w.home.Claude(w.soon(), w.home.Project("p"), "play script:turn", "--allowedTools", "Bash")
	must(t, err)

	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStart", "SubagentStop", "SessionEnd", hooks.WakeEvent, hooks.WakeStandbyEvent} {
		w.first("hook "+event, func(e entry) bool { return e.Hook == event })
	}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"} {
		w.reached("MAIL-" + event + "-MAIL")
	}
	// The main session's call and the child's come from the same server process;
	// the hook before the tool tells whose each is.
	main := w.first("inbox of the main session", func(e entry) bool { return e.Tool == "inbox" && e.Args["limit"] == nil })
	child := w.first("inbox of the child", func(e entry) bool { return e.Tool == "inbox" && e.Args["limit"] != nil })
	for _, call := range []entry{main, child} {
		toolUse := agent.CallerOf(bridge.Claude, call.Meta).ToolUseID
		hook := w.first("PreToolUse of "+toolUse, func(e entry) bool { return e.Hook == "PreToolUse" && e.Call.ToolUseID == toolUse })
		if toolUse == "" || (hook.Call.ChildID != "") != (call.Args["limit"] != nil) {
			t.Errorf("call %+v is seen by hook %+v", call, hook)
		}
	}
	if n := w.count(func(e entry) bool { return e.Hook == "PreToolUse" && e.Stdin.ToolName == "Bash" }); n != 0 {
		t.Errorf("the hook before a tool ran for %d other tools", n)
	}
	w.uninstall(bridge.Claude, before)
}

// reached waits until the model was shown text.
func (w *world) reached(text string) {
	w.Helper()
	_, err := w.model.Wait(w.soon(), text, func(r scripted.Request) bool { return strings.Contains(r.Text(), text) })
	must(w.T, err)
}

func TestMSG_11_RealCodex(t *testing.T) {
	w := newWorld(t, bridge.Codex)
	// Nobody is there to approve: what is asked about is declined.
	w.rewrite(".codex/config.toml", `approval_policy = "never"`, `approval_policy = "on-request"`)
	w.rewrite(".codex/config.toml", `sandbox_mode = "danger-full-access"`, `sandbox_mode = "workspace-write"`)
	before := w.settings()
	w.install(bridge.Codex)

	list, err := w.home.Run(w.soon(), w.home.Project("p"), "", "codex", "mcp", "list")
	must(t, err)
	if !strings.Contains(list, "bridge") {
		t.Errorf("codex mcp list:\n%s", list)
	}
	w.model.Script("turn",
		scripted.Call("exec_command", map[string]any{"cmd": "echo hi"}),
		scripted.Call("mcp__bridge/inbox", map[string]any{}),
		scripted.Call("multi_agent_v1/spawn_agent", map[string]any{"message": "play script:child"}),
		scripted.Say("all-said").After("child-done"), scripted.Say("again-said"), scripted.Say("and-again"))
	w.model.Script("child", scripted.Call("mcp__bridge/inbox", map[string]any{"limit": 1}), scripted.Say("child-said"))
	ended := make(chan error, 1)
	go func() {
		// No flag bypasses the trust in hooks here.
		_, err := w.home.Codex(w.soon(), w.home.Project("p"), "play script:turn")
		ended <- err
	}()
	_, err = w.model.Wait(w.soon(), "the child's end", func(r scripted.Request) bool { return r.Script == "child" && r.Step == 1 })
	must(t, err)
	w.model.Open("child-done")
	must(t, <-ended)

	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SubagentStart", "SessionEnd"} {
		w.first("hook "+event, func(e entry) bool { return e.Hook == event })
	}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"} {
		w.reached("MAIL-" + event + "-MAIL")
	}
	root := w.first("start", func(e entry) bool { return e.Hook == "SessionStart" }).Call.SessionID
	main := w.first("inbox of the main session", func(e entry) bool { return e.Tool == "inbox" && e.Args["limit"] == nil })
	if caller := agent.CallerOf(bridge.Codex, main.Meta); caller.SessionID != root || caller.ChildID != "" {
		t.Errorf("the main session's call says %+v", caller)
	}
	call := w.first("inbox of the child", func(e entry) bool { return e.Tool == "inbox" && e.Args["limit"] != nil })
	child := agent.CallerOf(bridge.Codex, call.Meta).ChildID
	if session := agent.CallerOf(bridge.Codex, call.Meta).SessionID; session != root || child == "" {
		t.Errorf("the child's call says %s, %s", session, child)
	}
	inside := w.first("hook inside the child", func(e entry) bool { return e.Hook == "PostToolUse" && e.Call.ChildID != "" })
	if inside.Call.SessionID != root || inside.Call.ChildID != child {
		t.Errorf("the hook inside the child says %+v", inside.Call)
	}
	w.uninstall(bridge.Codex, before)
}

// An older Bridge connected codex with the long form, and codex was told to trust
// that. The next installation replaces hooks and trust together: codex runs the
// new ones without a question, and keeps to the person's own.
func TestMSG_11_RealCodexTrustsTheProgramOfHooksAfterAnUpgrade(t *testing.T) {
	w := newWorld(t, bridge.Codex)
	before := w.settings()
	short := w.in.Hook
	w.in.Hook = ""
	w.install(bridge.Codex)
	long := w.settings()
	w.in.Hook = short
	w.install(bridge.Codex)
	now := w.settings()
	if strings.Contains(now[".codex/hooks.json"], "bridge' hook") || strings.Count(now[".codex/hooks.json"], "bridge-hook' codex") != 9 {
		t.Errorf("hooks.json:\n%s", now[".codex/hooks.json"])
	}
	if old, new := strings.Count(long[".codex/config.toml"], "trusted_hash"), strings.Count(now[".codex/config.toml"], "trusted_hash"); old != new || new == 0 {
		t.Errorf("%d hooks were trusted, now %d:\n%s", old, new, now[".codex/config.toml"])
	}
	w.model.Script("turn", scripted.Say("all-said"))
	_, err := w.home.Codex(w.soon(), w.home.Project("p"), "play script:turn")
	must(t, err)
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "Stop"} {
		w.first("hook "+event, func(e entry) bool { return e.Hook == event })
	}
	w.uninstall(bridge.Codex, before)
}

// rewrite replaces a text in a file of the home.
func (w *world) rewrite(name, old, with string) {
	w.Helper()
	path := filepath.Join(w.home.Dir, name)
	data, err := os.ReadFile(path)
	must(w.T, err)
	if !strings.Contains(string(data), old) {
		w.Fatalf("%s does not hold %q", name, old)
	}
	must(w.T, os.WriteFile(path, []byte(strings.Replace(string(data), old, with, 1)), 0o600))
}

// Folders and files that are links into a folder of dotfiles: codex names its
// hooks by one spelling of the path, and the trust must be under that one.
func TestMSG_11_RealCodexTrustsHooksBehindLinks(t *testing.T) {
	for _, linked := range []string{".codex", ".codex/hooks.json", ".codex/config.toml"} {
		t.Run(linked, func(t *testing.T) {
			w := newWorld(t, bridge.Codex)
			path, moved := filepath.Join(w.home.Dir, linked), filepath.Join(w.home.Dir, "dotfile")
			if linked == ".codex/hooks.json" {
				must(t, os.WriteFile(path, []byte("{}"), 0o600))
			}
			must(t, os.Rename(path, moved))
			must(t, os.Symlink(moved, path))
			w.install(bridge.Codex)
			w.model.Script("turn", scripted.Say("all-said"))
			_, err := w.home.Codex(w.soon(), w.home.Project("p"), "play script:turn")
			must(t, err)
			w.first("hook SessionStart", func(e entry) bool { return e.Hook == "SessionStart" })
		})
	}
}

func TestMSG_11_RealOpenCode(t *testing.T) {
	w := newWorld(t, bridge.OpenCode)
	must(t, w.home.Edit(".config/opencode/opencode.json", func(settings map[string]any) {
		settings["$schema"] = "https://opencode.ai/config.json" // opencode adds it by itself otherwise
	}))
	before := w.settings()
	w.install(bridge.OpenCode)

	list, err := w.home.Run(w.soon(), w.home.Project("p"), "", "opencode", "mcp", "list")
	must(t, err)
	if !strings.Contains(list, "bridge") || !strings.Contains(list, "connected") {
		t.Errorf("opencode mcp list:\n%s", list)
	}
	give(w.in.BridgeHome, "mail-chat.message", "MAIL-at-the-prompt")
	give(w.in.BridgeHome, "mail-tool.execute.after", "MAIL-after-a-tool")
	w.model.Script("turn",
		scripted.Call("bash", map[string]any{"command": "echo hi", "description": "greet"}),
		scripted.Call("bridge_inbox", map[string]any{"_bridge_session": "ses_of_somebody_else", "_bridge_child": "x"}),
		scripted.Call("task", map[string]any{"description": "a child", "prompt": "play script:child", "subagent_type": "general"}),
		scripted.Say("all-said"))
	w.model.Script("child", scripted.Call("bridge_inbox", map[string]any{"limit": 1}), scripted.Say("child-said"))
	_, err = w.home.OpenCode(w.soon(), w.home.Project("p"), "play script:turn")
	must(t, err)

	for _, event := range []string{"session.created", "chat.message", "tool.execute.after", "session.child", "session.child.idle"} {
		w.first(event, func(e entry) bool { return e.Plugin == event })
	}
	w.reached("MAIL-at-the-prompt")
	w.reached("MAIL-after-a-tool")
	if n := w.count(func(e entry) bool { return e.Plugin == "confirm" && e.Ack.Stage == bridge.StageHanded }); n != 2 {
		t.Errorf("%d pieces of mail were confirmed", n)
	}
	if n := w.count(func(e entry) bool { return e.Plugin == "start" }); n != 2 { // one for the list, one for the run
		t.Errorf("the plugin's child was started %d times", n)
	}
	root := w.first("start", func(e entry) bool { return e.Plugin == "session.created" }).Call.SessionID
	main := w.first("inbox of the main session", func(e entry) bool { return e.Tool == "inbox" && e.Args["limit"] == nil })
	if main.Args["_bridge_session"] != root || main.Args["_bridge_child"] != nil {
		t.Errorf("the main session's call says %v, not %s", main.Args, root)
	}
	child := w.first("inbox of the child", func(e entry) bool { return e.Tool == "inbox" && e.Args["limit"] != nil })
	if child.Args["_bridge_session"] != root || child.Args["_bridge_child"] == nil {
		t.Errorf("the child's call says %v", child.Args)
	}
	w.uninstall(bridge.OpenCode, before)
}

// An idle session in a terminal is woken by a push, in the agent that it was in;
// what it was told counts as its own prompt only once it is busy with it.
func TestMSG_06_RealOpenCodeIsWoken(t *testing.T) {
	w := newWorld(t, bridge.OpenCode)
	w.install(bridge.OpenCode)
	give(w.in.BridgeHome, "push-session.idle", "wake")
	give(w.in.BridgeHome, "mail-session.idle", "play script:woken")
	w.model.Script("turn", scripted.Say("all-said"))
	w.model.Script("woken", scripted.Say("woken-said"))
	terminal, err := w.home.OpenOpenCode(w.soon(), "opencode", w.home.Project("p"), "--agent", "plan")
	must(t, err)
	t.Cleanup(func() { must(t, terminal.Close(context.Background())) })
	must(t, terminal.Until(w.soon(), "its composer", func(screen string) bool { return strings.Contains(screen, "Ask anything") }))
	must(t, terminal.Prompt(w.soon(), "play script:turn"))
	woken, err := w.model.Wait(w.soon(), "the woken turn", func(r scripted.Request) bool { return r.Script == "woken" && !r.Aux })
	must(t, err)
	if _, after, _ := strings.Cut(woken.Text(), "script:woken"); !strings.Contains(after, "Plan mode ACTIVE") {
		t.Errorf("the woken turn left the session's plan mode: %s", after)
	}
	must(t, terminal.Until(w.soon(), "the answer", func(screen string) bool { return strings.Contains(screen, "woken-said") }))
	w.until("the end of the woken turn", func() bool {
		return w.count(func(e entry) bool { return e.Plugin == "session.idle" }) == 3 // the turn, the push, the woken turn
	})
	var order []string
	for _, e := range w.entries() {
		if e.Plugin != "" {
			order = append(order, e.Plugin)
		}
	}
	want := []string{"start", "session.created", "chat.message", "session.idle", "session.idle", "confirm", "chat.message", "session.idle"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// until polls: what the CLIs do has no signal for us.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	ctx := w.soon()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}

// Without the npm registry opencode starts all the same: it asks for its package
// once and does not insist.
func TestMSG_11_RealOpenCodeStartsWithoutTheRegistry(t *testing.T) {
	w := newWorld(t, bridge.OpenCode)
	w.install(bridge.OpenCode)
	registry, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var asked atomic.Int64
	go func() {
		for {
			conn, err := registry.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { registry.Close() })
	w.model.Script("turn", scripted.Say("all-said"))
	cmd := w.home.Command(w.soon(), w.home.Project("p"), "opencode", "run", "--format", "json")
	cmd.Stdin = strings.NewReader("play script:turn")
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(pair string) bool { return strings.HasPrefix(pair, "npm_config_") }),
		"npm_config_registry=http://"+registry.Addr().String())
	out, err := cmd.Output()
	must(t, err)
	if !strings.Contains(string(out), "all-said") {
		t.Errorf("the turn did not end:\n%s", out)
	}
	// It may begin anew while it ends, and then it asks anew, and may be gone before it
	// says so. To insist is to ask three times at one start.
	starts := int64(w.count(func(e entry) bool { return e.Plugin == "start" }))
	if n := asked.Load(); n < 1 || n > starts+1 {
		t.Errorf("the registry was asked %d times at %d starts", n, starts)
	}
}

// What an install wrote has each CLI ask before a tool that starts another agent's work,
// which nobody here answers, and not before one that only looks.
func TestMSG_11_RealCLIsAskBeforeWorkIsStarted(t *testing.T) {
	for _, test := range []struct {
		kind bridge.AgentKind
		tool string // stands before the name of a tool
		run  func(*world) (string, error)
	}{
		{bridge.Claude, "mcp__bridge__", func(w *world) (string, error) {
			return w.home.Claude(w.soon(), w.home.Project("p"), "play script:turn")
		}},
		{bridge.Codex, "mcp__bridge/", func(w *world) (string, error) {
			w.rewrite(".codex/config.toml", `approval_policy = "never"`, `approval_policy = "on-request"`)
			w.rewrite(".codex/config.toml", `sandbox_mode = "danger-full-access"`, `sandbox_mode = "workspace-write"`)
			return w.home.Codex(w.soon(), w.home.Project("p"), "play script:turn")
		}},
		{bridge.OpenCode, "bridge_", func(w *world) (string, error) {
			return w.home.OpenCode(w.soon(), w.home.Project("p"), "play script:turn")
		}},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			w := newWorld(t, test.kind)
			w.install(test.kind)
			w.model.Script("turn",
				scripted.Call(test.tool+"peers", map[string]any{}), scripted.Call(test.tool+"spawn_codex", map[string]any{}), scripted.Say("all-said"), scripted.Say("again"), scripted.Say("and-again"))
			out, err := test.run(w)
			must(t, err)
			w.first("peers", func(e entry) bool { return e.Tool == "peers" })
			if n := w.count(func(e entry) bool { return e.Tool == "spawn_codex" }); n != 0 {
				t.Errorf("spawn_codex ran without a question:\n%s", out)
			}
			if !strings.Contains(out, "spawn_codex") {
				t.Errorf("spawn_codex was not called:\n%s", out)
			}
		})
	}
}

// mark puts a byte order mark before a settings file, as an editor on Windows does.
func (w *world) mark(name string) {
	w.Helper()
	path := filepath.Join(w.home.Dir, name)
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		data, err = []byte("{}\r\n"), os.MkdirAll(filepath.Dir(path), 0o700)
	}
	must(w.T, err)
	must(w.T, os.WriteFile(path, append([]byte("\ufeff"), data...), 0o600))
}

// TestRWM_12_RealAgentsReadBehindAByteOrderMark: what Bridge writes behind a mark counts,
// and where it is said not to be read, it is not.
func TestRWM_12_RealAgentsReadBehindAByteOrderMark(t *testing.T) {
	for kind, files := range map[bridge.AgentKind][]string{
		bridge.Claude:   {".claude.json", ".claude/settings.json"},
		bridge.Codex:    {".codex/config.toml"},
		bridge.OpenCode: {".config/opencode/opencode.json"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, kind)
			if kind == bridge.OpenCode {
				must(t, w.home.Edit(files[0], func(settings map[string]any) { settings["$schema"] = "https://opencode.ai/config.json" }))
			}
			for _, name := range files {
				w.mark(name)
			}
			before := w.settings()
			w.install(kind)
			turn := func(name string) {
				t.Helper()
				tool := map[bridge.AgentKind]string{bridge.Claude: "mcp__bridge__inbox", bridge.Codex: "mcp__bridge/inbox", bridge.OpenCode: "bridge_inbox"}[kind]
				w.model.Script(name, scripted.Call(tool, map[string]any{}), scripted.Say("all-said"), scripted.Say("again-said"))
				run := map[bridge.AgentKind]func(context.Context, string, string, ...string) (string, error){
					bridge.Claude: w.home.Claude, bridge.Codex: w.home.Codex, bridge.OpenCode: w.home.OpenCode,
				}[kind]
				_, err := run(w.soon(), w.home.Project("p"), "play script:"+name)
				must(t, err)
			}
			started := func(e entry) bool { return e.Hook == "SessionStart" || e.Plugin == "session.created" }
			turn("turn")
			w.first("start", started)
			w.first("inbox", func(e entry) bool { return e.Tool == "inbox" })
			if kind == bridge.Codex {
				w.mark(".codex/hooks.json")
				sessions := w.count(started)
				if turn("more"); w.count(started) != sessions {
					t.Error("codex reads hooks behind a mark: Bridge need not refuse them")
				}
				must(t, os.WriteFile(filepath.Join(w.home.Dir, ".codex/hooks.json"), nil, 0o600))
			}
			w.uninstall(kind, before)
		})
	}
}
