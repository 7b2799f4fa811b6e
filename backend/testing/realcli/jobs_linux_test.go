package realcli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/agent/setup"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// allowJobs lets sessions give jobs, whose environment names the model as the owner's
// own does.
func (w *world) allowJobs() {
	w.Helper()
	var names []string
	for _, pair := range w.home.Env() {
		name, _, _ := strings.Cut(pair, "=")
		isBridges := strings.HasPrefix(name, "BRIDGE_") // jobs do not get these
		if !isBridges && !slices.Contains([]string{"HOME", "PATH", "TMPDIR", "SHELL", "TERM", "LANG"}, name) {
			names = append(names, name)
		}
	}
	raw, err := json.Marshal(map[string]any{"jobs": map[string]any{"enabled": true, "environment": names}})
	must(w.T, err)
	must(w.T, w.home.Append(".bridge/config.json", string(raw)))
	for _, files := range []string{"jobs.json", "jobs/*/envelope.json", "jobs/*/journal.jsonl", "jobs/*/runner.log", "runs/*.log"} {
		w.logs = append(w.logs, filepath.Join(w.home.Dir, ".bridge", files))
	}
}

// letSpawn is the owner's word that sessions of codex and opencode may start and steer
// work without a question; claude has it on its command line.
func (w *world) letSpawn() {
	w.Helper()
	var tables strings.Builder
	for _, tool := range setup.AskedTools() {
		fmt.Fprintf(&tables, "\n[mcp_servers.bridge.tools.%s]\napproval_mode = \"approve\"\n", tool)
	}
	must(w.T, w.home.Append(".codex/config.toml", tables.String()))
	must(w.T, w.home.Edit(".config/opencode/opencode.json", func(settings map[string]any) {
		permission := settings["permission"].(map[string]any)
		for _, tool := range setup.AskedTools() {
			permission["bridge_"+tool] = "allow"
		}
	}))
}

// TestAJobsResultWakesItsSupervisor: a real claude gives work to a real codex and
// stops; the answer comes as a message, once.
func TestAJobsResultWakesItsSupervisor(t *testing.T) {
	w := newWorld(t, "p")
	w.allowJobs()
	w.install("claude", "codex")
	claude := w.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	w.meet(claude, "claude-p")
	w.model.Script("work", scripted.Call("exec_command", map[string]any{"cmd": "echo shell-$((40+2))"}), scripted.Say("the-tests-pass"))
	w.model.Script("gives", scripted.Call(claudeTool+"spawn_codex", map[string]any{"prompt": "play script:work"}), scripted.Say("given"))

	w.prompt(claude, "gives")
	request := w.request("the answer to spawn_codex", asks("gives", 1))
	if name := jobName.FindString(request.Text()); name == "" || request.Count(`"status":"queued"`) != 1 {
		t.Errorf("JOB-01: it answers %q", request.Items[len(request.Items)-1].Text)
	}
	if work := w.request("the job's second step", asks("work", 1)); work.Count("shell-42") != 1 {
		t.Errorf("JOB-13: what reads only does not run: %v", work)
	}
	if result := w.request("the result", holds("the-tests-pass")); shows(result, "the-tests-pass") != 1 {
		t.Errorf("JOB-03: the result comes as no message: %v", result)
	}
	w.consumed("the-tests-pass")
	w.idle("claude-p")
	if got := shows(w.afterwards(claude, "look-back"), "the-tests-pass"); got != 1 {
		t.Errorf("JOB-03: the result was shown %d times", got)
	}
}

// jobName finds the name of a job in what a tool answers.
var jobName = regexp.MustCompile(`(claude|codex|opencode)-job-[0-9a-f]{8}`)

// agents are how each CLI is spoken to.
var agents = map[string]struct {
	ready string // on the screen of one that waits for its user
	tool  string // stands before the name of each of Bridge's tools
	model string // another one than the usual
}{
	"claude":   {"❯", claudeTool, "claude-sonnet-4-5"},
	"codex":    {"›", codexTool, "other-model"},
	"opencode": {"", openCodeTool, "fake/other-model"},
}

