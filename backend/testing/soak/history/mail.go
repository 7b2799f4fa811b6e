package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"bridge/backend/core/bridge"
)

// Send stores a message for a recipient. Sent again with the same id it changes nothing.
type Send struct{ To, ID string }

// Notice is a decision's message to a session, which the broker queues at the decision or
// when the session comes back. Due says that the decision was answered, so that the notice
// has to arrive before the End.
type Notice struct {
	To, ID string
	Due    bool
}

// Inbox is a look into the mail of a session, by a connection of it. Cut off, it may have
// leased mail that was not shown.
type Inbox struct {
	To, Conn, Lease string
	Shown           []string // ids
	// Whole says that the answer had room for more: nothing else was there to be read.
	Whole bool
	// Implied says that the connection is a server of Bridge's own, which acknowledges by
	// itself what it has shown, and holds its leases when the broker dies.
	Implied bool
}

// Ack says that what a lease holds was handed over or consumed.
type Ack struct {
	To, Conn, Lease string
	IDs             []string
	Stage           bridge.Stage
}

// Nack gives a lease back.
type Nack struct {
	To, Conn, Lease string
	IDs             []string
}

// Keep tells a new broker of a lease that an earlier one gave.
type Keep struct {
	To, Conn, Lease string
	IDs             []string
}

// Dropped is the end of a connection of a session; record it with Cut, as the broker sees
// it later. Died says that the process behind it was killed: what was handed over, and not
// consumed, is offered again.
type Dropped struct {
	To, Conn string
	Died     bool
}

// Crash is the death of the broker: no session holds a lease after it.
type Crash struct{}

// Status is what the sender of a message is told of it; Stage is "" where the message is
// unknown.
type Status struct {
	To, ID string
	Stage  bridge.Stage
}

// End is the end of the run, after all mail was read: nothing may wait any more.
type End struct{}

func (Send) isOp()    {}
func (Notice) isOp()  {}
func (Inbox) isOp()   {}
func (Ack) isOp()     {}
func (Nack) isOp()    {}
func (Keep) isOp()    {}
func (Dropped) isOp() {}
func (Crash) isOp()   {}
func (Status) isOp()  {}
func (End) isOp()     {}

// phase is where a message is for its recipient.
type phase int

const (
	absent phase = iota
	free
	leased
	handed
	consumed
)

func (p phase) String() string {
	return [...]string{"not stored", "waiting", "on lease", "handed over", "consumed"}[p]
}

// mailState is what the broker knows of one message to one recipient.
type mailState struct {
	phase       phase
	conn, lease string // who has it on lease, or was handed it
	keeps       bool   // the holder keeps its leases when the broker dies
	delivered   bool   // it was handed over at least once
}

func (s mailState) String() string {
	if s.phase == leased || s.phase == handed {
		return fmt.Sprintf("%s (%s %s)", s.phase, s.conn, s.lease)
	}
	return s.phase.String()
}

// mailKind is what happens to one message.
type mailKind int

const (
	sends mailKind = iota
	takes
	takesUnseen // leased in an answer that nobody saw
	passesOver  // an answer with room for more that does not show it
	handsOver   // a server acknowledges by itself
	acks
	nacks
	keeps
	drops
	dies
	crashes
	tells
	ends
	endsDue
)

// mailOp is one of these, with what it needs.
type mailOp struct {
	kind        mailKind
	conn, lease string
	stage       bridge.Stage
	implied     bool
}

func (o mailOp) String() string {
	lease := cmp.Or(o.lease, "a lease")
	switch o.kind {
	case sends:
		return "send"
	case takes:
		return fmt.Sprintf("inbox of %s shows it (%s)", o.conn, lease)
	case takesUnseen:
		return fmt.Sprintf("inbox of %s is cut off", o.conn)
	case passesOver:
		return fmt.Sprintf("inbox of %s does not show it", o.conn)
	case handsOver:
		return fmt.Sprintf("%s acknowledges by itself", o.conn)
	case acks:
		return fmt.Sprintf("ack of %s: %s", lease, o.stage)
	case nacks:
		return fmt.Sprintf("nack of %s", lease)
	case keeps:
		return fmt.Sprintf("%s keeps %s", o.conn, lease)
	case drops:
		return fmt.Sprintf("connection %s ends", o.conn)
	case dies:
		return fmt.Sprintf("process %s is killed", o.conn)
	case crashes:
		return "the broker is killed"
	case tells:
		return fmt.Sprintf("send_status says %q", o.stage)
	case ends, endsDue:
		return "the run ends"
	}
	return "unknown"
}

