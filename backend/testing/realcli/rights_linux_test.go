package realcli_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// rights are how a CLI asks its user, and the settings in which it keeps what it may.
var rights = map[string]struct {
	before   func(w *world) // has it ask at all, and its settings hold what it adds by itself
	open     func(w *world, project string) asker
	settings string
}{
	"claude": {
		before: func(*world) {},
		open: func(w *world, project string) asker {
			terminal := w.open("claude-"+project, project, "❯", "claude", "--permission-mode", "manual")
			return asker{prompter: terminal, terminal: terminal, tool: claudeTool, dialog: has("Do you want to proceed?")}
		},
		settings: ".claude/settings.json",
	},
	"codex": {
		before: func(w *world) {
			must(w.T, w.home.CodexAsks())
			path := filepath.Join(w.home.Dir, ".codex", "config.toml")
			with := strings.Replace(content(w.T, path), "[tui]\n", "[tui]\nscreen_reader_detection_done = true\n", 1)
			must(w.T, os.WriteFile(path, []byte(with), 0o600))
		},
		open: func(w *world, project string) asker {
			terminal := w.open("codex-"+project, project, "›", scripted.CodexCommand()...)
			return asker{prompter: terminal, terminal: terminal, tool: codexTool, dialog: has("Allow the bridge MCP server to run tool")}
		},
		settings: ".codex/config.toml",
	},
	"opencode": {
		before: func(w *world) {
			must(w.T, w.home.Edit(".config/opencode/opencode.json", func(settings map[string]any) {
				settings["$schema"] = "https://opencode.ai/config.json"
			}))
		},
		open: func(w *world, project string) asker {
			terminal := w.openOpenCode("opencode-"+project, project)
			return asker{prompter: terminal, terminal: terminal.Terminal, tool: openCodeTool, dialog: has("Allow once")}
		},
		settings: ".config/opencode/opencode.json",
	},
}

// A session gains no right by `bridge install`: what only talks runs at once, the CLI's own
// question comes before an agent is started, and by the owner's word it comes no more.
func TestJOB_26_RealSessionsAskBeforeTheyStartAgents(t *testing.T) {
	testkit.Long(t, "each CLI is started twice in a terminal")
	for _, kind := range []string{"claude", "codex", "opencode"} {
		t.Run(kind, func(t *testing.T) {
			w, how := newWorld(t, "p", "q"), rights[kind]
			how.before(w)
			settings := filepath.Join(w.home.Dir, how.settings)
			before := content(t, settings)
			w.install()
			name := kind + "-p"
			spawns := func(item asker, script string) {
				w.model.Script(script+"-work", scripted.Say(script+"-is-worked-on"))
				w.model.Script(script, scripted.Call(item.tool+"spawn_codex", map[string]any{"prompt": "play script:" + script + "-work"}), scripted.Say("said-after-"+script))
				w.prompt(item, script)
			}

			asking := how.open(w, "p")
			w.meet(asking, name)
			w.step("what only talks runs at once", func(w *world) {
				w.model.Script("sends", scripted.Call(asking.tool+"send", map[string]any{"to": "*", "message": "hello"}), scripted.Say("sent"))
				w.prompt(asking, "sends")
				if r := w.request("the answer to send", asks("sends", 1)); strings.Contains(last(r), "denied") {
					w.Errorf("its model reads %s", last(r))
				}
				w.idle(name)
			})
			w.step("its own question comes before an agent is started, and denied there nothing is", func(w *world) {
				spawns(asking, "spawns")
				must(w.T, asking.terminal.Until(soon(w.T), "the CLI's own question", asking.dialog))
				w.press(asking.terminal, scripted.Escape, "end of the question", func(screen string) bool { return !asking.dialog(screen) })
				w.idle(name)
				if said := w.bridge("runs", "--all"); strings.Contains(said, "-job-") {
					w.Errorf("a job was made:\n%s", said)
				}
			})
			w.step("allowed there it is", func(w *world) {
				spawns(asking, "spawns-again")
				must(w.T, asking.terminal.Until(soon(w.T), "the CLI's own question", asking.dialog))
				w.press(asking.terminal, scripted.Return, "end of the question", func(screen string) bool { return !asking.dialog(screen) })
				if r := w.request("the answer to spawn_codex", asks("spawns-again", 1)); jobName.FindString(last(r)) == "" {
					w.Errorf("its model reads %s", last(r))
				}
				w.request("the result", holds("spawns-again-is-worked-on"))
				w.idle(name)
			})
			must(t, asking.terminal.Close(soon(t)))

			w.step("by the owner's word it starts one without a question", func(w *world) {
				w.Logf("bridge install --allow-jobs:\n%s", w.bridge("install", "--allow-jobs", "--yes"))
				allowed := how.open(w, "q")
				w.meet(allowed, kind+"-q")
				spawns(allowed, "starts")
				if r := w.request("the answer to spawn_codex", asks("starts", 1)); jobName.FindString(last(r)) == "" {
					w.Errorf("its model reads %s", last(r))
				}
				w.request("the result", holds("starts-is-worked-on"))
				w.idle(kind + "-q")
				must(w.T, allowed.terminal.Close(soon(w.T)))
			})
			w.bridge("uninstall", "--yes")
			if after := content(t, settings); after != before {
				t.Errorf("%s was\n%s\nand is\n%s", how.settings, before, after)
			}
		})
	}
}

