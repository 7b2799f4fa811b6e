//go:build !windows

package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/ipc/api"
)

// refusing is a driver whose agent does not start. It does something before.
type refusing struct {
	job.Driver
	before func(folder string)
}

func (r refusing) Start(_ context.Context, spec job.Spec) (job.Run, error) {
	r.before(spec.Folder)
	return nil, errors.New("no agent today")
}

// A run whose agent is not started leaves no worktree, no branch, no lock and no folder,
// whatever failed; what an agent may have done stays.
func TestRWM_14_WhatDidNotStartLeavesNothing(t *testing.T) {
	fails := errors.New("it fails here")
	start := func(before func(string)) func(*bench, *Options) {
		return func(_ *bench, o *Options) {
			o.Driver = func(bridge.AgentKind) (job.Driver, error) { return refusing{before: before}, nil }
		}
	}
	for name, c := range map[string]struct {
		fault func(b *bench, o *Options)
		stays bool
	}{
		"the set-up command": {fault: func(_ *bench, o *Options) { o.SetUp = []string{"/bin/sh", "-c", "mkdir sub; echo x > sub/new; exit 4"} }},
		"what is brought along": {fault: func(b *bench, o *Options) {
			if err := os.WriteFile(filepath.Join(b.work, ".worktreeinclude"), []byte("big\n"), 0o600); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.work, ".git", "info", "exclude"), []byte("big\n"), 0o600); err != nil {
				b.Fatal(err)
			}
			big := filepath.Join(b.work, "big")
			b.touch(big)
			if err := os.Truncate(big, 2<<30); err != nil {
				b.Fatal(err)
			}
		}},
		"a reserved folder": {fault: func(b *bench, o *Options) {
			o.CheckFolder = func(folder string) error {
				if folder == b.work {
					return nil
				}
				return fails
			}
		}},
		"the driver": {fault: func(_ *bench, o *Options) {
			o.Driver = func(bridge.AgentKind) (job.Driver, error) { return nil, fails }
		}},
		"what the config says": {fault: func(_ *bench, o *Options) { o.Fit = func(spec job.Spec) (job.Spec, error) { return spec, fails } }},
		"the journal": {fault: func(b *bench, o *Options) {
			o.Fit = func(spec job.Spec) (job.Spec, error) {
				return spec, os.Mkdir(filepath.Join(b.folder, "journal.jsonl"), 0o700)
			}
		}},
		"the agent": {fault: start(func(string) {})},
		"the agent, which wrote something": {stays: true, fault: start(func(folder string) {
			_ = os.WriteFile(filepath.Join(folder, "work.txt"), []byte("work\n"), 0o600)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.repository()
			o := b.options()
			c.fault(b, &o)
			refs, worktrees := b.git(b.work, "for-each-ref"), b.git(b.work, "worktree", "list", "--porcelain")
			b.spec("say done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
			if err := Run(b.Context(), o); err != nil {
				t.Fatal(err)
			}
			if envelope := b.envelope(); envelope.Ended != job.EndedNotStarted || envelope.Branch != "" && !c.stays {
				t.Errorf("the envelope says %+v", envelope)
			}
			var left []string
			if b.git(b.work, "for-each-ref") != refs {
				left = append(left, "a branch")
			}
			if b.git(b.work, "worktree", "list", "--porcelain") != worktrees || b.exists(filepath.Join(b.work, ".git", "worktrees")) {
				left = append(left, "a worktree")
			}
			if folders, err := os.ReadDir(filepath.Join(b.home, "worktrees")); err == nil && len(folders) > 0 {
				left = append(left, "a folder")
			}
			if b.state().Worktree.IsMade() {
				left = append(left, "a worktree in the state")
			}
			if (len(left) > 0) != c.stays {
				t.Errorf("left: %v", left)
			}
			report := b.broker.until(b, "the end", func(r api.RunnerReport) bool { return r.Result != nil })
			if report.State.Worktree.IsMade() != c.stays {
				t.Errorf("the broker heard of %+v", report.State.Worktree)
			}
		})
	}
}

// A run that did not start can be continued: it gets a worktree anew.
func TestRWM_14_ARunThatDidNotStartCanBeContinued(t *testing.T) {
	b := newBench(t)
	b.repository()
	b.setUp = []string{"/bin/false"}
	b.spec("say done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	b.run()
	b.setUp = nil
	b.spec("do echo x > made.txt\nsay done", func(s *runs.SpecFile) { s.Worktree, s.Run = &job.Worktree{}, 2 })
	if err := os.Remove(filepath.Join(b.folder, "envelope.json")); err != nil {
		t.Fatal(err)
	}
	envelope := b.run()
	if envelope.State != job.Finished || !slices.ContainsFunc(envelope.Evidence.Files, func(f runs.Changed) bool { return f.Path == "made.txt" }) {
		t.Errorf("the envelope says %+v", envelope)
	}
}

// A worktree that was taken away after its work landed, and is made again for a run that
// does not start, goes again; its branch stays.
func TestRWM_14_AWorktreeThatIsMadeAgainGoesAgain(t *testing.T) {
	b := newBench(t)
	b.repository()
	b.spec("do echo x > made.txt\nsay done", func(s *runs.SpecFile) { s.Worktree = &job.Worktree{} })
	b.run()
	had := *b.state().Worktree
	b.git(b.work, "worktree", "remove", "--force", "--force", had.Path)
	b.setUp = []string{"/bin/false"}
	b.spec("say done", func(s *runs.SpecFile) { s.Worktree, s.Run = &had, 2 })
	if err := os.Remove(filepath.Join(b.folder, "envelope.json")); err != nil {
		t.Fatal(err)
	}
	if envelope := b.run(); envelope.Ended != job.EndedNotStarted {
		t.Errorf("the envelope says %+v", envelope)
	}
	if b.exists(had.Path) || strings.Contains(b.git(b.work, "worktree", "list"), had.Path) {
		t.Error("the worktree is left")
	}
	if !strings.Contains(b.git(b.work, "for-each-ref"), gitwork.BranchOf(jobName)) {
		t.Error("the branch is gone, and the work with it")
	}
}

// noting is a driver that notes what it is given, and starts nothing.
type noting struct {
	job.Driver
	spec *job.Spec
}

func (n noting) Start(_ context.Context, spec job.Spec) (job.Run, error) {
	*n.spec = spec
	return nil, errors.New("no agent today")
}

// Each job in a linked checkout is given the git folder of that checkout by its name.
func TestRWM_23_TheGitFolderOfALinkedCheckoutIsGiven(t *testing.T) {
	for name, isOwn := range map[string]bool{"a worktree job": true, "a job in the owner's linked worktree": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.repository()
			linked := filepath.Join(b.home, "linked")
			b.git(b.work, "worktree", "add", "-q", linked, "-b", "topic")
			b.spec("say done", func(s *runs.SpecFile) {
				if s.Folder = linked; isOwn {
					s.Worktree = &job.Worktree{}
				}
			})
			var spec job.Spec
			o := b.options()
			o.Driver = func(bridge.AgentKind) (job.Driver, error) { return noting{spec: &spec}, nil }
			if err := Run(b.Context(), o); err != nil {
				t.Fatal(err)
			}
			common := b.git(b.work, "rev-parse", "--path-format=absolute", "--git-common-dir")
			if len(spec.Writable) != 2 || spec.Writable[0] != common || filepath.Dir(spec.Writable[1]) != filepath.Join(common, "worktrees") {
				t.Errorf("it may write %q besides its folder", spec.Writable)
			}
		})
	}
}
