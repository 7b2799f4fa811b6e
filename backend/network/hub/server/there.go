package server

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/network/hub/subject"
)

// board is what this node tells its PCs of who is there (subject.There). One goroutine
// has it, and hears everything by one channel: so what it answers is never older than
// what it tells afterwards.
type board struct {
	*Server
	came   chan *nats.Msg
	subs   []*nats.Subscription
	missed int      // words, so far, for which there was no room in came
	routes []uint64 // to the other nodes

	lines  map[string]*subject.Line // by identity
	behind bool                     // it lacks something that the buckets have
	again  bool                     // and it may: another node was not heard for a while
	fresh  map[string]bool          // identities of which there is something new to tell
	still  map[string]bool          // and those that said once more what they had said
	// refused is what each PC was refused, by node and reason.
	refused map[string]map[string]numbered
	told    time.Time // when something was told
}

const (
	boardRoom = 1 << 16
	// A change is told at once, and what comes within the pause after it together.
	tellPause, tellPausePerPC = 20 * time.Millisecond, time.Millisecond
	// stillPause is how long it may wait that a PC is there as before.
	stillPause = subject.PresenceLife / 6
	// behindPause is how long it waits until it reads again what could not be read.
	behindPause = time.Second
	// routesPause is how often it is looked whether a node was cut off meanwhile.
	routesPause = 5 * time.Second
	// maxToldBytes is about how much one message has; more goes into another one.
	maxToldBytes = 256 << 10
)

// showBoard begins to tell PCs who is there.
func showBoard(ctx context.Context, s *Server) error {
	b := &board{Server: s, came: make(chan *nats.Msg, boardRoom), lines: map[string]*subject.Line{}, fresh: map[string]bool{}, still: map[string]bool{}, refused: map[string]map[string]numbered{}}
	team := s.opts.Settings.Team
	for _, at := range []string{
		subject.BucketKey(subject.PresenceBucket(team), "*"), subject.BucketKey(subject.RosterBucket(team), "*"),
		subject.AskThere(team, s.opts.Settings.Node, "*"), subject.Refused(team, "*", "*"),
	} {
		sub, err := s.conn.ChanSubscribe(at, b.came)
		if err != nil {
			return err
		}
		b.subs = append(b.subs, sub)
	}
	b.behind = true
	b.mend(ctx) // or it tries again
	s.tasks.Go(func() { b.run(s.tasks.Context()) })
	return nil
}

func (b *board) run(ctx context.Context) {
	due, look := time.NewTimer(time.Hour), time.NewTicker(routesPause)
	defer due.Stop()
	defer look.Stop()
	b.routes = b.present()
	for {
		if wait, any := b.wait(); any {
			due.Reset(wait)
		}
		select {
		case msg := <-b.came:
			b.take(ctx, msg)
		case <-due.C:
			b.tell(ctx)
		case <-look.C:
			b.follow(b.present())
		case <-ctx.Done():
			return
		}
	}
}

// wait is how long until there is something to tell.
func (b *board) wait() (wait time.Duration, any bool) {
	switch since := b.opts.Now().Sub(b.told); {
	case len(b.fresh) > 0:
		return max(tellPause+time.Duration(len(b.lines))*tellPausePerPC-since, 0), true
	case b.behind || b.again:
		return max(behindPause-since, 0), true
	case len(b.still) > 0:
		return max(stillPause-since, 0), true
	}
	return 0, false
}

// present are the routes to the other nodes that there are, in order.
func (b *board) present() (routes []uint64) {
	if b.opts.Settings.Cluster == "" {
		return nil
	}
	are, err := b.engine.Routez(nil)
	if err != nil {
		return b.routes // it ends
	}
	for _, route := range are.Routes {
		routes = append(routes, route.Rid)
	}
	slices.Sort(routes)
	return routes
}

// follow has the buckets read again when there are other routes: what was said by another
// node meanwhile did not come here.
func (b *board) follow(present []uint64) {
	if !slices.Equal(b.routes, present) {
		b.routes, b.again = present, true
	}
}

