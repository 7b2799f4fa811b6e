package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/testing/testkit"
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
	for name, want := range map[string]bool{
		"broker": true, "platform/ipc": true, "jobs": true, "network/link": true, "network/peering": true, "network/hub": true, "core/decision": false, "platform/wire": false,
	} {
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

// Every package is tested once, and those that start processes one at a time: but the one that
// kills the longest has a lane of its own.
func TestEveryPackageIsInOneLane(t *testing.T) {
	packages := append([]string{"bridge/backend/network/link", "bridge/backend/core/decision", "bridge/cmd/bridge-hub"}, startProcesses...)
	const want = 3
	for _, long := range []bool{false, true} {
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

// Stages of two lanes run beside each other, those of one lane in their order and behind
// those of the other that they build on, and others when these have ended. What each prints
// stays together.
func TestStagesOfTwoLanesRunBesideEachOther(t *testing.T) {
	var output bytes.Buffer
	p := project{root: t.TempDir(), output: &output}
	here, there := make(chan bool), make(chan bool)
	ran := 0
	all := []stage{
		{name: "first", run: func(context.Context, project) error { ran++; return nil }},
		{name: "a", lane: "one", after: []string{"first"}, run: func(ctx context.Context, p project) error {
			p.say("a begins")
			close(here)
			select { // the other lane is at work
			case <-there:
			case <-ctx.Done():
			}
			p.say("a ends")
			return ctx.Err()
		}},
		{name: "b", lane: "two", run: func(ctx context.Context, p project) error {
			p.say("b begins")
			select {
			case <-here:
			case <-ctx.Done():
			}
			close(there)
			p.say("b fails")
			return errors.New("it broke")
		}},
		{name: "after-a", lane: "one", after: []string{"a"}, run: func(_ context.Context, p project) error {
			p.working.byItself(func() { ran++ }) // the other lane does nothing but wait for this
			return nil
		}},
		{name: "after-b", lane: "two", after: []string{"b"}, run: func(context.Context, project) error { ran = 100; return nil }},
		{name: "after-both", lane: "one", after: []string{"a", "b"}, run: func(context.Context, project) error { ran = 100; return nil }},
		{name: "after-a-there", lane: "two", after: []string{"after-a"}, run: func(context.Context, project) error {
			if ran != 2 {
				return fmt.Errorf("it begins when %d of 2 stages before it have ended", ran)
			}
			ran++
			return nil
		}},
		{name: "last", after: []string{"after-a"}, run: func(context.Context, project) error { ran++; return nil }},
		{name: "alone", lane: "one", after: []string{"after-b"}, run: func(context.Context, project) error { ran = 100; return nil }},
	}
	var got []string
	for _, r := range runStages(t.Context(), p, all, testkit.Patience) {
		got = append(got, fmt.Sprintf("%s %t %s", r.name, r.err == nil, r.skipped))
	}
	want := []string{"first true ", "a true ", "b false ", "after-a true ", "after-b true needs b", "after-both true needs b", "after-a-there true ", "last true ", "alone true needs after-b"}
	if diff := cmp.Diff(want, got); diff != "" || ran != 4 {
		t.Errorf("%d ran to their end: %s\n%s", ran, diff, &output)
	}
	for _, words := range []string{"==> [a]\n==> a begins\n==> a ends\n", "==> [b]\n==> b begins\n==> b fails\n"} {
		if !strings.Contains(output.String(), words) {
			t.Errorf("it does not say %q together:\n%s", words, &output)
		}
	}
}

// What failed beside another lane is tried again when that has ended, or waits for the same.
func TestASecondLookIsAloneAmongTheLanes(t *testing.T) {
	p := project{root: t.TempDir(), output: io.Discard}
	var busy atomic.Int64
	looks := func(name string) func(context.Context, project) error {
		return func(ctx context.Context, p project) error {
			busy.Add(1)
			defer busy.Add(-1)
			p.fail(failure{test: "pkg " + name, alone: step{name: name}})
			busy.Add(-1)
			err := p.retryFailed(ctx, errors.New("failed"), 0, 2, func(project, failure) error {
				if n := busy.Add(1); n != 1 {
					t.Errorf("%s is tried again beside %d others", name, n-1)
				}
				defer busy.Add(-1)
				return nil
			})
			busy.Add(1)
			return err
		}
	}
	works := func(context.Context, project) error {
		busy.Add(1)
		defer busy.Add(-1)
		runtime.Gosched()
		return nil
	}
	for range 200 {
		results := runStages(t.Context(), p, []stage{
			{name: "a", lane: "one", run: looks("a")},
			{name: "b", lane: "two", run: works},
			{name: "c", lane: "two", after: []string{"a"}, run: looks("c")},
			{name: "d", lane: "one", run: works},
			{name: "e", lane: "two", run: works},
			{name: "f", lane: "one", after: []string{"e"}, run: looks("f")},
		}, testkit.Patience)
		for _, r := range results {
			if want := strings.Contains("acf", r.name); r.err != nil || len(r.notes.flaky) > 0 != want {
				t.Fatalf("%s ends with %v, flaky %v", r.name, r.err, r.notes.flaky)
			}
		}
	}
}

// What stages of two lanes may take together is what the longer one may.
func TestTheBudgetOfLanesIsTheLongerOnes(t *testing.T) {
	results := []result{
		{budget: 1}, {lane: "a", budget: 10}, {lane: "b", budget: 20}, {lane: "a", budget: 15}, {budget: 100}, {lane: "b", budget: 1000},
	}
	if got := wholeBudget(results); got != 1126 {
		t.Errorf("%d s, want 1126", got)
	}
	var all []result
	for _, s := range stages() {
		all = append(all, result{lane: s.lane, budget: s.budget})
	}
	if got := wholeBudget(all); got != 1200 {
		t.Errorf("all stages may take %d s, and 20 minutes are what they may", got)
	}
}