// mode is a way in which a session without a terminal says what it may do.
type mode struct {
	kind  string
	flags []string
	all   bool // it has said itself that everything runs, its shell without a sandbox too
	none  bool // it starts nothing, whatever is allowed
}

var modes = []mode{
	{kind: "claude", flags: []string{"--permission-mode", "manual"}},
	{kind: "claude", flags: []string{"--permission-mode", "acceptEdits"}},
	{kind: "claude", flags: []string{"--permission-mode", "plan"}, none: true},
	{kind: "claude", flags: []string{"--permission-mode", "dontAsk"}},
	{kind: "codex", flags: []string{"--sandbox", "read-only"}},
	{kind: "codex", flags: []string{"--sandbox", "workspace-write"}},
	{kind: "codex", flags: []string{"--sandbox", "danger-full-access"}, all: true},
	{kind: "opencode"},
}

// Whatever mode a session runs in, it starts an agent by the owner's word alone, and none
// with more access than the owner allows any job.
func TestJOB_26_NoModeOfASessionIsARight(t *testing.T) {
	testkit.Long(t, "each CLI is started in each of its modes")
	w := newWorld(t, "p")
	must(t, w.home.Append(".bridge/config.json", `{"jobs": {"maxAccess": "ask"}}`))
	w.install()
	run := map[string]func(ctx context.Context, dir, prompt string, args ...string) (string, error){
		"claude": w.home.Claude, "codex": w.home.Codex, "opencode": w.home.OpenCode,
	}
	for _, allowed := range []bool{false, true} {
		w.bridge("install", fmt.Sprintf("--allow-jobs=%v", allowed), "--yes")
		for _, mode := range modes {
			for _, access := range []string{"read", "ask", "edit"} {
				script := strings.Join(append([]string{mode.kind, access, fmt.Sprint(allowed)}, mode.flags...), "-")
				w.model.Script(script, scripted.Call(agents[mode.kind].tool+"spawn_codex", map[string]any{"prompt": "hello", "access": access}), scripted.Say("said"))
				out, err := run[mode.kind](soon(t), w.home.Project("p"), "play script:"+script, mode.flags...)
				told := "" // opencode ends where nobody is there to ask
				if all := w.model.Requests(); slices.ContainsFunc(all, asks(script, 1)) {
					told = last(all[slices.IndexFunc(all, asks(script, 1))])
				}
				want := (allowed || mode.all) && !mode.none && access != "edit"
				if started := jobName.MatchString(told); started != want {
					t.Errorf("%s: a job is started: %v, want %v; its model reads %s; it said (%v) %s", script, started, want, told, err, out)
				}
			}
		}
	}
}

// content is what a file holds, "" where there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw)
}
