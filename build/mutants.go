package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// gremlins is the program that changes the code and runs the tests, at the version whose
// report readMutants reads.
const (
	gremlinsModule  = "github.com/go-gremlins/gremlins/cmd/gremlins"
	gremlinsVersion = "v0.6.0"
)

// mutated is a package whose code is changed.
type mutated struct {
	folder string   // within the checkout, with slashes
	files  []string // of these files only; of all where there are none
	tests  string   // a regular expression of the tests that run, where all take too long
}

// mutatedPackages are those that hold pure rules, and what the storage of messages and a
// hub promise. Their own tests take seconds.
var mutatedPackages = []mutated{
	{folder: "backend/core/rule"},
	{folder: "backend/core/needs"},
	{folder: "backend/core/prompt"},
	{folder: "backend/core/delivery"},
	{folder: "backend/core/mail"},
	{folder: "backend/core/decision"},
	{folder: "backend/core/question"},
	{folder: "backend/core/session"},
	{folder: "backend/core/reserved"},
	{folder: "backend/core/chat"},
	{folder: "backend/core/search"},
	{folder: "backend/core/job"}, {folder: "backend/core/job/runs"},
	{folder: "backend/core/remote"},
	{folder: "backend/broker/mailbox"}, {folder: "backend/broker/wake"},
	{folder: "backend/network/hub/subject"},
	{folder: "backend/network/hub/seal"},
	{folder: "backend/network/hub/provision", files: []string{"roster.go"}},
	{folder: "backend/network/hub", files: []string{"seal.go"}},
	{folder: "backend/storage/store", files: []string{"messages.go", "receipts.go", "handover.go"}, tests: "^Test(MSG_|Append|Recent|Conversation|Reassign|StoreAgrees)"},
}

// The shares of mutants, in percent, that the tests of a package kill of those that ran,
// and that may be in lines that no test reaches.
const (
	leastKilled    = 95
	mostNotCovered = 10
)

// runMutants changes the code of every mutated package, or of those whose folder contains
// an argument, one operator at a time, and runs the package's tests for each change. It
// prints what no test noticed, and fails when that is more than the limits allow.
func runMutants(ctx context.Context, p project, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	workers := flags.Int("workers", runtime.NumCPU(), "how many mutants run at once")
	if err := flags.Parse(args); err != nil || *workers < 1 {
		return badArgument(fmt.Sprintf("mutants %s: it takes -workers NUMBER and parts of folders", strings.Join(args, " ")))
	}
	chosen := chooseMutated(mutatedPackages, flags.Args())
	if len(chosen) == 0 {
		return badArgument("mutants: no package's folder contains " + strings.Join(flags.Args(), " or "))
	}
	known, err := readKnownMutants(p.at("build", "mutants.json"))
	if err != nil {
		return err
	}
	if err := shareCompiled(); err != nil {
		return err
	}
	programs, err := installGremlins(ctx, p)
	if err != nil {
		return err
	}
	tree := p.at(".cache", "mutants", "tree")
	if err := copyTracked(ctx, p.root, tree); err != nil {
		return fmt.Errorf("copy the checkout: %w", err)
	}
	var tallies []tally
	for _, m := range chosen {
		found, err := p.mutate(ctx, programs, tree, m, *workers)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", m.folder, err), printTallies(p.output, tallies))
		}
		counted, err := count(p.root, m, found, known)
		if err != nil {
			return err
		}
		tallies = append(tallies, counted)
		printMutants(p.output, counted)
	}
	return printTallies(p.output, tallies)
}

// chooseMutated returns the packages whose folder contains one of parts, all without parts.
// A part may be written as go takes it: ./backend/core/rule.
func chooseMutated(all []mutated, parts []string) (chosen []mutated) {
	for _, m := range all {
		contains := func(part string) bool {
			return strings.Contains(m.folder, strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(part), "./"), "/"))
		}
		if len(parts) == 0 || slices.ContainsFunc(parts, contains) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// mutators are the programs that change code and run its tests.
type mutators struct {
	gremlins string
	goFolder string // of the program that stands for go
	realGo   string
}

// installGremlins builds gremlins once into .cache/bin, and the program that stands for go
// while it runs.
func installGremlins(ctx context.Context, p project) (mutators, error) {
	gremlins, err := installTool(ctx, p, "gremlins", gremlinsModule, gremlinsVersion)
	if err != nil {
		return mutators{}, err
	}
	programs := mutators{gremlins: gremlins, goFolder: p.at(".cache", "mutants", "bin")}
	realGo, err := exec.LookPath("go")
	if err == nil {
		realGo, err = filepath.Abs(realGo)
	}
	if err != nil {
		return mutators{}, err
	}
	programs.realGo = realGo
	return programs, p.do(ctx, step{
		env:  []string{withoutC},
		name: "go", args: []string{"build", "-o", filepath.Join(programs.goFolder, executable("go", runtime.GOOS)), "./build/mutanttest"},
	})
}

