package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/testing/testkit"
)

// realCLIs is the package that drives the real agent CLIs. Its own tests and
// those that use it need the CLIs, so they have a stage for themselves.
const realCLIs = "bridge/backend/testing/realcli"

// stage is one part of the test task. A stage runs only when those it builds on
// have passed.
type stage struct {
	name     string
	budget   int // seconds that it may take from cold caches on two quiet cores, beside those of other lanes; a long run takes more
	after    []string
	lane     string // neighbours with a lane run beside those of another lane, where one alone would leave processors idle
	prepares bool   // what others need; it tests nothing
	run      func(ctx context.Context, p project) error
}

// stages are all checks there are, in the order in which they run.
func stages() []stage {
	return []stage{
		{name: "tools", budget: 30, prepares: true, lane: "fetched", run: installNeeds},
		{name: "libraries", budget: 100, prepares: true, after: []string{"tools"}, lane: "fetched", run: func(ctx context.Context, p project) error { return p.windowLibraries(ctx) }},
		{name: "clis", budget: 50, prepares: true, after: []string{"tools"}, lane: "fetched", run: func(ctx context.Context, p project) error { return runCLIs(ctx, p, nil) }},
		{name: "page", budget: 30, prepares: true, lane: "compiled", run: func(ctx context.Context, p project) error { return runPage(ctx, p, nil) }},
		{name: "vet", budget: 170, after: []string{"page"}, lane: "compiled", run: vet},
		{name: "go", budget: 590, after: []string{"page"}, run: goTests},
		{name: "page-check", budget: 20, after: []string{"page"}, lane: "page", run: pageScript("check")},
		{name: "page-lint", budget: 30, after: []string{"page"}, lane: "page", run: pageScript("lint")},
		{name: "page-unit", budget: 35, after: []string{"page"}, lane: "page", run: func(ctx context.Context, p project) error { return p.vitest(ctx) }},
		{name: "binary", budget: 10, prepares: true, after: []string{"page"}, lane: "programs", run: buildBridge},
		{name: "package", budget: 65, after: []string{"page"}, lane: "page", run: packageTests},
		{name: "desktop", budget: 90, after: []string{"libraries", "binary"}, lane: "programs", run: desktopTests},
		{name: "browser", budget: 260, after: []string{"tools", "binary"}, lane: "page", run: browserTests},
		{name: "real-clis", budget: 300, after: []string{"clis", "binary"}, lane: "programs", run: realCLITests},
	}
}

// Time limits, so that a run that hangs says what it was doing. Beside another package on two
// processors, a package takes at most four minutes.
const (
	packageLimit = "-timeout=25m"
	cliLimit     = "-timeout=40m" // of a package that drives the agent CLIs
	runLimit     = 80 * time.Minute
	longLimit    = 4 * time.Hour // of a long run, and of each of its packages
)

// runTests runs every stage, or those that args name together with what they
// build on, and fails when one of them did.
func runTests(ctx context.Context, p project, args []string) error {
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	since := flags.String("since", "", "run only what can have changed since that `commit`")
	long := flags.Bool("long", false, "try to destruction, with all rounds, what every run tries in few")
	flakes := flags.Int("flakes", 0, "run the tests so many times on a busy machine, and list what fails how often")
	if err := flags.Parse(args); err != nil {
		return badArgument(fmt.Sprintf("test: %s; it takes -long, -since COMMIT, -flakes N and names of stages", err))
	}
	names := flags.Args()
	chosen, err := choose(stages(), names)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { named[f.Name] = true })
	if named["flakes"] && *flakes < 1 {
		return badArgument(fmt.Sprintf("-flakes %d: the tests run once at least", *flakes))
	}
	limit := runLimit
	if p.long = *long; p.long {
		limit = longLimit
	}
	if named["since"] {
		if names, err = p.narrow(ctx, *since, names); err != nil || len(names) == 0 {
			return err
		}
		if chosen, err = choose(stages(), names); err != nil {
			return err
		}
	}
	if err := shareCompiled(); err != nil {
		return err
	}
	if p.tidy, err = buildTidy(ctx, p); err != nil {
		return err
	}
	if named["flakes"] {
		return findFlakes(ctx, p, chosen, *flakes)
	}
	return summarize(p.output, runStages(ctx, p, chosen, limit))
}

// shareCompiled has every later go command compile without the checkout's path, as the
// programs are compiled. All stages and other checkouts then share the build cache.
func shareCompiled() error {
	return os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"))
}

