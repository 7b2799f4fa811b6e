package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bridge/backend/testing/testkit"
)

// skip is a test that did not run, or ran with less, and why.
type skip struct{ test, reason string }

// slow is a test that took long, with all of its parts.
type slow struct {
	test    string
	seconds float64
}

// notes are what a stage says of its tests beside whether it passed.
type notes struct {
	skips    []skip
	failures []failure
	flaky    []failure // what passed when it was tried again
	slow     []slow
}

// add takes in what another part of the stage says.
func (n *notes) add(more notes) {
	n.skips = append(n.skips, more.skips...)
	n.failures = append(n.failures, more.failures...)
	n.flaky = append(n.flaky, more.flaky...)
	n.slow = append(n.slow, more.slow...)
}

// goCall is one `go test`.
type goCall struct {
	env    []string // NAME=value, added to the environment
	args   []string // packages, and flags with their values
	yields bool     // its tests let those of other lanes have the processors first
}

// goTest runs `go test` and prints what that prints without -v: a line for each
// package, and all that a failed test said. What was skipped is noted. Programs are
// linked in half the time without what only a debugger reads, and the stage vet has
// said what is to be said of the code. Each of args is a package or a flag with
// its value.
//
// Tests that failed are tried again when the others are done, each by itself and at
// most tries times.
func (p project) goTest(ctx context.Context, tries int, env []string, args ...string) error {
	return p.goTestLanes(ctx, tries, []goCall{{env: env, args: args}})
}

// goTestLanes is goTest for several calls: those of a lane one after the other, and the
// lanes beside each other.
func (p project) goTestLanes(ctx context.Context, tries int, lanes ...[]goCall) error {
	begin := p.failures()
	reports, failed := make([]notes, len(lanes)), make([]error, len(lanes))
	output := &together{out: p.output}
	var running sync.WaitGroup
	for i, calls := range lanes {
		p := p
		p.output = output
		if p.notes != nil {
			p.notes = &reports[i]
		}
		running.Go(func() {
			for _, call := range calls {
				failed[i] = errors.Join(failed[i], p.goTestNoted(ctx, p.goStep(call)))
			}
		})
	}
	running.Wait()
	if p.notes != nil {
		for _, more := range reports {
			p.notes.add(more)
		}
	}
	return p.retryFailed(ctx, errors.Join(failed...), begin, tries, func(p project, f failure) error {
		tests, err := p.goTestOnce(ctx, f.alone)
		if err == nil && tests.passes == 0 { // skipped, or not found
			return errors.New("it did not run")
		}
		return err
	})
}

// goStep is a call as it is run here.
func (p project) goStep(call goCall) step {
	s := step{env: call.env, name: "go", args: append([]string{"test", "-vet=off", "-ldflags=-w"}, call.args...)}
	if p.tidy != "" {
		tidy := "-exec=" + p.tidy
		if call.yields {
			tidy += " -nice=5"
		}
		s.args = append(s.args, tidy)
	}
	if p.once {
		s.args = append(s.args, "-count=1")
	}
	if p.long { // the last limit counts
		s.env, s.args = append(slices.Clone(call.env), testkit.Env+"=1"), append(s.args, "-timeout="+longLimit.String())
	}
	return s
}

// goTestNoted is goTestOnce for a call that, when it fails without a word of a test,
// must be among the failures: others beside it may be tried again and pass.
func (p project) goTestNoted(ctx context.Context, s step) error {
	begin := p.failures()
	_, err := p.goTestOnce(ctx, s)
	if err != nil && p.failures() == begin {
		p.fail(failure{test: "go test", output: err.Error(), alone: s, final: true})
	}
	return err
}

// together takes what several write at once, each piece as a whole.
type together struct {
	mu  sync.Mutex
	out io.Writer
}

func (t *together) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(text)
}

// goTestOnce runs a `go test` and reads its events.
func (p project) goTestOnce(ctx context.Context, s step) (*testReport, error) {
	tests := p.report(s)
	p.output = tests
	s.args = slices.Insert(slices.Clone(s.args), 1, "-json")
	err := p.do(ctx, s)
	tests.end()
	return tests, err
}

func (p project) report(call step) *testReport {
	return &testReport{project: p, out: p.output, call: call, outputs: map[string][]string{}, noted: map[string]bool{}, broken: map[string]bool{}}
}

