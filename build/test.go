package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// realCLIs is the package that drives the real agent CLIs. Its own tests and
// those that use it need the CLIs, so they have a stage for themselves.
const realCLIs = "bridge/backend/realcli"

// stage is one part of the test task. A stage runs only when those it builds on
// have passed.
type stage struct {
	name  string
	after []string
	run   func(ctx context.Context, p project) error
}

// stages are all checks there are, in the order in which they run.
func stages() []stage {
	return []stage{
		{name: "tools", run: installNeeds},
		{name: "page", run: func(ctx context.Context, p project) error { return runPage(ctx, p, nil) }},
		{name: "vet", after: []string{"page"}, run: vet},
		{name: "go", after: []string{"page"}, run: goTests},
		{name: "page-check", after: []string{"page"}, run: pageScript("check")},
		{name: "page-lint", after: []string{"page"}, run: pageScript("lint")},
		{name: "page-unit", after: []string{"page"}, run: pageScript("test")},
		{name: "binary", after: []string{"page"}, run: buildBridge},
		{name: "package", after: []string{"page"}, run: packageTests},
		{name: "desktop", after: []string{"tools", "binary"}, run: desktopTests},
		{name: "browser", after: []string{"tools", "binary"}, run: browserTests},
		{name: "clis", after: []string{"tools"}, run: func(ctx context.Context, p project) error { return runCLIs(ctx, p, nil) }},
		{name: "real-clis", after: []string{"clis", "binary"}, run: realCLITests},
	}
}

// runTests runs every stage, or those that args name together with what they
// build on, and fails when one of them did.
func runTests(ctx context.Context, p project, args []string) error {
	chosen, err := choose(stages(), args)
	if err != nil {
		return err
	}
	var results []result
	for _, stage := range chosen {
		results = append(results, perform(ctx, p, stage, results))
	}
	return summarize(p.output, results)
}

// choose returns the named stages and all that they build on, in order; every
// stage when none is named.
func choose(all []stage, names []string) ([]stage, error) {
	if len(names) == 0 {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s stage) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no stage %q of the tests", name)
		}
		wanted[name] = true
	}
	var chosen []stage
	for _, stage := range slices.Backward(all) { // a stage builds on earlier ones only
		if wanted[stage.name] {
			chosen = append(chosen, stage)
			for _, name := range stage.after {
				wanted[name] = true
			}
		}
	}
	slices.Reverse(chosen)
	return chosen, nil
}

// result is how a stage went.
type result struct {
	name    string
	took    time.Duration
	err     error
	skipped string // why it did not run
	skips   []skip // what of it did not run
	ending  string // the last lines that it printed
}

func perform(ctx context.Context, p project, s stage, before []result) result {
	for _, earlier := range before {
		if slices.Contains(s.after, earlier.name) && (earlier.err != nil || earlier.skipped != "") {
			return result{name: s.name, skipped: "needs " + earlier.name}
		}
	}
	p.say("[%s]", s.name)
	var printed ending
	var skips []skip
	p.output, p.skipped = io.MultiWriter(p.output, &printed), &skips
	began := time.Now()
	err := s.run(ctx, p)
	return result{name: s.name, took: time.Since(began), err: err, ending: printed.lines(), skips: skips}
}

// ending keeps the last lines of what is written to it.
type ending struct{ text []byte }

const endingLines, endingBytes = 100, 1 << 16

func (e *ending) Write(text []byte) (int, error) {
	e.text = append(e.text, text...)
	if excess := len(e.text) - endingBytes; excess > endingBytes { // seldom, so that little is copied
		e.text = append([]byte(nil), e.text[excess:]...)
	}
	return len(text), nil
}

func (e *ending) lines() string {
	lines := slices.Collect(strings.Lines(string(e.text)))
	return strings.Join(lines[max(0, len(lines)-endingLines):], "")
}

// summarize repeats the last lines of each stage that failed, because a log is
// read from its end, prints one line for each stage, what was skipped and why, and
// then the count of all. Stages that could not run count as failed.
func summarize(output io.Writer, results []result) error {
	passed, failed := 0, 0
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(output, "\n==> [%s] failed; it ended with\n%s", r.name, r.ending)
		}
	}
	fmt.Fprintln(output)
	for _, r := range results {
		word, why := "ok", ""
		switch {
		case r.skipped != "":
			word, why = "NOT RUN", r.skipped
		case r.err != nil:
			word, why = "FAILED", r.err.Error()
		}
		if why == "" {
			passed++
		} else {
			failed++
		}
		fmt.Fprintln(output, strings.TrimRight(fmt.Sprintf("%-8s %-12s %6.1f s  %s", word, r.name, r.took.Seconds(), why), " "))
	}
	printSkips(output, results)
	fmt.Fprintf(output, "stages: %d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errors.New("not every check passed")
	}
	return nil
}