// copyTracked makes a folder equal to the files of a checkout that git does not ignore:
// gremlins copies all that is there, once for each worker.
func copyTracked(ctx context.Context, root, target string) error {
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		from, into := filepath.Join(root, name), filepath.Join(target, name)
		info, err := os.Lstat(from)
		if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(into), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(into, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// controlFile is added to each package in the copy. Its mutants change nothing that a test
// can notice: when one is killed, tests fail for another reason than the change.
const controlFile = "mutantcontrol.go"

// controlText returns the source of the control file of a package.
func controlText(name string) string {
	return "package " + name + "\n\nfunc init() {\n\tif size := len(\"\"); size > 1 {\n\t\t_ = size\n\t}\n}\n"
}

// mutate runs gremlins over a package of the copied tree and returns what became of each
// mutant. It fails when a mutant of the control file was killed.
func (p project) mutate(ctx context.Context, programs mutators, tree string, m mutated, workers int) ([]mutant, error) {
	name, err := packageName(filepath.Join(tree, filepath.FromSlash(m.folder)))
	if err != nil {
		return nil, err
	}
	control := filepath.Join(tree, filepath.FromSlash(m.folder), controlFile)
	if err := os.WriteFile(control, []byte(controlText(name)), 0o644); err != nil {
		return nil, err
	}
	report := p.at(".cache", "mutants", strings.ReplaceAll(m.folder, "/", "-")+".json")
	if err := os.Remove(report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	run := step{
		dir: filepath.Join(".cache", "mutants", "tree"),
		env: []string{
			"BRIDGE_MUTANTS_GO=" + programs.realGo, "BRIDGE_MUTANTS_TESTS=" + m.tests, withoutC,
			"PATH=" + programs.goFolder + string(os.PathListSeparator) + os.Getenv("PATH"),
		},
		name: programs.gremlins,
		args: []string{"unleash", "./" + m.folder, "--output-statuses=ltv", fmt.Sprintf("--workers=%d", workers), "--output=" + report},
	}
	patterns, err := excludedFiles(filepath.Dir(control), m.files)
	if err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		run.args = append(run.args, "--exclude-files="+pattern)
	}
	if err := p.do(ctx, run); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	return readMutants(m.folder, text)
}

// excludedFiles returns regular expressions of the files in a package's folder that are not
// changed: those of packages below it, and others than the named ones.
func excludedFiles(folder string, only []string) ([]string, error) {
	patterns := []string{"/"}
	if len(only) == 0 {
		return patterns, nil
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, name := range names {
		if base := filepath.Base(name); !slices.Contains(only, base) && base != controlFile {
			patterns = append(patterns, "^"+regexp.QuoteMeta(base)+"$")
		}
	}
	return patterns, err
}

// packageName returns the name of the package in a folder.
func packageName(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		return file.Name.Name, nil
	}
	return "", fmt.Errorf("no package in %s", filepath.Base(folder))
}

// What became of a mutant, as gremlins says it.
const (
	mutantKilled     = "KILLED"
	mutantLived      = "LIVED"
	mutantNotCovered = "NOT COVERED"
	mutantNotViable  = "NOT VIABLE"
)

// mutant is one change of the code and what became of it.
type mutant struct {
	file         string // within the checkout, with slashes
	line, column int
	kind         string
	status       string
}

// readMutants reads gremlins' report about the package in a folder. It fails when the
// control file's mutants are missing, or were noticed by a test.
func readMutants(folder string, report []byte) ([]mutant, error) {
	var read struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(report, &read); err != nil {
		return nil, fmt.Errorf("read gremlins' report: %w", err)
	}
	var found []mutant
	controls := 0
	for _, file := range read.Files {
		for _, m := range file.Mutations {
			switch {
			case file.Name != controlFile:
				found = append(found, mutant{path.Join(folder, file.Name), m.Line, m.Column, m.Type, m.Status})
			case m.Status != mutantLived:
				return nil, fmt.Errorf("a change that no test can notice was %s: the tests fail in the copy for another reason", m.Status)
			default:
				controls++
			}
		}
	}
	if controls == 0 {
		return nil, errors.New("gremlins did not run the control mutants")
	}
	slices.SortFunc(found, func(a, b mutant) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column), strings.Compare(a.kind, b.kind))
	})
	return found, nil
}

// readKnownMutants reads the file of limits and equivalent mutants.
func readKnownMutants(file string) (known knownMutants, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return known, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&known); err != nil {
		return known, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return known, nil
}
