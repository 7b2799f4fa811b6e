package gitwork

import (
	"crypto/sha1" //nolint:gosec // git's own ids
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// generated is how many repositories every run makes, at least.
const generated = 12

// TestJOB_08_NoCommitAndNoFileIsEverLost makes repositories in every state that an
// agent and an owner leave, lets random operations loose on them, and looks after each
// for every file, every staged file and every commit that was there before it.
func TestJOB_08_NoCommitAndNoFileIsEverLost(t *testing.T) {
	count := testkit.Rounds(t, generated, 200)
	did := map[string]int{}
	for seed := 1; seed <= count; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			s := newScene(t, uint64(seed), did)
			for range 5 + s.random.IntN(8) {
				s.agent()
			}
			for range 3 + s.random.IntN(5) {
				s.bridge()
				if s.random.IntN(3) == 0 {
					s.agent()
				}
			}
			if out, err := s.try(s.main, "fsck", "--connectivity-only", "--no-dangling"); err != nil {
				t.Errorf("fsck: %v: %s", err, out)
			}
		})
	}
	t.Logf("what happened: %v", did)
	if count >= generated {
		for _, must := range []string{"park", "apply done", "squash done", "merge done", "discard done", "keep done", "reclaim done", "conflicts", "reclaim refused"} {
			if did[must] == 0 {
				t.Errorf("in %d repositories there was never: %s", count, must)
			}
		}
	}
}

// scene is a generated repository with a job's worktree.
type scene struct {
	*world
	random *rand.Rand
	tree   Worktree
	did    map[string]int
	n      int
}

func newScene(t *testing.T, seed uint64, did map[string]int) *scene {
	// Half of the scenes go without the floor, which takes a third of the time.
	s := &scene{world: newWorldWith(t, seed%2 == 0 && sandbox.Available() == nil), random: rand.New(rand.NewPCG(seed, 1)), did: did}
	s.write(s.main, ".worktreeinclude", ".env\n")
	s.write(s.main, ".env", "KEY=1\n")
	s.write(s.main, "moved.txt", strings.Repeat("a line\n", 30))
	s.commit(s.main, "second")
	if s.chance(3) {
		other := filepath.Join(s.dir, "library")
		s.git(s.dir, "clone", "-q", s.main, other)
		s.git(s.main, "submodule", "--quiet", "add", other, "lib")
		s.commit(s.main, "a submodule")
	}
	from := s.main
	if s.chance(3) {
		from = filepath.Join(s.dir, "linked")
		s.git(s.main, "worktree", "add", "-q", "-b", "linked", from)
		s.write(from, "of-linked.txt", "l\n")
		s.commit(from, "in the linked worktree")
	}
	if s.chance(3) {
		s.write(s.main, "owner-untracked.txt", "the owner's\n")
	}
	s.tree = s.add(from)
	if _, err := s.g.Include(s.ctx(), s.tree); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) chance(of int) bool { return s.random.IntN(of) == 0 }

func (s *scene) text() string {
	s.n++
	return fmt.Sprintf("text %d\n", s.n)
}

// agent does something that an agent or the owner does.
func (s *scene) agent() {
	dir := s.tree.Path
	if _, err := os.Stat(dir); err != nil || s.chance(5) {
		s.owner()
		return
	}
	name := []string{"a.txt", "src/b.txt", "new.txt", "deep/er/c.txt", "ünï côdé.txt", "-dash.txt"}[s.random.IntN(6)]
	switch s.random.IntN(16) {
	case 0, 1, 2:
		s.overwrite(dir, name)
	case 3, 4:
		s.overwrite(dir, name)
		s.try(dir, "add", "-A")
		s.try(dir, "commit", "-q", "-m", "by the agent")
	case 5: // staged in one form, left in another
		s.overwrite(dir, name)
		s.try(dir, "add", "--", name)
		s.overwrite(dir, name)
	case 6:
		os.Remove(filepath.Join(dir, name))
	case 7:
		s.try(dir, "mv", "moved.txt", fmt.Sprintf("moved-%d.txt", s.n))
	case 8:
		s.try(dir, "checkout", "-q", "--detach")
	case 9:
		s.try(dir, "checkout", "-q", "-b", fmt.Sprintf("agent-%d", s.n))
	case 10:
		s.try(dir, "commit", "-q", "--amend", "--no-edit", "--allow-empty")
	case 11:
		s.try(dir, "reset", "-q", "--soft", "HEAD~1")
	case 12:
		s.overwrite(dir, "out.log")
	case 13:
		s.try(dir, "merge", "-q", "main") // it may stop at a conflict
	case 14:
		s.try(dir, "stash", "-q")
	case 15:
		if s.chance(4) {
			s.git(dir, "init", "-q", "inner")
			s.overwrite(dir, "inner/own.txt")
			if s.chance(2) {
				s.commit(filepath.Join(dir, "inner"), "of its own")
			}
		} else {
			s.try(dir, "submodule", "--quiet", "update", "--init")
		}
	}
}

func (s *scene) overwrite(dir, name string) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		os.WriteFile(path, []byte(s.text()), 0o644)
	}
}