// shell is one command of the CLI's own tool.
func shell(kind, command string) scripted.Step {
	switch kind {
	case "codex":
		return scripted.Call("exec_command", map[string]any{"cmd": command})
	case "opencode":
		return scripted.Call("bash", map[string]any{"command": command, "description": "run it"})
	default:
		return scripted.Call("Bash", map[string]any{"command": command, "description": "run it"})
	}
}

// writes makes a file by the CLI's own tool, where it has one.
func writes(kind, path, text string) scripted.Step {
	switch kind {
	case "codex":
		return shell(kind, "echo "+text+" > "+path)
	case "opencode":
		return scripted.Call("write", map[string]any{"filePath": path, "content": text})
	default:
		return scripted.Call("Write", map[string]any{"file_path": path, "content": text})
	}
}

// TestRealSessionsSupervise is the acceptance of delegated jobs: three real CLIs
// give work to each other in a repository with tests.
func TestRealSessionsSupervise(t *testing.T) {
	w := newWorld(t, "claude-p", "codex-p", "opencode-p")
	w.allowJobs()
	must(t, w.home.Edit(".config/opencode/opencode.json", func(settings map[string]any) {
		models := settings["provider"].(map[string]any)["fake"].(map[string]any)["models"].(map[string]any)
		models["other-model"] = models["fake-model"]
	}))
	w.install()
	w.letSpawn()
	supervisors := map[string]prompter{}
	for _, kind := range []string{"claude", "codex", "opencode"} {
		project := kind + "-p"
		w.repository(project)
		switch kind {
		case "claude":
			supervisors[kind] = w.open(kind, project, agents[kind].ready, scripted.ClaudeCommand("bridge")...)
		case "codex":
			supervisors[kind] = w.open(kind, project, agents[kind].ready, scripted.CodexCommand()...)
		case "opencode":
			served, err := w.home.ServeOpenCode(soon(t), w.home.Project(project))
			must(t, err)
			t.Cleanup(func() { served.Close(context.Background()) }) //nolint:errcheck // Close of the home kills what is left
			supervisors[kind] = served
		}
		w.meet(supervisors[kind], kind+"-"+project)
	}
	supervised := map[string][]string{"claude": {"opencode"}, "codex": {"claude"}, "opencode": {"claude"}}
	if testkit.IsLong() {
		supervised["claude"] = append(supervised["claude"], "codex")
	}
	for by, kinds := range supervised {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			for _, kind := range kinds {
				t.Run(kind, func(t *testing.T) {
					(&supervision{world: &world{t, w.scene}, by: by, kind: kind, name: by + "-" + kind}).run(supervisors[by])
				})
			}
		})
	}
}

// repository makes the project one, with a test that fails.
func (w *world) repository(project string) {
	w.Helper()
	dir := w.home.Project(project)
	for name, text := range map[string]string{
		"check.sh": "grep -q fixed parser-$1 && echo all-tests-pass && exit\necho one-test-fails\nexit 3\n",
		"hang.sh":  "sleep 1000 & setsid sleep 1000\n",
	} {
		must(w.T, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "t"}, {"config", "user.email", "t@localhost"}, {"add", "."}, {"commit", "-qm", "begin"}} {
		_, err := w.home.Run(soon(w.T), dir, "", "/usr/bin/git", args...)
		must(w.T, err)
	}
}

// supervision is one job under one supervisor, whose turn waits at a gate before
// each thing that it says.
type supervision struct {
	*world
	by, kind string
	name     string // of the supervisor's script, and in all words of this one
	steps    int    // of the supervisor so far
	job      string
	workdir  string // of the job: a worktree of its own
	// approval is the question that the owner alone is asked; "" for none.
	approval string
}

