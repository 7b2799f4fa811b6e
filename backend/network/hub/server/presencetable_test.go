package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	teamhub "bridge/backend/network/hub"
	"bridge/backend/network/hub/subject"
	"bridge/backend/testing/testkit"
)

// asks has a PC ask who is there, and the answer go to that subject.
func (p *pc) asks(to string) {
	p.t.Helper()
	if err := p.conn.PublishRequest(subject.PresenceRequest("crew", "hub-1", p.identity.ID), to, nil); err != nil {
		p.t.Fatal(err)
	}
}

// told reads what the hub has signed under a subject.
func (h *hub) told(msg *nats.Msg) subject.PresenceMessage {
	h.t.Helper()
	proof, err := subject.ParseProof(msg.Header.Get)
	if err == nil {
		err = proof.Check(h.ID(), msg.Subject, msg.Data)
	}
	if err != nil {
		h.t.Fatalf("what the hub told under %s is not signed: %v", msg.Subject, err)
	}
	message, err := subject.ParsePresence(msg.Data)
	if err != nil {
		h.t.Fatal(err)
	}
	return message
}

func (p *pc) hears(at string) *nats.Subscription {
	p.t.Helper()
	sub, err := p.conn.SubscribeSync(at)
	if err == nil {
		err = p.conn.Flush()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return sub
}

func nextOf(t *testing.T, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	msg, err := sub.NextMsg(testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// What a PC reads that comes to a large team is one answer, and what it hears when a crowd
// comes a few: neither is a message for each PC.
func TestHUB_08_ACrowdIsToldTogether(t *testing.T) {
	const crowd = 40
	h := openHub(t, nil)
	anna := h.join("anna")
	all := h.enrolMany(crowd)
	subscription := anna.hears(subject.Presence("crew", "hub-1"))
	var words []*nats.Msg
	for i, p := range all {
		words = append(words, p.signed(int64(1000+i)))
	}
	for _, word := range words { // the hub's own connection may carry what they have signed
		if err := h.conn.PublishMsg(word); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	messages := 0
	for ; len(seen) < crowd; messages++ {
		for _, line := range h.told(nextOf(t, subscription)).Lines {
			if line.Number >= 1000 {
				seen[line.PC] = true
			}
		}
	}
	if messages > crowd/3 {
		t.Errorf("of %d PCs it was told in %d messages", crowd, messages)
	}
	inbox := anna.conn.NewInbox()
	answers := anna.hears(inbox)
	anna.asks(inbox)
	answer := h.told(nextOf(t, answers))
	there := 0
	for _, line := range answer.Lines {
		if len(line.Word) > 0 && line.Entry > 0 && strings.HasPrefix(line.Name, "pc-") {
			there++
		}
	}
	if there != crowd || answer.More || len(answer.Lines) != crowd+1 {
		t.Errorf("the answer has %d of the %d that are there, in %d lines", there, crowd, len(answer.Lines))
	}
}

// enrolMany makes so many PCs members of the team, without a connection of theirs.
func (h *hub) enrolMany(count int) (all []*pc) {
	h.t.Helper()
	for i := range count {
		all = append(all, h.enrol(fmt.Sprint("pc-", i)))
	}
	return all
}

// The hub may publish anything, and answers nobody but who asks.
func TestHUB_02_TheHubsAnswerGoesToWhoAskedAlone(t *testing.T) {
	h := openHub(t, nil)
	eve, anna := h.join("eve"), h.join("anna")
	frames := anna.hears(subject.Frames("crew", anna.identity.ID))
	inbox := anna.hears(subject.InboxPrefix(anna.identity.ID) + ".>")
	presence := anna.hears(subject.BucketKey(subject.PresenceBucket("crew"), "*"))
	for _, to := range []string{
		subject.InboxPrefix(anna.identity.ID) + ".x", anna.subject(anna, subject.Frame), subject.BucketKey(subject.PresenceBucket("crew"), anna.identity.ID),
		controlRoot + "hub-1.remove", subject.InboxPrefix(eve.identity.ID),
	} {
		eve.asks(to)
	}
	own := eve.conn.NewInbox()
	answers := eve.hears(own)
	eve.asks(own)
	if len(h.told(nextOf(t, answers)).Lines) != 2 { // and it is done with those before
		t.Error("who asks rightly is not told of both")
	}
	if err := h.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := anna.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	for name, sub := range map[string]*nats.Subscription{"frames": frames, "inbox": inbox, "presence": presence} {
		if n, _, err := sub.Pending(); n != 0 || err != nil {
			t.Errorf("%d answers went to anna's %s (%v)", n, name, err)
		}
	}
	if err := eve.conn.PublishRequest(subject.PresenceRequest("crew", "hub-1", anna.identity.ID), eve.conn.NewInbox(), nil); err != nil {
		t.Fatal(err)
	}
	h.log.await(t, "Publish Violation", subject.PresenceRequest("crew", "hub-1", anna.identity.ID))
}

// What is told in the hub's name counts only as the hub has signed it, and a PC is spoken
// to only where it has said itself that it is there.
func TestHUB_02_LinesCountAsTheyAreSigned(t *testing.T) {
	h := openHub(t, nil)
	anna, bert, carl := h.enrol("anna"), h.join("bert"), h.enrol("carl")
	team, changed := anna.client()
	await := func(what string, is func() bool) {
		t.Helper()
		late := time.After(testkit.Patience)
		for !is() {
			select {
			case <-changed:
			case <-late:
				t.Fatalf("%s did not come: %+v, %+v", what, team.Status(), team.Drops())
			}
		}
	}
	up := func(p *pc) bool { status, err := team.Of(p.identity.ID); return err == nil && status.Up }
	await("the way to the hub", func() bool { return team.State().Up && len(team.Status()) == 2 })
	at := subject.Presence("crew", "hub-1")
	line := func(p *pc, number int64) subject.Line {
		msg := p.signed(number)
		proof, err := subject.ParseProof(msg.Header.Get)
		if err != nil {
			t.Fatal(err)
		}
		return subject.Line{PC: p.identity.ID, Number: number, At: time.Now().UnixMilli(), Word: msg.Data, Key: proof.Key, Signature: proof.Signature}
	}
	tell := func(sign func([]byte) ([]byte, []byte), lines ...subject.Line) *nats.Msg {
		var data []byte
		for _, line := range lines {
			data, _ = line.Append(data)
		}
		data = subject.EncodePresence(time.Now(), false, data)
		msg := &nats.Msg{Subject: at, Data: data, Header: nats.Header{}}
		proof := subject.Proof{Number: 1}
		proof.Key, proof.Signature = sign(subject.Signed(at, 1, data))
		for name, value := range proof.Headers() {
			msg.Header[name] = []string{value}
		}
		if err := h.conn.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
		return msg
	}
	tell(bert.identity.Sign, line(carl, 5))
	await("the name of what the hub did not sign", func() bool { return len(team.Drops()) == 1 && team.Drops()[0].Why == teamhub.Unsigned })
	if up(carl) {
		t.Error("a PC told that another one is there")
	}
	forged := line(carl, 5)
	forged.Key, forged.Signature = bert.identity.Sign(forged.Word)
	tell(h.keys.identity.Sign, forged)
	await("carl, as the hub tells", func() bool { return up(carl) })
	if err := team.Send(t.Context(), carl.identity.ID, remote.Frame{Type: "x"}); bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), "it has not said") {
		t.Errorf("to a PC that never said that it is there: %v", err)
	}
	if up(carl) || len(team.Drops()) != 2 {
		t.Errorf("it is there still: %+v", team.Drops())
	}
	right := tell(h.keys.identity.Sign, line(bert, 7))
	await("bert", func() bool { return up(bert) })
	if err := team.Send(t.Context(), bert.identity.ID, remote.Frame{Type: "x"}); err != nil {
		t.Error(err)
	}
	tell(h.keys.identity.Sign, subject.Line{PC: bert.identity.ID, Number: 7, Left: true})
	await("the end of bert", func() bool { return !up(bert) })
	if err := h.conn.PublishMsg(right); err != nil { // once more
		t.Fatal(err)
	}
	tell(h.keys.identity.Sign, line(carl, 9))
	await("what came after it", func() bool { return up(carl) })
	if up(bert) {
		t.Error("an earlier line brought it back")
	}
}

// A hub that comes back tells who is there as before.
func TestHUB_08_AHubThatComesBackKnowsWhoIsThere(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.enrol("anna"), h.enrol("bert")
	gone := h.enrol("gone")
	if _, err := h.dial().Remove(t.Context(), gone.identity.ID); err != nil {
		t.Fatal(err)
	}
	port := h.NATSPort()
	a, changedA := anna.client()
	b, _ := bert.client()
	both := func() bool {
		status, err := a.Of(bert.identity.ID)
		other, otherErr := b.Of(anna.identity.ID)
		return err == nil && otherErr == nil && status.Up && other.Up
	}
	await := func(what string, is func() bool) {
		t.Helper()
		late := time.After(testkit.Patience)
		for again := time.NewTicker(20 * time.Millisecond); !is(); {
			select {
			case <-changedA:
			case <-again.C:
			case <-late:
				t.Fatalf("%s did not come", what)
			}
		}
	}
	await("both", both)
	h.Close()
	await("the end of both", func() bool { return !a.State().Up && !b.State().Up })
	again := reopenHub(t, h.home, func(opts *Options) { opts.Settings.NATSPort = port })
	await("both again", both)
	if _, err := a.Of(gone.identity.ID); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("who was removed before is %v", err)
	}
	if _, err := again.dial().Remove(t.Context(), bert.identity.ID); err != nil {
		t.Fatal(err)
	}
	await("the end of bert", func() bool { _, err := a.Of(bert.identity.ID); return bridge.CodeOf(err) == bridge.Unauthorized })
}

// TestHUB_07_ANodeThatWasCutOffReadsWhatItMissed: what another node said meanwhile it hears
// by no route.
func TestHUB_07_ANodeThatWasCutOffReadsWhatItMissed(t *testing.T) {
	h := openHub(t, nil)
	anna := h.enrol("anna")
	b := &presenceTable{Server: h.Server, lines: map[string]*subject.Line{}, changed: map[string]bool{}, still: map[string]bool{}, routes: []uint64{3, 4}}
	for _, look := range []struct {
		routes []uint64
		reads  bool
	}{{[]uint64{3, 4}, false}, {[]uint64{3}, true}, {[]uint64{3}, false}, {[]uint64{3, 7}, true}} {
		clear(b.lines)
		b.follow(look.routes)
		if _, due := b.wait(); due != look.reads {
			t.Errorf("with the routes %v it has to read again: %v", look.routes, due)
		}
		b.publish(t.Context())
		if line := b.lines[anna.identity.ID]; (line != nil) != look.reads {
			t.Errorf("with the routes %v it knows of anna %+v", look.routes, line)
		}
	}
}

// TestHUB_07_ReadingWhoIsThereEnds: also where PCs say something faster than it is read.
func TestHUB_07_ReadingWhoIsThereEnds(t *testing.T) {
	h := openHub(t, nil)
	roster := subject.RosterBucket("crew")
	for _, name := range []string{"anna", "bert"} {
		h.enrol(name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var read []string
	err := (&presenceTable{Server: h.Server}).readAll(ctx, roster, func(pc string, msg *jetstream.RawStreamMsg) {
		if read = append(read, pc); len(read) > 20 {
			cancel()
		}
		if _, err := h.js.Publish(ctx, msg.Subject, msg.Data); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	if err != nil || len(read) != 2 {
		t.Errorf("of two PCs it read %d entries (%v)", len(read), err)
	}
}