func runStages(ctx context.Context, p project, chosen []stage, limit time.Duration) []result {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the whole run came to its limit of %s", limit))
	defer cancel()
	var results []result
	for len(chosen) > 0 {
		n := 1
		for chosen[0].lane != "" && n < len(chosen) && chosen[n].lane != "" {
			n++
		}
		results = append(results, performLanes(ctx, p, chosen[:n], results)...)
		chosen = chosen[n:]
	}
	return results
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
			var known []string
			for _, s := range all {
				known = append(known, s.name)
			}
			return nil, badArgument(fmt.Sprintf("there is no stage %q of the tests; there are %s", name, strings.Join(known, ", ")))
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
	lane    string
	budget  int // seconds
	began   time.Time
	took    time.Duration
	err     error
	skipped string // why it did not run
	notes   notes  // which of its tests failed or did not run
	ending  string // the last lines that it printed
}

func perform(ctx context.Context, p project, s stage, before []result) result {
	if p.long { // there is none for that
		s.budget = 0
	}
	for _, earlier := range before {
		if slices.Contains(s.after, earlier.name) && (earlier.err != nil || earlier.skipped != "") {
			return result{name: s.name, lane: s.lane, budget: s.budget, skipped: "needs " + earlier.name}
		}
	}
	p.say("[%s]", s.name)
	var printed ending
	var report notes
	p.output, p.notes = io.MultiWriter(p.output, &printed), &report
	began := time.Now()
	err := s.run(ctx, p)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return result{name: s.name, lane: s.lane, budget: s.budget, began: began, took: time.Since(began), err: err, ending: printed.lines(), notes: report}
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

// summarize repeats the last lines of each stage that failed, and ends with what is
// read first: which tests failed or are flaky and why, a line for each stage, and the
// count of these. Stages that could not run count as failed, and so does a run with
// too many flaky tests.
func summarize(output io.Writer, results []result) error {
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(output, "\n==> [%s] failed; it ended with\n%s", r.name, r.ending)
		}
	}
	fmt.Fprintln(output)
	printSlow(output, results)
	printSkips(output, results)
	printFailures(output, results, endLines-len(results)-2-goCommandLines-1)
	passed, failed, flaky := 0, 0, 0
	for _, r := range results {
		verdict, why := "ok", ""
		switch {
		case r.skipped != "":
			verdict, why = "NOT RUN", r.skipped
		case r.err != nil:
			verdict, why = "FAILED", strings.ReplaceAll(r.err.Error(), "\n", "; ")
		}
		if why == "" {
			passed++
		} else {
			failed++
		}
		flaky += len(byCommand(r.notes.flaky))
		printTimed(output, verdict, r.name, r.took.Seconds(), r.budget, why)
	}
	printTimed(output, "all", "", whole(results).Seconds(), wholeBudget(results), "")
	fmt.Fprintf(output, "stages: %d passed, %d failed\n", passed, failed)
	switch {
	case failed > 0:
		return errors.New("not every check passed")
	case flaky > mostFlaky:
		return fmt.Errorf("%d tests are flaky: more than %d are a defect", flaky, mostFlaky)
	}
	return nil
}

// whole is how long stages took together, of which some ran beside others.
func whole(results []result) time.Duration {
	var first, last time.Time
	for _, r := range results {
		if first.IsZero() || r.began.Before(first) && !r.began.IsZero() {
			first = r.began
		}
		if end := r.began.Add(r.took); end.After(last) {
			last = end
		}
	}
	return last.Sub(first)
}

// printTimed prints a line of the summary with the seconds of a stage and its budget. A stage
// over its budget is named and does not fail, because the machine may be busy.
func printTimed(output io.Writer, verdict, name string, took float64, budget int, why string) {
	line := fmt.Sprintf("%-8s %-12s %6.1f s", verdict, name, took)
	if budget > 0 {
		line += fmt.Sprintf(" of %4d", budget)
		if took > float64(budget) && why == "" {
			why = "longer than it may take"
		}
	}
	fmt.Fprintln(output, strings.TrimRight(line+"  "+why, " "))
}

