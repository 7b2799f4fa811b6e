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
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/testing/testkit"
)

// A test that failed is tried again, alone; what would fail again, or is a defect
// though it passes, is not.
func TestGoTestTakesASecondLook(t *testing.T) {
	const fresh = `package a

import (
	"os"
	"testing"
)

// at counts the runs of what has that name.
func at(name string) int {
	past, _ := os.ReadFile(name)
	os.WriteFile(name, append(past, '.'), 0o600)
	return len(past) + 1
}

func TestOther(t *testing.T) {
	if at("other") > 1 {
		panic("all of them once more")
	}
}

`
	oneOf := func(n int) (code string) {
		for i := range n {
			code += fmt.Sprintf("func TestA%d(t *testing.T) {\n\tif at(%q) == 1 {\n\t\tt.Error(\"slow\")\n\t}\n}\n\n", i, fmt.Sprint(i))
		}
		return code
	}
	numbered := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("a TestA%d", i))
		}
		return names
	}
	tests := []struct {
		name, pkg, code string
		flaky, failed   []string
	}{
		{
			name:  "a part that passes then is flaky, and is tried with its whole",
			code:  "func TestA(t *testing.T) {\n\tready := false\n\tt.Run(\"first\", func(*testing.T) { ready = true })\n\tt.Run(\"x (y)\", func(t *testing.T) {\n\t\tif at(\"x\") == 1 || !ready {\n\t\t\tt.Error(\"slow\")\n\t\t}\n\t})\n}\n",
			flaky: []string{"a TestA/x_(y)"},
		},
		{
			name:  "twice at most",
			code:  "func TestA(t *testing.T) {\n\tif at(\"x\") < 3 {\n\t\tt.Error(\"slow\")\n\t}\n}\n",
			flaky: []string{"a TestA"},
		},
		{
			name:   "what fails at each try has failed, and the other one is flaky",
			code:   "func TestA(t *testing.T) {\n\tif at(\"x\") < 4 {\n\t\tt.Error(\"slow\")\n\t}\n}\n\nfunc TestB(t *testing.T) {\n\tif at(\"y\") == 1 {\n\t\tt.Error(\"slow\")\n\t}\n}\n",
			flaky:  []string{"a TestB"},
			failed: []string{"a TestA"},
		},
		{name: "five are flaky", code: oneOf(5), flaky: numbered(5)},
		{name: "six are too many", code: oneOf(6), failed: numbered(6)},
		{
			name:   "a data race stays one",
			code:   "func TestA(t *testing.T) {\n\tif at(\"x\") == 1 {\n\t\tt.Error(\"race detected during execution of test\")\n\t}\n}\n",
			failed: []string{"a TestA"},
		},
		{
			name:   "so does one that another test tells",
			code:   "func TestA(t *testing.T) {\n\tif at(\"x\") == 1 {\n\t\tt.Error(\"slow\")\n\t}\n}\n\nfunc TestZ(*testing.T) { println(\"WARNING: DATA RACE\") }\n",
			failed: []string{"a TestA"},
		},
		{
			name:   "so does a panic",
			code:   "func TestA(t *testing.T) {\n\tif at(\"x\") == 1 {\n\t\tpanic(\"gone\")\n\t}\n}\n",
			failed: []string{"a TestA"},
		},
		{
			name:   "so does what is left behind",
			code:   "func TestA(t *testing.T) {\n\tif at(\"x\") == 1 {\n\t\tt.Error(\"slow\")\n\t}\n}\n\nfunc TestMain(m *testing.M) {\n\tcode := m.Run()\n\tif at(\"left\") == 1 {\n\t\tprintln(\"goleak: Errors on successful test run: found unexpected goroutines\")\n\t}\n\tos.Exit(code)\n}\n",
			failed: []string{"a TestA"},
		},
		{
			name:   "a data race that another try shows ends the tries",
			code:   "func TestA(t *testing.T) {\n\tswitch at(\"x\") {\n\tcase 1:\n\t\tt.Error(\"slow\")\n\tcase 2:\n\t\tt.Error(\"race detected during execution of test\")\n\t}\n}\n",
			failed: []string{"a TestA"},
		},
		{
			name:   "what is skipped then has not passed",
			code:   "func TestA(t *testing.T) {\n\tif at(\"x\") == 1 {\n\t\tt.Error(\"slow\")\n\t}\n\tt.Skip()\n}\n",
			failed: []string{"a TestA"},
		},
		{
			name:   "a promise is kept or not",
			pkg:    "backend/testing/faults",
			code:   oneOf(1),
			failed: []string{"faults TestA0"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, pkg := t.TempDir(), "a"
			if tt.pkg != "" {
				pkg = tt.pkg
			}
			for name, text := range map[string]string{"go.mod": "module bridge\n\ngo 1.25\n", pkg + "/a_test.go": fresh + tt.code} {
				name = filepath.Join(root, filepath.FromSlash(name))
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			var output bytes.Buffer
			p := project{root: root, output: &output, notes: &notes{}}
			err := p.goTest(t.Context(), 2, noCgo, "-timeout=1m", "./"+pkg)
			if (err == nil) != (tt.failed == nil) {
				t.Errorf("goTest = %v\n%s", err, &output)
			}
			if diff := cmp.Diff(tt.flaky, named(p.notes.flaky)); diff != "" {
				t.Errorf("flaky: %s\n%s", diff, &output)
			}
			if diff := cmp.Diff(tt.failed, named(p.notes.failures)); diff != "" {
				t.Errorf("failed: %s\n%s", diff, &output)
			}
			var end bytes.Buffer
			if err := summarize(&end, []result{{name: "go", err: err, notes: *p.notes}}); (err == nil) != (tt.failed == nil) {
				t.Errorf("summarize = %v", err)
			}
			for _, f := range p.notes.flaky {
				if said := "flaky    go           " + f.test + "\n           a_test.go:"; !strings.Contains(end.String(), said) {
					t.Errorf("the end does not say %q:\n%s", said, &end)
				}
			}
		})
	}
}

