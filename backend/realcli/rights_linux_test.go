package realcli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/realcli"
	"bridge/backend/trial"
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
			one := w.open("claude-"+project, project, "❯", "claude", "--permission-mode", "manual")
			return asker{prompter: one, terminal: one, tool: claudeTool, dialog: has("Do you want to proceed?")}
		},
		settings: ".claude/settings.json",
	},
	"codex": {
		before: func(w *world) {
			w.codexAsks()
			path := filepath.Join(w.home.Dir, ".codex", "config.toml")
			with := strings.Replace(content(w.T, path), "[tui]\n", "[tui]\nscreen_reader_detection_done = true\n", 1)
			must(w.T, os.WriteFile(path, []byte(with), 0o600))
		},
		open: func(w *world, project string) asker {
			one := w.open("codex-"+project, project, "›", realcli.CodexCommand()...)
			return asker{prompter: one, terminal: one, tool: codexTool, dialog: has("Allow the bridge MCP server to run tool")}
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
			one := w.openOpenCode("opencode-"+project, project)
			return asker{prompter: one, terminal: one.Terminal, tool: openCodeTool, dialog: has("Allow once")}
		},
		settings: ".config/opencode/opencode.json",
	},
}

// A session gains no right by `bridge install`: what only talks runs at once, the CLI's own
// question comes before an agent is started, and by the owner's word it comes no more.
func TestJOB_26_RealSessionsAskBeforeTheyStartAgents(t *testing.T) {
	trial.Long(t, "each CLI is started twice in a terminal")
	for _, kind := range []string{"claude", "codex", "opencode"} {
		t.Run(kind, func(t *testing.T) {
			w, how := newWorld(t, "p", "q"), rights[kind]
			how.before(w)
			settings := filepath.Join(w.home.Dir, how.settings)
			before := content(t, settings)
			w.install()
			name := kind + "-p"
			w.model.Script("work", realcli.Say("the-work-is-done"))
			spawns := func(one asker, script string) {
				w.model.Script(script, realcli.Call(one.tool+"spawn_codex", map[string]any{"prompt": "play script:work"}), realcli.Say("said-after-"+script))
				w.prompt(one, script)
			}

			asking := how.open(w, "p")
			w.meet(asking, name)
			w.step("what only talks runs at once", func(w *world) {
				w.model.Script("sends", realcli.Call(asking.tool+"send", map[string]any{"to": "*", "message": "hello"}), realcli.Say("sent"))
				w.prompt(asking, "sends")
				if r := w.request("the answer to send", asks("sends", 1)); strings.Contains(last(r), "denied") {
					w.Errorf("its model reads %s", last(r))
				}
				w.idle(name)
			})
			w.step("its own question comes before an agent is started, and denied there nothing is", func(w *world) {
				spawns(asking, "spawns")
				must(w.T, asking.terminal.Until(soon(w.T), "the CLI's own question", asking.dialog))
				w.press(asking.terminal, "Escape", "end of the question", func(screen string) bool { return !asking.dialog(screen) })
				w.idle(name)
				if said := w.bridge("runs", "--all"); strings.Contains(said, "-job-") {
					w.Errorf("a job was made:\n%s", said)
				}
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
				w.request("the result", holds("the-work-is-done"))
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

// content is what a file holds, "" where there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw)
}
