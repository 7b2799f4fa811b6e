// Package history records what the clients of a broker asked and were answered, and
// checks that a broker which loses nothing and does nothing twice can have answered so.
//
// A Recorder takes each call with the moments before it and after it. A call whose client
// was cut off has no end: the broker may have carried it out at any later moment, or
// never. Check compares the calls with small models of mail, decisions, jobs and
// questions, by porcupine's search for an order in which all answers are right. Each
// message of each recipient is checked alone, and so is each topic, each result and each
// question: no rule of the models speaks of two of them, and the search stays short. The
// order of two messages to one recipient is checked beside the models.
//
// Tests only.
package history

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// step is between two moments, so that a moment fits between them.
const step = 2

// open is the end of a call whose outcome is unknown.
const open = math.MaxInt64

// Recorder collects the calls of one run. Its methods may be called from several
// goroutines.
type Recorder struct {
	clock atomic.Int64 // each moment is one step more than the last

	mu      sync.Mutex
	records []record
}

// record is one call as its client saw it.
type record struct {
	client string
	op     Op
	call   int64
	ret    int64 // open where the outcome is unknown
	seen   int64 // when the client knew what it knows of the outcome
}

func (r record) isKnown() bool { return r.ret != open }

// isAnswered reports whether an answer came, also where a last moment is known by now of
// one that did not.
func (r record) isAnswered() bool { return r.ret == r.seen }

// Op is what a client asked, with what it was answered.
type Op interface{ isOp() }

// Call is a call that has begun.
type Call struct {
	recorder *Recorder
	client   string
	began    int64
}

// Begin notes the moment before a client calls. A call that is never ended is not part of
// the history.
func (r *Recorder) Begin(client string) Call {
	return Call{recorder: r, client: client, began: r.clock.Add(step)}
}

// End notes an answer that has come. It may be called several times where one call did
// several things.
func (c Call) End(op Op) {
	now := c.recorder.clock.Add(step)
	c.recorder.add(record{c.client, op, c.began, now, now})
}

// Cut notes that no answer came: the call was carried out at any later moment, or never.
func (c Call) Cut(op Op) {
	c.recorder.add(record{c.client, op, c.began, open, c.recorder.clock.Add(step)})
}

// Finish is End where known is true, else Cut.
func (c Call) Finish(op Op, known bool) {
	if known {
		c.End(op)
	} else {
		c.Cut(op)
	}
}

func (r *Recorder) add(item record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, item)
}

// kinds counts the calls of each kind, and those of them that were cut off.
func (r *Recorder) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, cut := map[string]int{}, map[string]int{}
	for _, record := range r.records {
		kind := reflect.TypeOf(record.op).Name()
		if all[kind]++; !record.isKnown() {
			cut[kind]++
		}
	}
	var names []string
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		names = append(names, fmt.Sprintf("%d %s (%d cut off)", all[kind], kind, cut[kind]))
	}
	return strings.Join(names, ", ")
}