// A long run tells its tests, and the command that runs one of them alone.
func TestALongRunTellsItsTests(t *testing.T) {
	p := project{root: t.TempDir(), output: io.Discard, notes: &notes{}, long: true}
	write(t, p.root, map[string]string{
		"go.mod":      "module bridge\n\ngo 1.25\n",
		"a/a_test.go": "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) { t.Log(os.Getenv(\"BRIDGE_TEST_LONG\")); t.Fail() }\n",
	})
	if err := p.goTest(t.Context(), 0, noCgo, "-timeout=1ns", "./a"); err == nil {
		t.Error("goTest = nil although a test failed")
	}
	if len(p.notes.failures) != 1 || p.notes.failures[0].output != "a_test.go:8: 1" {
		t.Fatalf("failures: %+v", p.notes.failures)
	}
	const alone = "CGO_ENABLED=0 BRIDGE_TEST_LONG=1 go test -vet=off -ldflags=-w -timeout=1ns -timeout=4h0m0s '-run=^TestA$' -count=1 bridge/a"
	if got := p.notes.failures[0].alone.String(); got != alone {
		t.Errorf("alone it is %s, want %s", got, alone)
	}
}

func named(all []failure) (names []string) {
	for _, f := range all {
		names = append(names, f.test)
	}
	return names
}

// Six flaky tests in all stages together fail a run in which each stage passed.
func TestTooManyFlakyTestsFailARun(t *testing.T) {
	flaky := func(stage string, n int) result {
		r := result{name: stage}
		for i := range n {
			r.notes.flaky = append(r.notes.flaky, failure{test: "t", alone: step{name: stage, args: []string{fmt.Sprint(i)}}})
		}
		return r
	}
	if err := summarize(io.Discard, []result{flaky("go", 3), flaky("browser", 2)}); err != nil {
		t.Errorf("five: %v", err)
	}
	if err := summarize(io.Discard, []result{flaky("go", 4), flaky("browser", 2)}); err == nil || !strings.Contains(err.Error(), "6 tests are flaky") {
		t.Errorf("six: %v", err)
	}
	parts := flaky("go", 5)
	parts.notes.flaky = append(parts.notes.flaky, parts.notes.flaky[0])
	if err := summarize(io.Discard, []result{parts}); err != nil {
		t.Errorf("six parts of five tests: %v", err)
	}
}

func TestPromisesAreToldByPackageAndName(t *testing.T) {
	for test, want := range map[string]bool{
		"bridge/backend/testing/faults TestAnything":                                            true,
		"bridge/backend/storage/maintain/check TestAnything/part":                               true,
		"bridge/backend/storage/store/upgrade TestAnything":                                     true,
		"bridge/backend/storage/store TestAnything":                                             false,
		"bridge/backend/jobs/runner TestJOB_06_JOB_03_ARunnerKilledAtEachStep":                  true,
		"bridge/backend/jobs/runner TestJOB_03_AResultIsToldAgain":                              true,
		"bridge/backend/jobs/runner TestJOB_19_AWorktreeIsMadeReady":                            false,
		"bridge/backend/broker TestMSG_06_CHT_03_MailOfAWakeIsSeenOnce":                         true,
		"bridge/backend/broker TestMSG_06_CHT_03_MailOfAWakeIsSeenOnce/x":                       true,
		"bridge/backend/broker TestJOB_18_ABrokerThatDiesLosesNothing":                          true,
		"bridge/cmd/bridge-hub TestHUB_07_ThreeNodesLoseNothing":                                true,
		"bridge/backend/doors/dashboard TestAUT_04_ATicketOpensTheDashboardOnceWithin30Seconds": false,
		"bridge/cmd/bridge TestSTO_08_RestoreSaysWhatItDoes":                                    true,
		"bridge/backend/soakother TestAnything":                                                 false,
	} {
		if got := promises.MatchString(test); got != want {
			t.Errorf("%s is a promise: %v, want %v", test, got, want)
		}
	}
}

