package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPicturesTakeNoArguments(t *testing.T) {
	if err := runPictures(t.Context(), project{root: t.TempDir()}, []string{"light"}); err == nil || !strings.Contains(err.Error(), "no arguments") {
		t.Errorf("pictures with an argument: %v", err)
	}
}

func TestDispatchNamesTheTasks(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"--help"}} {
		var output bytes.Buffer
		if err := dispatch(t.Context(), args, &output); !errors.Is(err, errUsage) {
			t.Errorf("dispatch(%q) = %v, want the usage error", args, err)
		}
		for _, task := range tasks() {
			if !strings.Contains(output.String(), "  "+task.name) {
				t.Errorf("dispatch(%q) does not name %s:\n%s", args, task.name, &output)
			}
		}
	}
}

func TestNodeIsEnough(t *testing.T) {
	for version, enough := range map[string]bool{
		"v20.19.0": true, "v20.20.2": true, "v22.0.0": true, "v100.1.0": true,
		"v20.18.9": false, "v18.20.4": false, "": false, "v20": false, "vx.y.z": false,
	} {
		if err := nodeIsEnough(version); (err == nil) != enough {
			t.Errorf("nodeIsEnough(%q) = %v, want enough=%v", version, err, enough)
		}
	}
}

func TestPageSumChangesWithTheSourcesOnly(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sum := func() string {
		t.Helper()
		sum, err := pageSum(dir)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	put("src/App.svelte", "a")
	first := sum()
	for _, name := range []string{"dist/index.html", "node_modules/x/index.js", "e2e/a.spec.ts", "test-results/x"} {
		put(name, "x")
		if sum() != first {
			t.Errorf("%s changed the sum, but the page is not built from it", name)
		}
	}
	for _, name := range []string{"src/App.svelte", "public/icon.svg", "package-lock.json"} {
		before := sum()
		put(name, "b")
		if sum() == before {
			t.Errorf("%s did not change the sum", name)
		}
	}
}

func TestLaunchLink(t *testing.T) {
	for line, want := range map[string]string{
		"bridge: ready http://127.0.0.1:4777/launch?key=abc\n":   "http://127.0.0.1:4777/launch?key=abc",
		"bridge: ready http://127.0.0.1:4777/launch?key=abc\r\n": "http://127.0.0.1:4777/launch?key=abc",
		"bridge: ready file:///etc/passwd\n":                     "",
		"starting\n":                                             "",
	} {
		if link, ready := launchLink(line); ready != (want != "") || ready && link != want {
			t.Errorf("launchLink(%q) = %q, %v; want %q", line, link, ready, want)
		}
	}
}

func TestOpenerNeedsAScreen(t *testing.T) {
	tests := []struct {
		system string
		env    map[string]string
		want   string
	}{
		{system: "linux", want: ""},
		{system: "linux", env: map[string]string{"DISPLAY": ":0"}, want: "xdg-open"},
		{system: "linux", env: map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, want: "xdg-open"},
		{system: "linux", env: map[string]string{"DISPLAY": ":0", "CI": "true"}, want: ""},
		{system: "linux", env: map[string]string{"DISPLAY": ":0", "SSH_CONNECTION": "a"}, want: ""},
		{system: "darwin", want: "open"},
		{system: "windows", want: "rundll32 url.dll,FileProtocolHandler"},
	}
	for _, tt := range tests {
		got := strings.Join(opener(tt.system, func(name string) string { return tt.env[name] }), " ")
		if got != tt.want {
			t.Errorf("opener(%s, %v) = %q, want %q", tt.system, tt.env, got, tt.want)
		}
	}
}

func TestMissingNeedsAcceptAnyOfTheirPrograms(t *testing.T) {
	has := func(installed ...string) func(string) bool {
		return func(name string) bool { return strings.Contains(" "+strings.Join(installed, " ")+" ", " "+name+" ") }
	}
	if missing := missingNeeds(needs(), has("google-chrome", "git", "git-lfs", "git-crypt", "Xvfb", "dbus-daemon", "ip", "setsid", "systemctl")); len(missing) != 0 {
		t.Errorf("missing with everything there: %s", describe(missing))
	}
	missing := missingNeeds(needs(), has("git", "git-lfs", "git-crypt", "dbus-daemon", "ip", "setsid", "systemctl"))
	if len(missing) != 2 || missing[0].packages[0] != "chromium" || missing[1].packages[0] != "xvfb" {
		t.Errorf("missing = %v, want chromium and xvfb", missing)
	}
}

func TestAptGetAsksForRightsOnlyWhenNeeded(t *testing.T) {
	if got := aptGet(true, []string{"update"}); got.name != "apt-get" {
		t.Errorf("as root: %+v", got)
	}
	got := aptGet(false, []string{"install", "x"})
	want := []string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "install", "x"}
	if got.name != "sudo" || cmp.Diff(want, got.args) != "" {
		t.Errorf("as a user: %+v", got)
	}
}

