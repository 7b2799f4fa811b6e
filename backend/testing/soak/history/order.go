package history

import (
	"fmt"
	"maps"
	"slices"
)

// sentTimes are the moments of a message: before the first call that sent it, and after
// the first answer to one, open without an answer.
type sentTimes struct{ call, ret int64 }

// orderFaults returns the answers that show a message before an older one to the same
// recipient. A message is older if its sender had the answer before the other message was
// sent. Within an answer the older one has to stand first. If an answer leaves the older
// one out, something else must have had it: an earlier answer, acknowledgement or lease,
// or a look whose answer was lost.
func orderFaults(records []record) (faults []Fault, checked int) {
	type looks struct {
		answered []record
		sent     map[string]sentTimes
		touched  map[string]int64 // the first call that can have leased or read a message
		lost     []record         // looks whose answer was lost
	}
	boxes := map[string]*looks{}
	for _, call := range records {
		to, messages := addressed(call.op)
		if to == "" {
			continue
		}
		box := boxes[to]
		if box == nil {
			box = &looks{sent: map[string]sentTimes{}, touched: map[string]int64{}}
			boxes[to] = box
		}
		switch op := call.op.(type) {
		case Send:
			times, known := box.sent[op.ID]
			if !known {
				times = sentTimes{open, open}
			}
			box.sent[op.ID] = sentTimes{min(times.call, call.call), min(times.ret, call.ret)}
			continue
		case Status:
			continue
		case Inbox:
			if !call.isAnswered() {
				call.ret = brokerEnd(records, call)
				box.lost = append(box.lost, call)
				continue
			}
			box.answered = append(box.answered, call)
		}
		for _, id := range messages {
			if first, known := box.touched[id]; !known || call.call < first {
				box.touched[id] = call.call
			}
		}
	}
	for _, to := range slices.Sorted(maps.Keys(boxes)) {
		box := boxes[to]
		for _, look := range box.answered {
			checked++
			for _, pair := range misplaced(look, box.sent, box.touched, box.lost) {
				faults = append(faults, Fault{
					Part:      "the order of mail to " + to,
					Operation: fmt.Sprintf("the answer to %s [%d to %d]", look.client, look.call/step, look.ret/step),
					State:     fmt.Sprintf("%s was stored before %s was sent", pair[0], pair[1]),
				})
			}
		}
	}
	return faults, checked
}

// misplaced returns the pairs of an older and a newer message that an answer has in the
// wrong order, and those of which it has the newer one alone although the older one was
// waiting; at most one pair of each sort.
func misplaced(look record, sent map[string]sentTimes, touched map[string]int64, lost []record) (pairs [][2]string) {
	inbox, _ := look.op.(Inbox)
	older := func(a, b string) bool {
		first, known := sent[a]
		second, alsoKnown := sent[b]
		return known && alsoKnown && first.ret < second.call && second.call < look.ret
	}
	for i := 1; i < len(inbox.Shown); i++ {
		if older(inbox.Shown[i], inbox.Shown[i-1]) {
			pairs = append(pairs, [2]string{inbox.Shown[i], inbox.Shown[i-1]})
			break
		}
	}
	if slices.ContainsFunc(lost, func(l record) bool { return l.call < look.ret && look.call < l.ret }) {
		return pairs
	}
	for _, waiting := range slices.Sorted(maps.Keys(sent)) {
		first, wasTouched := touched[waiting]
		if wasTouched && first < look.ret || slices.Contains(inbox.Shown, waiting) {
			continue
		}
		if at := slices.IndexFunc(inbox.Shown, func(id string) bool { return older(waiting, id) }); at >= 0 {
			return append(pairs, [2]string{waiting, inbox.Shown[at]})
		}
	}
	return pairs
}

// brokerEnd returns when a broker that a call may have reached was dead: the leases of the
// call are gone then. It returns open if no broker died after the call.
func brokerEnd(records []record, call record) int64 {
	end := int64(open)
	for _, other := range records {
		if _, isCrash := other.op.(Crash); isCrash && other.call >= call.seen {
			end = min(end, other.ret)
		}
	}
	return end
}