func TestPromisesOfThePageAreToldByTitle(t *testing.T) {
	for title, want := range map[string]bool{
		"DSK-06 a killed broker is told, and the page comes back by itself": true,
		"CHT-01 pages that are closed while they send lose no message":      true,
		"CHT-01 a page that loses its broker sends nothing twice":           true,
		"NED-02 an answer is given once":                                    true,
		"DSK-06 the closed pane stays closed":                               false,
	} {
		if got := pagePromises.MatchString(title); got != want {
			t.Errorf("%s is a promise: %v, want %v", title, got, want)
		}
	}
}

// The end of a log names all that failed, whatever else there is to say.
func TestTheLast60LinesNameWhatFailed(t *testing.T) {
	for _, n := range []int{1, 5, 20, 40, 90} {
		r := result{name: "go", err: errors.New("no")}
		for i := range n {
			r.notes.failures = append(r.notes.failures, failure{
				test: fmt.Sprintf("pkg Test%d", i), output: strings.TrimSuffix(strings.Repeat(fmt.Sprintf("said %d\n", i), 12), "\n"),
				alone: step{name: "go", args: []string{"test", fmt.Sprintf("-run=^Test%d$", i), "./pkg"}},
			})
		}
		r.notes.flaky = []failure{{test: "pkg TestFlaky", output: "slow", alone: step{name: "go", args: []string{"test", "-run=^TestFlaky$"}}}}
		results := []result{r}
		for i := range 12 {
			results = append(results, result{name: fmt.Sprintf("stage%d", i)})
		}
		var output bytes.Buffer
		fmt.Fprint(&output, strings.Repeat("a long log\n", 100))
		if err := summarize(&output, results); err == nil {
			t.Fatal("summarize = nil")
		}
		fmt.Fprint(&output, "build: not every check passed\nexit status 1\n")
		lines := slices.Collect(strings.Lines(output.String()))
		end := strings.Join(lines[len(lines)-60:], "")
		for i := range n {
			if name := fmt.Sprintf("pkg Test%d", i); !strings.Contains(end, name+"\n") && !strings.Contains(end, name+":") && !strings.Contains(end, name+",") {
				t.Errorf("%d failures: the end does not name %s", n, name)
			}
			if said := fmt.Sprintf("said %d\n", i); n <= 5 && !strings.Contains(end, said) {
				t.Errorf("%d failures: the end does not say %q", n, said)
			}
			if alone := fmt.Sprintf("go test '-run=^Test%d$' ./pkg", i); n <= 40 && !strings.Contains(end, alone) {
				t.Errorf("%d failures: the end does not say %q", n, alone)
			}
		}
		for _, words := range []string{"TestFlaky", "FAILED   go", "ok       stage11", "stages: 12 passed, 1 failed"} {
			if !strings.Contains(end, words) {
				t.Errorf("%d failures: the end does not say %q", n, words)
			}
		}
		if t.Failed() {
			t.Fatal(end)
		}
	}
}

// Where one system's code cannot be compiled, the others are checked still.
func TestVetLooksAtEverySystem(t *testing.T) {
	bin, root := t.TempDir(), t.TempDir()
	fake := filepath.Join(bin, "go")
	if err := testkit.WriteProgram(fake, []byte("#!/bin/sh\necho $GOOS $GOARCH >>"+filepath.Join(root, "asked")+"\n[ $GOOS != windows ]\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv("GOARCH", "")
	if err := vet(context.Background(), project{root: root, output: io.Discard}); err == nil {
		t.Error("vet = nil although one system failed")
	}
	asked, err := os.ReadFile(filepath.Join(root, "asked"))
	if err != nil {
		t.Skip("NOT TESTED: it needs a shell: ", err)
	}
	for _, want := range []string{runtime.GOOS + " " + runtime.GOARCH + "\n", "linux arm64\n", "windows", "darwin"} {
		if !strings.Contains(string(asked), want) {
			t.Errorf("it asked for %q, and not for %s", asked, want)
		}
	}
}