func names(stages []stage) string {
	var all []string
	for _, stage := range stages {
		all = append(all, stage.name)
	}
	return strings.Join(all, " ")
}

func TestChooseBringsWhatAStageBuildsOn(t *testing.T) {
	all, err := choose(stages(), nil)
	if err != nil || len(all) != len(stages()) {
		t.Errorf("without names: %s, %v", names(all), err)
	}
	chosen, err := choose(stages(), []string{"real-clis"})
	if want := "tools clis page binary real-clis"; err != nil || names(chosen) != want {
		t.Errorf("real-clis = %q, %v; want %q", names(chosen), err, want)
	}
	if _, err := choose(stages(), []string{"go", "nonsense"}); !errors.As(err, new(badArgument)) {
		t.Errorf("an unknown stage is told as %v", err)
	}
}

func TestSplitPutsTheTestsOfRealCLIsApart(t *testing.T) {
	ordinary, withCLIs := split("bridge/backend/core/mail testing \nbridge/backend/testing/realcli os bridge/x\nbridge/backend/agent testing bridge/backend/testing/realcli\nbridge/frontend  \n")
	if diff := cmp.Diff([]string{"bridge/backend/core/mail", "bridge/frontend"}, ordinary); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bridge/backend/testing/realcli", "bridge/backend/agent"}, withCLIs); diff != "" {
		t.Error(diff)
	}
}

