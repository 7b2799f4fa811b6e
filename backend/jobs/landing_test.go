package jobs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// yard is a bench with a repository of the owner's.
type yard struct {
	*bench
	env  []string
	main string // the owner's checkout
}

func newYard(t *testing.T) *yard {
	t.Helper()
	return yardIn(t, t.TempDir())
}

func yardIn(t *testing.T, dir string) *yard {
	t.Helper()
	dir, err := disk.Canonical(dir)
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{bench: prepared(t), env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, main: filepath.Join(dir, "app")}
	if y.git, err = gitwork.New(y.env); err != nil {
		t.Fatal(err)
	}
	y.write(dir, ".gitconfig", "[user]\nname = Olga Owner\nemail = olga@example.com\n[init]\ndefaultBranch = main\n")
	y.run(dir, "init", "-q", y.main)
	y.write(y.main, "a.txt", "one\ntwo\nthree\n")
	y.write(y.main, ".gitignore", "*.log\n")
	y.run(y.main, "add", "-A")
	y.run(y.main, "commit", "-qm", "first")
	y.up()
	return y
}

// run runs git as the owner or an agent does.
func (y *yard) run(dir string, args ...string) string {
	y.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(y.env), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		y.t.Fatalf("git %q in %s: %v: %s", args, dir, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (y *yard) write(dir, name, text string) {
	y.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) read(dir, name string) string {
	y.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		y.t.Fatal(err)
	}
	return string(data)
}

// give spawns a worktree job and does what its runner does: it makes the worktree,
// and parks what work leaves in it.
func (y *yard) give(hex string, work func(tree string)) (session, *runner) {
	y.t.Helper()
	s := y.join("boss", "s1")
	s.mustSpawn(hex, fmt.Sprintf(`{"prompt":"Mend it.","title":"Mend a","worktree":true,"cwd":%q}`, y.main))
	r := y.started()
	y.carryOut(r, work)
	return s, r
}

// carryOut is a run of a worktree job, from its start to its result.
func (y *yard) carryOut(r *runner, work func(tree string)) {
	y.t.Helper()
	r.connect(api.RunnerReport{})
	record := r.spec.Worktree
	if record.Path == "" {
		repository, err := y.git.Repository(y.t.Context(), r.spec.Folder)
		if err != nil {
			y.t.Fatal(err)
		}
		made, err := y.git.Add(y.t.Context(), repository, r.spec.Job, y.home.Worktrees())
		if err != nil {
			y.t.Fatal(err)
		}
		worktree := made.Record()
		record = &worktree
	}
	w := gitwork.Recorded(*record)
	if _, err := y.git.Again(y.t.Context(), w, r.spec.Job); err != nil {
		y.t.Fatal(err)
	}
	record.ReclaimedAt, record.Bytes = 0, 0
	state := r.state(job.Running)
	state.Worktree = record
	r.report(api.RunnerReport{State: state})
	work(w.Path)
	parked, err := y.git.Park(y.t.Context(), w, r.spec.Job)
	if err != nil {
		y.t.Fatal(err)
	}
	state = r.state(job.Finished)
	ended := *record
	ended.Branch, ended.BranchHead = parked.Branch, parked.Head
	state.Worktree = &ended
	report := r.end(answered, "It is mended.")
	report.State = state
	r.report(report)
}

// mend is the work of most jobs here.
func (y *yard) mend(tree string) {
	y.write(tree, "a.txt", "one\n2\nthree\n")
	y.run(tree, "commit", "-qam", "mine")
	y.write(tree, "new.txt", "not committed\n")
}

func (y *yard) finish(name string, action gitwork.Action) (api.JobFinished, error) {
	return y.jobs.Finish(y.t.Context(), api.JobFinishArgs{Job: name, Action: string(action)})
}

// reclaimed waits for a look at the worktrees that takes the job's away.
func (y *yard) reclaimed(name string) job.Job {
	y.t.Helper()
	var entry job.Job
	eventually(y.t, "the worktree of "+name+" to be taken away", func() bool {
		var err error
		entry, err = y.jobs.get(name)
		return err == nil && !entry.Worktree.Exists()
	})
	if _, err := os.Lstat(entry.Worktree.Path); err == nil {
		y.t.Errorf("%s is still there", entry.Worktree.Path)
	}
	return entry
}

func TestJOB_08_AWorktreeJobIsToldWhereItWorks(t *testing.T) {
	y := newYard(t)
	y.write(y.main, "src/b.txt", "b\n")
	y.run(y.main, "add", "-A")
	y.run(y.main, "commit", "-qm", "second")
	s := y.join("boss", "s1")
	inside := filepath.Join(y.main, "src")
	spawned := s.mustSpawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"cwd":%q}`, inside))
	path := filepath.Join(y.home.Worktrees(), "app-"+first)
	if spawned.Branch != "bridge/"+first || spawned.Workdir != filepath.Join(path, "src") {
		t.Errorf("it answers %+v", spawned)
	}
	r := y.started()
	if r.spec.Worktree == nil || *r.spec.Worktree != (job.Worktree{}) || r.spec.Folder != inside || r.spec.Access != job.AccessEdit {
		t.Fatalf("its runner is asked for %+v", r.spec)
	}
	y.carryOut(r, y.mend)
	wantText(t, s.mail(1)[0].Body, "has finished", "It is mended.")
	entry := y.entry(first)["worktree"].(map[string]any)
	if entry["path"] != path || entry["branch"] != "bridge/"+first || entry["repoRoot"] != y.main || entry["branchHead"] == entry["base"] {
		t.Errorf("jobs.json has %v", entry)
	}
	if view, _ := y.jobs.View(first); view.Workdir != filepath.Join(path, "src") || view.Branch != "bridge/"+first {
		t.Errorf("it is shown as %+v", view)
	}
	if _, err := s.say(first, "more"); err != nil {
		t.Fatal(err)
	}
	if again := y.started(); again.spec.Run != 2 || again.spec.Worktree.Path != path || again.spec.Worktree.Base == "" {
		t.Errorf("JOB-08: the continuation is asked for %+v", again.spec.Worktree)
	}
}

func TestJOB_08_ARunnerThatDiedHasItsWorktreeInTheBook(t *testing.T) {
	y := newYard(t)
	s := y.join("boss", "s1")
	s.mustSpawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"cwd":%q}`, y.main))
	r := y.started()
	repository, err := y.git.Repository(t.Context(), y.main)
	if err != nil {
		t.Fatal(err)
	}
	worktree, err := y.git.Add(t.Context(), repository, first, y.home.Worktrees())
	if err != nil {
		t.Fatal(err)
	}
	record := worktree.Record()
	state := runs.StateFile{Job: first, Run: 1, State: job.Running, Worktree: &record, Runner: job.Process{PID: 1 << 22, Identity: "-:1"}}
	data, err := state.Encode()
	if err == nil {
		err = disk.WriteAtomic(filepath.Join(r.folder, "state.json"), data, disk.PrivateFile) // it told nobody
	}
	if err != nil {
		t.Fatal(err)
	}
	y.write(worktree.Path, "left.txt", "left\n")
	wantText(t, s.mail(1)[0].Body, "was interrupted", "bridge/"+first, worktree.Path)
	if got, err := y.finish(first, gitwork.Squash); err != nil || !got.Done || y.read(y.main, "left.txt") != "left\n" {
		t.Errorf("what it left is finished as %+v, %v", got, err)
	}
}

