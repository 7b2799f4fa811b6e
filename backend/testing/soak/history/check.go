package history

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// event is what one call did to one part of the broker's state.
type event struct {
	client    string
	op        any
	call, ret int64
}

func (e event) String() string {
	if e.ret == open {
		return fmt.Sprintf("%s: %v [%d to an unknown moment]", e.client, e.op, e.call/step)
	}
	return fmt.Sprintf("%s: %v [%d to %d]", e.client, e.op, e.call/step, e.ret/step)
}

// part is what happened to one part of the state, which is checked alone.
type part struct {
	model  porcupine.Model
	name   string
	events []event
}

// over comes after all answers of a part. Before it, a call without an answer is put in
// order only where it changes something, and the rest of them after it: the search need not
// try all the moments at which a call does nothing.
type over struct{}

func (over) String() string { return "all is over" }

// present is the state of a part while it is searched.
type present[State comparable] struct {
	state State
	over  bool
}

// step does what an event does. It reports false where a right broker cannot have answered
// so.
func (s present[State]) step(e event, rules func(State, event) (State, bool)) (bool, present[State]) {
	_, ending := e.op.(over)
	switch {
	case ending:
		return true, present[State]{s.state, true}
	case s.over:
		return e.ret == open, s
	}
	after, ok := rules(s.state, e)
	return ok && (e.ret != open || after != s.state), present[State]{after, false}
}

// newModel has porcupine search with these rules, from the zero state.
func newModel[State comparable](rules func(State, event) (after State, ok bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return present[State]{} },
		Step: func(state, input, _ any) (bool, any) {
			s, isState := state.(present[State])
			e, isEvent := input.(event)
			ok, after := s.step(e, rules)
			return ok && isState && isEvent, after
		},
		DescribeOperation: func(input, _ any) string {
			e, _ := input.(event)
			return fmt.Sprint(e.op)
		},
		DescribeState: func(state any) string {
			s, _ := state.(present[State])
			return fmt.Sprint(s.state)
		},
	}
}

var (
	mailModel     = newModel(mailState.step)
	decisionModel = newModel(decisionState.step)
	jobModel      = newModel(jobState.step)
)

// patience bounds the search over one part. A right history takes far less.
const patience = 20 * time.Second

// Fault is a part of a history that no right broker can have answered.
type Fault struct {
	Part string // such as one message to one recipient
	// Operation is the first that fits no order, and State what the longest order ends in.
	Operation, State string
	// Unclear says that the search came to no end in time.
	Unclear bool

	events []event
	model  porcupine.Model
	info   porcupine.LinearizationInfo
}

func (f Fault) String() string {
	if f.Unclear {
		return fmt.Sprintf("%s: the search took longer than %s", f.Part, patience)
	}
	if f.model.Init == nil {
		return fmt.Sprintf("%s: wrong is %s: %s", f.Part, f.Operation, f.State)
	}
	return fmt.Sprintf("%s: wrong is %s, after it was %s", f.Part, f.Operation, f.State)
}

// Check returns the parts of the history that are wrong, and how many were checked.
func (r *Recorder) Check() (faults []Fault, checked int) {
	r.mu.Lock()
	records := slices.Clone(r.records)
	r.mu.Unlock()
	parts := slices.Concat(mailHistories(records), decisionHistories(records), jobHistories(records))
	faults, ordered := orderFaults(records)
	unclear := 0
	for i, part := range parts {
		fault, wrong := part.check()
		if !wrong {
			continue
		}
		if faults = append(faults, fault); fault.Unclear {
			unclear++
		}
		if unclear == mostUnclear {
			return faults, i + 1 + ordered
		}
	}
	return faults, len(parts) + ordered
}

// mostUnclear is how many searches may come to no end before the others are left out.
const mostUnclear = 3

// check searches for an order of the part's operations in which all answers are right.
func (p part) check() (fault Fault, wrong bool) {
	p.events = append(slices.Clone(p.events), event{client: "test", op: over{}, call: open - 1, ret: open - 1})
	operations := p.operations()
	if porcupine.CheckOperationsTimeout(p.model, operations, patience) == porcupine.Ok {
		return Fault{}, false
	}
	result, info := porcupine.CheckOperationsVerbose(p.model, operations, patience)
	fault = Fault{Part: p.name, events: p.events, model: p.model, info: info, Unclear: result == porcupine.Unknown}
	if result == porcupine.Illegal {
		fault.Operation, fault.State = p.firstWrong(info)
	}
	return fault, true
}

// operations are the events for porcupine. An operation without an end has a line of its
// own in a picture: its client has gone on.
func (p part) operations() (list []porcupine.Operation) {
	lines := map[string]int{}
	line := func(client string) int {
		if _, known := lines[client]; !known {
			lines[client] = len(lines)
		}
		return lines[client]
	}
	for i, e := range p.events {
		client := e.client
		if e.ret == open {
			client = fmt.Sprintf("%s, cut off %d", client, i)
		}
		list = append(list, porcupine.Operation{ClientId: line(client), Input: e, Call: e.call, Return: e.ret, Metadata: e.client})
	}
	return list
}

// firstWrong returns the operation that ended first among those that the longest order
// leaves out, and the state that this order ends in.
func (p part) firstWrong(info porcupine.LinearizationInfo) (operation, state string) {
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	reached := p.model.Init()
	for _, at := range longest {
		_, reached = p.model.Step(reached, p.events[at], nil)
	}
	first := event{ret: open}
	for at, e := range p.events {
		if e.ret < first.ret && !slices.Contains(longest, at) {
			first = e
		}
	}
	return first.String(), p.model.DescribeState(reached)
}

// draw writes a page that shows the part and returns its path. It outlives the test. A
// fault of the order has no page, and an empty path.
func (f Fault) draw() (path string, err error) {
	if f.model.Init == nil {
		return "", nil
	}
	file, err := os.CreateTemp("", "history-*.html")
	if err != nil {
		return "", fmt.Errorf("draw a history: %w", err)
	}
	err = porcupine.Visualize(f.model, f.info, file)
	if failed := file.Close(); err == nil {
		err = failed
	}
	return file.Name(), err
}

// mostDrawn and mostListed bound the pages of one test and the operations of one list.
const (
	mostDrawn  = 5
	mostListed = 60
)

// list returns the operations of the part in the order of their calls, one on each line.
// The log of a test then explains a fault also where its page is gone.
func (f Fault) list() string {
	events := slices.Clone(f.events)
	slices.SortStableFunc(events, func(x, y event) int { return cmp.Compare(x.call, y.call) })
	var lines strings.Builder
	for i, e := range events {
		if i == mostListed {
			fmt.Fprintf(&lines, "\n\tand %d more", len(events)-i)
			break
		}
		fmt.Fprintf(&lines, "\n\t%s", e)
	}
	return lines.String()
}

// Accept fails the test for each part of the history that is wrong, and names the first
// wrong operation of each and a page that shows it.
func (r *Recorder) Accept(t testing.TB) {
	t.Helper()
	faults, checked := r.Check()
	t.Logf("a history of %s: %d parts checked, %d of them wrong", r.kinds(), checked, len(faults))
	for i, fault := range faults {
		if i == mostDrawn {
			t.Errorf("and %d more", len(faults)-i)
			return
		}
		path, err := fault.draw()
		if err != nil {
			t.Error(err)
		}
		if path != "" {
			path = "; drawn in " + path + "; its operations:" + fault.list()
		}
		t.Errorf("the history is wrong: %s%s", fault, path)
	}
}
