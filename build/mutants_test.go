package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPRF_02_AWrongArgumentChangesNothing(t *testing.T) {
	p := project{root: t.TempDir(), output: io.Discard}
	for _, args := range [][]string{{"-workers", "0"}, {"-workers", "some"}, {"-x"}, {"no-such-package"}} {
		if err := runMutants(t.Context(), p, args); !errors.As(err, new(badArgument)) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestPRF_02_AnArgumentChoosesPackages(t *testing.T) {
	all := []mutated{{folder: "backend/core/job"}, {folder: "backend/core/job/runs"}, {folder: "backend/network/hub", files: []string{"seal.go"}}}
	for _, tt := range []struct {
		parts []string
		want  []mutated
	}{
		{nil, all},
		{[]string{"runs"}, all[1:2]},
		{[]string{"./backend/network/hub/", "runs"}, all[1:]},
		{[]string{"none"}, nil},
	} {
		if difference := cmp.Diff(tt.want, chooseMutated(all, tt.parts), cmp.AllowUnexported(mutated{})); difference != "" {
			t.Errorf("%q: %s", tt.parts, difference)
		}
	}
}

// TestPRF_02_WhatMutantsNameIsThere holds the list of packages and build/mutants.json to the
// sources.
func TestPRF_02_WhatMutantsNameIsThere(t *testing.T) {
	folders := map[string]bool{}
	for _, m := range mutatedPackages {
		folders[m.folder] = true
		files := m.files
		if len(files) == 0 {
			files = []string{"."}
		}
		for _, file := range files {
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(m.folder), file)); err != nil {
				t.Error(err)
			}
		}
	}
	known, err := readKnownMutants("mutants.json")
	if err != nil {
		t.Fatal(err)
	}
	for folder, limit := range known.Limits {
		if !folders[folder] || limit == (mutantLimit{}) || limit.Lived < 0 || limit.NotCovered < 0 {
			t.Errorf("the limits of %s: it is no mutated package, or they are no limits: %+v", folder, limit)
		}
	}
	for _, problem := range staleEquivalents("..", known.Equivalent) {
		t.Error(problem)
	}
}

func TestPRF_02_AStaleEquivalentIsFound(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"a/a.go": "package a\n\nfunc (r *Rule[T]) Says(n int) bool {\n\treturn n > 1\n}\n"})
	right := equivalentMutant{File: "a/a.go", Function: "Rule.Says", Kind: "CONDITIONALS_BOUNDARY", Line: "return n > 1", Reason: "n is never 1"}
	for _, tt := range []struct {
		name   string
		change func(*equivalentMutant)
		stale  bool
	}{
		{"right", func(*equivalentMutant) {}, false},
		{"another line", func(e *equivalentMutant) { e.Line = "return n > 2" }, true},
		{"another function", func(e *equivalentMutant) { e.Function = "Says" }, true},
		{"another file", func(e *equivalentMutant) { e.File = "a/b.go" }, true},
		{"no reason", func(e *equivalentMutant) { e.Reason = " " }, true},
		{"no kind", func(e *equivalentMutant) { e.Kind = "" }, true},
	} {
		e := right
		tt.change(&e)
		if problems := staleEquivalents(root, []equivalentMutant{e}); len(problems) > 0 != tt.stale {
			t.Errorf("%s: %q", tt.name, problems)
		}
	}
}

