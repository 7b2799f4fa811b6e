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

// place is where git's own folders of a checkout are, whatever leads there now.
type place struct {
	delegated.Checkout
	isRecorded bool      // the filters are those from before the job began
	settings   *settings // what was read of them; nil where it has to be read each time
}

// Pin returns a Git for which a checkout is what was recorded before the job began; nil
// is a job of which nothing was recorded. It reads the settings once, and so is for one
// operation by one goroutine.
func (g *Git) Pin(recorded *delegated.Checkout) *Git {
	if recorded == nil {
		return g
	}
	return g.with(&place{Checkout: *recorded, isRecorded: true})
}

// Say returns a Git that tells somebody else what its snapshots leave out.
func (g *Git) Say(say func(string)) *Git {
	other := *g
	other.say = say
	return &other
}

func (g *Git) with(p *place) *Git {
	other := *g
	other.places = maps.Clone(g.places)
	if other.places == nil {
		other.places = map[string]*place{}
	}
	other.places[p.Top] = p
	return &other
}

// Checkout returns what has to be known of the checkout that holds folder before a job
// begins there.
func (g *Git) Checkout(ctx context.Context, folder string) (delegated.Checkout, error) {
	r, err := g.Repository(ctx, folder)
	if err != nil {
		return delegated.Checkout{}, err
	}
	return g.record(ctx, r.checkout())
}

// record adds the filters that the settings name now.
func (g *Git) record(ctx context.Context, c delegated.Checkout) (delegated.Checkout, error) {
	read, err := g.with(&place{Checkout: c}).readSettings(ctx, c.Top)
	c.Filters = read.filters
	return c, err
}

func (r Repository) checkout() delegated.Checkout {
	return delegated.Checkout{Top: r.Top, Inside: r.Inside, GitDir: r.Dir, Common: r.Common}
}

// at returns a Git that knows where the checkout at top has its git folders: as was
// recorded, or as git finds them now.
func (g *Git) at(ctx context.Context, top string) (*Git, error) {
	if g.places[top] != nil {
		return g, nil
	}
	r, err := g.repositoryAt(ctx, top)
	if err != nil {
		return nil, err
	}
	return g.with(&place{Checkout: r.checkout()}), nil
}

// repositoryAt finds the repository of a checkout by its top folder, never above it.
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
	main := &place{Checkout: own.Checkout, isRecorded: own.isRecorded}
	main.Top, main.Inside, main.GitDir = w.Main, "", own.Common
	return g.with(main), nil
}

// of is at for a worktree and its main checkout. A worktree of which nothing was recorded
// has to be one of that repository still.
func (g *Git) of(ctx context.Context, w Worktree) (*Git, error) {
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
	return g.with(&place{Checkout: delegated.Checkout{Top: w.Path, GitDir: dir, Common: main.Common, Filters: main.Filters}, isRecorded: main.isRecorded}), nil
}

// Prove makes sure that the folder of a worktree is the one that was made for the job:
// its .git leads to the git folder that leads back to it, in that repository. Conflict
// where it is not; its files stay where they are then.
func (g *Git) Prove(ctx context.Context, w Worktree) error {
	g, err := g.of(ctx, w)
	if err != nil {
		return err
	}
	there := g.places[w.Path]
	if there == nil {
		return bridge.Errorf(bridge.NotFound, "the worktree %s is gone", w.Path)
	}
	dir, err := gitDirOf(w.Path, there.Common)
	if err == nil && dir != there.GitDir {
		err = notOwn(w.Path)
	}
	return err
}

func notOwn(path string) error {
	return bridge.Errorf(bridge.Conflict, "%s is not the worktree any more that Bridge made: its files stay there, and no branch was changed", path)
}

// gitDirOf returns git's folder of a linked worktree by its .git file. Both have to lead
// to each other, and the folder has to be one of the repository's.
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

// maxPathFile is more than a file with one path holds.
const maxPathFile = 64 << 10

// pathIn reads the path in one of git's files, absolute and with its folder followed to
// where links lead. The file itself must be none.
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

// commandLine is what runs a git: below the floor, where there is one.
func (g *program) commandLine(c call) []string {
	argv := slices.Concat([]string{g.bin}, options, c.args)
	if g.untamed {
		argv = slices.Concat([]string{g.bin}, c.args)
	}
	if len(g.sandbox) == 0 {
		return argv
	}
	rules := sandbox.Rules{NoNetwork: true, NoSockets: true, EndAll: true, Unlinked: slices.Clone(c.writable)}
	if there := g.places[c.dir]; there != nil && !c.search {
		rules.Unlinked = append(rules.Unlinked, there.Top, there.Common)
	}
	return sandbox.CommandLine(g.sandbox, rules, argv)
}

// environment is what a git gets. One that does not search is told where its folders are.
func (g *program) environment(c call) []string {
	env := slices.Concat(g.env, c.env)
	if c.search {
		return env
	}
	there := g.places[c.dir]
	if there == nil {
		return append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir))
	}
	env = append(env, "GIT_DIR="+there.GitDir, "GIT_COMMON_DIR="+there.Common, "GIT_WORK_TREE="+there.Top)
	if len(c.writable) > 0 {
		return append(env, "TMPDIR="+c.writable[0])
	}
	return append(env, "TMPDIR="+there.Common)
}
