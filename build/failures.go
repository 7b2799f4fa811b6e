package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// failure is a test that failed or never ended, or a package that failed outside
// of its tests, and what it said.
type failure struct {
	test, output string
	alone        step // what runs it by itself
	final        bool // another try would prove nothing
}

const (
	firstLines = 6 // of what a failed test said
	lastLines  = 5
	lineBytes  = 240
)

// fail notes a test that failed.
func (p project) fail(f failure) {
	if p.notes != nil {
		p.notes.failures = append(p.notes.failures, f)
	}
}

// failures is how many tests have failed so far.
func (p project) failures() int {
	if p.notes == nil {
		return 0
	}
	return len(p.notes.failures)
}

// endLines is how long the end of a log is that says what failed, and why: it is
// what is read and kept of a long one. It holds the lines of every stage, too, and
// what the go command says of a program that failed.
const endLines, goCommandLines = 60, 2

// printFailures names each test that failed and each that is flaky, with what it
// said, its stage, and the command that runs it alone, all in so many lines.
func printFailures(output io.Writer, results []result, room int) {
	type entry struct {
		verdict, stage string
		failure
	}
	var all []entry
	for _, r := range results {
		for _, f := range r.failed() {
			all = append(all, entry{"failed", r.name, f})
		}
	}
	for _, r := range results {
		for _, f := range r.notes.flaky {
			all = append(all, entry{"flaky", r.name, f})
		}
	}
	var more []string
	if len(all) > room {
		for _, e := range all[room-1:] {
			more = append(more, e.test)
		}
		all = all[:room-1]
	}
	each := room / max(1, len(all))
	for _, e := range all {
		head := fmt.Sprintf("%-8s %-12s %s", e.verdict, e.stage, e.test)
		if each < 2 {
			fmt.Fprintf(output, "%s: %s\n", head, e.alone)
			continue
		}
		fmt.Fprintln(output, head)
		e.print(output, each-2)
	}
	if len(more) > 0 {
		fmt.Fprintf(output, "and %d more: %s\n", len(more), strings.Join(more, ", "))
	}
}

// print says what a test said, in so many lines, and the command that runs it alone.
func (f failure) print(output io.Writer, most int) {
	for _, line := range shorten(strings.Split(f.output, "\n"), most) {
		if line != "" {
			fmt.Fprintf(output, "           %s\n", line)
		}
	}
	fmt.Fprintf(output, "           alone: %s\n", f.alone)
}

// failed lists what failed in a stage: tests, or the stage as a whole.
func (r result) failed() []failure {
	if r.err == nil || len(r.notes.failures) > 0 {
		return r.notes.failures
	}
	alone := step{name: "go", args: []string{"run", "./build", "test", r.name}}
	return []failure{{test: strings.ReplaceAll(r.err.Error(), "\n", "; "), output: brief([]string{r.ending}), alone: alone}}
}

// shorten leaves out of lines, when they are more than so many, some before the end.
func shorten(lines []string, most int) []string {
	last := min(lastLines, (most-1)/2)
	first := most - last - 1
	if len(lines) <= most || first < 1 {
		return lines[:min(most, len(lines))]
	}
	omitted := len(lines) - first - last
	return slices.Concat(lines[:first], []string{fmt.Sprintf("… %d lines", omitted)}, lines[len(lines)-last:])
}

// headings are lines that only name tests and packages, or rule off.
var headings = regexp.MustCompile(`^\s*(=== |--- |=+$|PASS$|FAIL$|FAIL\t|exit status )`)

// brief is the beginning and the end of what a test said: an assertion stands at
// the one, the reason that a script gives at the other.
func brief(output []string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || headings.MatchString(line) {
			continue
		}
		if len(line) > lineBytes {
			line = strings.ToValidUTF8(line[:lineBytes], "") + "…"
		}
		lines = append(lines, strings.TrimPrefix(line, "    "))
	}
	return strings.Join(shorten(lines, firstLines+1+lastLines), "\n")
}

var (
	timedOut   = regexp.MustCompile(`^panic: test timed out after (\S+)`)
	running    = regexp.MustCompile(`^\t\t(\S+) \((\S+)\)$`)
	goroutine  = regexp.MustCompile(`^goroutine \d+ .*:$`)
	inTestFile = regexp.MustCompile(`(?m)^\t\S*?([^/\s]+_test\.go:\d+)`)
)

// hung reads what a package said when it ran into its limit of time: which tests
// had not ended, for how long each had run, and where each stood.
func hung(output []string) []failure {
	lines := strings.Split(strings.Join(output, ""), "\n")
	start := slices.IndexFunc(lines, timedOut.MatchString)
	if start < 0 {
		return nil
	}
	limit := timedOut.FindStringSubmatch(lines[start])[1]
	var names, times []string
	for _, line := range lines[start+1:] {
		if found := running.FindStringSubmatch(line); found != nil {
			names, times = append(names, found[1]), append(times, found[2])
		} else if goroutine.MatchString(line) {
			break
		}
	}
	var all []failure
	for i, name := range names {
		if slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			continue // it waits for its part
		}
		text := fmt.Sprintf("did not end: it had run for %s when its package came to its limit of %s", times[i], limit)
		if place := failureLine(lines[start:], name); place != "" {
			text += ", and stood at " + place
		}
		all = append(all, failure{test: name, output: text})
	}
	if len(all) == 0 {
		all = append(all, failure{output: "did not end within " + limit + ", with no test running"})
	}
	return all
}

// failureLine finds the line of a test file at which a dump of goroutines shows a
// test. A part of a test has a goroutine of its own, after that of the whole,
// which only waits for it.
func failureLine(dump []string, test string) string {
	name, _, _ := strings.Cut(test, "/")
	frame := regexp.MustCompile(`(?m)^[^\t\n][^(\n]*\.` + regexp.QuoteMeta(name) + `(\.[^(\n]*)?\(`)
	place := ""
	for _, block := range strings.Split(strings.Join(dump, "\n"), "\n\n") {
		block, _, _ = strings.Cut(block, "\ncreated by ")
		found := inTestFile.FindStringSubmatch(block)
		if found != nil && frame.MatchString(block) && !strings.Contains(block, ":\ntesting.(*T).Run(") {
			place = found[1]
		}
	}
	return place
}