// step returns the state after the operation; ok is false where a right broker cannot have
// answered so.
func (s mailState) step(e event) (after mailState, ok bool) {
	o, isMail := e.op.(mailOp)
	if !isMail {
		return s, false
	}
	isOwn := s.conn == o.conn
	switch o.kind {
	case sends:
		if s.phase == absent {
			s.phase = free
		}
	case takes:
		if s.phase != free {
			return s, false
		}
		s.phase, s.conn, s.lease, s.keeps = leased, o.conn, o.lease, o.implied
	case takesUnseen, keeps:
		if s.phase == free {
			s.phase, s.conn, s.lease, s.keeps = leased, o.conn, o.lease, false
		}
	case passesOver:
		return s, s.phase != free
	case handsOver:
		if s.phase == leased && isOwn && s.lease == o.lease {
			s.phase, s.delivered = handed, true
		}
	case acks:
		return s.acked(o)
	case nacks:
		if s.phase == leased && isOwn && s.lease == o.lease {
			s.phase = free
		}
	case drops, dies:
		if isOwn && (s.phase == leased || o.kind == dies && s.phase == handed) {
			s.phase = free
		}
	case crashes:
		if s.phase == leased && !s.keeps {
			s.phase = free
		}
	case tells:
		return s.told(o.stage)
	case ends:
		return s, s.phase == absent || s.phase >= handed
	case endsDue:
		return s, s.phase >= handed
	}
	return s, true
}

// acked is the state after an ack: it counts also when the lease is another's by now.
func (s mailState) acked(o mailOp) (mailState, bool) {
	if s.phase == absent {
		return s, false
	}
	s.delivered = true
	switch {
	case s.phase == consumed:
	case o.stage == bridge.StageConsumed:
		s.phase = consumed
	default:
		s.phase, s.conn, s.lease = handed, o.conn, o.lease
	}
	return s, true
}

// told is the state after its sender was told a stage: a receipt is said after an ack
// alone, and never taken back. What was handed over counts as consumed with the session's
// next call.
func (s mailState) told(stage bridge.Stage) (mailState, bool) {
	switch stage {
	case "":
		return s, s.phase == absent
	case bridge.StageHanded:
		return s, s.delivered && s.phase != consumed
	case bridge.StageConsumed, bridge.StageAnswered:
		ok := s.phase >= handed
		if ok {
			s.phase = consumed
		}
		return s, ok
	default:
		return s, s.phase == free || s.phase == leased
	}
}

// mailbox gathers the calls that concern the messages of one recipient.
type mailbox struct {
	messages map[string][]event // by id
	due      map[string]bool
	shared   []record // calls that concern each message
	looked   []record // of these, the looks that matter
}

// mailHistories parts the calls by recipient and message.
func mailHistories(records []record) (parts []part) {
	boxes := map[string]*mailbox{}
	var everywhere []record
	for _, record := range records {
		to, messages := addressed(record.op)
		if to == "" {
			switch record.op.(type) {
			case Crash, End:
				everywhere = append(everywhere, record)
			}
			continue
		}
		box := boxes[to]
		if box == nil {
			box = &mailbox{messages: map[string][]event{}, due: map[string]bool{}}
			boxes[to] = box
		}
		box.add(record, messages)
	}
	for _, box := range boxes {
		box.bound(everywhere)
	}
	for _, to := range slices.Sorted(maps.Keys(boxes)) {
		box := boxes[to]
		for _, id := range slices.Sorted(maps.Keys(box.messages)) {
			events := box.history(id, everywhere)
			if box.isUnseen(id) {
				events = nil // it was never sent, as far as anybody knows: every answer is right
			}
			parts = append(parts, part{mailModel, fmt.Sprintf("%s to %s", id, to), events})
		}
	}
	return parts
}