func TestPRF_02_TheReportIsReadWithItsControl(t *testing.T) {
	const file, control = `{"file_name":"b.go","mutations":[{"type":"B","status":"LIVED","line":3,"column":7},{"type":"A","status":"KILLED","line":3,"column":7},{"type":"A","status":"NOT COVERED","line":2,"column":9}]}`,
		`{"file_name":"mutantcontrol.go","mutations":[{"type":"A","status":"LIVED","line":4,"column":27}]}`
	report := func(files ...string) string { return `{"files":[` + strings.Join(files, ",") + `]}` }
	want := []mutant{{"a/b.go", 2, 9, "A", mutantNotCovered}, {"a/b.go", 3, 7, "A", mutantKilled}, {"a/b.go", 3, 7, "B", mutantLived}}
	for _, tt := range []struct {
		name, report, problem string
	}{
		{"both", report(file, control), ""},
		{"no control", report(file), "did not run the control"},
		{"a killed control", report(file, strings.Replace(control, "LIVED", "KILLED", 1)), "KILLED: the tests fail in the copy for another reason"},
		{"a control that ran into its time", report(strings.Replace(control, "LIVED", "TIMED OUT", 1), file), "TIMED OUT"},
		{"nothing", "", "report"},
	} {
		got, err := readMutants("a", []byte(tt.report))
		switch {
		case tt.problem == "":
			if difference := cmp.Diff(want, got, cmp.AllowUnexported(mutant{})); err != nil || difference != "" {
				t.Errorf("%s: %v %s", tt.name, err, difference)
			}
		case err == nil || !strings.Contains(err.Error(), tt.problem):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestPRF_02_SurvivorsAreCountedAgainstTheLimits(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"a/a.go": "package a\n\nfunc Says(n int) bool {\n\treturn n > 1\n}\n\nconst Most = 2 * 3\n"})
	some := func(n int, status string) (found []mutant) {
		return slices.Repeat([]mutant{{"a/a.go", 4, 11, "BOUNDARY", status}}, n)
	}
	equal := func(count int) []equivalentMutant {
		return []equivalentMutant{
			{File: "a/a.go", Function: "Says", Kind: "BOUNDARY", Line: "return n > 1", Count: count, Reason: "r"},
			{File: "b/b.go", Function: "Other", Kind: "BOUNDARY", Line: "return", Reason: "of a package that is not counted"},
		}
	}
	for _, tt := range []struct {
		name                                                            string
		found                                                           []mutant
		known                                                           knownMutants
		killed, lived, notCovered, timedOut, equivalent, failures, note int
	}{
		{name: "95 of a hundred", found: append(some(95, mutantKilled), some(5, mutantLived)...), killed: 95, lived: 5},
		{name: "94 of a hundred", found: append(some(94, mutantKilled), some(6, mutantLived)...), killed: 94, lived: 6, failures: 1},
		{name: "one of one", found: some(1, mutantLived), lived: 1, failures: 1},
		{name: "within its limit", found: some(2, mutantLived), known: knownMutants{Limits: map[string]mutantLimit{"a": {Lived: 2}}}, lived: 2},
		{name: "beyond its limit", found: some(3, mutantLived), known: knownMutants{Limits: map[string]mutantLimit{"a": {Lived: 2}}}, lived: 3, failures: 1},
		{name: "below its limit", found: some(1, mutantLived), known: knownMutants{Limits: map[string]mutantLimit{"a": {Lived: 2}}}, lived: 1, note: 1},
		{name: "one of ten not covered", found: append(some(9, mutantKilled), some(1, mutantNotCovered)...), killed: 9, notCovered: 1},
		{name: "two of ten not covered", found: append(some(8, mutantKilled), some(2, mutantNotCovered)...), killed: 8, notCovered: 2, failures: 1},
		{name: "two, as the limit says", found: append(some(8, mutantKilled), some(2, mutantNotCovered)...), known: knownMutants{Limits: map[string]mutantLimit{"a": {NotCovered: 2}}}, killed: 8, notCovered: 2},
		{name: "out of time, and not compiled", found: append(some(2, "TIMED OUT"), some(3, mutantNotViable)...), timedOut: 2},
		{name: "equivalent", found: some(1, mutantLived), known: knownMutants{Equivalent: equal(0)}, equivalent: 1},
		{name: "two equivalent", found: some(2, mutantLived), known: knownMutants{Equivalent: equal(2)}, equivalent: 2},
		{name: "one more than equivalent", found: some(2, mutantLived), known: knownMutants{Equivalent: equal(1)}, equivalent: 1, lived: 1, failures: 1},
		{name: "equivalent, and killed", found: some(1, mutantKilled), known: knownMutants{Equivalent: equal(0)}, killed: 1, failures: 1},
		{name: "equivalent, and not covered", found: append(some(20, mutantKilled), some(1, mutantNotCovered)...), known: knownMutants{Equivalent: equal(0)}, killed: 20, notCovered: 1, failures: 1},
	} {
		got, err := count(root, mutated{folder: "a"}, tt.found, tt.known)
		if err != nil {
			t.Fatal(err)
		}
		want := []int{tt.killed, tt.lived, tt.notCovered, tt.timedOut, tt.equivalent, tt.failures, tt.note, tt.lived + tt.notCovered + tt.timedOut}
		have := []int{got.killed, got.lived, got.notCovered, got.timedOut, got.equivalent, len(got.failures), len(got.notes), len(got.reviewed)}
		if !slices.Equal(want, have) {
			t.Errorf("%s: %v, want %v: %q", tt.name, have, want, got.failures)
		}
		var printed strings.Builder
		printMutants(&printed, got)
		if err := printTallies(&printed, []tally{got, {folder: "b", killed: 1}}); (err != nil) != (tt.failures > 0) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if shown := strings.Contains(printed.String(), "LIVED       a/a.go:4:11 BOUNDARY in Says: return n > 1\n"); shown != (tt.lived > 0) {
			t.Errorf("%s: it prints %s", tt.name, printed.String())
		}
	}
	if _, err := count(root, mutated{folder: "a"}, []mutant{{file: "a/none.go", status: mutantLived}}, knownMutants{}); err == nil {
		t.Error("a report about a file that is not there is believed")
	}
}

func TestPRF_02_TheCopyHasWhatGitHas(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	git := exec.Command("git", "init", "--quiet", from)
	if text, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	write(t, from, map[string]string{".gitignore": "/.cache/\n", "a/a.go": "package a", "a/name with ü.txt": "text", ".cache/large": "large"})
	write(t, to, map[string]string{"of before": ""})
	if err := copyTracked(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range []string{".gitignore", "a/a.go", "a/name with ü.txt", ".cache/large", "of before"} {
		if text, err := os.ReadFile(filepath.Join(to, filepath.FromSlash(name))); err == nil {
			files[name] = string(text)
		}
	}
	if difference := cmp.Diff(map[string]string{".gitignore": "/.cache/\n", "a/a.go": "package a", "a/name with ü.txt": "text"}, files); difference != "" {
		t.Error(difference)
	}
}

func TestPRF_02_OnlyTheNamedFilesOfAPackageChange(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"a.go": "// Package p.\npackage p\n", "b.go": "package p\n", "ab.go": "package p\n", controlFile: controlText("p")})
	for _, tt := range []struct {
		only, want []string
	}{
		{nil, []string{"/"}},
		{[]string{"b.go"}, []string{"/", `^a\.go$`, `^ab\.go$`}},
	} {
		got, err := excludedFiles(folder, tt.only)
		if difference := cmp.Diff(tt.want, got); err != nil || difference != "" {
			t.Errorf("%q: %v %s", tt.only, err, difference)
		}
	}
	if name, err := packageName(folder); name != "p" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := packageName(t.TempDir()); err == nil {
		t.Errorf("an empty folder is package %q", name)
	}
}
