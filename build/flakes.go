package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
)

// findFlakes runs the stages so many times while every processor has other work, and
// lists each test that failed with how often it did. What fails is not tried again.
func findFlakes(ctx context.Context, p project, chosen []stage, times int) error {
	busy, idle := context.WithCancel(ctx)
	defer idle()
	for range runtime.NumCPU() {
		go func() {
			for busy.Err() == nil { //nolint:revive // the work that others have to wait for
			}
		}()
	}
	p.once = true
	type test struct{ stage, name string }
	failed, failures := map[test]int{}, map[test]failure{}
	for i := range times {
		p.say("run %d of %d, with every processor kept busy", i+1, times)
		for _, r := range runStages(ctx, p, chosen, runLimit) {
			for _, f := range r.failed() {
				t := test{r.name, f.test}
				failed[t]++
				failures[t] = f
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	fmt.Fprintln(p.output)
	order := func(a, b test) int {
		return cmp.Or(cmp.Compare(failed[b], failed[a]), cmp.Compare(a.stage, b.stage), cmp.Compare(a.name, b.name))
	}
	for _, t := range slices.SortedFunc(maps.Keys(failed), order) {
		fmt.Fprintf(p.output, "%d of %d  %-12s %s\n", failed[t], times, t.stage, t.name)
		failures[t].print(p.output, firstLines+1+lastLines)
	}
	fmt.Fprintf(p.output, "runs: %d, tests that failed: %d\n", times, len(failed))
	if len(failed) > 0 {
		return fmt.Errorf("%d tests failed in %d runs on a busy machine", len(failed), times)
	}
	return nil
}