func (b *board) take(ctx context.Context, msg *nats.Msg) {
	team := b.opts.Settings.Team
	ask := subject.AskThere(team, b.opts.Settings.Node, "")
	if pc, asked := strings.CutPrefix(msg.Subject, ask); asked {
		b.answer(ctx, pc, msg.Reply)
		return
	}
	if node, pc, is := subject.ParseRefused(team, msg.Subject); is {
		b.hearRefused(node, pc, msg)
		return
	}
	if pc, err := subject.ParseBucketKey(subject.PresenceBucket(team), msg.Subject); err == nil {
		b.hear(pc, msg.Subject, msg.Header, msg.Data, b.opts.Now())
	} else if pc, err = subject.ParseBucketKey(subject.RosterBucket(team), msg.Subject); err == nil {
		b.enter(pc, msg.Subject, msg.Data)
	}
}

func (b *board) line(pc string) *subject.Line {
	if b.lines[pc] == nil {
		b.lines[pc] = &subject.Line{PC: pc}
	}
	return b.lines[pc]
}

// enter takes what the roster says of a PC. What the hub has not sealed says nothing.
func (b *board) enter(pc, at string, data []byte) {
	body, number, err := subject.Open(b.ID(), at, data)
	if err != nil {
		return
	}
	member, err := subject.ParseMember(body)
	if line := b.line(pc); err == nil && number > line.Entry {
		line.Entry, line.Name, line.Removed, line.Box = number, member.Name, member.Removed, member.Box
		if member.Removed { // by any node, at any time
			b.roster.wasRemoved(pc, member.Name, number)
		}
		b.fresh[pc] = true
	}
}

// hear takes a word of presence: the PC's own, as its signature proves, or the hub's that
// it has gone.
func (b *board) hear(pc, at string, header nats.Header, data []byte, when time.Time) {
	if header.Get(subject.HeaderKey) == "" {
		b.hearLeft(pc, at, data)
		return
	}
	proof, err := subject.ParseProof(header.Get)
	if err != nil || len(data) > maxWordBytes {
		return
	}
	line := b.line(pc)
	if proof.Number <= line.Number || line.Removed || proof.Check(pc, at, data) != nil {
		return
	}
	if bytes.Equal(line.Word, data) && !line.Left && !b.fresh[pc] {
		b.still[pc] = true
	} else {
		b.fresh[pc] = true
	}
	line.Number, line.At, line.Left = proof.Number, when.UnixMilli(), false
	line.Word, line.Key, line.Signature = data, proof.Key, proof.Signature
}

// maxWordBytes bounds a PC's word of itself.
const maxWordBytes = 16 << 10

func (b *board) hearLeft(pc, at string, data []byte) {
	body, _, err := subject.Open(b.ID(), at, data)
	if err != nil {
		return
	}
	left, err := subject.ParseLeft(body)
	if line := b.line(pc); err == nil && left.Number >= line.Number {
		line.Number, line.Left, line.Word, line.Key, line.Signature = left.Number, true, nil, nil, nil
		b.fresh[pc] = true
	}
}

// catchUp reads what the buckets have.
func (b *board) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	team := b.opts.Settings.Team
	roster, presence := subject.RosterBucket(team), subject.PresenceBucket(team)
	err := b.readAll(ctx, roster, func(pc string, msg *jetstream.RawStreamMsg) { b.enter(pc, msg.Subject, msg.Data) })
	if err == nil {
		err = b.readAll(ctx, presence, func(pc string, msg *jetstream.RawStreamMsg) { b.hear(pc, msg.Subject, msg.Header, msg.Data, msg.Time) })
	}
	return err
}

