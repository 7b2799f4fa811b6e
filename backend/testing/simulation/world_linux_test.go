package simulation

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
)

// world is all PCs of one seed.
type world struct {
	t       testing.TB
	seed    uint64
	random  *rand.Rand // for the steps alone
	network *network
	pcs     []*pc
	trace   *trace
	log     io.Writer // of what the PCs log; nil for nothing
	quiet   chan struct{}

	kinds     []kind
	letters   []*letter
	decisions []*made
	nights    int
	hasJobs   bool           // its PCs do jobs for each other
	calls     sync.WaitGroup // requests about jobs

	mu       sync.Mutex // guards below
	failures []string
	jobs     map[string]*asked
}

// letter is a message that was written.
type letter struct {
	id       string
	from, to *pc
	session  string
	accepted bool
}

// made is a decision.
type made struct {
	id       string
	by       *pc
	accepted bool
}

func (w *world) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := fmt.Sprintf(format, args...)
	w.trace.add("WRONG: %s", said)
	w.failures = append(w.failures, said)
}

// simulate runs the seed, and returns what happened and what was wrong. template is a store
// with the sessions.
func simulate(t *testing.T, seed uint64, template []byte, log io.Writer) (happened, wrong []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, template, log)
		ctx, cancel := context.WithCancel(context.Background())
		var tasks sync.WaitGroup
		w.network.join(ctx, &tasks, w.pcs)
		for _, p := range w.pcs {
			p.start()
			tasks.Go(func() { p.keepAlive(ctx) })
		}
		tasks.Go(func() { w.network.keepLinked(ctx) })
		for range 15 + w.random.IntN(15) {
			<-time.After(w.pause())
			w.step()
		}
		w.settle()
		cancel()
		tasks.Wait()
		for _, p := range w.pcs {
			p.stop()
			p.runners.endAll()
			disks.Delete(p.disk.folder)
		}
		happened, wrong = w.trace.lines, w.failures
	})
	return happened, wrong
}

func newWorld(t testing.TB, seed uint64, template []byte, log io.Writer) *world {
	w := &world{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), trace: &trace{began: time.Now()}, log: log, quiet: make(chan struct{}), jobs: map[string]*asked{}}
	w.hasJobs = seed%jobsEvery == 0
	level := func(most uint64) uint64 { // in half of the worlds there is none
		if w.random.IntN(2) == 0 {
			return 0
		}
		return w.random.Uint64N(most)
	}
	w.network = newNetwork(seed, faults{
		loss: level(300), breaks: level(100), twice: level(300), hold: level(200), wait: level(400),
		delay: time.Duration(1+w.random.IntN(5000)) * time.Millisecond,
	}, w.trace)
	w.chooseKinds()
	count := []int{2, 2, 2, 2, 2, 3, 3, 3, 4, 5}[w.random.IntN(10)]
	for i := range count {
		w.pcs = append(w.pcs, newPC(w, i, template))
	}
	for _, p := range w.pcs {
		for _, other := range w.pcs {
			if other != p {
				p.allow(remote.ShareMessages, other.name, true)
				p.allow(remote.ShareDecisions, other.name, true)
				p.allow(shareJobs, other.name, true)
			}
		}
	}
	return w
}

// jobsEvery is in which of the worlds PCs do jobs for each other: files of jobs are on the
// real disk, so that these worlds take longer.
const jobsEvery = 4

// pause is the time until the next step.
func (w *world) pause() time.Duration {
	most := 12_000_000
	if w.random.IntN(3) == 0 {
		most = 200_000
	}
	return time.Duration(w.random.IntN(most)) * time.Microsecond
}

// any is one of the PCs, and other another one.
func (w *world) any() (item, other *pc) {
	at := w.random.IntN(len(w.pcs))
	next := (at + 1 + w.random.IntN(len(w.pcs)-1)) % len(w.pcs)
	return w.pcs[at], w.pcs[next]
}

// step does what comes next.
func (w *world) step() {
	pc, other := w.any()
	all := 0
	for _, kind := range w.kinds {
		all += kind.often
	}
	at := w.random.IntN(all)
	for _, kind := range w.kinds {
		if at -= kind.often; at < 0 {
			kind.do(pc, other)
			return
		}
	}
}

