package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/network/sharing"
)

// network is the bus between all PCs. It is a transport as package pairing promises it:
// frames of one link come in their order, and one that is lost costs the link, which both
// ends see sooner or later. What is sent again by itself may be lost for nothing.
type network struct {
	seed   uint64
	faults faults
	trace  *trace

	mu    sync.Mutex // guards below
	pcs   []*pc
	lines map[[2]int]*line // by sender and receiver
	knows map[[2]int]bool  // who knows whom
}

// faults are how often each of them happens, in thousandths.
type faults struct {
	loss   uint64 // of frames that are sent again by themselves
	breaks uint64 // of links, with what is on its way
	twice  uint64 // a frame comes again, later
	hold   uint64 // the line stands still, and then all comes at once
	wait   uint64 // the sender waits before a frame leaves
	delay  time.Duration
}

// line is one direction between two PCs.
type line struct {
	from, to *pc
	queue    []transit // by when it comes
	awake    chan struct{}
	sent     map[string]uint64 // frames, by type
	holds    time.Time         // nothing comes before
	answered bool              // an answer about decisions came on this link
	last     time.Time         // when the last one in order comes

	// How the sender sees the link.
	up    bool
	since time.Time
	link  int // which one it is, negative once it is broken; 0 for none yet
	retry time.Time
}

// transit is a frame on its way.
type transit struct {
	at    time.Time
	link  int
	frame remote.Frame
}

func newNetwork(seed uint64, f faults, tr *trace) *network {
	return &network{seed: seed, faults: f, trace: tr, lines: map[[2]int]*line{}, knows: map[[2]int]bool{}}
}

// join has all PCs know each other, without a link. Each line ends with the context.
func (n *network) join(ctx context.Context, tasks *sync.WaitGroup, pcs []*pc) {
	n.pcs = pcs
	for _, from := range pcs {
		for _, pc := range pcs {
			if from == pc {
				continue
			}
			item := &line{from: from, to: pc, awake: make(chan struct{}, 1), sent: map[string]uint64{}}
			n.lines[[2]int{from.number, pc.number}] = item
			n.knows[[2]int{from.number, pc.number}] = true
		}
	}
	for _, line := range n.lines {
		tasks.Go(func() { n.carry(ctx, line) })
	}
}

// dice is a number that depends on the seed and on what it is for, and on nothing else.
func (n *network) dice(of ...uint64) uint64 { return mix(append([]uint64{n.seed}, of...)...) }

func mix(of ...uint64) (sum uint64) {
	for _, number := range of {
		sum += number + 0x9e3779b97f4a7c15
		sum = (sum ^ sum>>30) * 0xbf58476d1ce4e5b9
		sum = (sum ^ sum>>27) * 0x94d049bb133111eb
		sum ^= sum >> 31
	}
	return sum
}

// repeats reports whether the frame is sent again where it is not answered, on the same
// link. A PC that has never answered on it is not asked for decisions again and again.
func (l *line) repeats(frame remote.Frame) bool {
	if frame.Type != remote.DecisionsFrame {
		return true
	}
	in, err := remote.ParseSync(frame.Payload, time.Now().AddDate(100, 0, 0).UnixMilli())
	return err == nil && in.Kind == remote.SyncState && l.answered
}

