//go:build !windows

package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

func TestJOB_08_AWorktreeJobWorksInItsOwnCheckoutAndNothingIsLost(t *testing.T) {
	b := newBench(t)
	b.repository()
	script := "do echo two >> old.txt; git add -A; git -c user.name=A -c user.email=a@example.com commit -qm mine; exit 3\n" +
		"do echo new > made; echo staged > both; git add both; echo later > both\nsay done"
	b.spec(script, func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	base := b.git(b.work, "rev-parse", "HEAD")
	envelope := b.run()
	if envelope.Branch != "bridge/"+jobName || envelope.Evidence.Base != base {
		t.Errorf("the envelope says %+v", envelope)
	}
	if head := b.git(b.work, "rev-parse", envelope.Branch); head != envelope.Evidence.Head || head == base {
		t.Errorf("the branch is at %s, the evidence says %s", head, envelope.Evidence.Head)
	}
	for name, want := range map[string]string{"old.txt": "one\ntwo", "made": "new", "both": "later"} {
		if got := b.git(b.work, "show", envelope.Branch+":"+name); got != want {
			t.Errorf("the branch has %s as %q, want %q", name, got, want)
		}
	}
	if status := b.git(envelope.Workdir, "status", "--porcelain"); status != "" {
		t.Errorf("the worktree is left with %s", status)
	}
	if subject := b.git(b.work, "log", "-1", "--format=%s", envelope.Branch); subject != "bridge: parked work of "+jobName {
		t.Errorf("the last commit is %q", subject)
	}
	if main := b.git(b.work, "status", "--porcelain"); main != "" || b.git(b.work, "rev-parse", "HEAD") != base {
		t.Errorf("the owner's checkout has %q", main)
	}
	if list := b.git(b.work, "worktree", "list", "--porcelain"); !strings.Contains(list, "locked bridge: "+jobName) {
		t.Errorf("the worktree is not locked: %s", list)
	}
}

func TestJOB_15_TheEvidenceIsWhatTheRunnerSaw(t *testing.T) {
	b := newBench(t)
	b.repository()
	if err := os.WriteFile(filepath.Join(b.work, "owners"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.spec("do echo two >> old.txt\ndo exit 3\nsay I changed nothing and all tests pass")
	seen := b.run().Evidence
	if len(seen.Files) != 1 || seen.Files[0] != (runs.Changed{Path: "old.txt", Status: "modified", Added: 1}) {
		t.Errorf("the files are %+v; what stood there before is none of them", seen.Files)
	}
	if len(seen.Commands) != 2 || seen.Commands[0].Command != "echo two >> old.txt" || seen.Commands[1].Exit == nil || *seen.Commands[1].Exit != 3 {
		t.Errorf("the commands are %+v", seen.Commands)
	}
	head := b.git(b.work, "rev-parse", "HEAD")
	if seen.Base != head || seen.Head != head || seen.Tokens != 17 || seen.CostUSD != 0.01 || seen.DurationMs <= 0 || seen.Ended != job.EndAnswer {
		t.Errorf("the evidence is %+v", seen)
	}
}

func TestJOB_19_AWorktreeIsMadeReady(t *testing.T) {
	b := newBench(t)
	b.repository()
	for name, text := range map[string]string{".gitignore": ".env\n", ".worktreeinclude": ".env\n", ".env": "KEY=1\n"} {
		if err := os.WriteFile(filepath.Join(b.work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.git(b.work, "add", ".gitignore", ".worktreeinclude")
	b.git(b.work, "commit", "-qm", "ignore")
	b.setUp = []string{"/bin/sh", "-c", "echo setting up; cat .env"}
	b.spec("do cat .env\nsay done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	if envelope := b.run(); envelope.State != job.Finished || *envelope.Evidence.Commands[0].Exit != 0 {
		t.Errorf("the envelope says %+v", envelope)
	}
	if log := readFile(t, b.home, "runs", jobName+".log"); !strings.Contains(log, "+ .env\n") || !strings.Contains(log, "setting up\nKEY=1\n") {
		t.Errorf("the log says %q", log)
	}
}

func TestJOB_19_ASetUpThatFailsStartsNoAgent(t *testing.T) {
	b := newBench(t)
	b.repository()
	b.setUp = []string{"/bin/sh", "-c", "echo no network >&2; exit 4"}
	b.spec("do touch "+b.home+"/ran\nsay done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	envelope := b.run()
	if envelope.State != job.Failed || envelope.Ended != job.EndedNotStarted || !strings.Contains(envelope.Error, "set-up command") || b.exists(b.home+"/ran") {
		t.Errorf("the envelope says %+v", envelope)
	}
	if log := readFile(t, b.home, "runs", jobName+".log"); !strings.Contains(log, "no network") {
		t.Errorf("the log says %q", log)
	}
}

// A set-up command may leave a server running, which holds its output.
func TestJOB_19_ASetUpIsDoneWhenItsCommandIs(t *testing.T) {
	b := newBench(t)
	b.repository()
	left := filepath.Join(b.home, "left")
	b.setUp = []string{"/bin/sh", "-c", "sleep 1000 & echo $! > " + left + "; echo ready"}
	b.spec("say done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	t.Cleanup(func() {
		if pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, left))); err == nil {
			_ = proc.KillTree(pid) // it may have ended with the run
		}
	})
	if envelope := b.run(); envelope.State != job.Finished {
		t.Errorf("the envelope says %+v", envelope)
	}
	if log := readFile(t, b.home, "runs", jobName+".log"); !strings.Contains(log, "ready\n") {
		t.Errorf("the log says %q", log)
	}
}

func TestJOB_14_AReadJobWritesNowhereAndSaysWhatHeld(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no floor was tried: %v", err)
	}
	b := newBench(t)
	b.floor = true
	b.spec("do echo x > "+b.work+"/made\nsay done", func(s *runs.SpecFile) { s.Access = job.AccessRead })
	envelope := b.run()
	if b.exists(b.work+"/made") || envelope.State != job.Finished || envelope.Evidence.Layer != string(job.FloorSandbox) {
		t.Errorf("made: %t; the envelope says %+v", b.exists(b.work+"/made"), envelope)
	}
}

func TestJOB_14_AReadJobWithoutItsFloorIsRefused(t *testing.T) {
	b := newBench(t)
	b.spec("do touch "+b.home+"/ran\nsay done", func(s *runs.SpecFile) { s.Access = job.AccessRead })
	if envelope := b.run(); envelope.Ended != job.EndedNotStarted || b.exists(b.home+"/ran") {
		t.Errorf("the envelope says %+v", envelope)
	}
	allowed := newBench(t)
	allowed.spec("say done", func(s *runs.SpecFile) { s.Access, s.ToolOnly = job.AccessRead, true })
	if envelope := allowed.run(); envelope.State != job.Finished || envelope.Evidence.Layer != string(job.FloorNone) {
		t.Errorf("where the owner allows it the envelope says %+v", envelope)
	}
}

func TestJOB_08_WithoutARepositoryThereIsNoWorktree(t *testing.T) {
	b := newBench(t)
	b.spec("say done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	if envelope := b.run(); envelope.Ended != job.EndedNotStarted || !strings.Contains(envelope.Error, "no git repository") {
		t.Errorf("the envelope says %+v", envelope)
	}
}

// A job in a part of a repository may commit: git's folder is writable to it, though
// it lies above. A job that reads may not.
func TestJOB_14_AnEditJobMayWriteItsGitFolder(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no floor was tried: %v", err)
	}
	for access, want := range map[job.Access]string{job.AccessEdit: "of the job", job.AccessRead: "begin"} {
		b := newBench(t)
		b.repository()
		b.git(b.work, "commit", "-q", "--allow-empty", "-m", "begin")
		part := filepath.Join(b.work, "part")
		if err := os.Mkdir(part, 0o700); err != nil {
			t.Fatal(err)
		}
		b.floor = true
		script := "do git -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m 'of the job'\ndo touch ../above\nsay done"
		b.spec(script, func(s *runs.SpecFile) { s.Folder, s.Access = part, access })
		b.run()
		if subject := b.git(b.work, "log", "-1", "--format=%s"); subject != want || b.exists(b.work+"/above") {
			t.Errorf("%s: the last commit is %q, want %q; above it was written: %v", access, subject, want, b.exists(b.work+"/above"))
		}
	}
}

// A file named .git leads to any repository: that of a paired PC's job must not open
// what lies outside of the folder that the PC was allowed.
func TestRMT_09_AJobOfAPairedPCGetsNoGitFolderElsewhere(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no floor was tried: %v", err)
	}
	for _, c := range []struct {
		name                    string
		paired, elsewhere, want bool
	}{
		{"of this PC, in a folder that leads elsewhere", false, true, true},
		{"of a paired one, in a folder that leads elsewhere", true, true, false},
		{"of a paired one, in the repository's own folder", true, false, true},
	} {
		b := newBench(t)
		b.repository()
		b.git(b.work, "commit", "-q", "--allow-empty", "-m", "begin")
		b.floor = true
		folder := b.work
		if c.elsewhere {
			folder = filepath.Join(t.TempDir(), "led")
			b.git(b.work, "worktree", "add", "-q", "--detach", folder)
		}
		folder, err := disk.Canonical(folder)
		if err != nil {
			t.Fatal(err)
		}
		hook := filepath.Join(b.work, ".git", "hooks", "post-checkout")
		script := "do mkdir -p " + filepath.Dir(hook) + "; echo x > " + hook + "\ndo echo x > made\nsay done"
		b.spec(script, func(s *runs.SpecFile) { s.Folder, s.Unlinked, s.Access = folder, c.paired, job.AccessEdit })
		if envelope := b.run(); envelope.State != job.Finished || !b.exists(filepath.Join(folder, "made")) || b.exists(hook) != c.want {
			t.Errorf("%s: it is %s with %q; the hook is there: %v, want %v", c.name, envelope.State, envelope.Error, b.exists(hook), c.want)
		}
	}
}