// kind is a kind of step, and how often it is taken.
type kind struct {
	often int
	do    func(item, other *pc)
}

// chooseKinds has each kind of step be usual, rare or frequent in this world, or there not
// at all: what hides one fault is missing in some of them.
func (w *world) chooseKinds() {
	w.kinds = []kind{
		{20, w.write},
		{10, w.read},
		{16, w.decide},
		{2, w.crash},
		{2, w.crashAtCall},
		{2, w.crashAtFrame},
		{4, w.part},
		{6, w.decideBesideALink},
		{4, w.decideOverNight},
		{6, w.slow},
		{3, w.setClock},
		{2, w.night},
		{3, w.allow},
		{1, w.remove},
	}
	for i := range w.kinds {
		w.kinds[i].often *= []int{0, 1, 1, 3}[w.random.IntN(4)]
	}
	w.kinds = append(w.kinds, kind{1, w.write})
	if w.hasJobs {
		w.kinds = append(w.kinds, kind{12, w.request}, kind{8, w.speak}, kind{3, w.allowJobs}, kind{3, w.restart})
	}
}

func (w *world) write(from, to *pc) {
	for range 1 + w.random.IntN(4) {
		l := &letter{id: fmt.Sprintf("m-%s-%03d", from.name, len(w.letters)), from: from, to: to, session: sessions[w.random.IntN(len(sessions))]}
		l.accepted = from.write(l.id, l.session, to)
		w.letters = append(w.letters, l)
		w.trace.add("%s writes %s to %s/%s: %v", from.name, l.id, to.name, l.session, l.accepted)
	}
}

func (w *world) read(p, _ *pc) {
	session := sessions[w.random.IntN(len(sessions))]
	for range 1 + w.random.IntN(3) {
		p.read(session)
	}
}

func (w *world) decide(p, _ *pc) {
	for range 1 + w.random.IntN([]int{1, 2, 4, 45}[w.random.IntN(4)]) {
		w.decideOne(p)
	}
}

func (w *world) decideOne(p *pc) {
	if len(w.decisions) >= 150 {
		return // more may have to wait for a minute
	}
	d := &made{id: fmt.Sprintf("d-%s-%03d", p.name, len(w.decisions)), by: p}
	d.accepted = p.decide(d.id)
	w.decisions = append(w.decisions, d)
	w.trace.add("%s decides %s: %v", p.name, d.id, d.accepted)
}

// decideBesideALink has two PCs decide something again and again while they are parted for
// a moment and linked anew.
func (w *world) decideBesideALink(a, b *pc) {
	w.network.part(a, b, time.Now())
	for range 4 + w.random.IntN(6) {
		<-time.After(time.Duration(w.random.IntN(1_500)) * time.Millisecond)
		w.decideOne([]*pc{a, b}[w.random.IntN(2)])
	}
}

// decideOverNight has a PC decide something while it is parted from another one, and more a
// day later, when they are linked for a moment.
func (w *world) decideOverNight(a, b *pc) {
	w.network.part(a, b, time.Now().Add(time.Hour))
	for range 1 + w.random.IntN(6) {
		w.decideOne(a)
	}
	w.night(a, b)
	w.network.link(a, b)
	for range 3 {
		<-time.After(time.Duration(w.random.IntN(1_500)) * time.Millisecond)
		w.decideOne(a)
	}
	<-time.After(time.Duration(w.random.IntN(1_500)) * time.Millisecond)
	w.network.part(a, b, time.Now().Add(time.Duration(w.random.IntN(5_000))*time.Millisecond))
}

func (w *world) crash(p, _ *pc) { p.die() }

// restart has the Bridge of a PC end and start again, as for an update.
func (w *world) restart(p, _ *pc) {
	w.trace.add("the Bridge of %s restarts", p.name)
	wake(p.updates)
}

func (w *world) crashAtCall(p, _ *pc) {
	n := w.random.IntN(40)
	w.trace.add("%s is to crash at write or sync %d", p.name, n)
	p.disk.dieAfter(n, func() { go p.die() })
}