func TestJOB_08_WithoutARepositoryNothingIsStarted(t *testing.T) {
	y := newYard(t)
	s := y.join("boss", "s1")
	empty := filepath.Join(filepath.Dir(y.main), "empty")
	y.run(filepath.Dir(y.main), "init", "-q", empty)
	for cwd, want := range map[string]string{t.TempDir(): "no git repository", empty: "no commit yet"} {
		_, err := s.spawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"cwd":%q}`, cwd))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("in %s: %v, want one sentence with %q", cwd, err, want)
		}
	}
	_, err := s.spawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"access":"read","cwd":%q}`, y.main))
	wantCode(t, "a worktree to read in", err, bridge.Invalid)
	y.down()
	y.git = nil
	y.up()
	_, err = y.join("boss", "s1").spawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"cwd":%q}`, y.main))
	wantCode(t, "without git", err, bridge.Unavailable)
	if len(y.jobs.Views()) != 0 || len(y.starts) != 0 {
		t.Errorf("%d jobs are left, %d were started", len(y.jobs.Views()), len(y.starts))
	}
}

func TestJOB_18_TheOwnerLandsTheWork(t *testing.T) {
	for _, action := range []gitwork.Action{gitwork.Squash, gitwork.Merge} {
		t.Run("JOB-18 "+string(action), func(t *testing.T) {
			y := newYard(t)
			base := y.run(y.main, "rev-parse", "HEAD")
			y.give("01", y.mend)
			tried, err := y.jobs.Finish(t.Context(), api.JobFinishArgs{Job: first, Action: string(action), DryRun: true})
			if err != nil || tried.Done || len(tried.Conflicts) != 0 || y.run(y.main, "rev-parse", "HEAD") != base || y.entry(first)["landing"] != nil {
				t.Fatalf("the dry run: %+v, %v", tried, err)
			}
			got, err := y.finish(first, action)
			head := y.run(y.main, "rev-parse", "HEAD")
			if err != nil || !got.Done || got.Commit != head || head == base || got.Checkout != y.main {
				t.Fatalf("it answers %+v, %v; the branch is at %s", got, err, head)
			}
			if y.read(y.main, "a.txt") != "one\n2\nthree\n" || y.read(y.main, "new.txt") != "not committed\n" || y.run(y.main, "status", "--porcelain") != "" {
				t.Errorf("the checkout has %q, %s", y.read(y.main, "a.txt"), y.run(y.main, "status", "--porcelain"))
			}
			if subject := y.run(y.main, "log", "-1", "--format=%s|%an"); subject != "Mend a|Olga Owner" {
				t.Errorf("its commit is %q", subject)
			}
			entry := y.reclaimed(first)
			if entry.Worktree.Bytes == 0 || entry.Landing.State != job.LandingDone || entry.Landing.Commit != head || entry.Landing.Run != 1 {
				t.Errorf("the book has %+v, %+v", entry.Worktree, entry.Landing)
			}
			if y.run(y.main, "rev-parse", "bridge/"+first) != entry.Landing.Head {
				t.Error("its branch is gone")
			}
			if again, err := y.finish(first, action); err != nil || !again.Done || y.run(y.main, "rev-parse", "HEAD") != head {
				t.Errorf("asked again: %+v, %v", again, err)
			}
		})
	}
}

func TestJOB_18_WhatIsAppliedIsStagedAndTheSameWorkCanBeCommittedThen(t *testing.T) {
	y := newYard(t)
	base := y.run(y.main, "rev-parse", "HEAD")
	y.give("01", y.mend)
	if got, err := y.finish(first, gitwork.Apply); err != nil || !got.Done || got.Commit != "" {
		t.Fatalf("apply: %+v, %v", got, err)
	}
	if status := y.run(y.main, "status", "--porcelain"); status != "M  a.txt\nA  new.txt" || y.run(y.main, "rev-parse", "HEAD") != base {
		t.Fatalf("the checkout has %q", status)
	}
	y.write(y.main, "a.txt", "and mine\n")
	_, err := y.finish(first, gitwork.Squash)
	wantCode(t, "with a change of the owner's beside", err, bridge.Conflict)
	if y.read(y.main, "a.txt") != "and mine\n" {
		t.Error("the owner's change is gone")
	}
	y.run(y.main, "checkout", "-q", "--", "a.txt")
	if got, err := y.finish(first, gitwork.Squash); err != nil || !got.Done || y.run(y.main, "status", "--porcelain") != "" {
		t.Errorf("squash of what is staged: %+v, %v", got, err)
	}
	y.reclaimed(first)
}

func TestJOB_18_ConflictsAreNamedAndNothingIsDone(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	y.write(y.main, "a.txt", "one\nTWO\nthree\n")
	y.run(y.main, "commit", "-qam", "theirs")
	before := y.run(y.main, "rev-parse", "HEAD")
	for _, action := range []gitwork.Action{gitwork.Apply, gitwork.Squash, gitwork.Merge} {
		tried, err := y.jobs.Finish(t.Context(), api.JobFinishArgs{Job: first, Action: string(action), DryRun: true})
		if err != nil || !slices.Equal(tried.Conflicts, []string{"a.txt"}) {
			t.Errorf("the dry run: %+v, %v", tried, err)
		}
		got, err := y.finish(first, action)
		wantCode(t, string(action), err, bridge.Conflict)
		if !slices.Equal(got.Conflicts, []string{"a.txt"}) || got.Done || !strings.Contains(err.Error(), "a.txt") {
			t.Errorf("%s: %+v, %v", action, got, err)
		}
	}
	if y.run(y.main, "rev-parse", "HEAD") != before || y.run(y.main, "status", "--porcelain") != "" || y.entry(first)["landing"] != nil {
		t.Errorf("something was done: %v", y.entry(first)["landing"])
	}
}

func TestJOB_18_ADirtyTargetIsRefused(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	y.write(y.main, "a.txt", "mine\n")
	for _, dry := range []bool{true, false} {
		_, err := y.jobs.Finish(t.Context(), api.JobFinishArgs{Job: first, Action: "squash", DryRun: dry})
		wantCode(t, fmt.Sprint("dry ", dry), err, bridge.Conflict)
		wantText(t, fmt.Sprint(err), y.main, "a.txt")
	}
	if y.read(y.main, "a.txt") != "mine\n" || y.entry(first)["landing"] != nil {
		t.Error("something was done")
	}
}

func TestJOB_18_WhatIsDiscardedStaysForThirtyDays(t *testing.T) {
	y := newYard(t)
	s, _ := y.give("01", func(tree string) { y.mend(tree); y.write(tree, "build.log", "ignored\n") })
	got, err := y.finish(first, gitwork.Discard)
	if err != nil || !got.Done || got.Branch != "bridge/discarded/"+first {
		t.Fatalf("%+v, %v", got, err)
	}
	entry := y.reclaimed(first)
	if y.run(y.main, "show", got.Branch+":new.txt") != "not committed" || y.run(y.main, "status", "--porcelain") != "" {
		t.Error("the branch has not all of it")
	}
	_, err = s.say(first, "more")
	wantCode(t, "words to it", err, bridge.Conflict)
	diff, err := y.jobs.Diff(t.Context(), first)
	if err != nil || len(diff.Files) != 2 {
		t.Errorf("its diff: %+v, %v", diff, err)
	}

	at := time.Now()
	pass := func(d time.Duration) {
		at = at.Add(d)
		now := at // of this step: others look at the clock, too
		y.setNow(func() time.Time { return now })
	}
	pass(30*24*time.Hour - time.Minute)
	y.jobs.landings.Settle(t.Context(), first)
	if y.run(y.main, "rev-parse", got.Branch) != entry.Landing.Head {
		t.Error("a minute before 30 days it is gone")
	}
	jobFinished, err := y.finish(first, gitwork.Keep)
	if err != nil || jobFinished.Branch != "bridge/"+first {
		t.Fatalf("kept again: %+v, %v", jobFinished, err)
	}
	pass(time.Hour)
	y.jobs.landings.Settle(t.Context(), first)
	if y.run(y.main, "rev-parse", jobFinished.Branch) != entry.Landing.Head {
		t.Error("what the owner keeps is gone")
	}
	if _, err := y.finish(first, gitwork.Discard); err != nil {
		t.Fatal(err)
	}
	pass(30*24*time.Hour + time.Minute)
	y.jobs.landings.Settle(t.Context(), first)
	if branches := y.run(y.main, "branch", "--list", "bridge/*"); branches != "" {
		t.Errorf("after 30 days there are %s", branches)
	}
}

func TestJOB_18_ADiscardedBranchThatWentOnStays(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	got, err := y.finish(first, gitwork.Discard)
	if err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	y.run(y.main, "checkout", "-q", got.Branch)
	y.run(y.main, "commit", "-q", "--allow-empty", "-m", "the owner's own")
	y.run(y.main, "checkout", "-q", "main")
	y.setNow(func() time.Time { return time.Now().Add(31 * 24 * time.Hour) })
	y.jobs.landings.Settle(t.Context(), first)
	if subject := y.run(y.main, "log", "-1", "--format=%s", got.Branch); subject != "the owner's own" {
		t.Errorf("its last commit is %q", subject)
	}
}

func TestJOB_08_WhatIsNotLandedStays(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	y.give("02", func(string) {})
	if _, err := y.finish(first, gitwork.Keep); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{first, second} {
		y.jobs.landings.Settle(t.Context(), name)
		if entry, _ := y.jobs.get(name); !entry.Worktree.Exists() || y.read(entry.Worktree.Path, "a.txt") == "" {
			t.Errorf("%s has %+v", name, entry.Worktree)
		}
	}
	if view, _ := y.jobs.View(first); view.Worktree == nil || view.Worktree.Bytes == 0 || view.Worktree.Stays == "" {
		t.Errorf("JOB-19: it is shown as %+v", view.Worktree)
	}
	if count, bytes := y.jobs.Worktrees(); count != 2 || bytes == 0 {
		t.Errorf("JOB-19: there are %d worktrees with %d bytes", count, bytes)
	}
	y.setNow(func() time.Time { return time.Now().Add(2 * time.Hour) })
	y.jobs.landings.Settle(t.Context(), second) // nobody went on with what changed nothing
	y.reclaimed(second)
}

func TestJOB_08_WhatGitIgnoresKeepsALandedWorktree(t *testing.T) {
	y := newYard(t)
	y.give("01", func(tree string) { y.mend(tree); y.write(tree, "build.log", "ignored\n") })
	if _, err := y.finish(first, gitwork.Squash); err != nil {
		t.Fatal(err)
	}
	y.jobs.landings.Settle(t.Context(), first)
	view, err := y.jobs.View(first)
	if err != nil || view.Worktree.Stays != "it holds 1 file or folder that git ignores, and only the owner can drop them" || y.read(view.Worktree.Path, "build.log") != "ignored\n" {
		t.Errorf("it is shown as %+v, %v", view.Worktree, err)
	}
	if _, err := y.finish(first, gitwork.Discard); err != nil { // his word
		t.Fatal(err)
	}
	y.reclaimed(first)
}

func TestJOB_18_WhatTheOwnerLandsByHimselfCounts(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	y.run(y.main, "merge", "-q", "--squash", "bridge/"+first)
	y.jobs.landings.Settle(t.Context(), first)
	if entry, _ := y.jobs.get(first); !entry.Worktree.Exists() {
		t.Fatal("before the commit it is taken away")
	}
	y.run(y.main, "commit", "-qm", "by hand")
	y.jobs.landings.Settle(t.Context(), first)
	y.reclaimed(first)
}

func TestJOB_08_AReclaimedJobGoesOn(t *testing.T) {
	y := newYard(t)
	s, _ := y.give("01", y.mend)
	if _, err := y.finish(first, gitwork.Squash); err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	if _, err := s.say(first, "more"); err != nil {
		t.Fatal(err)
	}
	y.carryOut(y.started(), func(tree string) { y.write(tree, "more.txt", "more\n") })
	if entry, _ := y.jobs.get(first); !entry.Worktree.Exists() {
		t.Errorf("the book has %+v", entry.Worktree)
	}
	if got, err := y.finish(first, gitwork.Squash); err != nil || !got.Done || y.read(y.main, "more.txt") != "more\n" {
		t.Errorf("finished again: %+v, %v", got, err)
	}
}

func TestJOB_18_OnlyWhatHasEndedIsFinished(t *testing.T) {
	y := newYard(t)
	s := y.join("boss", "s1")
	s.mustSpawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"cwd":%q}`, y.main))
	y.started()
	s.mustSpawn("02", `{"prompt":"x"}`)
	r := y.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("12")
	for name, code := range map[string]bridge.Code{first: bridge.Conflict, second: bridge.Invalid, "codex-job-00000009": bridge.NotFound} {
		_, err := y.finish(name, gitwork.Squash)
		wantCode(t, name, err, code)
	}
	_, err := y.finish(first, "push")
	wantCode(t, "an unknown action", err, bridge.Invalid)
}