// call is a call of one of Bridge's tools about the job.
func (s *supervision) call(tool string, args map[string]any) scripted.Step {
	return scripted.CallWith(agents[s.by].tool+tool, func(r scripted.Request) any {
		all := regexp.MustCompile(s.kind+`-job-[0-9a-f]{8}`).FindAllString(r.Text(), -1)
		if len(all) > 0 {
			args["job"] = all[len(all)-1]
		}
		if asked := approvalID.FindAllStringSubmatch(r.Text(), -1); args["decision"] != nil && len(asked) > 0 {
			args["approval_id"] = asked[len(asked)-1][1]
		}
		if args["decision"] != nil && s.approval != "" {
			args["approval_id"] = s.approval
		}
		return args
	})
}

var approvalID = regexp.MustCompile(`approval_id [^0-9a-f]*([0-9a-f-]{36})`)

// gate is a name of its own for this supervision.
func (s *supervision) gate(name string) string { return s.name + "-" + name }

// look is a step of the supervisor at which its mail is shown.
func (s *supervision) look(gate string) scripted.Step { return shell(s.by, "true").After(s.gate(gate)) }

func (s *supervision) script() []scripted.Step {
	spawn := map[string]any{"prompt": "play script:" + s.gate("job"), "title": "the parser", "access": "ask", "worktree": true}
	return []scripted.Step{
		scripted.Call(agents[s.by].tool+"spawn_"+s.kind, spawn),
		s.call("message_subagent", map[string]any{"message": "look-at-the-moon", "title": "the new title", "model": agents[s.kind].model}).After(s.gate("tells")),
		s.look("asked"),
		s.call("message_subagent", map[string]any{"decision": "allow"}),
		s.look("asked-again"),
		s.call("message_subagent", map[string]any{"decision": "deny", "reason": "because-of-the-moon"}),
		s.look("ended"),
		scripted.Call(agents[s.by].tool+"peers", map[string]any{}),
		s.call("message_subagent", map[string]any{"message": "play script:" + s.gate("more"), "access": "edit"}),
		s.look("ended-again"),
		s.call("message_subagent", map[string]any{"message": "play script:" + s.gate("hang"), "access": "ask"}),
		s.look("asked-to-hang"),
		s.call("message_subagent", map[string]any{"decision": "allow"}),
		s.call("cancel_subagent", map[string]any{}).After(s.gate("hangs")),
		s.look("cancelled"),
		scripted.Say("supervised"),
	}
}

func (s *supervision) run(supervisor prompter) {
	s.model.Script(s.gate("job"), shell(s.kind, "sh check.sh "+s.name).After(s.gate("busy")), shell(s.kind, "touch refused-"+s.name), scripted.Say("seen-by-"+s.name))
	s.model.Script(s.gate("hang"), shell(s.kind, "sh hang.sh "+s.name), scripted.Say("never"))
	s.model.Script(s.name, s.script()...)
	s.prompt(supervisor, s.name)
	s.begins()
	s.asks()
	s.continues()
	s.isCancelled()
	s.evidence()
	s.lands()
}

// answered waits for what the supervisor reads of its next step.
func (s *supervision) answered() scripted.Request {
	s.Helper()
	s.steps++
	return s.request(fmt.Sprintf("%s after %d steps", s.name, s.steps), asks(s.name, s.steps))
}

// last is what the newest tool said.
func last(r scripted.Request) string {
	for _, item := range slices.Backward(r.Items) {
		if item.Role == "tool" {
			return item.Text
		}
	}
	return ""
}

// mail waits until a message with the text is durable, opens the gate before the
// supervisor's next step and sees it there, once.
func (s *supervision) mail(gate, text string) {
	s.Helper()
	s.shown("the message "+text, func(state state) bool { return state.message(text).ID != "" })
	s.model.Open(s.gate(gate))
	if r := s.answered(); shows(r, text) != 1 {
		s.Errorf("%s: the supervisor was shown %q %d times", gate, text, shows(r, text))
	}
}

