package gitwork

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	delegated "bridge/backend/core/job"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sandbox"
)

// gitFolders has git's own folders of a checkout, whatever its .git points to now.
type gitFolders struct {
	delegated.Checkout
	isRecorded bool      // the filters are those from before the job began
	settings   *settings // the settings as read; nil to read them each time
}

// Pin returns a Git that uses the checkout recorded before the job began; nil changes
// nothing. It caches the settings, so use it for one operation in one goroutine.
func (g *Git) Pin(recorded *delegated.Checkout) *Git {
	if recorded == nil {
		return g
	}
	return g.with(&gitFolders{Checkout: *recorded, isRecorded: true})
}

// Say returns a Git that reports its snapshots' omissions to say.
func (g *Git) Say(say func(string)) *Git {
	other := *g
	other.say = say
	return &other
}

func (g *Git) with(p *gitFolders) *Git {
	other := *g
	other.places = maps.Clone(g.places)
	if other.places == nil {
		other.places = map[string]*gitFolders{}
	}
	other.places[p.Top] = p
	return &other
}

// Checkout returns the data to record about the checkout of folder before a job begins there.
// It fails as Repository does.
func (g *Git) Checkout(ctx context.Context, folder string) (delegated.Checkout, error) {
	r, err := g.Repository(ctx, folder)
	if err != nil {
		return delegated.Checkout{}, err
	}
	return g.record(ctx, r.checkout())
}

// record adds the filters of the current settings.
func (g *Git) record(ctx context.Context, c delegated.Checkout) (delegated.Checkout, error) {
	read, err := g.with(&gitFolders{Checkout: c}).readSettings(ctx, c.Top)
	c.Filters = read.filters
	return c, err
}

func (r Repository) checkout() delegated.Checkout {
	return delegated.Checkout{Top: r.Top, Inside: r.Inside, GitDir: r.Dir, Common: r.Common}
}

// at returns a Git that knows the git folders of the checkout at top, as recorded or as
// git finds them now.
func (g *Git) at(ctx context.Context, top string) (*Git, error) {
	if g.places[top] != nil {
		return g, nil
	}
	r, err := g.repositoryAt(ctx, top)
	if err != nil {
		return nil, err
	}
	return g.with(&gitFolders{Checkout: r.checkout()}), nil
}

// repositoryAt finds the repository of a checkout at exactly its top folder.
func (g *Git) repositoryAt(ctx context.Context, top string) (Repository, error) {
	if _, err := os.Lstat(filepath.Join(top, ".git")); err != nil {
		return Repository{}, bridge.Errorf(bridge.Conflict, "%s is no git checkout any more: its .git is gone", top)
	}
	r, err := g.Repository(ctx, top)
	if err == nil && r.Inside != "" {
		err = bridge.Errorf(bridge.Conflict, "%s is no git checkout any more: it belongs to %s now", top, r.Top)
	}
	return r, err
}

// ofMain is at for the main checkout of a worktree.
func (g *Git) ofMain(ctx context.Context, w Worktree) (*Git, error) {
	own := g.places[w.Path]
	if own == nil || g.places[w.Main] != nil {
		return g.at(ctx, w.Main)
	}
	main := &gitFolders{Checkout: own.Checkout, isRecorded: own.isRecorded}
	main.Top, main.Inside, main.GitDir = w.Main, "", own.Common
	return g.with(main), nil
}

// inWorktree is at for a worktree and its main checkout. A worktree without a record must still
// belong to that repository.
func (g *Git) inWorktree(ctx context.Context, w Worktree) (*Git, error) {
	g, err := g.ofMain(ctx, w)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(w.Path); g.places[w.Path] != nil || errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	main := g.places[w.Main]
	dir, err := gitDirOf(w.Path, main.Common)
	if err != nil {
		return nil, err
	}
	return g.with(&gitFolders{Checkout: delegated.Checkout{Top: w.Path, GitDir: dir, Common: main.Common, Filters: main.Filters}, isRecorded: main.isRecorded}), nil
}

// Prove verifies that a worktree's folder is the one created for the job: its .git and
// git's folder point to each other, in that repository. It fails with Conflict
// otherwise, and changes no file.
func (g *Git) Prove(ctx context.Context, w Worktree) error {
	g, err := g.inWorktree(ctx, w)
	if err != nil {
		return err
	}
	folders := g.places[w.Path]
	if folders == nil {
		return bridge.Errorf(bridge.NotFound, "the worktree %s is gone", w.Path)
	}
	dir, err := gitDirOf(w.Path, folders.Common)
	if err == nil && dir != folders.GitDir {
		err = notOwn(w.Path)
	}
	return err
}

func notOwn(path string) error {
	return bridge.Errorf(bridge.Conflict, "%s is not the worktree any more that Bridge made: its files stay there, and no branch was changed", path)
}

// gitDirOf returns git's folder of a linked worktree from its .git file. Both must
// point to each other, and the folder must belong to the repository.
func gitDirOf(path, common string) (string, error) {
	file := filepath.Join(path, ".git")
	dir, err := pathIn(file, "gitdir:")
	if err != nil || filepath.Dir(dir) != filepath.Join(common, "worktrees") {
		return "", notOwn(path)
	}
	if real, err := disk.Canonical(dir); err != nil || real != dir {
		return "", notOwn(path)
	}
	back, err := pathIn(filepath.Join(dir, "gitdir"), "")
	if err != nil || back != file {
		return "", notOwn(path)
	}
	return dir, nil
}

// maxPathFile is larger than any file with one path.
const maxPathFile = 64 << 10

// pathIn reads the path in one of git's files, as an absolute path with resolved folder
// links. The file itself must not be a link.
func pathIn(file, prefix string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	data, err := disk.ReadLimited(file, maxPathFile)
	if err != nil {
		return "", err
	}
	path := filepath.FromSlash(strings.TrimSpace(strings.TrimPrefix(string(data), prefix)))
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	folder, err := disk.Canonical(filepath.Dir(path))
	return filepath.Join(folder, filepath.Base(path)), err
}

// commandLine returns the command that runs git, below the floor if there is one.
func (g *program) commandLine(c call) []string {
	argv := slices.Concat([]string{g.bin}, options, c.args)
	if g.untamed {
		argv = slices.Concat([]string{g.bin}, c.args)
	}
	if len(g.sandbox) == 0 {
		return argv
	}
	rules := sandbox.Rules{NoNetwork: true, NoSockets: true, EndAll: true, Unlinked: slices.Clone(c.writable)}
	if folders := g.places[c.dir]; folders != nil && !c.search {
		rules.Unlinked = append(rules.Unlinked, folders.Top, folders.Common)
	}
	return sandbox.CommandLine(g.sandbox, rules, argv)
}

// environment returns the environment of a git. Unless git searches, it includes the git folders.
func (g *program) environment(c call) []string {
	env := slices.Concat(g.env, c.env)
	if c.search {
		return env
	}
	folders := g.places[c.dir]
	if folders == nil {
		return append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir))
	}
	env = append(env, "GIT_DIR="+folders.GitDir, "GIT_COMMON_DIR="+folders.Common, "GIT_WORK_TREE="+folders.Top)
	if len(c.writable) > 0 {
		return append(env, "TMPDIR="+c.writable[0])
	}
	return append(env, "TMPDIR="+folders.Common)
}
