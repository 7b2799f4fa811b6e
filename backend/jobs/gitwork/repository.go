package gitwork

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Repository describes the repository of a folder. All paths are canonical.
type Repository struct {
	Top       string // the checkout that holds the folder
	Main      string // the main checkout; Top unless Linked
	Common    string // git's folder for all checkouts
	Dir       string // git's folder for this checkout
	Inside    string // the folder within Top, with slashes; "" is Top itself
	Linked    bool   // Top is a linked worktree
	Submodule bool   // the repository is a submodule of another one
}

// Name returns the name of the main checkout's folder, for the name of a worktree.
func (r Repository) Name() string { return filepath.Base(r.Main) }

// Repository finds the repository of a folder. It fails with NotFound if the folder does not
// exist or is in no repository. It fails with Invalid for a bare one and its worktrees, which
// have no main checkout to land work in.
func (g *Git) Repository(ctx context.Context, folder string) (Repository, error) {
	folder, err := disk.Canonical(folder)
	if err != nil {
		return Repository{}, bridge.Errorf(bridge.NotFound, "there is no folder %s", folder)
	}
	if strings.ContainsAny(folder, "\r\n") { // git prints paths line by line
		return Repository{}, bridge.Errorf(bridge.Invalid, "%q has a line break in its name: rename that folder", folder)
	}
	out, err := g.find(ctx, folder, "rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir")
	if codeOf(err) == 128 {
		return Repository{}, bridge.Errorf(bridge.NotFound, "%s is in no git repository that can be used: %w", folder, err)
	}
	if err != nil {
		return Repository{}, err
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || lines[0] != "false" || lines[1] != "true" {
		return Repository{}, bridge.Errorf(bridge.Invalid, "%s is in a bare repository or in git's own folder: a job needs a checkout", folder)
	}
	return g.locate(ctx, folder, lines[2], lines[3])
}

func (g *Git) locate(ctx context.Context, folder, dir, common string) (Repository, error) {
	top, err := g.find(ctx, folder, "rev-parse", "--show-toplevel")
	if err != nil {
		return Repository{}, err
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(folder, common)
	}
	repository := Repository{}
	for _, row := range []struct {
		target *string
		path   string
	}{{&repository.Top, top}, {&repository.Dir, dir}, {&repository.Common, common}} {
		if *row.target, err = disk.Canonical(row.path); err != nil {
			return Repository{}, err
		}
	}
	inside, err := filepath.Rel(repository.Top, folder)
	if err != nil {
		return Repository{}, err
	}
	if inside != "." {
		repository.Inside = filepath.ToSlash(inside)
	}
	repository.Linked = repository.Dir != repository.Common
	repository.Main, repository.Submodule, err = g.mainCheckout(ctx, repository)
	return repository, err
}

// find runs a git that searches for the repository, and returns its output.
func (g *program) find(ctx context.Context, dir string, args ...string) (string, error) {
	done, err := g.run(ctx, call{dir: dir, args: args, search: true})
	return strings.TrimSuffix(done.out, "\n"), err
}

// mainCheckout finds the checkout that is not a linked worktree.
func (g *program) mainCheckout(ctx context.Context, r Repository) (top string, submodule bool, err error) {
	above, err := g.find(ctx, r.Top, "rev-parse", "--show-superproject-working-tree")
	if err != nil {
		return "", false, err
	}
	config := filepath.Join(r.Common, "config")
	worktree, err := g.find(ctx, r.Top, "config", "--file", config, "core.worktree")
	if err != nil && codeOf(err) != 1 {
		return "", false, err
	}
	if worktree == "" && r.Linked { // the main checkout's own settings, if they are separate
		own := filepath.Join(r.Common, "config.worktree")
		if worktree, err = g.find(ctx, r.Top, "config", "--file", own, "core.worktree"); err != nil && codeOf(err) < 0 {
			return "", false, err
		}
	}
	submodule = above != "" || worktree != "" && strings.Contains(filepath.ToSlash(r.Common), "/modules/")
	bare, _ := g.find(ctx, r.Top, "config", "--file", config, "--type=bool", "core.bare")
	switch {
	case !r.Linked:
		return r.Top, submodule, nil
	case worktree != "":
		top = worktree
		if !filepath.IsAbs(top) {
			top = filepath.Join(r.Common, top)
		}
	case bare == "true":
		return "", submodule, bridge.Errorf(bridge.Invalid, "%s is a worktree of the bare repository %s, which has no main checkout: work could land nowhere", r.Top, r.Common)
	case filepath.Base(r.Common) == ".git":
		top = filepath.Dir(r.Common)
	default:
		return "", submodule, bridge.Errorf(bridge.Invalid, "git does not say where the main checkout of %s is, because its git folder is %s: start the job in the main checkout", r.Top, r.Common)
	}
	if _, err := os.Stat(top); err != nil {
		return "", submodule, bridge.Errorf(bridge.Invalid, "the main checkout %s of %s is not there: work could land nowhere", top, r.Top)
	}
	top, err = disk.Canonical(top)
	return top, submodule, err
}

// Head is the current commit and branch of a checkout.
type Head struct {
	Commit string
	Branch string // short name; "" when detached
}

// Head returns the commit and branch of the checkout at top. It fails with Invalid for
// a repository without a commit, which has no base to compare with.
func (g *Git) Head(ctx context.Context, top string) (Head, error) {
	commit, err := g.output(ctx, top, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if err != nil {
		if codeOf(err) == 1 || codeOf(err) == 128 {
			return Head{}, bridge.Errorf(bridge.Invalid, "%s has no commit yet: make a first one", top)
		}
		return Head{}, err
	}
	branch, err := g.output(ctx, top, "symbolic-ref", "-q", "--short", "HEAD")
	if err != nil && codeOf(err) != 1 {
		return Head{}, err
	}
	return Head{Commit: commit, Branch: branch}, nil
}

// under reports whether path is folder or below it; both are canonical.
func under(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(os.PathSeparator))
}
