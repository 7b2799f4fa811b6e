package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fuzzTarget is a fuzz test.
type fuzzTarget struct {
	folder string // of its package, within the checkout, with slashes
	name   string
}

// String returns the target as a person names it: backend/platform/wire FuzzFrames.
func (t fuzzTarget) String() string { return t.folder + " " + t.name }

// runFuzz runs every fuzz target, or those whose name contains an argument, for a minute
// each. Go keeps an input that fails in the package's testdata/fuzz; with -keep, runFuzz
// adds the shortest inputs that reached new code. It fails when a target did.
func runFuzz(ctx context.Context, p project, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	each := flags.Duration("for", time.Minute, "how long each target runs")
	keep := flags.Int("keep", 0, "how many inputs to keep of each target")
	if err := flags.Parse(args); err != nil || *each <= 0 || *keep < 0 {
		return badArgument(fmt.Sprintf("fuzz %s: it takes -for DURATION, -keep NUMBER and parts of names", strings.Join(args, " ")))
	}
	targets, err := findFuzzTargets(p.root, flags.Args())
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return badArgument("fuzz: no target's name contains " + strings.Join(flags.Args(), " or "))
	}
	var failed error
	for _, target := range targets {
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		run := step{name: "go", args: []string{"test", "./" + target.folder, "-run=^$", "-fuzz=^" + target.name + "$", "-fuzztime=" + each.String()}}
		if err := p.do(ctx, run); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", target, err))
			continue
		}
		if err := p.saveInputs(ctx, target, *keep); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// findFuzzTargets returns the fuzz targets of the Go code below root whose names contain
// one of parts, all without parts, in the order of folders and names.
func findFuzzTargets(root string, parts []string) (targets []fuzzTarget, err error) {
	err = walkTests(root, []string{testEnding}, func(folder, _ string, text []byte) error {
		for _, found := range fuzzFunction.FindAllSubmatch(text, -1) {
			target := fuzzTarget{folder: folder, name: string(found[1])}
			if len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(target.name, part) }) {
				targets = append(targets, target)
			}
		}
		return nil
	})
	slices.SortFunc(targets, func(a, b fuzzTarget) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.name, b.name))
	})
	return targets, err
}

// saveInputs copies inputs that Go found for a target into the package's testdata/fuzz,
// the shortest first, until that holds limit of them.
func (p project) saveInputs(ctx context.Context, target fuzzTarget, limit int) error {
	if limit == 0 {
		return nil
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("find Go's cache: %w", err)
	}
	found := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", "bridge", filepath.FromSlash(target.folder), target.name)
	folder := p.at(filepath.FromSlash(target.folder), "testdata", "fuzz", target.name)
	copied, err := copyShortest(found, folder, limit)
	p.say("%s: %d new inputs kept", target, copied)
	return err
}

// copyShortest copies files of a folder into another one until that holds limit of them,
// the shortest first, and returns how many. A missing folder has none.
func copyShortest(from, to string, limit int) (copied int, err error) {
	existing, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	found, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	type input struct {
		name string
		text []byte
	}
	var inputs []input
	for _, entry := range found {
		text, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(existing, func(known fs.DirEntry) bool { return known.Name() == entry.Name() }) {
			inputs = append(inputs, input{entry.Name(), text})
		}
	}
	slices.SortFunc(inputs, func(a, b input) int {
		return cmp.Or(cmp.Compare(len(a.text), len(b.text)), strings.Compare(a.name, b.name))
	})
	inputs = inputs[:min(len(inputs), max(0, limit-len(existing)))]
	if len(inputs) == 0 {
		return 0, nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	for _, input := range inputs {
		if err := os.WriteFile(filepath.Join(to, input.name), input.text, 0o644); err != nil {
			return copied, err
		}
		copied++
	}
	return copied, nil
}