func TestTheSlowestTestsAreListed(t *testing.T) {
	var said notes
	report := project{root: t.TempDir(), output: io.Discard, notes: &said}.report(step{})
	for _, line := range []string{
		`{"Action":"pass","Package":"bridge/pkg","Test":"TestQuick","Elapsed":19.9}`,
		`{"Action":"pass","Package":"bridge/pkg","Test":"TestLong","Elapsed":20}`,
		`{"Action":"pass","Package":"bridge/pkg","Test":"TestLonger/part","Elapsed":70}`,
		`{"Action":"fail","Package":"bridge/pkg","Test":"TestLonger","Elapsed":71.25}`,
		`{"Action":"fail","Package":"bridge/pkg","Elapsed":200}`,
	} {
		fmt.Fprintln(report, line)
	}
	var output bytes.Buffer
	printSlow(&output, []result{{notes: said}})
	const want = `slow     pkg TestLonger                                                 71.2 s
slow     pkg TestLong                                                   20.0 s
`
	if diff := cmp.Diff(want, output.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryFailsForWhatFailedOrDidNotRun(t *testing.T) {
	p := project{root: t.TempDir(), output: &bytes.Buffer{}}
	broken := errors.New("it broke")
	runs := func(err error) func(context.Context, project) error {
		return func(context.Context, project) error { return err }
	}
	all := []stage{
		{name: "good", budget: 1, run: runs(nil)},
		{name: "bad", budget: 2, run: func(_ context.Context, p project) error {
			p.skip("pkg TestA", "no gcc")
			p.skip("pkg TestB", "no root")
			p.skip("pkg TestC", "no gcc")
			fmt.Fprint(p.output, strings.Repeat("early\n", endingBytes), strings.Repeat("late\n", endingLines-1), "why\n")
			return broken
		}},
		{name: "after-bad", after: []string{"bad"}, run: runs(nil)},
		{name: "after-that", after: []string{"after-bad"}, run: runs(nil)},
		{name: "after-good", after: []string{"good"}, run: runs(nil)},
	}
	var results []result
	begin := time.Now()
	for i, stage := range all {
		r := perform(t.Context(), p, stage, results)
		r.began, r.took = begin.Add(time.Duration(i)*time.Second), 1100*time.Millisecond
		results = append(results, r)
	}
	var output bytes.Buffer
	if err := summarize(&output, results); err == nil {
		t.Error("summarize = nil although a stage failed")
	}
	want := "\n==> [bad] failed; it ended with\n" + strings.Repeat("late\n", endingLines-1) + "why\n" + `
skipped  bad          no gcc
           2: pkg TestA, pkg TestC
skipped  bad          no root
           1: pkg TestB
failed   bad          it broke
           late
           late
           late
           late
           late
           late
           … 89 lines
           late
           late
           late
           late
           why
           alone: go run ./build test bad
ok       good            1.1 s of    1  longer than it may take
FAILED   bad             1.1 s of    2  it broke
NOT RUN  after-bad       1.1 s  needs bad
NOT RUN  after-that      1.1 s  needs after-bad
ok       after-good      1.1 s
all                      5.1 s of    3  longer than it may take
stages: 2 passed, 3 failed
`
	if diff := cmp.Diff(want, output.String()); diff != "" {
		t.Error(diff)
	}
	if err := summarize(&output, results[:1]); err != nil {
		t.Errorf("summarize of what passed = %v", err)
	}
}

// A run that hangs ends in time to say what it was at.
func TestARunEndsAtItsLimit(t *testing.T) {
	p := project{root: t.TempDir(), output: io.Discard}
	results := runStages(t.Context(), p, []stage{
		{name: "good", run: func(context.Context, project) error { return nil }},
		{name: "hangs", run: func(ctx context.Context, p project) error {
			<-ctx.Done()
			p.fail(failure{test: "pkg TestA", output: "did not end"})
			return errors.New("killed")
		}},
		{name: "next", run: func(ctx context.Context, _ project) error { return ctx.Err() }},
	}, time.Millisecond)
	var output bytes.Buffer
	if err := summarize(&output, results); err == nil {
		t.Error("summarize = nil although a stage hung")
	}
	for _, words := range []string{
		"ok       good", "FAILED   hangs           0.0 s  the whole run came to its limit of 1ms (killed)\n",
		"FAILED   next", "failed   hangs        pkg TestA\n           did not end\n", "\nstages: 1 passed, 2 failed\n",
	} {
		if !strings.Contains(output.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, &output)
		}
	}
}

// goTestProject is a project with packages whose tests pass, fail, end early, never
// end and do not build.
func goTestProject(t *testing.T, output *bytes.Buffer) project {
	t.Helper()
	files := map[string]string{
		"go.mod": "module bridge\n\ngo 1.26\n",
		"good/good_test.go": `package good

import "testing"

func TestFine(t *testing.T)    { t.Log("nobody reads this") }
func TestSkipped(t *testing.T) { t.Skip("NOT TESTED: it needs root") }
func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Log("before"); t.SkipNow() })
	t.Run("two", func(t *testing.T) {})
}
`,
		"bad/bad_test.go": `package bad

import "testing"

func TestFine(t *testing.T) { t.Log("nobody reads this") }
func TestBad(t *testing.T) {
	t.Run("sub", func(t *testing.T) { t.Error("it broke") })
}
func TestQuiet(t *testing.T) { t.Fail() }
`,
		"hangs/hangs_test.go": `package hangs

import "testing"

func TestFine(t *testing.T) { t.Parallel() }
func TestWaits(t *testing.T) {
	t.Parallel()
	t.Log("how it began")
	t.Run("part", func(t *testing.T) {
		never(t)
	})
}
func never(t *testing.T) {
	<-t.Context().Done()
}
`,
		"dies/dies_test.go":       "package dies\n\nimport \"testing\"\n\nfunc TestDies(t *testing.T) { t.Log(\"last words\"); panic(\"gone\") }\n",
		"leaves/leaves_test.go":   "package leaves\n\nimport (\n\"os\"\n\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); println(\"a leak\"); os.Exit(1) }\nfunc TestFine(t *testing.T) {}\n",
		"unbuilt/unbuilt_test.go": "package unbuilt\n\nvar x int = \"text\"\n",
		"none/none.go":            "package none\n",
	}
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return project{root: root, output: output, notes: &notes{}}
}

var noCgo = []string{"CGO_ENABLED=0"}

// A run is printed as `go test` prints it, and what it skipped is known.
func TestGoTestPrintsLittleAndNotesWhatWasSkipped(t *testing.T) {
	var output bytes.Buffer
	p := goTestProject(t, &output)
	if err := p.goTest(t.Context(), 0, noCgo, "./good"); err != nil {
		t.Fatal(err)
	}
	want := []skip{{"good TestSkipped", "NOT TESTED: it needs root"}, {"good TestParts/one", "before"}}
	if diff := cmp.Diff(want, p.notes.skips, cmp.AllowUnexported(skip{})); diff != "" {
		t.Error(diff)
	}
	if lines := strings.Split(strings.TrimSpace(output.String()), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], "ok  \tbridge/good") {
		t.Errorf("of what passed it prints\n%s", output.String())
	}
	output.Reset()
	if err := p.goTest(t.Context(), 0, noCgo, "-timeout=5s", "./..."); err == nil {
		t.Error("goTest = nil although tests failed")
	}
	for _, words := range []string{
		"ok  \tbridge/good", "bad_test.go:7: it broke", "--- FAIL: TestBad", "--- FAIL: TestBad/sub", "FAIL\tbridge/bad", "panic: gone", "last words",
		"cannot use \"text\"", "FAIL\tbridge/unbuilt [build failed]", "[no test files]", "panic: test timed out",
	} {
		if !strings.Contains(output.String(), words) {
			t.Errorf("it does not print %q", words)
		}
	}
	for _, words := range []string{"nobody reads this", "=== RUN", "\"Action\""} {
		if strings.Contains(output.String(), words) {
			t.Errorf("it prints %q", words)
		}
	}
	if t.Failed() {
		t.Log(output.String())
	}
}

