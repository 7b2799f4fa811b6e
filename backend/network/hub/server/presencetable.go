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

// presenceTable is the presence that this node publishes to its PCs (subject.There). One
// goroutine owns it and receives everything by one channel. So an answer is never older
// than a later publication.
type presenceTable struct {
	*Server
	came   chan *nats.Msg
	subs   []*nats.Subscription
	missed int      // messages so far for which came had no room
	routes []uint64 // to the other nodes

	lines       map[string]*subject.Line // by id
	behind      bool                     // it lacks data that the buckets have
	needsReload bool                     // it may lack data: another node was disconnected for a while
	changed     map[string]bool          // ids with changes to publish
	still       map[string]bool          // ids that repeated their last announcement
	// refused holds what each PC was refused, by node and reason.
	refused     map[string]map[string]numbered
	publishedAt time.Time // when the table was last published
}

const (
	tableRoom = 1 << 16
	// A change is published at once; changes within the pause after it are published together.
	tellPause, tellPausePerPC = 20 * time.Millisecond, time.Millisecond
	// stillPause is how long a repeated announcement may wait.
	stillPause = subject.PresenceLife / 6
	// behindPause is how long to wait before a failed read is retried.
	behindPause = time.Second
	// routesPause is how often the routes to other nodes are checked for changes.
	routesPause = 5 * time.Second
	// maxToldBytes is about the size of one message; the rest goes into another one.
	maxToldBytes = 256 << 10
)

// showBoard starts to publish presence to PCs.
func showBoard(ctx context.Context, s *Server) error {
	b := &presenceTable{Server: s, came: make(chan *nats.Msg, tableRoom), lines: map[string]*subject.Line{}, changed: map[string]bool{}, still: map[string]bool{}, refused: map[string]map[string]numbered{}}
	team := s.opts.Settings.Team
	for _, at := range []string{
		subject.BucketKey(subject.PresenceBucket(team), "*"), subject.BucketKey(subject.RosterBucket(team), "*"),
		subject.PresenceRequest(team, s.opts.Settings.Node, "*"), subject.Refused(team, "*", "*"),
	} {
		sub, err := s.conn.ChanSubscribe(at, b.came)
		if err != nil {
			return err
		}
		b.subs = append(b.subs, sub)
	}
	b.behind = true
	b.mend(ctx) // or it retries
	s.tasks.Go(func() { b.run(s.tasks.Context()) })
	return nil
}

func (b *presenceTable) run(ctx context.Context) {
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
			b.publish(ctx)
		case <-look.C:
			b.follow(b.present())
		case <-ctx.Done():
			return
		}
	}
}

// wait returns how long until there is something to publish.
func (b *presenceTable) wait() (wait time.Duration, any bool) {
	switch since := b.opts.Now().Sub(b.publishedAt); {
	case len(b.changed) > 0:
		return max(tellPause+time.Duration(len(b.lines))*tellPausePerPC-since, 0), true
	case b.behind || b.needsReload:
		return max(behindPause-since, 0), true
	case len(b.still) > 0:
		return max(stillPause-since, 0), true
	}
	return 0, false
}

// present returns the present routes to the other nodes, in order.
func (b *presenceTable) present() (routes []uint64) {
	if b.opts.Settings.Cluster == "" {
		return nil
	}
	are, err := b.engine.Routez(nil)
	if err != nil {
		return b.routes // the engine ends
	}
	for _, route := range are.Routes {
		routes = append(routes, route.Rid)
	}
	slices.Sort(routes)
	return routes
}

// follow schedules another read of the buckets if the routes have changed: data from
// another node may not have arrived here meanwhile.
func (b *presenceTable) follow(present []uint64) {
	if !slices.Equal(b.routes, present) {
		b.routes, b.needsReload = present, true
	}
}

