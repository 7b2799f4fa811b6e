package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// changes are the files that differ from a commit, and the packages whose tests can
// come out otherwise for it.
type changes struct {
	files    []string // by slashes, within the checkout
	affected map[string]bool
}

// changesSince compares the checkout, with what is not committed, with a commit.
func (p project) changesSince(ctx context.Context, commit string) (changes, error) {
	if _, err := p.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return changes{}, badArgument("-since compares with a commit, and this folder is no git repository")
	}
	if _, err := p.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{commit}"); err != nil {
		return changes{}, badArgument(fmt.Sprintf("there is no commit %q to compare with", commit))
	}
	differ, err := p.git(ctx, "diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit, "--")
	if err != nil {
		return changes{}, err
	}
	untracked, err := p.git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return changes{}, err
	}
	c := changes{files: strings.FieldsFunc(differ+untracked, func(r rune) bool { return r == 0 })}
	list := exec.CommandContext(ctx, "go", "list", "-e", "-test", "-json=ImportPath,Dir,Deps", "./...")
	list.Dir, list.Stderr = p.root, p.output
	packages, err := list.Output()
	if err != nil {
		return changes{}, fmt.Errorf("go list: %w", err)
	}
	c.affected, err = affected(p.root, c.files, packages)
	return c, err
}

func (p project) git(ctx context.Context, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", args...)
	git.Dir = p.root
	output, err := git.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(output), nil
}

// listed is what `go list -test -json` tells of a package, or of a program of tests.
type listed struct {
	ImportPath, Dir string
	Deps            []string
}

// lookAtTheTree are tests that read the whole tree.
var lookAtTheTree = []string{"bridge/backend/testing/archtest", "bridge/build"}

// buildPrograms are tests that build and run the product's programs, which the
// imports do not tell.
var buildPrograms = []string{
	"bridge/backend/testing/conformance", "bridge/backend/testing/faults", "bridge/backend/testing/soak", "bridge/cmd/bridge", "bridge/cmd/bridge-hook", "bridge/cmd/bridge-hub", "bridge/cmd/bridge-mcp", "bridge/cmd/bridge-worker",
}

// faceCLIs are the folders of what the agent CLIs meet of Bridge. All else would bring
// the longest stage into every run.
var faceCLIs = []string{
	"backend/agent", "backend/doors/hook", "backend/core/hooks", "backend/doors/mcpserver", "backend/owner/prompts", "backend/testing/realcli", "backend/jobs/runner", "backend/doors/worker", "build/clis", "cmd/bridge-hook", "cmd/bridge-mcp", "cmd/bridge-worker",
}

// affected finds the packages that have a changed file, or use one that has.
func affected(root string, files []string, packages []byte) (map[string]bool, error) {
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(packages)); ; {
		var listing listed
		if err := decoder.Decode(&listing); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, listing)
	}
	byFolder := map[string]string{}
	for _, listing := range all {
		if folder, err := filepath.Rel(root, listing.Dir); err == nil && !strings.HasSuffix(listing.ImportPath, ".test") {
			byFolder[filepath.ToSlash(folder)] = plainPath(listing.ImportPath)
		}
	}
	changed := map[string]bool{}
	for _, file := range files {
		if file == "go.mod" || file == "go.sum" {
			for _, name := range byFolder {
				changed[name] = true
			}
		}
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) { // test data belongs to the package above
			if name, ok := byFolder[folder]; ok {
				changed[name] = true
				break
			}
		}
	}
	found := map[string]bool{}
	program := false
	for _, listing := range all {
		name := strings.TrimSuffix(plainPath(listing.ImportPath), ".test")
		if changed[name] || slices.ContainsFunc(listing.Deps, func(dep string) bool { return changed[plainPath(dep)] }) {
			found[name] = true
			program = program || strings.HasPrefix(name, "bridge/cmd/")
		}
	}
	for _, name := range lookAtTheTree {
		found[name] = found[name] || len(files) > 0
	}
	for _, name := range buildPrograms {
		found[name] = found[name] || program
	}
	return found, nil
}

// plainPath is an import path without the test that it was compiled for.
func plainPath(name string) string {
	name, _, _ = strings.Cut(name, " ")
	return name
}

// in reports whether a file below one of those folders changed.
func (c changes) in(folders ...string) bool {
	return slices.ContainsFunc(c.files, func(file string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return file == folder || strings.HasPrefix(file, folder+"/") })
	})
}

// any reports whether the tests of one of those packages can have changed.
func (c changes) any(packages ...string) bool {
	return slices.ContainsFunc(packages, func(name string) bool { return c.affected[name] })
}

// stages are those of all that can come out otherwise for the changes.
func (c changes) stages(all []stage) (names []string) {
	goCode := slices.ContainsFunc(c.files, func(file string) bool {
		return strings.HasSuffix(file, ".go") || file == "go.mod" || file == "go.sum"
	})
	page := c.in("frontend")
	can := map[string]bool{
		"vet": goCode, "go": c.any(slices.Collect(maps.Keys(c.affected))...),
		"page-check": page, "page-lint": page, "page-unit": page,
		"package":   c.in("installer", "build", "cmd"),
		"desktop":   page || c.in("app", "cmd/bridge-desktop") || c.any("bridge/app"),
		"browser":   page || c.any("bridge/cmd/bridge"),
		"real-clis": c.in(faceCLIs...),
	}
	for _, s := range all {
		if can[s.name] {
			names = append(names, s.name)
		}
	}
	return names
}

// narrow leaves of the named stages, or of all, those that can come out otherwise
// since a commit, has their packages narrowed in the same way, and says what that
// leaves out.
func (p *project) narrow(ctx context.Context, commit string, names []string) ([]string, error) {
	c, err := p.changesSince(ctx, commit)
	if err != nil {
		return nil, err
	}
	p.changed = c.affected
	var retained, skipped []string
	can := c.stages(stages())
	for _, s := range stages() {
		switch wanted := len(names) == 0 || slices.Contains(names, s.name); {
		case wanted && slices.Contains(can, s.name):
			retained = append(retained, s.name)
		case wanted && !s.prepares:
			skipped = append(skipped, s.name)
		}
	}
	p.say("%d files differ from %s", len(c.files), commit)
	if len(skipped) > 0 {
		p.say("left out, for nothing that they use has changed: %s", strings.Join(skipped, ", "))
	}
	if len(retained) == 0 {
		p.say("nothing is left to run")
	}
	return retained, nil
}

// withoutUnchanged leaves out the packages whose tests cannot have changed, if it is
// known what has, and says which.
func (p project) withoutUnchanged(packages []string) (changed []string) {
	if p.changed == nil {
		return packages
	}
	skipped := 0
	for _, name := range packages {
		if p.changed[name] {
			changed = append(changed, name)
		} else {
			skipped++
		}
	}
	p.skip(fmt.Sprintf("%d packages", skipped), "nothing that they use has changed")
	return changed
}