// aloneIn is the call that runs one test of a package, with all of its parts: these
// may build upon each other.
func aloneIn(call step, pkg, test string) step {
	flags := slices.DeleteFunc(slices.Clone(call.args), func(arg string) bool {
		return arg != "test" && !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "-run=") || arg == "-count=1"
	})
	parent, _, _ := strings.Cut(test, "/")
	if parent != "" {
		flags = append(flags, "-run=^"+parent+"$")
	}
	call.args = append(flags, "-count=1", pkg)
	return call
}

// slowFrom is how many seconds a test takes that is worth a line, slowest how many
// such lines there are.
const slowFrom, slowest = 20, 15

// printSlow lists what took longest: there a run is made shorter.
func printSlow(output io.Writer, results []result) {
	var all []slow
	for _, r := range results {
		all = append(all, r.notes.slow...)
	}
	slices.SortFunc(all, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, test := range all[:min(len(all), slowest)] {
		fmt.Fprintf(output, "slow     %-60s %6.1f s\n", test.test, test.seconds)
	}
}

// skip notes what a stage leaves out.
func (p project) skip(test, reason string) {
	if p.notes != nil {
		p.notes.skips = append(p.notes.skips, skip{test, reason})
	}
}

// testReport reads the events of `go test -json`. A line that is none is printed
// as it is.
type testReport struct {
	project // takes the notes
	out     io.Writer
	call    step                // whose events these are
	rest    []byte              // a line that has not ended
	outputs map[string][]string // what each running test or package said, by package and test
	noted   map[string]bool     // the tests and packages of which a failure, or that of a part, is noted
	broken  map[string]bool     // the packages of which something was said that no other try mends
	passes  int                 // tests that passed, not counting parts
}

// testEvent is a line of `go test -json`.
type testEvent struct {
	Action, Package, Test, Output string
	ImportPath, FailedBuild       string // of what is built for a package
	Elapsed                       float64
}

// Write takes in some of the output.
func (o *testReport) Write(text []byte) (int, error) {
	o.rest = append(o.rest, text...)
	for {
		line, rest, complete := bytes.Cut(o.rest, []byte("\n"))
		if !complete {
			return len(text), nil
		}
		o.line(line)
		o.rest = rest
	}
}

func (o *testReport) line(line []byte) {
	var e testEvent
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(o.out, "%s\n", line)
		return
	}
	key := e.Package + "\n" + e.Test
	if o.notes != nil && e.Elapsed >= slowFrom && e.Test != "" && !strings.Contains(e.Test, "/") {
		o.notes.slow = append(o.notes.slow, slow{path.Base(e.Package) + " " + e.Test, e.Elapsed})
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(o.out, e.Output)
		o.outputs[e.ImportPath] = append(o.outputs[e.ImportPath], e.Output)
	case "output":
		o.outputs[key] = append(o.outputs[key], e.Output)
		o.broken[e.Package] = o.broken[e.Package] || beyondDoubt.MatchString(e.Output)
	case "fail":
		o.failed(e, key)
	case "skip":
		if e.Test != "" {
			o.skip(path.Base(e.Package)+" "+e.Test, reasonOf(o.outputs[key]))
		}
		o.passed(e, key)
	case "pass":
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			o.passes++
		}
		o.passed(e, key)
	}
}

// passed prints of a package its last line, as `go test` does, and nothing of a
// test. But what stands behind the line that a test passed is not of that test: it
// is told with the package, such as the panic that ended it.
func (o *testReport) passed(e testEvent, key string) {
	output := o.outputs[key]
	delete(o.outputs, key)
	if e.Test == "" {
		if len(output) > 0 {
			fmt.Fprint(o.out, output[len(output)-1])
		}
		return
	}
	if end := slices.IndexFunc(output, ended.MatchString); end >= 0 && end+1 < len(output) {
		text := e.Package + "\n"
		o.outputs[text] = append(o.outputs[text], output[end+1:]...)
	}
}

var ended = regexp.MustCompile(`^\s*--- (PASS|SKIP): `)

// died tells a panic, also one of the runtime.
var died = regexp.MustCompile(`(?m)^(panic|fatal error): `)

// beyondDoubt is said of a defect that is there even if another try does not show
// it: a race, a panic, goroutines or processes that a package leaves.
var beyondDoubt = regexp.MustCompile(`^(WARNING: DATA RACE|panic: |fatal error: |goleak: |left behind: )|race detected during execution of test`)