// send carries a frame, or loses it.
func (n *network) send(ctx context.Context, from *pc, id string, frame remote.Frame) error {
	n.mu.Lock()
	to := n.byID(id)
	if to == nil || !n.knows[[2]int{from.number, to.number}] {
		n.mu.Unlock()
		return bridge.Errorf(bridge.Unauthorized, "that PC is not known")
	}
	line := n.lines[[2]int{from.number, to.number}]
	line.sent[frame.Type]++
	of := []uint64{uint64(from.number), uint64(to.number), uint64(len(frame.Type)), line.sent[frame.Type]}
	up := line.up
	n.mu.Unlock()
	if !up {
		return errDown
	}
	if wait := n.dice(append(of, 1)...); wait%1000 < n.faults.wait {
		select {
		case <-time.After(time.Duration(wait>>10%3000) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !line.up || from.isDead() {
		return errDown
	}
	n.put(line, of, frame)
	return nil
}

var errDown = bridge.Errorf(bridge.Unavailable, "there is no link")

// put decides what becomes of a frame. The caller holds the lock.
func (n *network) put(item *line, of []uint64, frame remote.Frame) {
	now, fate := time.Now(), n.dice(append(of, 2)...)
	at := now.Add(time.Millisecond + time.Duration(n.dice(append(of, 3)...)%uint64(n.faults.delay)))
	what := "sent"
	switch {
	case fate%1000 < n.faults.breaks:
		what = "lost with its link"
		n.cut(item, time.Duration(fate>>20%45_000)*time.Millisecond, time.Duration(fate>>40%45_000)*time.Millisecond)
	case item.repeats(frame) && fate>>10%1000 < n.faults.loss:
		what = "lost"
	case fate>>20%1000 < n.faults.hold:
		what = "held"
		item.holds = now.Add(time.Duration(fate>>30%20_000) * time.Millisecond)
	}
	n.trace.add("%s to %s: %s %s %s", item.from.name, item.to.name, frame.Type, digest(frame.Payload), what)
	if what == "lost" || what == "lost with its link" {
		return
	}
	if at.Before(item.last) {
		at = item.last
	}
	if at.Before(item.holds) {
		at = item.holds
	}
	item.last = at
	item.queue = append(item.queue, transit{at, item.link, frame})
	if fate>>50%1000 < n.faults.twice {
		item.queue = append(item.queue, transit{at.Add(time.Duration(fate%30_000) * time.Millisecond), item.link, frame})
	}
	slices.SortStableFunc(item.queue, func(a, b transit) int { return a.at.Compare(b.at) })
	wake(item.awake)
}

func wake(capacityOne chan struct{}) {
	select {
	case capacityOne <- struct{}{}:
	default:
	}
}

// carry hands over what has come. All that comes at one moment is handed over at once.
func (n *network) carry(ctx context.Context, item *line) {
	for {
		n.mu.Lock()
		var came []transit
		for len(item.queue) > 0 && !item.queue[0].at.After(time.Now()) {
			came, item.queue = append(came, item.queue[0]), item.queue[1:]
		}
		var due <-chan time.Time
		if len(item.queue) > 0 {
			due = time.After(time.Until(item.queue[0].at))
		}
		back := n.lines[[2]int{item.to.number, item.from.number}]
		link, known := back.link, back.up && n.knows[[2]int{item.to.number, item.from.number}]
		n.mu.Unlock()
		for _, each := range came {
			if known && each.link == link && link > 0 {
				n.note(item, each.frame)
				item.to.handle(item.from, each.frame)
			}
		}
		if len(came) > 0 {
			continue
		}
		select {
		case <-due:
		case <-item.awake:
		case <-ctx.Done():
			return
		}
	}
}

// note keeps that an answer about decisions came.
func (n *network) note(item *line, frame remote.Frame) {
	n.mu.Lock()
	defer n.mu.Unlock()
	in, err := remote.ParseSync(frame.Payload, time.Now().AddDate(100, 0, 0).UnixMilli())
	item.answered = item.answered || frame.Type == remote.DecisionsFrame && err == nil && in.Kind == remote.SyncState
}

// cut ends the link of a line. What is on its way is lost. Each end sees it after a while,
// as long as there is no other link. The caller holds the lock.
func (n *network) cut(item *line, sooner, later time.Duration) {
	back := n.lines[[2]int{item.to.number, item.from.number}]
	for _, way := range []*line{item, back} {
		way.queue = nil
		pause, link := sooner, way.link
		if way == back {
			pause = later
		}
		// From now on nothing arrives, whatever is sent.
		if way.link > 0 {
			way.link = -way.link
		}
		time.AfterFunc(pause, func() {
			n.mu.Lock()
			seen := way.up && way.link == -abs(link)
			if seen {
				way.up = false
			}
			n.mu.Unlock()
			if seen {
				way.from.changed()
			}
		})
	}
}

// isBroken reports whether a link that one end sees is none any more.
func (l *line) isBroken() bool { return !l.up || l.link < 0 }

// link makes a new link between two PCs that have none. Each hears of it after a while:
// frames may come before.
func (n *network) link(a, b *pc) {
	n.mu.Lock()
	item, back := n.lines[[2]int{a.number, b.number}], n.lines[[2]int{b.number, a.number}]
	fine := n.knows[[2]int{a.number, b.number}] && n.knows[[2]int{b.number, a.number}] && !a.isDead() && !b.isDead()
	if !fine || !item.isBroken() && !back.isBroken() {
		n.mu.Unlock()
		return
	}
	number := max(abs(item.link), abs(back.link)) + 1
	for _, way := range []*line{item, back} {
		way.queue, way.up, way.since, way.link = nil, true, time.Now(), number
		way.holds, way.last, way.retry, way.answered = time.Time{}, time.Time{}, time.Time{}, false
		time.AfterFunc(time.Duration(n.dice(uint64(way.from.number), uint64(way.to.number), uint64(number), 6)%2000)*time.Millisecond, way.from.changed)
	}
	n.trace.add("%s and %s are linked", a.name, b.name)
	n.mu.Unlock()
}

func abs(n int) int { return max(n, -n) }

// part cuts the link between two PCs for a while. Both see it at once.
func (n *network) part(a, b *pc, until time.Time) {
	n.mu.Lock()
	for _, way := range [][2]int{{a.number, b.number}, {b.number, a.number}} {
		line := n.lines[way]
		line.up, line.queue, line.retry = false, nil, until
	}
	n.trace.add("%s and %s are parted", a.name, b.name)
	n.mu.Unlock()
	a.changed()
	b.changed()
}

// forget has a PC know another one no more.
func (n *network) forget(a, b *pc) {
	n.mu.Lock()
	delete(n.knows, [2]int{a.number, b.number})
	n.mu.Unlock()
	n.part(a, b, time.Now())
}

// down has the links of a PC end that is off: the others see it later.
func (n *network) down(p *pc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.pcs {
		if other == p {
			continue
		}
		line := n.lines[[2]int{p.number, other.number}]
		n.cut(line, 0, time.Duration(n.dice(uint64(p.number), uint64(other.number), uint64(abs(line.link)), 4)%45_000)*time.Millisecond)
		line.up = false
	}
}

// keepLinked makes links anew where there are none, after a while.
func (n *network) keepLinked(ctx context.Context) {
	tick := time.NewTicker(733 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for i, a := range n.pcs {
			for _, b := range n.pcs[i+1:] {
				if n.isDue(a, b) {
					n.link(a, b)
				}
			}
		}
	}
}

// isDue reports whether two PCs have no link, and try now.
func (n *network) isDue(a, b *pc) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	line, back := n.lines[[2]int{a.number, b.number}], n.lines[[2]int{b.number, a.number}]
	if !line.isBroken() && !back.isBroken() {
		line.retry = time.Time{}
		return false
	}
	if line.retry.IsZero() {
		line.retry = time.Now().Add(time.Duration(n.dice(uint64(a.number), uint64(b.number), uint64(abs(line.link)), 5)%20_000) * time.Millisecond)
	}
	return !time.Now().Before(line.retry)
}

// know reports whether two PCs know each other.
func (n *network) know(a, b *pc) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.knows[[2]int{a.number, b.number}] && n.knows[[2]int{b.number, a.number}]
}

// isKnown reports whether a PC knows another one.
func (n *network) isKnown(a *pc, id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.byID(id)
	return b != nil && n.knows[[2]int{a.number, b.number}]
}

func (n *network) byID(id string) *pc {
	at := slices.IndexFunc(n.pcs, func(p *pc) bool { return p.id == id })
	if at < 0 {
		return nil
	}
	return n.pcs[at]
}

// endFaults ends all faults but those that are there already.
func (n *network) endFaults() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = faults{delay: 100 * time.Millisecond}
	for _, line := range n.lines {
		line.holds, line.retry = time.Time{}, time.Time{}
	}
}