// addressed returns whose mail a call is about, and which of it; "" for none.
func addressed(op Op) (to string, messages []string) {
	switch o := op.(type) {
	case Send:
		return o.To, []string{o.ID}
	case Notice:
		return o.To, []string{o.ID}
	case Inbox:
		return o.To, o.Shown
	case Ack:
		return o.To, o.IDs
	case Nack:
		return o.To, o.IDs
	case Keep:
		return o.To, o.IDs
	case Status:
		return o.To, []string{o.ID}
	case Dropped:
		return o.To, nil
	}
	return "", nil
}

func (b *mailbox) add(item record, messages []string) {
	for _, id := range messages {
		b.messages[id] = append(b.messages[id], b.eventsOf(item, id)...)
	}
	switch item.op.(type) {
	case Inbox, Dropped:
		b.shared = append(b.shared, item)
	}
}

// bound gives the looks that were cut off and the ends of connections their last moment: with
// the broker that they were made to, all that it leased is gone. That is at the latest the
// first one that was killed after the client knew of the cut.
func (b *mailbox) bound(everywhere []record) {
	for i := range b.shared {
		record := &b.shared[i]
		if o, isEnd := record.op.(Dropped); record.isKnown() || isEnd && o.Died {
			continue
		}
		for _, other := range everywhere {
			if _, isCrash := other.op.(Crash); isCrash && other.call >= record.seen {
				record.ret = min(record.ret, other.ret)
			}
		}
	}
}

// eventsOf returns what a call does to one message that it names.
func (b *mailbox) eventsOf(item record, id string) []event {
	made := func(op mailOp) []event { return []event{{item.client, op, item.call, item.ret}} }
	switch o := item.op.(type) {
	case Send:
		return made(mailOp{kind: sends})
	case Notice:
		b.due[id] = b.due[id] || o.Due
		return []event{{item.client, mailOp{kind: sends}, item.call, open}}
	case Inbox:
		list := made(mailOp{kind: takes, conn: o.Conn, lease: o.Lease, implied: o.Implied})
		if o.Implied {
			list = append(list, event{item.client, mailOp{kind: handsOver, conn: o.Conn, lease: o.Lease}, item.call, open})
		}
		return list
	case Ack:
		return made(mailOp{kind: acks, conn: o.Conn, lease: o.Lease, stage: o.Stage})
	case Nack:
		return made(mailOp{kind: nacks, conn: o.Conn, lease: o.Lease})
	case Keep:
		return made(mailOp{kind: keeps, conn: o.Conn, lease: o.Lease})
	case Status:
		return made(mailOp{kind: tells, stage: o.Stage})
	}
	return nil
}

// isUnseen reports whether all that is known of a message are sends that were never
// answered.
func (b *mailbox) isUnseen(id string) bool {
	return !b.due[id] && !slices.ContainsFunc(b.messages[id], func(e event) bool {
		op, _ := e.op.(mailOp)
		return op.kind != sends || e.ret != open
	})
}

// history returns all that happened to one message. It leaves out what can neither change
// nor contradict its state: what ended before the message was sent, what began after it was
// acknowledged as consumed, and looks after the first showing where nothing gave it back
// for certain.
func (b *mailbox) history(id string, everywhere []record) []event {
	list := b.messages[id]
	first, settled, presented := int64(open), int64(open), int64(open)
	conns := map[string]bool{}
	returned, implied := false, true
	for _, e := range list {
		op, _ := e.op.(mailOp)
		first = min(first, e.call)
		switch op.kind {
		case takes:
			presented, implied = min(presented, e.ret), implied && op.implied
			conns[op.conn] = true
		case keeps:
			conns[op.conn] = true
		case nacks:
			returned = true
		case acks:
			if op.stage == bridge.StageConsumed {
				settled = min(settled, e.ret)
			}
		default:
		}
	}
	looks := settled
	if !returned && implied {
		looks = min(looks, presented)
	}
	all := b.looks(everywhere)
	inTime := cutInTime(all, first)
	for i, record := range all {
		o, _ := record.op.(Inbox)
		if record.ret < first || record.call > looks || slices.Contains(o.Shown, id) || !record.isAnswered() && !inTime[i] {
			continue
		}
		op := mailOp{kind: passesOver, conn: o.Conn}
		if !record.isAnswered() {
			op.kind, conns[o.Conn] = takesUnseen, true
			if record.isKnown() { // its broker is dead by then
				list = append(list, event{record.client, mailOp{kind: drops, conn: o.Conn}, record.ret + 1, record.ret + 1})
			}
		}
		list = append(list, event{record.client, op, record.call, record.ret})
	}
	return append(list, b.endings(id, everywhere, conns, first, settled)...)
}

