package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// skip is a test that did not run, or ran with less, and why.
type skip struct{ test, reason string }

// goTest runs `go test` and prints what that prints without -v: a line for each
// package, and all that a failed test said. What was skipped is noted.
func (p project) goTest(ctx context.Context, env []string, args ...string) error {
	tests := &testReport{out: p.output, skipped: p.skipped, said: map[string][]string{}}
	p.output = tests
	err := p.do(ctx, step{env: env, name: "go", args: append([]string{"test", "-json"}, args...)})
	tests.end()
	return err
}

// skip notes what a stage leaves out.
func (p project) skip(test, reason string) {
	if p.skipped != nil {
		*p.skipped = append(*p.skipped, skip{test, reason})
	}
}

// testReport reads the events of `go test -json`. A line that is none is printed
// as it is.
type testReport struct {
	out     io.Writer
	skipped *[]skip
	rest    []byte              // a line that has not ended
	said    map[string][]string // what each running test or package said, by package and test
}

// testEvent is a line of `go test -json`.
type testEvent struct {
	Action, Package, Test, Output string
}

// Write takes in some of the output.
func (o *testReport) Write(text []byte) (int, error) {
	o.rest = append(o.rest, text...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
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
	switch e.Action {
	case "build-output":
		fmt.Fprint(o.out, e.Output)
	case "output":
		o.said[key] = append(o.said[key], e.Output)
	case "fail":
		o.failed(e, key)
	case "skip":
		if e.Test != "" {
			o.note(skip{path.Base(e.Package) + " " + e.Test, reasonOf(o.said[key])})
		}
		o.passed(e, key)
	case "pass":
		o.passed(e, key)
	}
}

// passed prints of a package its last line, as `go test` does, and nothing of a
// test.
func (o *testReport) passed(e testEvent, key string) {
	if said := o.said[key]; e.Test == "" && len(said) > 0 {
		fmt.Fprint(o.out, said[len(said)-1])
	}
	delete(o.said, key)
}

// failed prints what a test said, and of a package what it said outside of its
// tests or in those that never ended.
func (o *testReport) failed(e testEvent, key string) {
	if e.Test == "" {
		for _, open := range o.open(e.Package) {
			o.print(o.said[open])
			delete(o.said, open)
		}
	}
	o.print(o.said[key])
	delete(o.said, key)
}

// open lists the tests of a package that have not ended.
func (o *testReport) open(pkg string) []string {
	var keys []string
	for key := range o.said {
		if strings.HasPrefix(key, pkg+"\n") && key != pkg+"\n" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (o *testReport) print(said []string) {
	for _, text := range said {
		if !strings.HasPrefix(text, "=== ") && text != "PASS\n" {
			fmt.Fprint(o.out, text)
		}
	}
}

// end prints what is left of a run that was cut off.
func (o *testReport) end() {
	for _, said := range o.said {
		o.print(said)
	}
	fmt.Fprintf(o.out, "%s", o.rest)
}

func (o *testReport) note(s skip) {
	if o.skipped != nil {
		*o.skipped = append(*o.skipped, s)
	}
}

var place = regexp.MustCompile(`^\s*\S+\.go:[0-9]+: `)

// reasonOf is the sentence of a skipped test: the first line that it said of its
// own.
func reasonOf(said []string) string {
	for _, text := range said {
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
		for _, s := range r.skips {
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