func TestRMT_09_AFolderToWhichALinkLeadsByNowIsNotWorkedIn(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, a job of a paired PC needs a floor: %v", err)
	}
	for name, swapped := range map[string]bool{"as it was": false, "swapped for a link": true} {
		b := newBench(t)
		b.floor = true // a job of a paired PC always has one
		folder, elsewhere := filepath.Join(b.work, "in"), t.TempDir()
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		b.spec("do echo x > made\nsay done", func(s *runs.SpecFile) { s.Folder, s.Unlinked = folder, true })
		if swapped {
			if err := os.Remove(folder); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, folder); err != nil {
				t.Fatal(err)
			}
		}
		envelope := b.run()
		if envelope.Variables != nil {
			t.Errorf("%s: another PC is told of the variables here: %q", name, envelope.Variables)
		}
		_, err := os.Stat(filepath.Join(elsewhere, "made"))
		if (envelope.State == job.Finished) == swapped || err == nil || swapped && !strings.Contains(envelope.Error, "a link leads elsewhere") {
			t.Errorf("%s: it is %s with %q, and elsewhere %v", name, envelope.State, envelope.Error, err)
		}
	}
}

func TestRMT_09_ACheckoutIsMadeWhereTheSpecSays(t *testing.T) {
	b := newBench(t)
	b.repository()
	there := filepath.Join(b.work, "worktrees")
	b.spec("do echo two >> old.txt\nsay done", func(s *runs.SpecFile) { s.Worktree, s.Worktrees = &job.Worktree{}, there })
	if envelope := b.run(); envelope.State != job.Finished || filepath.Dir(envelope.Workdir) != there {
		t.Errorf("it is %s in %s", envelope.State, envelope.Workdir)
	}
}