// asked has the supervisor see the job's question. A command of codex may leave the
// sandbox once it is allowed: the owner alone is asked about it (SEC-03).
func (s *supervision) asked(gate, command string) {
	s.Helper()
	if s.kind != "codex" {
		s.mail(gate, command)
		return
	}
	var list dto.Approvals
	s.shown("the question "+command, func(state) bool {
		s.read("/api/approvals", &list)
		return len(list.Approvals) > 0 && strings.Contains(list.Approvals[len(list.Approvals)-1].Detail, command)
	})
	s.approval = list.Approvals[len(list.Approvals)-1].ID
	s.model.Open(s.gate(gate))
	if r := s.answered(); shows(r, command) != 0 {
		s.Errorf("SEC-03: the supervisor was shown %q", command)
	}
}

// allows has the supervisor allow what was asked, or where it cannot, the owner.
func (s *supervision) allows() {
	s.Helper()
	got, want := last(s.answered()), `"delivery":"applied"`
	if s.kind == "codex" {
		want = "only the owner of the PC"
		s.bridge("approve", s.approval)
	}
	if !strings.Contains(got, want) {
		s.Errorf("JOB-07 SEC-03: allowing is answered by %s", got)
	}
}

func (s *supervision) begins() {
	must(s.T, s.model.AtGate(soon(s.T), s.gate("busy")))
	var spawned api.Spawned
	got := last(s.answered())
	if err := json.Unmarshal([]byte(got[max(0, strings.Index(got, "{")):]), &spawned); err != nil || spawned.Title != "the parser" || spawned.Branch != "bridge/"+spawned.Job {
		s.Fatalf("JOB-01 JOB-08: it answers %s (%v)", got, err)
	}
	s.job, s.workdir = spawned.Job, spawned.Workdir
	s.model.Script(s.gate("more"), writes(s.kind, filepath.Join(s.workdir, "parser-"+s.name), "fixed"), scripted.Say("fixed-by-"+s.name))
	s.model.Open(s.gate("tells"))
	if got := last(s.answered()); !strings.Contains(got, `"delivery":"running"`) {
		s.Errorf("JOB-05: a busy job's message is answered by %s", got)
	}
	s.model.Open(s.gate("busy"))
}

func (s *supervision) asks() {
	s.asked("asked", "sh check.sh "+s.name)
	s.allows()
	r := s.request("the job's second step", asks(s.gate("job"), 1))
	if r.Count("look-at-the-moon") != 1 || r.Count("one-test-fails") != 1 {
		s.Errorf("JOB-05 JOB-07: the job reads the message %d times and its command's output %d times, in the same turn", r.Count("look-at-the-moon"), r.Count("one-test-fails"))
	}
	s.asked("asked-again", "touch refused-"+s.name)
	s.answered()
	r = s.request("the job's last step", asks(s.gate("job"), 2))
	if r.Count("because-of-the-moon") != 1 {
		s.Errorf("JOB-07: the model reads why it was denied %d times", r.Count("because-of-the-moon"))
	}
	if _, err := os.Stat(filepath.Join(s.workdir, "refused-"+s.name)); err == nil {
		s.Error("JOB-07: what was denied ran")
	}
	s.mail("ended", "seen-by-"+s.name)
	if got := last(s.answered()); !strings.Contains(got, "the new title") {
		s.Errorf("JOB-05: peers shows %s", got)
	}
}

func (s *supervision) continues() {
	if got := last(s.answered()); !strings.Contains(got, `"delivery":"continued"`) {
		s.Errorf("JOB-05: a job that has ended is continued by %s", got)
	}
	r := s.request("the job's next turn", asks(s.gate("more"), 0))
	var body struct{ Model string }
	must(s.T, json.Unmarshal(r.Body, &body))
	if !strings.HasSuffix(agents[s.kind].model, body.Model) || r.Count("because-of-the-moon") != 1 {
		s.Errorf("JOB-05: the next turn asks the model %q and knows %d of what was before", body.Model, r.Count("because-of-the-moon"))
	}
	s.mail("ended-again", "fixed-by-"+s.name)
}