func (w *world) crashAtFrame(p, _ *pc) {
	n, after := w.random.IntN(6), w.random.IntN(2) == 0
	w.trace.add("%s is to crash at frame %d, after it: %v", p.name, n, after)
	p.dieAtFrame(n, after)
}

func (w *world) part(a, b *pc) {
	w.network.part(a, b, time.Now().Add(time.Duration(w.random.IntN(60_000))*time.Millisecond))
}

func (w *world) slow(p, _ *pc) {
	pause := time.Duration(w.random.IntN(9_000)) * time.Millisecond
	w.trace.add("the settings of %s are slow for %s", p.name, pause)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = time.Now().Add(pause)
}

// setClock moves the wall clock of a PC, no more than half a day away from the others': what
// is decided a day ahead nobody takes.
func (w *world) setClock(p, _ *pc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	night := time.Duration(w.nights) * nightSpan
	p.clock = night + time.Duration(w.random.IntN(22*3600)-11*3600)*time.Second
	w.trace.add("the clock of %s is off by %s", p.name, p.clock)
}

const nightSpan = 26 * time.Hour

// night passes while all PCs stand still.
func (w *world) night(_, _ *pc) {
	if w.nights++; w.nights > 3 {
		w.nights--
		return
	}
	w.trace.add("a night passes")
	for _, p := range w.pcs {
		p.mu.Lock()
		p.clock += nightSpan
		p.mu.Unlock()
	}
}

func (w *world) allow(p, other *pc) {
	share := []remote.Share{remote.ShareMessages, remote.ShareDecisions}[w.random.IntN(2)]
	is := w.random.IntN(3) > 0
	w.trace.add("%s allows %s %s: %v", p.name, other.name, share, is)
	p.allow(share, other.name, is)
}

// remove has a PC know another one no more.
func (w *world) remove(p, other *pc) {
	if len(w.pcs) < 3 {
		return
	}
	w.trace.add("%s removes %s", p.name, other.name)
	w.network.forget(p, other)
}

// settle ends all faults and waits until nothing more is to come. It checks what there is
// then.
func (w *world) settle() {
	w.trace.add("it is quiet")
	w.network.endFaults()
	for _, p := range w.pcs {
		p.disk.dieAfter(-1, nil)
		p.dieAtFrame(-1, false)
	}
	close(w.quiet)
	for _, p := range w.pcs {
		for _, other := range w.pcs {
			p.allow(shareJobs, other.name, true) // so that each job comes to its end
		}
	}
	w.calls.Wait()
	const limit = 20 * time.Minute
	var open []string
	for began := time.Now(); time.Since(began) < limit; {
		<-time.After(7 * time.Second)
		if open = w.open(); len(open) == 0 {
			break
		}
	}
	for _, text := range open {
		w.failf("this never came: %s", text)
	}
	if !slices.ContainsFunc(w.pcs, (*pc).isDead) {
		w.checkMessages()
		w.checkJobs()
	}
}

// open is what is still to come.
func (w *world) open() (open []string) {
	for _, p := range w.pcs {
		if p.isDead() {
			return []string{p.name + " is off"}
		}
	}
	for _, l := range w.letters {
		if !l.accepted {
			continue
		}
		stage, d := l.stage()
		has := w.has(l.to, l.session, l.id)
		switch {
		case w.network.isKnown(l.from, l.to.id) && !w.network.isKnown(l.to, l.from.id): // it waits there for ever
		case stage == bridge.StageRefused || stage == bridge.StageArrived && (has == nil || !has.Consumed.Happened()):
		case stage == bridge.StageConsumed:
		case stage == bridge.StageArrived && !w.tells(l.to, l.from):
		default:
			open = append(open, fmt.Sprintf("%s of %s to %s is %s (%s)", l.id, l.from.name, l.to.name, stage, d.Remote.Words()))
		}
	}
	if w.hasJobs {
		open = append(open, w.openJobs()...)
	}
	return append(open, w.undecided()...)
}

// tells reports whether a PC tells another one what became of its messages.
func (w *world) tells(p, other *pc) bool {
	return w.network.know(p, other) && p.allows(remote.ShareMessages, other.name, time.Now())
}