func (s *scene) owner() {
	switch s.random.IntN(6) {
	case 0:
		s.overwrite(s.main, "a.txt")
		s.try(s.main, "commit", "-q", "-a", "-m", "the owner's")
	case 1:
		s.overwrite(s.main, "owner.txt")
		s.try(s.main, "add", "owner.txt")
		s.try(s.main, "commit", "-q", "-m", "the owner's")
	case 2:
		s.overwrite(s.main, "src/b.txt")
	case 3:
		s.overwrite(s.main, []string{"new.txt", "out.log"}[s.random.IntN(2)])
	case 4: // a squash on the other side
		if _, err := s.try(s.main, "merge", "-q", "--squash", s.tree.Branch); err == nil {
			s.try(s.main, "commit", "-q", "-m", "squashed by hand")
		} else {
			s.try(s.main, "reset", "-q", "--merge")
		}
	case 5:
		s.try(s.main, "commit", "-q", "-a", "-m", "what is left")
	}
}

// bridge does one thing of ours and compares.
func (s *scene) bridge() {
	before := s.everything()
	drop := s.chance(3)
	what := s.operate(drop)
	s.did[what]++
	after := s.everything()
	for id := range before.objects {
		if !after.objects[id] {
			s.t.Fatalf("%s: object %s is gone", what, id)
		}
	}
	for _, id := range before.commits {
		if !after.reached[id] {
			s.t.Fatalf("%s: nothing names commit %s any more", what, id)
		}
	}
	for path, id := range before.files {
		if before.ignored[path] && after.files[filepath.Join(s.main, strings.TrimPrefix(path, s.tree.Path))] == id {
			continue // brought along from the main checkout, where it is
		}
		if after.files[path] == id || after.reached[id] || drop && strings.HasPrefix(what, "reclaim") && before.ignored[path] {
			continue
		}
		s.t.Fatalf("%s: %s was %s, is %q, and no commit holds what it was", what, path, id, after.files[path])
	}
	for id := range before.staged {
		if !after.staged[id] && !after.reached[id] {
			s.t.Fatalf("%s: the staged %s is in no index and no commit", what, id)
		}
	}
}

func (s *scene) operate(drop bool) string {
	actions := []Action{Apply, Squash, Merge, Keep, Discard}
	switch s.random.IntN(10) {
	case 0:
		_, err := s.g.Park(s.ctx(), s.tree, job)
		return s.came("park", err)
	case 1:
		_, err := s.g.Diff(s.ctx(), s.tree.Path, s.tree.BaseTree)
		return s.came("diff", err)
	case 2, 3, 4:
		_, err := s.g.Reclaim(s.ctx(), s.tree, job, drop)
		if err != nil {
			return s.came("reclaim refused", err)
		}
		return "reclaim done"
	default:
		action := actions[s.random.IntN(len(actions))]
		if action == Discard && !s.chance(3) {
			action = Squash
		}
		dry := s.chance(3)
		got, err := s.g.Finish(s.ctx(), s.tree, job, action, "", dry)
		switch {
		case err != nil:
			return s.came(string(action)+" refused", err)
		case len(got.Conflicts) > 0:
			return "conflicts"
		case got.Done:
			return string(action) + " done"
		}
		return string(action) + " dry"
	}
}

// came fails on an error that is not a refusal in words.
func (s *scene) came(what string, err error) string {
	_, gone := os.Stat(s.tree.Path)
	if err != nil && gone == nil && !slices.Contains([]bridge.Code{bridge.Conflict, bridge.NotFound, bridge.Invalid}, bridge.CodeOf(err)) {
		s.t.Errorf("%s: %v", what, err)
	}
	return what
}

// inventory is all that a repository and its checkouts hold.
type inventory struct {
	objects map[string]bool
	commits []string          // that a reference or a reflog names, with all before them
	reached map[string]bool   // commits and their files' ids that these reach
	files   map[string]string // path in a checkout → id of its content
	ignored map[string]bool
	staged  map[string]bool
}

func (s *scene) everything() inventory {
	inv := inventory{objects: map[string]bool{}, reached: map[string]bool{}, files: map[string]string{}, ignored: map[string]bool{}, staged: map[string]bool{}}
	for id := range strings.Lines(s.git(s.main, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered")) {
		inv.objects[strings.TrimSpace(id)] = true
	}
	dirs := []string{s.main}
	if _, err := os.Stat(s.tree.Path); err == nil {
		dirs = append(dirs, s.tree.Path)
	}
	for _, dir := range dirs {
		args := []string{"rev-list", "--objects", "--no-object-names", "--all", "--reflog"}
		for line := range strings.Lines(s.git(dir, args...)) {
			inv.reached[strings.TrimSpace(line)] = true
		}
		for line := range strings.Lines(s.git(dir, "rev-list", "--all", "--reflog")) {
			inv.commits = append(inv.commits, strings.TrimSpace(line))
		}
		for line := range strings.Lines(s.git(dir, "ls-files", "-s")) {
			if part := strings.Fields(line); part[0] != "160000" && !slices.Contains(part[2:3], "1") {
				inv.staged[part[1]] = true
			}
		}
		for _, name := range fields(s.git(dir, "-c", "core.quotePath=false", "ls-files", "-z", "--others", "--ignored", "--exclude-standard")) {
			inv.ignored[filepath.Join(dir, name)] = true
		}
		s.hash(dir, inv.files)
	}
	return inv
}

func (s *scene) hash(dir string, files map[string]string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() == ".git" {
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)) //nolint:gosec // git's own ids
		files[path] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
