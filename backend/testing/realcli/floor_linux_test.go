package realcli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// TestSEC_03_WhatIsAllowedStaysInTheSandbox has real CLIs ask about a command that writes
// outside of the job's folder, and allows it: either the sandbox stops it, or the question
// said that it may leave the sandbox, and so was for the owner alone.
func TestSEC_03_WhatIsAllowedStaysInTheSandbox(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	for kind, leaves := range map[bridge.AgentKind]bool{bridge.Claude: false, bridge.OpenCode: false, bridge.Codex: true} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(kind)(t).(*bench)
			outside := filepath.Join(b.home.Dir, "outside")
			b.Script("writes", drivertest.Step{Run: "echo x > " + outside}, drivertest.Step{Run: "echo x > inside"}, drivertest.Step{Say: "done"})
			spec := b.Spec(t)
			spec.Access, spec.Sandbox, spec.Prompt = job.AccessAsk, []string{self, "probe-sandbox"}, drivertest.Prompt("writes")
			j := drivertest.Start(t, b, spec)
			asked := 0
			var heard []string
			for event := range j.Run.Events() {
				heard = append(heard, fmt.Sprintf("%T %+v", event, event))
				if question, is := event.(job.Asked); is {
					asked++
					if question.Question.LeavesSandbox != leaves {
						t.Errorf("that it may leave the sandbox is said: %t, want %t (%s)", question.Question.LeavesSandbox, leaves, question.Question.Subject)
					}
					go j.Run.Answer(soon(t), job.Answer{Question: question.Question.ID, Allow: true}) //nolint:errcheck // the turn's end tells
				}
				if _, is := event.(job.TurnEnded); is {
					break
				}
			}
			if asked < 2 {
				t.Errorf("it asked %d times, want 2", asked)
			}
			// Codex repeats a refused command outside of its sandbox only where it takes the
			// refusal for one, which depends on how soon the command ends.
			if exists(outside) && !leaves {
				t.Errorf("outside is written; heard:\n%s", strings.Join(heard, "\n"))
			}
			if !exists(filepath.Join(spec.Folder, "inside")) {
				t.Error("what was allowed in its folder was not done")
			}
		})
	}
}

// TestRWM_22_ClaudeAsksAboutNoPlainCommand has a real claude run plain commands in a job that
// edits: below the sandbox it is asked about none of them, and each one is done.
func TestRWM_22_ClaudeAsksAboutNoPlainCommand(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	b := newBench(bridge.Claude)(t).(*bench)
	commands := []string{
		"git init -q . && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm x --allow-empty", "sh -c 'echo x > by-sh'", "printf 'a:\\n\\ttouch by-make\\n' > Makefile; make a",
		"touch f && chmod 600 f", "python3 -c 'open(\"by-python\", \"w\")'", "cd . && for i in 1 2; do echo $i; done > by-loop",
	}
	var steps []drivertest.Step
	for _, command := range commands {
		steps = append(steps, drivertest.Step{Run: command})
	}
	b.Script("plain", append(steps, drivertest.Step{Run: "echo x > " + filepath.Join(b.home.Dir, "outside")}, drivertest.Step{Say: "done"})...)
	spec := b.Spec(t)
	spec.Access, spec.Sandbox, spec.Prompt = job.AccessEdit, []string{self, "probe-sandbox"}, drivertest.Prompt("plain")
	j := drivertest.Start(t, b, spec)
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndAnswer {
		t.Errorf("the turn ended with %+v", end)
	}
	if asked := drivertest.Of[job.Asked](j); len(asked) > 0 {
		t.Errorf("it asked about %+v", asked)
	}
	for i, step := range drivertest.Of[job.StepEnded](j) {
		if done := step.State == job.StepDone; done != (i < len(commands)) {
			t.Errorf("step %d: %+v", i, step)
		}
	}
	if exists(filepath.Join(b.home.Dir, "outside")) {
		t.Error("a file outside of the job's folder is written")
	}
}

// stateOfOthers are files that another session of each kind runs or reads, below the home.
var stateOfOthers = map[bridge.AgentKind][]string{
	bridge.Claude: {
		".claude/settings.json", ".claude/.credentials.json", ".claude/skills/own/SKILL.md", ".claude/plugins/own.json",
		".claude/shell-snapshots/snapshot-bash-1.sh", ".claude/session-env/other/hook.sh", ".claude/sessions/1.json",
		".claude/projects/other/other.jsonl", ".claude/projects/other/memory/MEMORY.md",
	},
	bridge.Codex: {
		".codex/config.toml", ".codex/auth.json", ".codex/AGENTS.md", ".codex/rules/default.rules", ".codex/skills/own/SKILL.md",
		".codex/sessions/2026/01/01/rollout-other.jsonl",
	},
	bridge.OpenCode: {
		".config/opencode/opencode.json", ".config/opencode/plugin/own.js", ".local/share/opencode/auth.json", ".local/share/opencode/bin/rg",
		".local/share/opencode/opencode.db", ".cache/opencode/node_modules/own/index.js", ".cache/opencode/bin/own", ".local/state/opencode/kv.json",
	},
}

