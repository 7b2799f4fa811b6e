//go:build !windows

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/job"
	"bridge/backend/sandbox"
)

func TestJOB_08_AWorktreeJobWorksInItsOwnCheckoutAndNothingIsLost(t *testing.T) {
	b := newBench(t)
	b.repository()
	script := "do echo two >> old.txt; git add -A; git -c user.name=A -c user.email=a@example.com commit -qm mine; exit 3\n" +
		"do echo new > made; echo staged > both; git add both; echo later > both\nsay done"
	b.spec(script, func(s *job.SpecFile) { s.Worktree = &job.Worktree{} })
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
	if len(seen.Files) != 1 || seen.Files[0] != (job.Changed{Path: "old.txt", Status: "modified", Added: 1}) {
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
	b.spec("do cat .env\nsay done", func(s *job.SpecFile) { s.Worktree = &job.Worktree{} })
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
	b.spec("do touch "+b.home+"/ran\nsay done", func(s *job.SpecFile) { s.Worktree = &job.Worktree{} })
	envelope := b.run()
	if envelope.State != job.Failed || envelope.Ended != job.EndedNotStarted || !strings.Contains(envelope.Error, "set-up command") || b.exists(b.home+"/ran") {
		t.Errorf("the envelope says %+v", envelope)
	}
	if log := readFile(t, b.home, "runs", jobName+".log"); !strings.Contains(log, "no network") {
		t.Errorf("the log says %q", log)
	}
}

func TestJOB_14_AReadJobWritesNowhereAndSaysWhatHeld(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no floor was tried: %v", err)
	}
	b := newBench(t)
	b.floor = true
	b.spec("do echo x > "+b.work+"/made\nsay done", func(s *job.SpecFile) { s.Access = job.AccessRead })
	envelope := b.run()
	if b.exists(b.work+"/made") || envelope.State != job.Finished || envelope.Evidence.Layer != string(job.FloorSandbox) {
		t.Errorf("made: %t; the envelope says %+v", b.exists(b.work+"/made"), envelope)
	}
}

func TestJOB_14_AReadJobWithoutItsFloorIsRefused(t *testing.T) {
	b := newBench(t)
	b.spec("do touch "+b.home+"/ran\nsay done", func(s *job.SpecFile) { s.Access = job.AccessRead })
	if envelope := b.run(); envelope.Ended != job.EndedNotStarted || b.exists(b.home+"/ran") {
		t.Errorf("the envelope says %+v", envelope)
	}
	allowed := newBench(t)
	allowed.spec("say done", func(s *job.SpecFile) { s.Access, s.ToolOnly = job.AccessRead, true })
	if envelope := allowed.run(); envelope.State != job.Finished || envelope.Evidence.Layer != string(job.FloorNone) {
		t.Errorf("where the owner allows it the envelope says %+v", envelope)
	}
}

func TestJOB_08_WithoutARepositoryThereIsNoWorktree(t *testing.T) {
	b := newBench(t)
	b.spec("say done", func(s *job.SpecFile) { s.Worktree = &job.Worktree{} })
	if envelope := b.run(); envelope.Ended != job.EndedNotStarted || !strings.Contains(envelope.Error, "no git repository") {
		t.Errorf("the envelope says %+v", envelope)
	}
}