// failed prints and notes what a test said, and of a package what it said outside
// of its tests or in those that never ended. Of a test that failed only in a part,
// and of a package that failed only in a test, that is noted.
func (o *testReport) failed(e testEvent, key string) {
	hung := e.Test == "" && o.unended(e.Package, false)
	output := o.outputs[key]
	delete(o.outputs, key)
	o.print(output)
	why := brief(slices.Concat(o.outputs[e.FailedBuild], output))
	if !o.noted[key] || e.Test != "" && why != "" || !hung && died.MatchString(why) {
		o.note(e.Package, e.Test, why, e.Test == "")
	}
	if e.Test == "" && o.broken[e.Package] {
		o.settle(e.Package)
	}
}

// note notes a failure, which is final where another try would prove nothing.
func (o *testReport) note(pkg, test, why string, final bool) {
	o.fail(failure{
		test: strings.TrimSpace(path.Base(pkg) + " " + test), output: why, alone: aloneIn(o.call, pkg, test),
		final: final || promises.MatchString(pkg+" "+test),
	})
	for parent := test; parent != "" && parent != "."; parent = path.Dir(parent) {
		o.noted[pkg+"\n"+parent] = true
	}
	o.noted[pkg+"\n"] = true
}

// settle makes all failures of a package final.
func (o *testReport) settle(pkg string) {
	if o.notes == nil {
		return
	}
	for i, f := range o.notes.failures {
		if len(f.alone.args) > 0 && f.alone.args[len(f.alone.args)-1] == pkg {
			o.notes.failures[i].final = true
		}
	}
}

// unended prints and notes the tests of a package that have not ended: those that
// hung, or went down with another one, or that were at work in a run that was cut
// off. It tells whether some hung.
func (o *testReport) unended(pkg string, cutOff bool) bool {
	open := o.open(pkg)
	var stuck []failure
	for _, key := range append(open, pkg+"\n") {
		stuck = append(stuck, hung(o.outputs[key])...)
	}
	for _, f := range stuck {
		o.note(pkg, f.test, f.output, true)
	}
	for _, key := range open {
		output := o.outputs[key]
		delete(o.outputs, key)
		o.print(output)
		waits := len(output) > 0 && strings.HasPrefix(output[len(output)-1], "=== PAUSE")
		if why := brief(output); len(stuck) == 0 && !waits && (why != "" || cutOff) {
			o.note(pkg, strings.TrimPrefix(key, pkg+"\n"), strings.TrimSpace("did not end\n"+why), true)
		}
	}
	return len(stuck) > 0
}

// open lists the tests of a package that have not ended.
func (o *testReport) open(pkg string) []string {
	var keys []string
	for key := range o.outputs {
		if strings.HasPrefix(key, pkg+"\n") && key != pkg+"\n" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (o *testReport) print(output []string) {
	var joined strings.Builder // another lane may be printing, too
	for _, text := range output {
		if !strings.HasPrefix(text, "=== ") && text != "PASS\n" {
			joined.WriteString(text)
		}
	}
	fmt.Fprint(o.out, joined.String())
}

// end prints what is left of a run that was cut off.
func (o *testReport) end() {
	var packages []string
	for key := range o.outputs {
		if pkg, test, _ := strings.Cut(key, "\n"); test != "" && !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
	}
	slices.Sort(packages)
	for _, pkg := range packages {
		o.unended(pkg, true)
	}
	for key, output := range o.outputs {
		if strings.Contains(key, "\n") {
			o.print(output)
		}
	}
	fmt.Fprintf(o.out, "%s", o.rest)
}

var place = regexp.MustCompile(`^\s*\S+\.go:[0-9]+: `)

// reasonOf is the sentence of a skipped test: the first line that it said of its
// own.
func reasonOf(output []string) string {
	for _, text := range output {
		text = strings.TrimSpace(place.ReplaceAllString(text, ""))
		if text != "" && !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- ") {
			return text
		}
	}
	return "it says no reason"
}

// printSkips says what was not tested and why, each reason once.
func printSkips(output io.Writer, results []result) {
	for _, r := range results {
		var reasons []string
		tests := map[string][]string{}
		for _, s := range r.notes.skips {
			if tests[s.reason] == nil {
				reasons = append(reasons, s.reason)
			}
			tests[s.reason] = append(tests[s.reason], s.test)
		}
		for _, reason := range reasons {
			fmt.Fprintf(output, "skipped  %-12s %s\n", r.name, reason)
			fmt.Fprintf(output, "           %d: %s\n", len(tests[reason]), strings.Join(tests[reason], ", "))
		}
	}
}