// readAll reads what a bucket had when it began: what comes meanwhile is heard, and might
// never end. PCs wait, so no request to the engine waits long.
func (b *board) readAll(ctx context.Context, bucket string, each func(pc string, msg *jetstream.RawStreamMsg)) error {
	once := b.opts.Settings.once
	var stream jetstream.Stream
	err := once(ctx, func(ctx context.Context) (err error) {
		stream, err = b.js.Stream(ctx, subject.BucketStream(bucket))
		return err
	})
	if err != nil {
		return err
	}
	last := stream.CachedInfo().State.LastSeq
	for from := uint64(1); from <= last; {
		var msg *jetstream.RawStreamMsg
		err := once(ctx, func(ctx context.Context) (err error) {
			msg, err = stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject.BucketKey(bucket, "*")))
			return err
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if pc, err := subject.ParseBucketKey(bucket, msg.Subject); err == nil {
			each(pc, msg)
		}
		from = msg.Sequence + 1
	}
	return nil
}

// mend reads the buckets again where words were missed.
func (b *board) mend(ctx context.Context) bool {
	missed := 0
	for _, sub := range b.subs {
		n, _ := sub.Dropped() // it is 0 for one that has ended
		missed += n
	}
	if missed == b.missed && !b.behind {
		return true
	}
	b.missed = missed
	err := b.catchUp(ctx)
	b.behind = err != nil
	if err != nil && ctx.Err() == nil {
		b.opts.Log.Warn("who is there cannot be read", "err", err)
	}
	return err == nil
}

// tell tells the PCs of this node what is different.
func (b *board) tell(ctx context.Context) {
	b.told = b.opts.Now()
	if b.mend(ctx) && b.again {
		b.again = b.catchUp(ctx) != nil // what it knows it tells meanwhile
	}
	var lines [][]byte
	for pc := range b.fresh {
		lines = b.add(lines, *b.lines[pc])
		delete(b.still, pc)
	}
	for pc := range b.still {
		if line := b.lines[pc]; line.Entry > 0 {
			lines = b.add(lines, subject.Line{PC: pc, Number: line.Number, At: line.At})
		}
	}
	clear(b.fresh)
	clear(b.still)
	at := subject.There(b.opts.Settings.Team, b.opts.Settings.Node)
	for _, some := range lines {
		b.say(at, false, some)
	}
}

// answer tells one PC everything. It goes where that PC alone listens: it could name any
// subject, and the hub may publish to all.
func (b *board) answer(ctx context.Context, pc, to string) {
	if !strings.HasPrefix(to, subject.InboxPrefix(pc)+".") || !b.mend(ctx) {
		return
	}
	var lines [][]byte
	for _, line := range b.lines {
		lines = b.add(lines, *line)
	}
	for i, some := range lines {
		b.say(to, i < len(lines)-1, some)
	}
	if len(lines) == 0 {
		b.say(to, false, nil)
	}
}

// add puts a line behind the others. Of whom the roster does not know, nothing is told.
func (b *board) add(parts [][]byte, line subject.Line) [][]byte {
	if line.Entry == 0 && line.Name == "" && len(line.Word) > 0 {
		return parts
	}
	if len(parts) == 0 || len(parts[len(parts)-1]) > maxToldBytes {
		parts = append(parts, nil)
	}
	last := &parts[len(parts)-1]
	*last, _ = line.Append(*last) // a key of the bucket is an identity
	return parts
}

// say tells lines under a subject, signed with the hub's key.
func (b *board) say(at string, more bool, lines []byte) {
	now := b.opts.Now()
	data := subject.EncodeTold(now, more, lines)
	proof := subject.Proof{Number: now.UnixNano()}
	proof.Key, proof.Signature = b.keys.identity.Sign(subject.Signed(at, proof.Number, data))
	msg := &nats.Msg{Subject: at, Data: data, Header: nats.Header{}}
	for name, value := range proof.Headers() {
		msg.Header[name] = []string{value}
	}
	if err := b.conn.PublishMsg(msg); err != nil && !b.tasks.HasEnded() {
		b.opts.Log.Warn("the team could not be told who is there", "err", err)
	}
}