// vet checks the code as every system will compile it, and for another processor
// what knows its registers.
func vet(ctx context.Context, p project) error {
	for _, system := range []string{"linux", "windows", "darwin"} {
		check := step{env: []string{"GOOS=" + system, "CGO_ENABLED=0"}, name: "go", args: []string{"vet", "./..."}}
		if err := p.do(ctx, check); err != nil {
			return err
		}
	}
	return p.do(ctx, step{env: []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"}, name: "go", args: []string{"vet", "./backend/faults"}})
}

// slowUnderRace are the packages whose tests spend their time inside SQLite,
// which the race detector makes many times slower, or in other processes, where
// it sees nothing. They run without it.
var slowUnderRace = []string{
	"bridge/backend/faults", "bridge/backend/maintain", "bridge/backend/soak", "bridge/backend/store", "bridge/cmd/bridge",
}

// goTests runs the tests of every package that needs no agent CLI, with the
// race detector where there is a C compiler for it and it is worth its time.
func goTests(ctx context.Context, p project) error {
	packages, _, err := p.packages(ctx)
	if err != nil {
		return err
	}
	var watched, plain []string
	for _, name := range packages {
		if onPath("gcc") && runtime.GOOS != "windows" && !slices.Contains(slowUnderRace, name) {
			watched = append(watched, name)
		} else {
			plain = append(plain, name)
		}
	}
	if len(watched) > 0 {
		race := append([]string{"-race", "-timeout", "20m"}, watched...)
		if err := p.goTest(ctx, []string{"CGO_ENABLED=1"}, race...); err != nil {
			return err
		}
	} else {
		p.skip("every package", "the race detector did not watch: it needs gcc, and another system than Windows")
	}
	return p.goTest(ctx, nil, append([]string{"-timeout", "20m"}, plain...)...)
}

// packages lists the packages whose tests need no agent CLI and those whose
// tests do.
func (p project) packages(ctx context.Context) (ordinary, withCLIs []string, err error) {
	const format = `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	list := exec.CommandContext(ctx, "go", "list", "-f", format, "./...")
	list.Dir, list.Stderr = p.root, p.output
	output, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	ordinary, withCLIs = split(string(output))
	return ordinary, withCLIs, nil
}

// split reads lines of a package and what its tests import.
func split(list string) (ordinary, withCLIs []string) {
	for line := range strings.Lines(list) {
		names := strings.Fields(line)
		if slices.Contains(names, realCLIs) {
			withCLIs = append(withCLIs, names[0])
		} else {
			ordinary = append(ordinary, names[0])
		}
	}
	return ordinary, withCLIs
}

func pageScript(name string) func(context.Context, project) error {
	return func(ctx context.Context, p project) error { return p.npm(ctx, "frontend", "run", name) }
}

// browserTests drives the page of the real binary in a real browser.
func browserTests(ctx context.Context, p project) error {
	browser, err := findBrowser()
	if err != nil {
		return err
	}
	return p.do(ctx, step{
		dir:  "frontend",
		env:  []string{"BRIDGE_BIN=" + p.binary(), "BRIDGE_CHROMIUM=" + browser},
		name: "npm", args: []string{"run", "e2e"},
	})
}

// packageTests builds this machine's packages, twice, and installs, upgrades and
// removes them in a folder that stands for a machine.
func packageTests(ctx context.Context, p project) error {
	if runtime.GOOS != "linux" {
		p.skip("every test", "the packages are tested on Linux")
		return nil
	}
	return p.goTest(ctx, []string{"BRIDGE_TEST_PACKAGES=1"}, "-count=1", "-run", "DSK_05", "./build")
}

// realCLITests runs the tests that drive the agent CLIs. On Linux it is a
// failure when they cannot be run; elsewhere those tests skip themselves.
func realCLITests(ctx context.Context, p project) error {
	_, packages, err := p.packages(ctx)
	if err != nil {
		return err
	}
	// One package at a time: each starts many large programs.
	env := []string{"BRIDGE_TEST_BIN=" + p.binary(), "BRIDGE_TEST_CLIS=" + p.at(".cache", "clis")}
	if runtime.GOOS == "linux" {
		env = append(env, "BRIDGE_REQUIRE_CLIS=1")
	}
	return p.goTest(ctx, env, append([]string{"-timeout", "60m", "-count=1", "-p=1"}, packages...)...)
}

// runSoak builds the binary, kills it under load and lets its writes and syncs
// fail, each once; args go to go test. It takes about half an hour.
func runSoak(ctx context.Context, p project, args []string) error {
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	return p.do(ctx, step{
		env:  []string{"BRIDGE_TEST_BIN=" + p.binary(), "BRIDGE_SOAK_KILLS=1000", "BRIDGE_FAULTS_STRIDE=1"},
		name: "go", args: append([]string{"test", "-count=1", "-p=1", "-timeout", "2h", "-v", "./backend/soak", "./backend/faults"}, args...),
	})
}

// runBench builds the binary and measures it; args go to build/bench.
func runBench(ctx context.Context, p project, args []string) error {
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	return p.goTool(ctx, append([]string{"run", "./build/bench", "-bridge", p.binary()}, args...)...)
}