// undecided are the decisions that are missing.
func (w *world) undecided() (missing []string) {
	all := map[*pc]map[string]bool{}
	for _, p := range w.pcs {
		all[p] = map[string]bool{}
		list, err := p.alive().db.Decisions(context.Background(), decision.Lookup{History: true})
		if err != nil {
			w.failf("%s cannot tell its decisions: %v", p.name, err)
		}
		for _, revision := range list {
			all[p][revision.ID] = true
		}
	}
	for _, d := range w.decisions {
		if d.accepted && !all[d.by][d.id] {
			missing = append(missing, d.id+" of "+d.by.name+" is lost")
		}
		if !all[d.by][d.id] {
			continue
		}
		for _, p := range w.pcs {
			both := p != d.by && w.network.know(p, d.by) && p.allows(remote.ShareDecisions, d.by.name, time.Now()) && d.by.allows(remote.ShareDecisions, p.name, time.Now())
			if both && !all[p][d.id] {
				missing = append(missing, d.id+" of "+d.by.name+" is not on "+p.name)
			}
		}
	}
	return missing
}

// stage is how far the message has come, as its sender knows.
func (l *letter) stage() (bridge.Stage, mail.Delivery) {
	row, err := l.from.alive().db.Find(context.Background(), l.id)
	if err != nil || len(row.Deliveries) != 1 {
		return "lost", mail.Delivery{}
	}
	stage, _ := row.Deliveries[0].Reached()
	return stage, row.Deliveries[0]
}

// has is a message as its receiver has it; nil where it does not.
func (w *world) has(p *pc, session, id string) *mail.Delivery {
	row, err := p.alive().db.Find(context.Background(), id)
	if err != nil {
		return nil
	}
	at := slices.IndexFunc(row.Deliveries, func(d mail.Delivery) bool { return d.Recipient == "peer-"+session })
	if at < 0 {
		return nil
	}
	return &row.Deliveries[at]
}

// received is what each session of a PC was sent, in the order in which it was stored.
func (w *world) received(p *pc) map[string][]mail.Delivery {
	rows, err := p.alive().db.Recent(context.Background(), 20_000)
	if err != nil {
		w.failf("%s cannot tell its messages: %v", p.name, err)
	}
	all := map[string][]mail.Delivery{}
	for _, row := range slices.Backward(rows) {
		for _, d := range row.Deliveries {
			all[d.Recipient] = append(all[d.Recipient], d)
		}
	}
	return all
}

// checkMessages checks that each message came once and in its order, or that its sender
// knows that it was refused.
func (w *world) checkMessages() {
	for _, pc := range w.pcs {
		all := w.received(pc)
		for _, session := range sessions {
			got := map[string][]string{}
			for _, d := range all["peer-"+session] {
				host, sender, _ := strings.Cut(d.From.Name, "/")
				if _, _, isJob := job.ParseName(sender); isJob {
					continue // see checkJobs
				}
				got[host] = append(got[host], d.Body)
			}
			for _, from := range w.pcs {
				if from != pc {
					w.checkWay(from, pc, session, got[from.name])
				}
			}
		}
	}
}

func (w *world) checkWay(from, to *pc, session string, got []string) {
	var want []string
	for _, l := range w.letters {
		if l.from != from || l.to != to || l.session != session {
			continue
		}
		body, stage := "body of "+l.id, bridge.Stage("")
		if l.accepted {
			stage, _ = l.stage()
		}
		came := slices.Contains(got, body)
		switch {
		case came:
			want = append(want, body)
		case stage == bridge.StageArrived || stage == bridge.StageConsumed:
			w.failf("%s of %s is %s there, and %s does not have it", l.id, from.name, stage, to.name)
		}
		if came && stage == bridge.StageRefused && w.network.know(from, to) {
			w.failf("%s has %s of %s, which thinks that it was refused", to.name, l.id, from.name)
		}
	}
	if !slices.Equal(got, want) {
		w.failf("%s/%s has of %s\n\t%v, want\n\t%v", to.name, session, from.name, got, want)
	}
}
