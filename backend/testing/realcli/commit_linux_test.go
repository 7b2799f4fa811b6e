package realcli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
)

// TestRWM_23_AWorktreeJobOfEachKindCommits has real CLIs commit in the worktree of a job,
// below Bridge's floor and their own sandbox.
func TestRWM_23_AWorktreeJobOfEachKindCommits(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(kind)(t).(*bench)
			b.repository("p")
			git, err := gitwork.Open(gitwork.Options{Environ: b.home.Env(), Home: filepath.Join(b.home.Root, "scratch")})
			must(t, err)
			repository, err := git.Repository(soon(t), b.home.Project("p"))
			must(t, err)
			spec := b.Spec(t)
			tree, err := git.Add(soon(t), repository, spec.Job, filepath.Join(b.home.Root, "worktrees"))
			must(t, err)
			checkout, err := git.Describe(soon(t), tree)
			must(t, err)
			b.Script("commits", drivertest.Step{Run: "echo x > new.txt && git add new.txt && git commit -qm mine"}, drivertest.Step{Say: "done"})
			spec.Folder, spec.Writable, spec.Access = tree.Path, checkout.GitFolders(), job.AccessEdit
			spec.Sandbox, spec.Prompt = []string{self, "probe-sandbox"}, drivertest.Prompt("commits")
			j := drivertest.Start(t, b, spec)
			for event := range j.Run.Events() {
				if question, is := event.(job.Asked); is {
					if question.Question.LeavesSandbox {
						t.Errorf("it has to leave its sandbox for %s", question.Question.Subject)
					}
					go j.Run.Answer(soon(t), job.Answer{Question: question.Question.ID, Allow: true}) //nolint:errcheck // the turn's end tells
				}
				if _, is := event.(job.TurnEnded); is {
					break
				}
			}
			log, err := b.home.Run(soon(t), tree.Path, "", "/usr/bin/git", "log", "--format=%s", "-1", "--name-only")
			if must(t, err); !strings.HasPrefix(log, "mine") || !strings.Contains(log, "new.txt") {
				t.Errorf("the last commit is %q", log)
			}
		})
	}
}