// What failed stands once more at the end, each test with its reason.
func TestGoTestNotesWhatFailedAndWhatHung(t *testing.T) {
	var output bytes.Buffer
	p := goTestProject(t, &output)
	if err := p.goTest(t.Context(), 0, noCgo, "-timeout=5s", "-p=1", "./..."); err == nil {
		t.Error("goTest = nil although tests failed")
	}
	var end bytes.Buffer
	if err := summarize(&end, []result{{name: "go", err: errors.New("no"), notes: *p.notes}}); err == nil {
		t.Error("summarize = nil")
	}
	_, said, _ := strings.Cut(end.String(), "failed   ")
	said = regexp.MustCompile(`for [0-9.]+m?s when|goroutine \d+`).ReplaceAllString("failed   "+said, "…")
	for _, want := range []string{
		"failed   go           bad TestBad/sub\n           bad_test.go:7: it broke\n           alone: CGO_ENABLED=0 go test -vet=off -ldflags=-w -timeout=5s -p=1 '-run=^TestBad$' -count=1 bridge/bad\nfailed   go           bad TestQuiet\n",
		"failed   go           dies TestDies\n           dies_test.go:5: last words\n           panic: gone",
		"failed   go           hangs TestWaits/part\n           did not end: it had run … its package came to its limit of 5s, and stood at hangs_test.go:14\n",
		"failed   go           leaves\n           a leak\n",
		"failed   go           unbuilt\n           # bridge/unbuilt [bridge/unbuilt.test]\n           unbuilt/unbuilt_test.go:3:13: cannot use \"text\"",
		"\nstages: 0 passed, 1 failed\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the end does not say %q", want)
		}
	}
	if got := len(p.notes.failures); got != 6 {
		t.Errorf("%d failures are noted, want 6", got)
	}
	if t.Failed() {
		t.Log(said)
	}
}

