package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
)

// performLanes performs stages, those of one lane in their order, and after those that they
// build on. What a stage prints stays together.
func performLanes(ctx context.Context, p project, stages []stage, before []result) []result {
	lanes := map[string][]int{}
	for i, s := range stages {
		lanes[s.lane] = append(lanes[s.lane], i)
	}
	results, ended := make([]result, len(stages)), make([]chan struct{}, len(stages))
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	printer := &turns{out: p.output}
	p.working = newWorkers(len(lanes))
	var running sync.WaitGroup
	for _, lane := range lanes {
		running.Go(func() {
			defer p.working.leave()
			for _, i := range lane {
				needs := slices.Clone(before)
				for j := range i { // a stage builds on earlier ones only
					if slices.Contains(stages[i].after, stages[j].name) {
						p.working.leave()
						<-ended[j]
						p.working.join()
						needs = append(needs, results[j])
					}
				}
				p := p
				var end func()
				p.output, end = printer.begin()
				results[i] = perform(ctx, p, stages[i], needs)
				end()
				close(ended[i])
			}
		})
	}
	running.Wait()
	return results
}

// wholeBudget is how many seconds stages may take together, of which those of several
// lanes run beside each other.
func wholeBudget(results []result) (seconds int) {
	lanes := map[string]int{}
	longest := 0
	for _, r := range results {
		if r.lane == "" {
			seconds, longest = seconds+longest, 0
			clear(lanes)
			seconds += r.budget
			continue
		}
		lanes[r.lane] += r.budget
		longest = max(longest, lanes[r.lane])
	}
	return seconds + longest
}

// workers are the lanes that are at work. A nil one is of what runs in no lane.
type workers struct {
	mu      sync.Mutex
	changed sync.Cond
	busy    int
	alone   bool // the one that is busy is not to be joined
}

func newWorkers(busy int) *workers {
	w := &workers{busy: busy}
	w.changed.L = &w.mu
	return w
}

func (w *workers) join() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.alone {
		w.changed.Wait()
	}
	w.busy++
}

func (w *workers) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.changed.Broadcast()
}

// byItself has a lane that is at work do something while no other is: each has ended, or
// waits, too.
func (w *workers) byItself(do func()) {
	if w == nil {
		do()
		return
	}
	w.leave()
	w.be(true)
	do()
	w.be(false)
}

func (w *workers) be(alone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for alone && w.busy > 0 {
		w.changed.Wait()
	}
	if alone {
		w.busy++
	}
	w.alone = alone
	w.changed.Broadcast()
}

// turns show what several stages print at once, each as a whole: of one at once, of the
// others when they have ended.
type turns struct {
	mu      sync.Mutex
	out     io.Writer
	busy    bool
	waiting bytes.Buffer // of stages that have ended, for the end of the one whose turn it is
}

// begin is where a stage prints, and what it calls at its end.
func (t *turns) begin() (output io.Writer, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.busy {
		t.busy = true
		return turn{t}, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.busy = false
			_, _ = t.waiting.WriteTo(t.out) // as all that is printed
		}
	}
	var printed bytes.Buffer
	return &printed, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		writer := t.out
		if t.busy {
			writer = &t.waiting
		}
		_, _ = printed.WriteTo(writer)
	}
}

// turn is where the stage prints whose turn it is.
type turn struct{ *turns }

func (t turn) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(text)
}