func (b *presenceTable) take(ctx context.Context, msg *nats.Msg) {
	team := b.opts.Settings.Team
	ask := subject.PresenceRequest(team, b.opts.Settings.Node, "")
	if pc, isRequest := strings.CutPrefix(msg.Subject, ask); isRequest {
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

func (b *presenceTable) line(pc string) *subject.Line {
	if b.lines[pc] == nil {
		b.lines[pc] = &subject.Line{PC: pc}
	}
	return b.lines[pc]
}

// enter applies a PC's roster entry. It ignores entries that the hub has not sealed.
func (b *presenceTable) enter(pc, at string, data []byte) {
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
		b.changed[pc] = true
	}
}

// hear applies a presence announcement: the PC's own, verified by its signature, or the
// hub's that the PC has left.
func (b *presenceTable) hear(pc, at string, header nats.Header, data []byte, when time.Time) {
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
	if bytes.Equal(line.Word, data) && !line.Left && !b.changed[pc] {
		b.still[pc] = true
	} else {
		b.changed[pc] = true
	}
	line.Number, line.At, line.Left = proof.Number, when.UnixMilli(), false
	line.Word, line.Key, line.Signature = data, proof.Key, proof.Signature
}

// maxWordBytes limits a PC's announcement of itself.
const maxWordBytes = 16 << 10

func (b *presenceTable) hearLeft(pc, at string, data []byte) {
	body, _, err := subject.Open(b.ID(), at, data)
	if err != nil {
		return
	}
	departure, err := subject.ParseLeft(body)
	if line := b.line(pc); err == nil && departure.Number >= line.Number {
		line.Number, line.Left, line.Word, line.Key, line.Signature = departure.Number, true, nil, nil, nil
		b.changed[pc] = true
	}
}

// catchUp reads the buckets.
func (b *presenceTable) catchUp(ctx context.Context) error {
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

// readAll reads what a bucket held at the start. Later messages arrive by subscription, and
// reading them might never end. PCs wait, so each request to the engine has a short timeout.
func (b *presenceTable) readAll(ctx context.Context, bucket string, each func(pc string, msg *jetstream.RawStreamMsg)) error {
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

// mend reads the buckets again if messages were missed. It reports success.
func (b *presenceTable) mend(ctx context.Context) bool {
	missed := 0
	for _, sub := range b.subs {
		n, _ := sub.Dropped() // it is 0 after the subscription has ended
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

// publish publishes the changes to the PCs of this node.
func (b *presenceTable) publish(ctx context.Context) {
	b.publishedAt = b.opts.Now()
	if b.mend(ctx) && b.needsReload {
		b.needsReload = b.catchUp(ctx) != nil // it publishes what it knows meanwhile
	}
	var lines [][]byte
	for pc := range b.changed {
		lines = b.add(lines, *b.lines[pc])
		delete(b.still, pc)
	}
	for pc := range b.still {
		if line := b.lines[pc]; line.Entry > 0 {
			lines = b.add(lines, subject.Line{PC: pc, Number: line.Number, At: line.At})
		}
	}
	clear(b.changed)
	clear(b.still)
	at := subject.Presence(b.opts.Settings.Team, b.opts.Settings.Node)
	for _, some := range lines {
		b.send(at, false, some)
	}
}

// answer sends everything to one PC. It checks that only that PC receives the reply
// subject: the PC could name any subject, and the hub may publish to all.
func (b *presenceTable) answer(ctx context.Context, pc, reply string) {
	if !strings.HasPrefix(reply, subject.InboxPrefix(pc)+".") || !b.mend(ctx) {
		return
	}
	var lines [][]byte
	for _, line := range b.lines {
		lines = b.add(lines, *line)
	}
	for i, some := range lines {
		b.send(reply, i < len(lines)-1, some)
	}
	if len(lines) == 0 {
		b.send(reply, false, nil)
	}
}

// add appends a line. It omits PCs that the roster does not know.
func (b *presenceTable) add(parts [][]byte, line subject.Line) [][]byte {
	if line.Entry == 0 && line.Name == "" && len(line.Word) > 0 {
		return parts
	}
	if len(parts) == 0 || len(parts[len(parts)-1]) > maxToldBytes {
		parts = append(parts, nil)
	}
	last := &parts[len(parts)-1]
	*last, _ = line.Append(*last) // a key of the bucket is an id
	return parts
}

// send publishes lines under a subject, signed with the hub's key.
func (b *presenceTable) send(at string, more bool, lines []byte) {
	now := b.opts.Now()
	data := subject.EncodePresence(now, more, lines)
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