// TestSEC_05_AJobChangesNothingOfOtherSessions has a real agent run a command that writes
// into each file which other sessions run or read, and lays a new one beside it. All its
// questions are allowed. Then its session can still be continued.
func TestSEC_05_AJobChangesNothingOfOtherSessions(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	for kind, files := range stateOfOthers {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(kind)(t).(*bench)
			b.Script("first", drivertest.Step{Say: "so that its state is there"})
			spec := b.Spec(t)
			spec.Access, spec.Sandbox, spec.Prompt = job.AccessEdit, []string{self, "probe-sandbox"}, drivertest.Prompt("first")
			drivertest.Start(t, b, spec).Drain()

			before, tries := map[string]string{}, []string{}
			for _, name := range files {
				path := filepath.Join(b.home.Dir, name)
				if !exists(path) {
					must(t, os.MkdirAll(filepath.Dir(path), 0o700))
					must(t, os.WriteFile(path, []byte("of another session\n"), 0o600))
				}
				if !strings.HasSuffix(name, ".db") { // which lives
					data, err := os.ReadFile(path)
					must(t, err)
					before[path] = string(data)
				}
				tries = append(tries, fmt.Sprintf("echo hostile >> %s; echo hostile > %s.new; ln -s /etc/passwd %s.link; mv %s %s.moved", path, path, path, path, path))
			}
			tries = append(tries, "echo x > inside")
			b.Script("writes", drivertest.Step{Run: strings.Join(tries, "; ")}, drivertest.Step{Say: "done-" + string(kind)})
			spec = b.Spec(t)
			spec.Access, spec.Sandbox, spec.Prompt = job.AccessEdit, []string{self, "probe-sandbox"}, drivertest.Prompt("writes")
			j := drivertest.Start(t, b, spec)
			session := ""
			for event := range j.Run.Events() {
				switch e := event.(type) {
				case job.Opened:
					session = e.Session
				case job.Asked:
					go j.Run.Answer(soon(t), job.Answer{Question: e.Question.ID, Allow: !e.Question.LeavesSandbox}) //nolint:errcheck // the turn's end tells
				}
				if _, is := event.(job.TurnEnded); is {
					break
				}
			}
			j.Close()
			if !exists(filepath.Join(spec.Folder, "inside")) {
				t.Error("the command did not run")
			}
			for path, want := range before {
				if data, err := os.ReadFile(path); err != nil || string(data) != want {
					t.Errorf("%s is now %q, %v", path, data, err)
				}
				for _, suffix := range []string{".new", ".link", ".moved"} {
					if exists(path + suffix) {
						t.Errorf("%s%s is there", path, suffix)
					}
				}
			}
			b.Script("again", drivertest.Step{Say: "once more"})
			spec = b.Spec(t)
			spec.Access, spec.Sandbox, spec.Prompt, spec.Session = job.AccessRead, []string{self, "probe-sandbox"}, drivertest.Prompt("again"), session
			drivertest.Start(t, b, spec).Drain()
			if n := b.Shown("script:writes"); n != 1 {
				t.Errorf("the continued session knows what was said %d times, want 1", n)
			}
		})
	}
}

// TestSEC_04_AJobOfAPairedPCReadsNothingElse has real agents work for a paired PC and run a
// command that reads files of the owner's: keys, Bridge's home, another repository and
// what was said in other sessions. The model is shown none of them, and the job works.
func TestSEC_04_AJobOfAPairedPCReadsNothingElse(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.OpenCode, bridge.Codex} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(kind)(t).(*bench)
			if kind == bridge.Codex { // what the owner set for his own sessions is not for this job
				config := filepath.Join(b.home.Dir, ".codex", "config.toml")
				text, err := os.ReadFile(config)
				must(t, err)
				rest := regexp.MustCompile(`(?m)^(sandbox_mode|approval_policy) = .*$`).ReplaceAll(text, nil)
				must(t, os.WriteFile(config, append([]byte("sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n"), rest...), 0o600))
			}
			var reads []string
			for i, name := range []string{".ssh/id_ed25519", ".bridge/token", ".bridge/bridge.db", "other/secret.go", ".claude/projects/other/other.jsonl", ".claude/history.jsonl", ".bash_history"} {
				path := filepath.Join(b.home.Dir, name)
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must(t, os.WriteFile(path, []byte(fmt.Sprintf("canary-%d\n", i)), 0o600))
				reads = append(reads, "cat "+path, "cp "+path+" copied", "ls "+filepath.Dir(path))
			}
			reads = append(reads, "git --version", "echo made > made", "cat made")
			b.Script("reads", drivertest.Step{Run: strings.Join(reads, "; ")}, drivertest.Step{Say: "done"})
			spec := b.Spec(t)
			spec.Access, spec.Unlinked, spec.Sandbox, spec.Prompt = job.AccessEdit, true, []string{self, "probe-sandbox"}, drivertest.Prompt("reads")
			j := drivertest.Start(t, b, spec)
			for event := range j.Run.Events() {
				if question, is := event.(job.Asked); is {
					go j.Run.Answer(soon(t), job.Answer{Question: question.Question.ID, Allow: true}) //nolint:errcheck // the turn's end tells
				}
				if _, is := event.(job.TurnEnded); is {
					break
				}
			}
			if n := b.Shown("canary-"); n != 0 {
				t.Errorf("the model reads %d of the files", n)
			}
			if b.Shown("git version") != 1 || !holdsText(filepath.Join(spec.Folder, "made"), "made") {
				t.Error("the job did not work")
			}
		})
	}
}
