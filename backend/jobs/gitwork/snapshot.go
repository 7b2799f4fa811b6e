package gitwork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// bounds limits the new files that a snapshot includes.
type bounds struct {
	files int
	bytes int64
}

// usualBounds exceed normal use of git, but cannot fill a disk.
var usualBounds = bounds{files: 50_000, bytes: 2 << 30}

// largePart is the divisor of the byte limit for one new file.
const largePart = 4

// LeftOut describes new files that a snapshot omitted.
type LeftOut struct {
	Files int
	Bytes int64
	First string // the largest of them, with slashes
}

// String returns a sentence without its full stop.
func (l LeftOut) String() string {
	return fmt.Sprintf("%s (%s; the largest is %s) are not kept by Bridge: at most %d files, %s in all and %s each",
		bridge.Counted(l.Files, "new file"), bridge.Size(l.Bytes), l.First, usualBounds.files, bridge.Size(usualBounds.bytes), bridge.Size(usualBounds.bytes/largePart))
}

// taken is the result of a snapshot.
type taken struct {
	tree string
	// repositories are untracked repositories in the checkout: git can store none of
	// their files.
	repositories []string
	leftOut      LeftOut
	omitted      []Omission // by path
}

// Snapshot writes the files of the checkout at top as a tree: committed, changed and untracked
// ones, but not ignored ones. It does not change the checkout or its index. It fails with
// Conflict if top is no checkout, with Denied if a file's filter is missing, and if git fails.
func (g *Git) Snapshot(ctx context.Context, top string) (tree string, err error) {
	files, err := g.snapshot(ctx, top, false)
	return files.tree, err
}

func (g *Git) snapshot(ctx context.Context, top string, only readOnly) (files taken, err error) {
	g, err = g.at(ctx, top)
	if err != nil {
		return taken{}, err
	}
	index, done, err := g.scratchIndex(g.places[top].GitDir)
	if err != nil {
		return taken{}, err
	}
	defer func() { err = errors.Join(err, done()) }()
	within := "."
	if inside := g.places[top].Inside; inside != "" {
		within = inside
	}
	scratch := call{dir: top, env: []string{"GIT_INDEX_FILE=" + index}, writable: []string{filepath.Dir(index)}}
	with := func(args ...string) call {
		c := scratch
		c.args = args
		return c
	}
	// Only the commit of a submodule counts: for more, git would start another git in it.
	changed, err := g.tamedFor(ctx, with("diff-files", "--name-only", "-z", "--ignore-submodules=dirty", "--", within), only)
	if err != nil {
		return taken{}, fmt.Errorf("find what is changed in %s: %w", top, err)
	}
	others, err := g.run(ctx, with("ls-files", "-z", "--others", "--exclude-standard", "--", within))
	if err != nil {
		return taken{}, err
	}
	files.omitted = slices.Concat(unreadFiles(changed.text), unreadFolders(others.text))
	names := slices.DeleteFunc(fields(changed.out), func(name string) bool { return g.isBridges(top, name) })
	names = append(names, g.choose(top, fields(others.out), &files)...)
	add := with("update-index", "--add", "--remove", "-z", "--stdin")
	add.input = joined(names)
	if _, err = g.tamedFor(ctx, add, only); err != nil {
		included, omitted := readable(top, names) // git stops at the first error
		if len(omitted) > 0 {
			files.omitted = append(files.omitted, omitted...)
			add.input = joined(included)
			_, err = g.tamedFor(ctx, add, only)
		}
	}
	if err != nil {
		return taken{}, fmt.Errorf("take up the files of %s: %w", top, err)
	}
	if !only {
		if err := g.noteOmitted(ctx, with(), top, within, &files); err != nil {
			return taken{}, err
		}
	}
	wrote, err := g.tamedFor(ctx, with("write-tree"), only)
	files.tree = strings.TrimSpace(wrote.out)
	if files.leftOut.Files > 0 && g.say != nil {
		g.say(files.leftOut.String())
	}
	return files, err
}

// joined returns a list of names in git's input format.
func joined(names []string) string {
	var list strings.Builder
	for _, name := range names {
		list.WriteString(name + "\x00")
	}
	return list.String()
}

// noteOmitted completes and reports the list of content that the snapshot cannot include.
func (g *program) noteOmitted(ctx context.Context, c call, top, within string, files *taken) error {
	special, err := g.special(ctx, c, top, within)
	if err != nil {
		return fmt.Errorf("look for what git passes over in %s: %w", top, err)
	}
	all := append(files.omitted, special...)
	for _, repository := range files.repositories {
		all = append(all, Omission{repository + "/", whyRepository})
	}
	files.omitted = boundedOmissions(all)
	if g.say != nil {
		for _, omission := range files.omitted {
			g.say(omission.String())
		}
	}
	return nil
}

// choose returns the new files to include, and records the others. It omits each file
// that is too large, and all files if the rest exceeds the limits. Files that were
// included once stay included, so that no work is parked in pieces.
func (g *program) choose(top string, others []string, files *taken) (chosen []string) {
	var total, largest int64
	out := &files.leftOut
	leave := func(name string, size int64) {
		out.Files++
		out.Bytes += size
		if size >= largest {
			out.First, largest = name, size
		}
	}
	sizes := map[string]int64{}
	for _, name := range others {
		if repository, isFolder := strings.CutSuffix(name, "/"); isFolder {
			files.repositories = append(files.repositories, repository)
			continue
		}
		if g.isBridges(top, name) {
			continue
		}
		info, err := os.Lstat(filepath.Join(top, filepath.FromSlash(name)))
		if isGone(err) {
			continue
		}
		if err != nil {
			files.omitted = append(files.omitted, Omission{name, whyUnread(err)})
			continue
		}
		if info.Size() > g.bounds.bytes/largePart {
			leave(name, info.Size())
			continue
		}
		total += info.Size()
		sizes[name] = info.Size()
		chosen = append(chosen, name)
	}
	if len(chosen) <= g.bounds.files && total <= g.bounds.bytes {
		return chosen
	}
	for _, name := range chosen {
		leave(name, sizes[name])
	}
	return nil
}

// isBridges reports whether a file belongs to Bridge's home. A worktree in the home does not.
func (g *program) isBridges(top, name string) bool {
	return g.home != "" && !under(top, g.home) && under(filepath.Join(top, filepath.FromSlash(name)), g.home)
}

// scratchIndex copies the index in git's folder of a checkout, which records unchanged
// files. The copy has a separate folder, which is created if missing.
func (g *program) scratchIndex(dir string) (path string, done func() error, err error) {
	if err := os.MkdirAll(g.scratch, 0o700); err != nil {
		return "", nil, err
	}
	root, err := disk.Canonical(g.scratch)
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp(root, "index-")
	if err != nil {
		return "", nil, err
	}
	done = func() error { return os.RemoveAll(folder) }
	path = filepath.Join(folder, "index")
	if err := copyIndex(filepath.Join(dir, "index"), path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, errors.Join(err, done())
	}
	return path, done, nil
}