// transport is one PC's end of the network.
type transport struct {
	n    *network
	self *pc
	run  *running
}

var _ pairing.Transport = transport{}

func (t transport) Send(ctx context.Context, id string, frame remote.Frame) error {
	if len(frame.Payload)+len(frame.Body) > remote.MaxFrameBytes {
		return bridge.Errorf(bridge.TooLarge, "the frame is too large")
	}
	if !t.self.isRunning(t.run) {
		return errDown
	}
	before, after := t.self.dies()
	if before {
		t.self.die()
		return errDown
	}
	err := t.n.send(ctx, t.self, id, frame)
	if after {
		t.self.die()
	}
	return err
}

func (t transport) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	return t.Send(ctx, id, frame)
}

func (t transport) Of(id string) (remote.Status, error) {
	t.n.mu.Lock()
	defer t.n.mu.Unlock()
	pc := t.n.byID(id)
	if pc == nil || !t.n.knows[[2]int{t.self.number, pc.number}] {
		return remote.Status{}, bridge.Errorf(bridge.Unauthorized, "that PC is not known")
	}
	line := t.n.lines[[2]int{t.self.number, pc.number}]
	status := remote.Status{PC: remote.PC{ID: id, Name: pc.name}, Up: line.up}
	if line.up {
		status.Since, status.Release, status.Capabilities = line.since, "1.0", capabilities
	}
	return status, nil
}

var capabilities = append(sharing.Capabilities(), remote.Capability, remote.ReadsCapability)

func (t transport) Status() (list []remote.Status) {
	for _, other := range t.n.pcs {
		if status, err := t.Of(other.id); err == nil && other != t.self {
			list = append(list, status)
		}
	}
	slices.SortFunc(list, func(a, b remote.Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// trace is what happened, in its order.
type trace struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (t *trace) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%12s ", time.Since(t.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// digest tells frames apart, whatever random names they have.
func digest(payload []byte) string { return fmt.Sprintf("%d bytes", len(payload)) }