// What `go test -json` tells, line by line, and what is noted of it.
func TestGoTestReadsWhoSaidWhat(t *testing.T) {
	said := func(test string, lines ...string) (events string) {
		for _, line := range lines {
			events += fmt.Sprintf(`{"Action":"output","Package":"bridge/a","Test":%q,"Output":%q}`+"\n", test, line+"\n")
		}
		return events
	}
	happened := func(what, test string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":"bridge/a","Test":%q}`+"\n", what, test)
	}
	passed := said("TestFine", "=== RUN   TestFine", "    a_test.go:1: nobody reads this", "--- PASS: TestFine (0.00s)")
	tests := []struct {
		name, events string
		want         []failure
	}{
		{
			name:   "a run that is cut off names the tests that it was at",
			events: passed + happened("pass", "TestFine") + said("TestOpen", "=== RUN   TestOpen", "    a_test.go:1: so far") + said("TestWaits", "=== PAUSE TestWaits") + said("TestMute", "=== RUN   TestMute") + `{"Action":"outp`,
			want:   []failure{{test: "a TestMute", output: "did not end"}, {test: "a TestOpen", output: "did not end\na_test.go:1: so far"}},
		},
		{
			name: "what hangs ends behind a test that passed",
			events: said("TestOpen", "=== RUN   TestOpen") + passed +
				said("TestFine", "panic: test timed out after 3s", "\trunning tests:", "\t\tTestOpen (2s)", "", "goroutine 7 [select]:", "bridge/a.TestOpen(0x1)", "\t/x/a_test.go:9 +0x1", "", "") +
				happened("pass", "TestFine") + said("", "FAIL\tbridge/a\t3.0s") + happened("fail", ""),
			want: []failure{{test: "a TestOpen", output: "did not end: it had run for 2s when its package came to its limit of 3s, and stood at a_test.go:9"}},
		},
		{
			name: "a panic comes behind a test that passed, and another one failed",
			events: said("TestBad", "    a_test.go:2: bad", "--- FAIL: TestBad (0.00s)") + happened("fail", "TestBad") + passed +
				said("TestFine", "panic: gone", "", "goroutine 7 [running]:") + happened("pass", "TestFine") + said("", "FAIL\tbridge/a\t0.1s") + happened("fail", ""),
			want: []failure{{test: "a TestBad", output: "a_test.go:2: bad"}, {test: "a", output: "panic: gone\ngoroutine 7 [running]:"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var output bytes.Buffer
			p := project{output: &output, notes: &notes{}}
			report := p.report(step{})
			if _, err := report.Write([]byte(tt.events)); err != nil {
				t.Fatal(err)
			}
			report.end()
			for i, f := range p.notes.failures {
				if !f.final {
					t.Errorf("%s is to be tried again", f.test)
				}
				p.notes.failures[i] = failure{test: f.test, output: f.output}
			}
			if diff := cmp.Diff(tt.want, p.notes.failures, cmp.AllowUnexported(failure{}, step{})); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(output.String(), "nobody reads this") || strings.Contains(tt.events, "panic:") != strings.Contains(output.String(), "panic:") {
				t.Errorf("it prints %s", &output)
			}
		})
	}
}

func TestBriefKeepsBeginningAndEnd(t *testing.T) {
	said := []string{"=== RUN   TestX\n", "    x_test.go:1: first\n", "        of two\n", "\n"}
	for i := range 20 {
		said = append(said, fmt.Sprintf("line %d\n", i))
	}
	said = append(said, "last "+strings.Repeat("é", lineBytes)+"\n", "--- FAIL: TestX (0.01s)\n", "FAIL\n")
	want := "x_test.go:1: first\n    of two\nline 0\nline 1\nline 2\nline 3\n… 12 lines\nline 16\nline 17\nline 18\nline 19\n"
	got, long, _ := strings.Cut(brief(said), "last ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := strings.Repeat("é", (lineBytes-len("last "))/2) + "…"; long != want {
		t.Errorf("the long line ends in %q, want %q", long, want)
	}
}

func TestCopyChangedTellsWhetherAnythingDid(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	if err := os.WriteFile(filepath.Join(from, "a"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true} {
		if same, err := copyChanged(from, to, "a"); err != nil || same != want {
			t.Errorf("copy %d: same = %v, %v; want %v", i, same, err, want)
		}
	}
	if _, err := copyChanged(from, to, "missing"); err == nil {
		t.Error("a missing file is no error")
	}
}

// TestLockFilesNameNoAddresses: where packages come from is each machine's own
// setting.
func TestLockFilesNameNoAddresses(t *testing.T) {
	for _, path := range []string{"clis/package-lock.json", "../frontend/package-lock.json"} {
		text, err := os.ReadFile(filepath.FromSlash(path))
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`"resolved"|"https?://[^"]*\.tgz`).Find(text); found != nil {
			t.Errorf("%s holds %s", path, found)
		}
	}
}
