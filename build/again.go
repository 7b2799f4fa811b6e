package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
)

// mostFlaky is how many flaky tests a run may have: more are a defect.
const mostFlaky = 5

// promises are the tests that get no second look, by package and name: those of what
// Bridge promises above all, that nothing is lost and nothing comes twice, whatever is
// killed, fails, is restored or moved to a newer form. One failure of them in a
// thousand runs is the defect that they look for.
var promises = regexp.MustCompile(`^bridge/backend/(testing/(faults|soak)|jobs/gitwork|storage/(maintain|store/(transfer|upgrade)))[ /]` +
	`|^bridge/backend/jobs/runner Test(\w+_)?JOB_0[36]_` +
	`| Test\w*(Kill|Crash|Dies|Died|Lost|Lose|Twice|ExactlyOnce|Restore|Migrat)| Test\w*Once(/|$)`)

// pagePromises are the same among the tests of the page in a browser, by their titles.
var pagePromises = regexp.MustCompile(`\b(killed|crashe[sd]|die[sd]|lost|loses?|twice|exactly once|restored?|restores|migrated)\b| once$`)

// retryFailed tries again what failed since begin, each by itself and at most tries times,
// while no other lane of stages is at work. What passes then is flaky: it is named at the
// end of the run, and does not make it fail. It returns err unless all of its failures were
// of that kind.
func (p project) retryFailed(ctx context.Context, err error, begin, tries int, retry func(project, failure) error) error {
	if err == nil || p.notes == nil || p.once {
		return err
	}
	failed := slices.Clone(p.notes.failures[begin:])
	passed := map[string]bool{}
	lookAgain := func() {
		open := byCommand(failed)
		for _, name := range slices.Sorted(maps.Keys(open)) {
			f := open[name]
			for try := 0; !f.final && !passed[name] && try < tries && ctx.Err() == nil; try++ {
				p.say("%s failed and is tried again, alone", f.test)
				alone := p
				alone.notes = &notes{} // this failure is noted already
				passed[name] = retry(alone, f) == nil
				// Another try may show what the first one did not: a race, a panic.
				f.final = slices.ContainsFunc(alone.notes.failures, func(f failure) bool { return f.final })
			}
		}
	}
	if few := len(byCommand(p.notes.flaky))+len(byCommand(failed)) <= mostFlaky; few && slices.ContainsFunc(failed, func(f failure) bool { return !f.final }) {
		p.working.byItself(lookAgain)
	}
	p.notes.failures = p.notes.failures[:begin]
	for _, f := range failed {
		if passed[f.alone.String()] {
			p.notes.flaky = append(p.notes.flaky, f)
		} else {
			p.notes.failures = append(p.notes.failures, f)
		}
	}
	if len(failed) == 0 || len(p.notes.failures) > begin {
		return err
	}
	return nil
}

// byCommand has one failure for each command that runs a test alone: several parts of
// a test are tried again together. It is final if one of them is.
func byCommand(failures []failure) map[string]failure {
	tests := map[string]failure{}
	for _, f := range failures {
		name := f.alone.String()
		f.final = f.final || tests[name].final
		tests[name] = f
	}
	return tests
}