// vet runs go vet for this system and compiles the code for the others. A long run vets it for
// every system.
func vet(ctx context.Context, p project) error {
	check := func(system, processor, what string) error {
		return p.do(ctx, step{env: []string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0"}, name: "go", args: []string{"vet", what}})
	}
	failed := errors.Join(check(runtime.GOOS, runtime.GOARCH, "./..."), check("linux", "arm64", "./backend/testing/faults"))
	for _, system := range []string{"linux", "windows", "darwin"} {
		switch {
		case system == runtime.GOOS:
		case p.long:
			failed = errors.Join(failed, check(system, runtime.GOARCH, "./..."))
		default:
			failed = errors.Join(failed, p.typeCheck(ctx, system))
		}
	}
	return failed
}

// buildTidy builds the program that tells which processes a package's tests leave. It
// knows how to on Linux.
func buildTidy(ctx context.Context, p project) (program string, err error) {
	if runtime.GOOS != "linux" {
		return "", nil
	}
	program = p.at(".cache", "bin", "tidy")
	if strings.Contains(program, " ") { // go splits what it is told
		defer func() { program = "'" + program + "'" }()
	}
	return program, p.do(ctx, step{env: []string{withoutC}, name: "go", args: []string{"build", "-o", program, "./build/tidy"}})
}

// withoutC has a program compiled as the product's are, of which most is compiled by
// then.
const withoutC = "CGO_ENABLED=0"

// slowUnderRace are the packages whose tests spend their time inside SQLite or the
// engine of a hub, which the race detector makes many times slower, or in other processes
// or the compiler's own packages, where it sees nothing. They run without it.
var slowUnderRace = []string{
	"bridge/backend/testing/archtest", "bridge/backend/testing/conformance", "bridge/backend/testing/faults", "bridge/backend/jobs/gitwork", "bridge/backend/storage/maintain", "bridge/backend/network/sharing", "bridge/backend/testing/simulation", "bridge/backend/testing/soak", "bridge/backend/storage/store",
	"bridge/build", "bridge/cmd/bridge", threeNodes,
}

// sqliteUnwatched leaves SQLite itself, translated from C, out of what the race
// detector watches: that made it ten times slower, and its locks are its own. The
// driver around it is watched.
const sqliteUnwatched = "-gcflags=modernc.org/sqlite/lib=-race=false"

// The packages that kill under load: brokers, runners and sessions, and the nodes of a hub.
const (
	soak       = "bridge/backend/testing/soak"
	threeNodes = "bridge/cmd/bridge-hub"
)

// startProcesses are the packages whose tests start many processes, the longest first: they run one
// at a time, for beside each other they would make each other stumble, but for soak, which mostly waits.
var startProcesses = []string{
	"bridge/cmd/bridge", soak, "bridge/backend/testing/conformance", "bridge/backend/testing/faults", "bridge/backend/jobs/gitwork", "bridge/backend/agent/driver", "bridge/backend/jobs/runner",
}

// goTests runs the tests of every package that needs no agent CLI, with the
// race detector where there is a C compiler for it and it is worth its time.
func goTests(ctx context.Context, p project) error {
	packages, _, err := p.packages(ctx)
	if err != nil {
		return err
	}
	packages = p.withoutUnchanged(packages)
	if !canWatch() {
		p.skip("every package", "the race detector did not watch: it needs gcc, and another system than Windows")
	}
	return p.goTestLanes(ctx, 2, p.lanes(packages)...)
}

// lanes are the calls that test packages, those of a lane one after the other.
func (p project) lanes(packages []string) (lanes [][]goCall) {
	only := func(all, some []string, in bool) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) != in })
	}
	alone, others := only(startProcesses, packages, true), only(packages, startProcesses, false)
	// Most of their time these wait for what they have killed, and others work meanwhile.
	kills, nodes := only([]string{soak}, packages, true), only([]string{threeNodes}, packages, true)
	lanes, alone, others = append(lanes, p.goCalls(1, kills)), only(alone, kills, false), only(others, nodes, false)
	if p.long { // they kill for an hour each: these after the others that start processes
		alone = append(alone, nodes...)
	} else {
		others = append(nodes, others...)
	}
	first := p.goCalls(1, alone)
	slices.Reverse(first) // what is compiled for the race detector, the other lane compiles meanwhile
	return append(lanes, first, p.goCalls(max(2, runtime.NumCPU()), others))
}

