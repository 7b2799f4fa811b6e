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

// bounds are those of the new files that a snapshot takes up.
type bounds struct {
	files int
	bytes int64
}

// usualBounds are more than people keep in git, and less than what fills a disk.
var usualBounds = bounds{files: 50_000, bytes: 2 << 30}

// largePart is the part of all bytes that one new file may have.
const largePart = 4

// LeftOut are new files that a snapshot did not take up.
type LeftOut struct {
	Files int
	Bytes int64
	First string // the largest of them, with slashes
}

// String is a sentence without its end.
func (l LeftOut) String() string {
	return fmt.Sprintf("%s (%s; the largest is %s) are not kept by Bridge: at most %d files, %s in all and %s each",
		bridge.Counted(l.Files, "new file"), bridge.Size(l.Bytes), l.First, usualBounds.files, bridge.Size(usualBounds.bytes), bridge.Size(usualBounds.bytes/largePart))
}

// taken is what a snapshot took up.
type taken struct {
	tree string
	// repositories within the checkout that nobody added to it: of these git could keep
	// no file.
	repositories []string
	leftOut      LeftOut
	omitted      []Omission // by their paths
}

// Snapshot writes the files of the checkout at top as a tree: what is committed, what
// is not, and what is untracked, but not what is ignored. The checkout and its index
// stay as they are.
func (g *Git) Snapshot(ctx context.Context, top string) (tree string, err error) {
	files, err := g.snapshot(ctx, top, false)
	return files.tree, err
}

func (g *Git) snapshot(ctx context.Context, top string, only look) (files taken, err error) {
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
	// Of a submodule its commit alone counts: git would start another git in it for more.
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
		kept, omitted := readable(top, names) // git stops at the first
		if len(omitted) > 0 {
			files.omitted = append(files.omitted, omitted...)
			add.input = joined(kept)
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

// joined is a list of names as git reads it.
func joined(names []string) string {
	var list strings.Builder
	for _, name := range names {
		list.WriteString(name + "\x00")
	}
	return list.String()
}

// noteOmitted completes the list of what the snapshot cannot take up, and says it.
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

// choose returns those of the new files that are taken up, and notes the others: each that
// is too large by itself, and all where these are still too many. What it takes up once it
// takes up again, so that nothing is parked piece by piece.
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

// isBridges reports whether a file is one of Bridge's home. A worktree there is none.
func (g *program) isBridges(top, name string) bool {
	return g.home != "" && !under(top, g.home) && under(filepath.Join(top, filepath.FromSlash(name)), g.home)
}

// scratchIndex copies the index in git's folder of a checkout, which knows what is
// unchanged. The copy has a folder of its own, which is made again where it is gone.
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