// mostLate is how many looks may have been cut off before a message was sent, and still
// lease it.
const mostLate = 3

// cutInTime says of the looks that were cut off which may have leased a message that was sent
// at the moment first: those that were not cut off by then, and the last ones before. A
// broker does not serve a request after it has served those of many later connections.
func cutInTime(all []record, first int64) map[int]bool {
	inTime := map[int]bool{}
	var earlier []int
	for i, record := range all {
		switch {
		case record.isAnswered():
		case record.seen >= first:
			inTime[i] = true
		default:
			earlier = append(earlier, i)
		}
	}
	slices.SortFunc(earlier, func(x, y int) int { return cmp.Compare(all[y].seen, all[x].seen) })
	for _, i := range earlier[:min(mostLate, len(earlier))] {
		inTime[i] = true
	}
	return inTime
}

// looks returns the answers that had room for more, and the looks that were cut off: of
// those of one connection to one broker the first, as the others do no more than it.
func (b *mailbox) looks(everywhere []record) (list []record) {
	if b.looked != nil {
		return b.looked
	}
	cut := map[string]int{} // by connection and broker, where it is in the list
	for _, record := range b.shared {
		o, isLook := record.op.(Inbox)
		if !isLook || record.isAnswered() && !o.Whole {
			continue
		}
		if !record.isAnswered() {
			crashed := 0
			for _, other := range everywhere {
				if _, isCrash := other.op.(Crash); isCrash && other.ret < record.call {
					crashed++
				}
			}
			key := fmt.Sprintf("%s %d", o.Conn, crashed)
			if at, known := cut[key]; known {
				same := &list[at]
				same.call, same.ret, same.seen = min(same.call, record.call), max(same.ret, record.ret), max(same.seen, record.seen)
				continue
			}
			cut[key] = len(list)
		}
		list = append(list, record)
	}
	b.looked = list
	return list
}

// endings returns the ends of connections, brokers and the run, as far as they concern a
// message that these connections may have held.
func (b *mailbox) endings(id string, everywhere []record, conns map[string]bool, first, settled int64) (list []event) {
	for _, record := range b.shared {
		o, isEnd := record.op.(Dropped)
		if !isEnd || !conns[o.Conn] || record.call > settled {
			continue
		}
		kind, times := drops, 1
		if o.Died {
			kind, times = dies, 1+b.lateShows(id, o.Conn, record.call)
		}
		for range times {
			list = append(list, event{record.client, mailOp{kind: kind, conn: o.Conn}, record.call, record.ret})
		}
	}
	for _, record := range everywhere {
		switch record.op.(type) {
		case Crash:
			if record.ret >= first && record.call <= settled {
				list = append(list, event{record.client, mailOp{kind: crashes}, record.call, record.ret})
			}
		case End:
			kind := ends
			if b.due[id] {
				kind = endsDue
			}
			list = append(list, event{record.client, mailOp{kind: kind}, record.call, record.ret})
		}
	}
	return list
}

// lateShows counts the answers with a message that a connection got after its process was
// killed: a hook that was started before may ask after it. Nobody reads such an answer, so
// the message is offered again after each.
func (b *mailbox) lateShows(id, conn string, killed int64) (count int) {
	for _, e := range b.messages[id] {
		if op, isMail := e.op.(mailOp); isMail && op.kind == takes && op.conn == conn && e.ret > killed {
			count++
		}
	}
	return count
}