func (s *supervision) isCancelled() {
	s.answered()
	s.asked("asked-to-hang", "sh hang.sh "+s.name)
	s.allows()
	s.processes("two sleeping processes of the job", func() bool { return s.count(s.job, "sleep\x001000\x00") == 2 })
	s.model.Open(s.gate("hangs"))
	s.answered()
	s.mail("cancelled", s.job+" was cancelled")
	if left := s.count(s.job, ""); left != 0 {
		s.Errorf("JOB-06: %d processes of the job are left", left)
	}
	s.processes("the end of the runner", func() bool {
		return s.count("", "run-job\x00"+filepath.Join(s.home.Dir, ".bridge", "jobs", s.job)) == 0
	})
}

// processes waits for what the system shows.
func (s *supervision) processes(what string, fits func() bool) {
	s.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx := soon(s.T); !fits(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}

// count is how many processes of the home carry the job's mark and have the words
// in their command line.
func (s *supervision) count(job, words string) (count int) {
	for _, pid := range s.home.Processes() {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		marked := strings.Contains(string(env), "BRIDGE_JOB="+job+"\x00")
		if len(argv) > 0 && marked == (job != "") && strings.Contains(string(argv), words) {
			count++
		}
	}
	return count
}

// evidence checks what the runner itself saw of the three runs (JOB-15).
func (s *supervision) evidence() {
	s.Helper()
	var closed []runs.Envelope
	for _, file := range []string{"envelope-1.json", "envelope-2.json", "envelope.json"} {
		raw, err := os.ReadFile(filepath.Join(s.home.Dir, ".bridge", "jobs", s.job, file))
		must(s.T, err)
		envelope, err := runs.DecodeEnvelope(raw, s.job)
		must(s.T, err)
		closed = append(closed, envelope)
	}
	commands := closed[0].Evidence.Commands
	if len(commands) != 1 || !strings.Contains(commands[0].Command, "sh check.sh "+s.name) || commands[0].Exit == nil || *commands[0].Exit != 3 {
		s.Errorf("JOB-15: commands of the first run: %+v", commands)
	}
	files := closed[1].Evidence.Files
	if len(files) != 1 || files[0].Path != "parser-"+s.name || closed[1].Evidence.Tokens == 0 || closed[1].Evidence.Base == "" {
		s.Errorf("JOB-15: of the second run: %+v", closed[1].Evidence)
	}
	for i, want := range []job.State{job.Finished, job.Finished, job.Cancelled} {
		if closed[i].State != want || closed[i].Run != i+1 {
			s.Errorf("JOB-15: run %d is %s, want %s", closed[i].Run, closed[i].State, want)
		}
	}
}

// lands has the owner read what the job changed and land it as one commit (JOB-18).
func (s *supervision) lands() {
	s.Helper()
	answer := s.page.get(s.T, soon(s.T), "/api/runs/"+s.job+"/diff")
	defer answer.Body.Close()
	var diff dto.RunDiff
	must(s.T, json.NewDecoder(answer.Body).Decode(&diff))
	if len(diff.Files) != 1 || diff.Files[0].Path != "parser-"+s.name || !strings.Contains(diff.Files[0].Patch, "+fixed") {
		s.Errorf("JOB-18: the job's own changes are %+v", diff)
	}
	checkout := s.home.Project(s.by + "-p")
	landed := filepath.Join(checkout, "parser-"+s.name)
	if s.bridge("finish", s.job, "--squash", "--dry-run"); exists(landed) {
		s.Error("JOB-18: a dry run lands it")
	}
	s.bridge("finish", s.job, "--squash")
	log, err := s.home.Run(soon(s.T), checkout, "", "/usr/bin/git", "log", "-1", "--format=%s", "--", "parser-"+s.name)
	must(s.T, err)
	if log != "the new title\n" || !holdsText(landed, "fixed") {
		s.Errorf("JOB-18: it landed as %q, the file is there: %v", log, exists(landed))
	}
}