// What stands where the worktree of a job would be is taken over only where it is that of
// a runner which died: the job's own branch, of the repository that it works on.
func TestJOB_08_AnotherCheckoutInTheWayIsNotTakenOver(t *testing.T) {
	for what, lay := range map[string]func(b *bench, path string){
		"on a branch of its own": func(b *bench, path string) { b.git(b.work, "worktree", "add", "-q", "-b", "mine", path) },
		"of another repository": func(b *bench, path string) {
			b.git(b.home, "clone", "-q", b.work, path)
			b.git(path, "checkout", "-q", "-b", "bridge/"+jobName)
		},
		"without a repository": func(b *bench, path string) {
			err := os.MkdirAll(path, 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(path, "somebodys"), nil, 0o600)
			}
			if err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run("JOB-08 "+what, func(t *testing.T) {
			b := newBench(t)
			b.repository()
			repository, err := b.options().Git.Repository(t.Context(), b.work)
			if err != nil {
				t.Fatal(err)
			}
			path, _, err := repository.WorktreePath(jobName, filepath.Join(b.home, "worktrees"))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(path), 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			lay(b, path)
			b.spec("do echo two > made\nsay done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
			if envelope := b.run(); envelope.State != job.Failed || envelope.Ended != job.EndedNotStarted {
				t.Errorf("the envelope says %+v", envelope)
			}
			if b.exists(filepath.Join(path, "made")) {
				t.Error("the job worked there")
			}
		})
	}
}

// A worktree job that takes its .git away is told from one that has a worktree: the
// repository in which Bridge's home lies stays as it is, and nothing is lost.
func TestRWM_01_AWorktreeWithoutItsGitIsNobodyElses(t *testing.T) {
	b := newBench(t)
	b.repository()
	b.git(b.home, "init", "-q")
	b.git(b.home, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "dotfiles")
	before := b.git(b.home, "for-each-ref") + b.git(b.home, "symbolic-ref", "HEAD")
	b.spec("do echo two > made; rm .git\nsay done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	envelope := b.run()
	if envelope.State != job.Finished {
		t.Errorf("the envelope says %+v", envelope)
	}
	if now := b.git(b.home, "for-each-ref") + b.git(b.home, "symbolic-ref", "HEAD"); now != before {
		t.Errorf("the repository around it was %q and is %q", before, now)
	}
	if !b.exists(filepath.Join(envelope.Workdir, "made")) {
		t.Error("the work is gone")
	}
	log, err := os.ReadFile(filepath.Join(b.home, "runs", jobName+".log"))
	if err != nil || !strings.Contains(string(log), "its files stay there") {
		t.Errorf("the log of the run says %v\n%s", err, log)
	}
}

// A job in a folder below a home that is a repository takes up that folder alone, also
// where it goes on, and its checkout is recorded before it begins.
func TestRWM_01_AJobBelowADotfilesRepositoryTakesUpItsFolder(t *testing.T) {
	b := newBench(t)
	person := t.TempDir()
	b.work = filepath.Join(person, "notes")
	if err := os.MkdirAll(b.work, 0o700); err != nil {
		t.Fatal(err)
	}
	b.git(person, "init", "-q")
	b.git(person, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "dotfiles")
	if err := os.WriteFile(filepath.Join(person, "key"), []byte("made up"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.spec("do echo two > made; echo other > ../beside\nsay done")
	envelope := b.run()
	if len(envelope.Evidence.Files) != 1 || envelope.Evidence.Files[0].Path != "notes/made" {
		t.Errorf("the evidence has %+v", envelope.Evidence.Files)
	}
	if names := b.git(person, "ls-tree", "-r", "--name-only", "refs/bridge/"+jobName+"/end"); names != "notes/made" {
		t.Errorf("the repository holds %q", names)
	}
	if recorded := b.state().Checkout; recorded == nil || recorded.Inside != "notes" || recorded.GitDir == "" {
		t.Errorf("recorded is %+v", recorded)
	}
}

// repository makes the folder of the job a checkout with one commit.
func (b *bench) repository() {
	b.Helper()
	work, err := disk.Canonical(b.work)
	if err != nil {
		b.Fatal(err)
	}
	b.work = work
	if err := os.WriteFile(filepath.Join(b.home, ".gitconfig"), []byte("[user]\nname = O\nemail = o@example.com\n[init]\ndefaultBranch = main\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.work, "old.txt"), []byte("one\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.git(b.work, "init", "-q", ".")
	b.git(b.work, "add", "-A")
	b.git(b.work, "commit", "-qm", "first")
}

func (b *bench) git(dir string, args ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestSEC_09_AFolderThatBecameALinkToAReservedOneIsNotWorkedIn: the folder is looked at
// when the run starts, too.
func TestSEC_09_AFolderThatBecameALinkToAReservedOneIsNotWorkedIn(t *testing.T) {
	for access, refused := range map[job.Access]bool{job.AccessAsk: true, job.AccessEdit: true, job.AccessRead: false} {
		t.Run(string(access), func(t *testing.T) {
			b := newBench(t)
			b.reserved = true
			folder := filepath.Join(t.TempDir(), "folder")
			if err := os.Symlink(b.home, folder); err != nil {
				t.Skip("no links on this system:", err)
			}
			b.spec("do echo x > made\nsay done", func(s *runs.SpecFile) { s.Folder, s.Access = folder, access })
			envelope := b.run()
			_, err := os.Stat(filepath.Join(b.home, "made"))
			if strings.Contains(envelope.Error, "no job may write in "+folder) != refused || refused && (envelope.State != job.Failed || err == nil) {
				t.Errorf("it is %s: %q, %v", envelope.State, envelope.Error, err)
			}
		})
	}
}

// Who commits is noted before the job begins, and stays when its worktree is made again,
// whatever the job has written into the settings.
func TestRWM_08_WhoCommitsIsNotedBeforeTheJobBegins(t *testing.T) {
	b := newBench(t)
	b.repository()
	b.git(b.work, "config", "author.name", "Olga Owner")
	b.spec("do git config author.name Job; echo x > one.txt\nsay done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	b.run()
	author := func() string { return b.git(b.work, "log", "-1", "--format=%an|%s", gitwork.BranchOf(jobName)) }
	if got := author(); !strings.HasPrefix(got, "Olga Owner|bridge: parked work") {
		t.Errorf("the work of the first run is by %s", got)
	}
	had := *b.state().Worktree
	b.git(b.work, "worktree", "remove", "--force", "--force", had.Path)
	if err := os.Remove(filepath.Join(b.folder, "envelope.json")); err != nil {
		t.Fatal(err)
	}
	b.spec("do echo x > two.txt\nsay done", func(s *runs.SpecFile) { s.Worktree, s.Run = &had, 2 })
	b.run()
	if got := author(); !strings.HasPrefix(got, "Olga Owner|bridge: parked work") || !strings.Contains(b.git(b.work, "ls-tree", "--name-only", gitwork.BranchOf(jobName)), "two.txt") {
		t.Errorf("the work of the second run is by %s", got)
	}
}