func TestJOB_11_OnlyTheOwnerFinishes(t *testing.T) {
	y := newYard(t)
	s, _ := y.give("01", y.mend)
	_, err := s.JobFinish(t.Context(), api.JobFinishArgs{Job: first, Action: "discard"})
	wantCode(t, "its supervisor", err, bridge.Denied)
	if got, err := y.dial(api.RoleOwner).JobFinish(t.Context(), api.JobFinishArgs{Job: first, Action: "keep"}); err != nil || !got.Done {
		t.Errorf("the owner: %+v, %v", got, err)
	}
	// From here on this process runs below an agent.
	agent := api.Register{Kind: bridge.Claude, Name: "above", SessionID: "s2", Cwd: y.main, AgentPID: os.Getppid(), HostKnown: true}
	if _, err := y.dial(api.RoleSession).Register(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	_, err = y.dial(api.RoleOwner).JobFinish(t.Context(), api.JobFinishArgs{Job: first, Action: "discard"})
	wantCode(t, "the owner's command below an agent", err, bridge.Denied)
	if y.run(y.main, "branch", "--list", "bridge/discarded/*") != "" {
		t.Error("it was dropped all the same")
	}
}

func TestJOB_18_TheDiffIsTheJobsOwn(t *testing.T) {
	y := newYard(t)
	base := y.run(y.main, "rev-parse", "HEAD")
	y.give("01", func(tree string) {
		y.mend(tree)
		diff, err := y.jobs.Diff(t.Context(), first)
		if err != nil || len(diff.Files) != 2 {
			t.Errorf("while it works: %+v, %v", diff, err)
		}
	})
	y.write(y.main, "other.txt", "the branch's own\n")
	y.run(y.main, "add", "-A")
	y.run(y.main, "commit", "-qm", "meanwhile")
	check := func() {
		t.Helper()
		diff, err := y.jobs.Diff(t.Context(), first)
		if err != nil || diff.Base != base || diff.Head != y.run(y.main, "rev-parse", "bridge/"+first) || len(diff.Files) != 2 {
			t.Fatalf("%+v, %v", diff, err)
		}
		if a := diff.Files[0]; a.Path != "a.txt" || a.Status != "modified" || a.Added != 1 || a.Removed != 1 || !strings.Contains(a.Patch, "-two\n+2\n") {
			t.Errorf("a.txt is %+v", a)
		}
	}
	check()
	if _, err := y.finish(first, gitwork.Merge); err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	check()
	_, err := y.jobs.Diff(t.Context(), "codex-job-00000009")
	wantCode(t, "of no job", err, bridge.NotFound)
}

func TestJOB_18_TheDiffOfAJobInTheOwnersFolderEndsWithIt(t *testing.T) {
	y := newYard(t)
	s := y.join("boss", "s1")
	y.write(y.main, "owners.txt", "before\n")
	s.mustSpawn("01", fmt.Sprintf(`{"prompt":"x","access":"edit","cwd":%q}`, y.main))
	r := y.started()
	head, tree, err := y.git.Start(t.Context(), y.main, first)
	if err != nil {
		t.Fatal(err)
	}
	r.connect(api.RunnerReport{})
	r.work()
	y.write(y.main, "a.txt", "its own\n")
	end, err := y.git.End(t.Context(), y.main, first)
	if err != nil {
		t.Fatal(err)
	}
	state := runs.StateFile{Job: first, Run: 1, State: job.Finished, Base: head.Commit, BaseTree: tree, HeadTree: end}
	data, err := state.Encode()
	if err == nil {
		err = disk.WriteAtomic(filepath.Join(r.folder, "state.json"), data, disk.PrivateFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.finish("12")
	y.write(y.main, "owners.txt", "after\n")
	diff, err := y.jobs.Diff(t.Context(), first)
	if err != nil || len(diff.Files) != 1 || diff.Files[0].Path != "a.txt" || diff.Base != head.Commit {
		t.Errorf("%+v, %v", diff, err)
	}
}

// Whoever reads the changes of a job while its worktree is taken away reads what it did,
// whatever is left of the worktree.
func TestRWM_19_AReadThatRacesTheCleanUpIsRight(t *testing.T) {
	y := newYard(t)
	y.down()
	plain := y.git
	step, goOn := make(chan gitwork.Removal), make(chan struct{})
	y.git = plain.Removing(func(moment gitwork.Removal) {
		step <- moment
		<-goOn
	})
	y.up()
	y.give("01", y.mend)
	entry, err := y.jobs.get(first)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(y.changes())
	if _, err := y.finish(first, gitwork.Squash); err != nil {
		t.Fatal(err)
	}
	for _, moment := range []gitwork.Removal{gitwork.RemovalBegins, gitwork.RemovalUnlocked, gitwork.RemovalDone} {
		select {
		case got := <-step:
			if got != moment {
				t.Fatalf("it is at %q, want %q", got, moment)
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("the clean-up does not come to %q", moment)
		}
		if moment == gitwork.RemovalUnlocked { // git has removed all of its files but some
			saved := filepath.Join(t.TempDir(), "git")
			if err := os.Rename(filepath.Join(entry.Worktree.Path, ".git"), saved); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(y.changes()); got != want {
				t.Errorf("%s, without its .git: %s, want %s", moment, got, want)
			}
			if err := os.Rename(saved, filepath.Join(entry.Worktree.Path, ".git")); err != nil {
				t.Fatal(err)
			}
			text := y.read(entry.Worktree.Path, "a.txt")
			if err := os.Remove(filepath.Join(entry.Worktree.Path, "a.txt")); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(y.changes()); got != want {
				t.Errorf("%s, without a file: %s, want %s", moment, got, want)
			}
			y.write(entry.Worktree.Path, "a.txt", text)
		}
		if got := fmt.Sprint(y.changes()); got != want {
			t.Errorf("%s: %s, want %s", moment, got, want)
		}
		goOn <- struct{}{}
	}
	y.reclaimed(first)
	if got := fmt.Sprint(y.changes()); got != want {
		t.Errorf("afterwards: %s, want %s", got, want)
	}
}

// A read that began before the clean-up and ends in it is answered from the branch, too.
func TestRWM_19_AReadThatTheCleanUpOvertakesIsRight(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	want := fmt.Sprint(y.changes())
	entry, err := y.jobs.get(first)
	if err != nil {
		t.Fatal(err)
	}
	y.run(y.main, "worktree", "unlock", entry.Worktree.Path)
	for _, damage := range []struct {
		name string
		do   func()
	}{
		{"without its .git", func() { _ = os.Remove(filepath.Join(entry.Worktree.Path, ".git")) }},
		{"without git's record", func() { y.run(y.main, "worktree", "prune") }},
		{"without its files", func() { _ = os.RemoveAll(entry.Worktree.Path) }},
	} {
		damage.do()
		if got := fmt.Sprint(y.changes()); got != want {
			t.Errorf("%s: %s, want %s", damage.name, got, want)
		}
	}
}

// changes are those of the first job, without their patches.
func (y *yard) changes() (all []string) {
	y.t.Helper()
	diff, err := y.jobs.Diff(y.t.Context(), first)
	if err != nil {
		return []string{err.Error()}
	}
	for _, change := range diff.Files {
		all = append(all, change.Status+" "+change.Path)
	}
	return append(all, diff.Head)
}

// The owner is told what a landing leaves out.
func TestRWM_15_TheOwnerIsToldWhatALandingLeavesOut(t *testing.T) {
	y := newYard(t)
	y.give("01", func(tree string) {
		y.mend(tree)
		y.run(tree, "init", "-q", "own")
	})
	got, err := y.finish(first, gitwork.Squash)
	if err != nil || !got.Done || len(got.LeftOut) != 1 || !strings.HasPrefix(got.LeftOut[0], "own/ is another repository") {
		t.Errorf("Finish = %+v, %v", got, err)
	}
	wantText(t, got.LeftOutText(), "still in the worktree:\n  own/ is another repository")
	if (api.JobFinished{}).LeftOutText() != "" {
		t.Error("where nothing is left out something is said")
	}
}

// A run that did not start has no worktree in the book; the next one gets another.
func TestRWM_14_AWorktreeThatWasWithdrawnIsOnlyPlanned(t *testing.T) {
	y := newYard(t)
	s := y.join("boss", "s1")
	s.mustSpawn("01", fmt.Sprintf(`{"prompt":"x","worktree":true,"cwd":%q}`, y.main))
	r := y.started()
	r.connect(api.RunnerReport{})
	repository, err := y.git.Repository(t.Context(), y.main)
	if err != nil {
		t.Fatal(err)
	}
	worktree, err := y.git.Add(t.Context(), repository, first, y.home.Worktrees())
	if err != nil {
		t.Fatal(err)
	}
	record := worktree.Record()
	state := r.state(job.Starting)
	state.Worktree = &record
	r.report(api.RunnerReport{State: state})
	if err := y.git.Withdraw(t.Context(), worktree, true, true); err != nil {
		t.Fatal(err)
	}
	state = r.state(job.Failed)
	state.Worktree = &job.Worktree{RepoRoot: worktree.Main, Path: worktree.Path, Cwd: worktree.Folder, Branch: worktree.Branch}
	report := r.end(job.Outcome{State: job.Failed, Ended: job.EndedNotStarted}, "")
	report.State = state
	r.report(report)
	entry, err := y.jobs.get(first)
	if err != nil || entry.Worktree.IsMade() {
		t.Errorf("the book has %+v, %v", entry.Worktree, err)
	}
	if _, err := s.say(first, "again"); err != nil {
		t.Fatal(err)
	}
	if again := y.started(); again.spec.Worktree == nil || again.spec.Worktree.Path != "" {
		t.Errorf("the next run is asked for %+v", again.spec.Worktree)
	}
}

// A read that is in the middle of a checkout when that is taken away reads the branch.
func TestRWM_19_ACleanUpInTheMiddleOfAReadIsSeen(t *testing.T) {
	y := newYard(t)
	y.down()
	var large string
	var once sync.Once
	y.git = y.git.Say(func(string) { // the snapshot is taken, and not compared yet
		once.Do(func() {
			if err := os.Remove(large); err != nil {
				t.Error(err)
			}
			y.jobs.landings.Settle(context.WithoutCancel(t.Context()), first)
		})
	})
	y.up()
	y.give("01", y.mend)
	entry, err := y.jobs.get(first)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(y.changes())
	large = filepath.Join(entry.Worktree.Path, "large") // keeps the worktree, and is left out
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<30); err != nil {
		t.Fatal(err)
	}
	y.run(y.main, "merge", "-q", entry.Worktree.Branch)
	if got := fmt.Sprint(y.changes()); got != want {
		t.Errorf("it reads %s, want %s", got, want)
	}
	if _, err := os.Lstat(entry.Worktree.Path); err == nil {
		t.Error("the worktree was not taken away meanwhile")
	}
}