// goCalls are the calls that test packages, so many at once: those that the race detector
// watches, and the others. Where there are several at once they let those go first that run
// alone, one after the other, and take the longest.
func (p project) goCalls(atOnce int, packages []string) (calls []goCall) {
	var watched, plain []string
	for _, name := range packages {
		if canWatch() && !slices.Contains(slowUnderRace, name) && p.hasRaces(name) {
			watched = append(watched, name)
		} else {
			plain = append(plain, name)
		}
	}
	if len(watched) > 0 {
		flags := []string{"-race", sqliteUnwatched, packageLimit, "-p=" + strconv.Itoa(atOnce)}
		calls = append(calls, goCall{env: []string{"CGO_ENABLED=1", testkit.QuickExit}, args: append(flags, watched...), yields: atOnce > 1})
	}
	if len(plain) > 0 {
		flags := []string{packageLimit, "-p=" + strconv.Itoa(atOnce)}
		calls = append(calls, goCall{env: []string{withoutC}, args: append(flags, plain...), yields: atOnce > 1})
	}
	return calls
}

// canWatch reports whether the race detector can be had.
func canWatch() bool { return onPath("gcc") && runtime.GOOS != "windows" }

// hasRaces reports whether something can run beside something else in a package or its
// tests, as far as their own files say: a race is told nowhere else.
func (p project) hasRaces(name string) bool {
	files, err := filepath.Glob(p.at(strings.TrimPrefix(name, "bridge/"), "*.go"))
	for _, file := range files {
		text, unread := os.ReadFile(file)
		if err = errors.Join(err, unread); beside.Match(text) {
			return true
		}
	}
	return err != nil || len(files) == 0
}

// beside is what code says that has something run beside itself, or is made for that.
var beside = regexp.MustCompile(`(?m)^\s*go (func\b|[\w.]+\()|\.(Go|Parallel)\(|^\s*(\w+ )?"(sync|net|testing/synctest|golang.org/x/sync|bridge/backend/testing/brokertest)["/]`)

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
	browser, err := findBrowser(p.long)
	if err != nil {
		return err
	}
	hub, err := buildHub(ctx, p) // of the tests about a team
	if err != nil {
		return err
	}
	return p.playwright(ctx, []string{"BRIDGE_BIN=" + p.binary(), "BRIDGE_HUB_BIN=" + hub, "BRIDGE_CHROMIUM=" + browser})
}

// packageTests builds this machine's packages, in a long run twice, and installs, upgrades and
// removes them in a folder. A long run also runs Windows programs under Wine (PRF-07).
func packageTests(ctx context.Context, p project) error {
	if runtime.GOOS != "linux" {
		p.skip("every test", "the packages are tested on Linux")
		return nil
	}
	err := p.goTest(ctx, 2, []string{withoutC, "BRIDGE_TEST_PACKAGES=1"}, "-count=1", "-run=DSK_05|HUB_01", "./build")
	if err != nil || !p.long {
		return err
	}
	return p.goTool(ctx, "run", "./build/wine", "-optional", fmt.Sprintf("-install=%t", os.Geteuid() == 0))
}

// realCLITests runs the tests that drive the agent CLIs. On Linux it is a
// failure when they cannot be run; elsewhere they skip themselves. A long run reports on the newest CLIs.
func realCLITests(ctx context.Context, p project) error {
	_, packages, err := p.packages(ctx)
	if err != nil {
		return err
	}
	if _, err := buildHub(ctx, p); err != nil { // beside bridge, for a job across a team
		return err
	}
	env := []string{withoutC, "BRIDGE_TEST_BIN=" + p.binary(), "BRIDGE_TEST_CLIS=" + p.at(".cache", "clis")}
	if runtime.GOOS == "linux" {
		env = append(env, "BRIDGE_REQUIRE_CLIS=1")
	}
	var lanes [][]goCall
	for _, name := range packages { // each runs some at once
		lanes = append(lanes, []goCall{{env: env, args: []string{cliLimit, "-count=1", name}}})
	}
	if err := p.goTestLanes(ctx, 1, lanes...); err != nil || !p.long {
		return err
	}
	return p.goTool(ctx, "run", "./build/newest")
}

// buildHub builds a team's hub.
func buildHub(ctx context.Context, p project) (program string, err error) {
	program = p.at("bin", executable("bridge-hub", runtime.GOOS))
	return program, p.build(ctx, runtime.GOOS, runtime.GOARCH, "bridge-hub", program)
}

// runBench builds the binary, and the hub beside it, and measures them; args go to
// build/bench.
func runBench(ctx context.Context, p project, args []string) error {
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	if _, err := buildHub(ctx, p); err != nil {
		return err
	}
	return p.goTool(ctx, append([]string{"run", "./build/bench", "-bridge", p.binary()}, args...)...)
}
