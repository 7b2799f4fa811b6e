package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lanes are one stage: what is flaky in one of them excuses nothing in another, and all of
// it is told.
func TestLanesAreJudgedTogether(t *testing.T) {
	const flaky = "\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n\tif os.Mkdir(\"seen\", 0o700) == nil {\n\t\tt.Error(\"slow\")\n\t}\n}\n"
	lane := func(names ...string) (calls []goCall) {
		for _, name := range names {
			calls = append(calls, goCall{env: noCgo, args: []string{"./" + name}})
		}
		return calls
	}
	tests := []struct {
		name          string
		lanes         [][]goCall
		flaky, failed []string
	}{
		{name: "all pass", lanes: [][]goCall{lane("good"), nil, lane("good")}},
		{name: "one of each is flaky", lanes: [][]goCall{lane("a"), lane("good", "b")}, flaky: []string{"a TestA", "b TestA"}},
		{name: "a call that tests nothing has failed", lanes: [][]goCall{lane("a"), {{env: noCgo, args: []string{"-p=none"}}, lane("b")[0]}}, flaky: []string{"a TestA", "b TestA"}, failed: []string{"go test"}},
		{name: "what failed in one has failed", lanes: [][]goCall{lane("bad"), lane("a")}, flaky: []string{"a TestA"}, failed: []string{"bad TestBad"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var output bytes.Buffer
			p := project{root: t.TempDir(), output: &output, notes: &notes{}}
			write(t, p.root, map[string]string{
				"go.mod":            "module bridge\n\ngo 1.25\n",
				"a/a_test.go":       "package a\n" + flaky,
				"b/b_test.go":       "package b\n" + flaky,
				"good/good_test.go": "package good\n\nimport \"testing\"\n\nfunc TestGood(*testing.T) {}\n",
				"bad/bad_test.go":   "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Fail() }\n",
			})
			if err := p.goTestLanes(t.Context(), 2, tt.lanes...); (err == nil) != (tt.failed == nil) {
				t.Errorf("goTestLanes = %v\n%s", err, &output)
			}
			if diff := cmp.Diff(tt.flaky, named(p.notes.flaky)); diff != "" {
				t.Errorf("flaky: %s\n%s", diff, &output)
			}
			if diff := cmp.Diff(tt.failed, named(p.notes.failures)); diff != "" {
				t.Errorf("failed: %s\n%s", diff, &output)
			}
		})
	}
}

func TestTheRaceDetectorWatchesWhatRunsBesideSomething(t *testing.T) {
	for text, want := range map[string]bool{
		"func f() {\n\tgo func() {}()\n}":    true,
		"func f() {\n\tgo w.run(ctx)\n}":     true,
		"func f() {\n\tgroup.Go(f)\n}":       true,
		"func f() {\n\tt.Parallel()\n}":      true,
		"import (\n\t\"sync/atomic\"\n)":     true,
		"import (\n\t\"net/http\"\n)":        true,
		"import (\n\t\"net\"\n)":             true,
		"import (\n\t\"os\"\n)":              false,
		"import (\n\t\"net/mail\"\n)":        true, // once too often is no harm
		"// it may\n// go on (for long)":     false,
		"var words = \"go run ./build x()\"": false,
	} {
		p := project{root: t.TempDir()}
		write(t, p.root, map[string]string{"a/a.go": "package a\n", "a/a_test.go": "package a\n\n" + text + "\n"})
		if got := p.hasRaces("bridge/a"); got != want {
			t.Errorf("hasRaces = %v for\n%s", got, text)
		}
	}
	if p := (project{root: t.TempDir()}); !p.hasRaces("bridge/a") {
		t.Error("what cannot be read is not watched")
	}
	p := project{root: ".."}
	for name, want := range map[string]bool{"broker": true, "ipc": true, "jobs": true, "link": true, "peering": true, "hub": true, "decision": false, "wire": false} {
		if got := p.hasRaces("bridge/backend/" + name); got != want {
			t.Errorf("hasRaces(%s) = %v", name, got)
		}
	}
}

// Each package that may not run beside its like is there, and runs once.
func TestPackagesThatStartProcessesAreThere(t *testing.T) {
	for i, name := range startProcesses {
		if found, err := filepath.Glob(filepath.Join("..", name[len("bridge/"):], "*_test.go")); err != nil || len(found) == 0 {
			t.Errorf("%s has no tests (%v)", name, err)
		}
		if slices.Contains(startProcesses[:i], name) {
			t.Errorf("%s is there twice", name)
		}
	}
}

// Every package is tested once, and those that start processes one at a time: but in a long
// run those that mostly wait have lanes of their own.
func TestEveryPackageIsInOneLane(t *testing.T) {
	packages := append([]string{"bridge/backend/link", "bridge/backend/decision", "bridge/cmd/bridge-hub"}, startProcesses...)
	for long, want := range map[bool]int{false: 2, true: 4} {
		lanes := project{root: "..", long: long}.lanes(packages)
		var tested []string
		for _, calls := range lanes {
			for _, call := range calls {
				for _, arg := range call.args {
					if strings.HasPrefix(arg, "bridge/") {
						tested = append(tested, arg)
					}
				}
				alone := slices.ContainsFunc(call.args, func(arg string) bool {
					return slices.Contains(startProcesses, arg) || long && arg == "bridge/cmd/bridge-hub"
				})
				if alone != slices.Contains(call.args, "-p=1") || alone == call.yields {
					t.Errorf("long %v: called with %q, yields %v", long, call.args, call.yields)
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(packages)), slices.Sorted(slices.Values(tested))); diff != "" || len(lanes) != want {
			t.Errorf("long %v: %d lanes; %s", long, len(lanes), diff)
		}
	}
}

func TestAShortRunTakesTheHeadlessShell(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	t.Setenv("BRIDGE_CHROMIUM", "")
	whole, shell := filepath.Join(folder, "chromium"), filepath.Join(folder, "chromium-headless-shell")
	find := func(long bool) string {
		path, err := findBrowser(long)
		if err != nil {
			t.Error(err)
		}
		return path
	}
	program(t, whole)
	if got := find(false); got != whole {
		t.Errorf("without the shell it is %s", got)
	}
	program(t, shell)
	if got := find(false); got != shell {
		t.Errorf("a short run has %s", got)
	}
	if got := find(true); got != whole {
		t.Errorf("a long run has %s", got)
	}
}

func program(t *testing.T, path string) {
	t.Helper()
	write(t, filepath.Dir(path), map[string]string{filepath.Base(path): "#!/bin/sh\n"})
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}
