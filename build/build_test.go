package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
	if missing := missingNeeds(needs(), has("google-chrome", "git", "tmux", "Xvfb", "dbus-daemon", "ip", "setsid", "systemctl")); len(missing) != 0 {
		t.Errorf("missing with everything there: %s", describe(missing))
	}
	missing := missingNeeds(needs(), has("git", "Xvfb", "dbus-daemon", "ip", "setsid", "systemctl"))
	if len(missing) != 2 || missing[0].packages[0] != "chromium" || missing[1].packages[0] != "tmux" {
		t.Errorf("missing = %v, want chromium and tmux", missing)
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
	if want := "tools page binary clis real-clis"; err != nil || names(chosen) != want {
		t.Errorf("real-clis = %q, %v; want %q", names(chosen), err, want)
	}
	if _, err := choose(stages(), []string{"nonsense"}); err == nil {
		t.Error("an unknown stage is no error")
	}
}

func TestSplitPutsTheTestsOfRealCLIsApart(t *testing.T) {
	ordinary, withCLIs := split("bridge/backend/mail testing \nbridge/backend/realcli os bridge/x\nbridge/backend/agent testing bridge/backend/realcli\nbridge/frontend  \n")
	if diff := cmp.Diff([]string{"bridge/backend/mail", "bridge/frontend"}, ordinary); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bridge/backend/realcli", "bridge/backend/agent"}, withCLIs); diff != "" {
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
		{name: "good", run: runs(nil)},
		{name: "bad", run: func(_ context.Context, p project) error {
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
	for _, stage := range all {
		r := perform(t.Context(), p, stage, results)
		r.took = time.Second
		results = append(results, r)
	}
	var output bytes.Buffer
	if err := summarize(&output, results); err == nil {
		t.Error("summarize = nil although a stage failed")
	}
	want := "\n==> [bad] failed; it ended with\n" + strings.Repeat("late\n", endingLines-1) + "why\n" + `
ok       good            1.0 s
FAILED   bad             1.0 s  it broke
NOT RUN  after-bad       1.0 s  needs bad
NOT RUN  after-that      1.0 s  needs after-bad
ok       after-good      1.0 s
skipped  bad          no gcc
           2: pkg TestA, pkg TestC
skipped  bad          no root
           1: pkg TestB
stages: 2 passed, 3 failed
`
	if diff := cmp.Diff(want, output.String()); diff != "" {
		t.Error(diff)
	}
	if err := summarize(&output, results[:1]); err != nil {
		t.Errorf("summarize of what passed = %v", err)
	}
}

// A run is printed as `go test` prints it, and what it skipped is known.
func TestGoTestPrintsLittleAndNotesWhatWasSkipped(t *testing.T) {
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
`,
		"dies/dies_test.go":       "package dies\n\nimport \"testing\"\n\nfunc TestDies(t *testing.T) { t.Log(\"last words\"); panic(\"gone\") }\n",
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
	var output bytes.Buffer
	var skips []skip
	p := project{root: root, output: &output, skipped: &skips}
	if err := p.goTest(t.Context(), []string{"CGO_ENABLED=0"}, "./good"); err != nil {
		t.Fatal(err)
	}
	want := []skip{{"good TestSkipped", "NOT TESTED: it needs root"}, {"good TestParts/one", "before"}}
	if diff := cmp.Diff(want, skips, cmp.AllowUnexported(skip{})); diff != "" {
		t.Error(diff)
	}
	if lines := strings.Split(strings.TrimSpace(output.String()), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], "ok  \tbridge/good") {
		t.Errorf("of what passed it prints\n%s", output.String())
	}
	output.Reset()
	if err := p.goTest(t.Context(), []string{"CGO_ENABLED=0"}, "./..."); err == nil {
		t.Error("goTest = nil although tests failed")
	}
	for _, words := range []string{
		"ok  \tbridge/good", "bad_test.go:7: it broke", "--- FAIL: TestBad", "--- FAIL: TestBad/sub", "FAIL\tbridge/bad", "panic: gone", "last words",
		"cannot use \"text\"", "FAIL\tbridge/unbuilt [build failed]", "[no test files]",
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
