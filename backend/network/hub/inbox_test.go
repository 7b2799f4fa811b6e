package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/wire"
	"bridge/backend/testing/testkit"
)

// lying is what lay in the hub for a PC, and how the PC answers for it.
type lying struct {
	came   chan heard
	answer chan error
	at     chan time.Time
	last   string
}

func newLying() *lying {
	return &lying{came: make(chan heard), answer: make(chan error), at: make(chan time.Time, 1000)}
}

func (l *lying) take(o *hub.Options) {
	o.Stored = func(ctx context.Context, from remote.PC, frame remote.Frame, at time.Time) error {
		l.at <- at
		select {
		case l.came <- heard{from, frame}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-l.answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next is what the PC was handed; it has not answered yet. What it has answered for may
// come again before.
func (l *lying) next(t *testing.T, want string) heard {
	t.Helper()
	for {
		select {
		case got := <-l.came:
			switch string(got.frame.Payload) {
			case want:
				l.last = want
				return got
			case l.last:
				l.answer <- nil
			default:
				t.Fatalf("after %s came %s, want %s", l.last, got.frame.Payload, want)
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("%s did not come", want)
		}
	}
}

// answerAll takes whatever comes again.
func (l *lying) answerAll(ctx context.Context) {
	for {
		select {
		case <-l.came:
			l.answer <- nil
		case <-ctx.Done():
			return
		}
	}
}

func letter(i int) remote.Frame {
	return remote.Frame{Type: "messages", Payload: fmt.Appendf(nil, "%d", i)}
}

// up waits until the way to the hub is there.
func (p *pc) up() *pc {
	p.t.Helper()
	p.await("the hub", func() bool { return p.State().Up })
	return p
}

// lies is how many messages the hub has.
func lies(t *testing.T, n *hubtest.NATS) uint64 {
	t.Helper()
	answer, err := n.Admin().Request("$JS.API.STREAM.INFO."+subject.MessageStream(hubtest.Team), nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var info struct{ State struct{ Messages uint64 } }
	if err := json.Unmarshal(answer.Data, &info); err != nil {
		t.Fatal(err)
	}
	return info.State.Messages
}

// soon has a question that a dying hub took asked anew before long.
func soon(opts *hub.Options) { opts.Timing.Answer = 3 * time.Second }

// TestHUB_05_WhatLiesInTheHubWaitsUntilItIsStored: it comes in order, again after a
// passing failure and after a death between taking and acknowledging, and is gone then.
func TestHUB_05_WhatLiesInTheHubWaitsUntilItIsStored(t *testing.T) {
	n := hubtest.Start(t)
	desk := n.Enrol("desk")
	a := open(t, n, n.Enrol("laptop"), soon).up()
	before := clock()
	for i := range 4 {
		if err := a.Inbox.Store(t.Context(), desk.ID, letter(i)); err != nil {
			t.Fatal(err)
		}
	}
	n.Stop() // the hub dies after it acknowledged
	n.Resume()
	l := newLying()
	first := open(t, n, desk, l.take, soon)
	got := l.next(t, "0")
	if got.from != (remote.PC{ID: a.ID, Name: "laptop"}) || got.frame.Type != "messages" {
		t.Errorf("it came from %+v as %+v", got.from, got.frame)
	}
	if at := <-l.at; at.Before(before.Add(-time.Second)) || at.After(clock().Add(time.Second)) {
		t.Errorf("it was stored at %v, not since %v", at, before)
	}
	l.answer <- bridge.Errorf(bridge.Storage, "the disk is full")
	l.next(t, "0")
	l.answer <- nil
	l.next(t, "1")
	first.Close() // it dies before it has stored it, or before it says so
	open(t, n, desk, l.take, soon)
	l.next(t, "1")
	l.answer <- nil
	l.next(t, "2")
	n.Stop()
	l.answer <- nil // and the acknowledgement is lost
	n.Resume()
	l.next(t, "3")
	l.answer <- bridge.Errorf(bridge.Invalid, "nobody can read it") // for good
	if err := a.up().Inbox.Store(t.Context(), desk.ID, letter(4)); err != nil {
		t.Fatal(err)
	}
	l.next(t, "4")
	if left := lies(t, n); left == 0 {
		t.Error("what was not acknowledged is gone")
	}
	l.answer <- nil
	go l.answerAll(t.Context())
	for late := clock().Add(2 * time.Minute); lies(t, n) > 0; { // the engine takes it out in its time
		if clock().After(late) {
			t.Fatal("what was acknowledged lies there")
		}
	}
}

// TestHUB_05_WhatTheHubRefusesItsSenderHears: a limit is a refusal, and nothing that lies
// there goes for it.
func TestHUB_05_WhatTheHubRefusesItsSenderHears(t *testing.T) {
	n := hubtest.Start(t)
	desk, a := n.Enrol("desk"), open(t, n, n.Enrol("laptop"), soon).up()
	for i := range hubtest.Room {
		if err := a.Inbox.Store(t.Context(), desk.ID, letter(i)); err != nil {
			t.Fatal(err)
		}
	}
	err := a.Inbox.Store(t.Context(), desk.ID, letter(hubtest.Room))
	if bridge.CodeOf(err) != bridge.Busy || err.Error() != "the team's hub did not store it: maximum messages per subject exceeded" {
		t.Errorf("one more: %v", err)
	}
	if left := lies(t, n); left != hubtest.Room {
		t.Errorf("%d lie there", left)
	}
	if err := a.Inbox.Store(t.Context(), strings.Repeat("0", 64), letter(0)); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("for nobody: %v", err)
	}
	n.Stop()
	if err := a.Inbox.Store(t.Context(), desk.ID, letter(0)); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("without a hub: %v", err)
	}
}

// TestHUB_05_WhatNobodyOfTheTeamSignedIsDropped: the sender is whom subject and signature
// name together, and what cannot be read keeps nothing behind it waiting.
func TestHUB_05_WhatNobodyOfTheTeamSignedIsDropped(t *testing.T) {
	n := hubtest.Start(t)
	desk, eve, anna := n.Enrol("desk"), n.Enrol("eve"), n.Enrol("anna")
	gone := n.Enrol("gone")
	n.Remove(gone)
	whole, err := wire.EncodeWhole(letter(0))
	if err != nil {
		t.Fatal(err)
	}
	body := append(append([]byte{}, whole.Head...), whole.Body...)
	at := func(from hubtest.PC, pc hubtest.PC) string {
		return subject.Subject{Team: hubtest.Team, From: from.ID, To: pc.ID, Sort: subject.Message}.String()
	}
	bad := map[string]func() error{
		"eve's words under anna's name": func() error {
			msg := hubtest.Signed(eve.Identity, at(anna, desk), 1, body)
			_, err := n.Admin().RequestMsg(msg, time.Minute)
			return err
		},
		"anna's words to another": func() error {
			msg := hubtest.Signed(anna.Identity, at(anna, eve), 1, body)
			msg.Subject = at(anna, desk)
			_, err := n.Admin().RequestMsg(msg, time.Minute)
			return err
		},
		"of one who was removed": func() error {
			_, err := n.Admin().RequestMsg(hubtest.Signed(gone.Identity, at(gone, desk), 1, body), time.Minute)
			return err
		},
		"what the owner does not allow": func() error {
			_, err := n.Admin().RequestMsg(hubtest.Signed(eve.Identity, at(eve, desk), 2, body), time.Minute)
			return err
		},
		"no frame, with the headers of the engine": func() error {
			msg := hubtest.Signed(eve.Identity, at(eve, desk), 1, []byte("x"))
			msg.Header.Set("Status", "408")
			_, err := n.Admin().RequestMsg(msg, time.Minute)
			return err
		},
	}
	for name, put := range bad {
		if err := put(); err != nil {
			t.Fatal(name, err)
		}
	}
	if left := lies(t, n); left != uint64(len(bad)) {
		t.Fatalf("%d lie there", left)
	}
	var handed atomic.Int64
	done := make(chan struct{})
	b := open(t, n, desk, func(o *hub.Options) {
		o.Stored = func(_ context.Context, from remote.PC, _ remote.Frame, _ time.Time) error {
			if from.ID == eve.ID {
				return bridge.Errorf(bridge.Denied, "it is not allowed here")
			}
			if from.ID != anna.ID || handed.Add(1) > 1 {
				t.Errorf("it was handed something of %+v", from)
			}
			close(done)
			return nil
		}
	})
	if err := open(t, n, anna).up().Inbox.Store(t.Context(), desk.ID, letter(1)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(testkit.Patience):
		t.Fatal("what came behind it waits")
	}
	// All of it is counted, under the name that it stood under.
	got := map[string]int64{}
	for _, d := range b.Drops() {
		got[d.PC.Name+" "+string(d.Why)] += d.Count
	}
	want := map[string]int64{"anna unsigned": 2, "gone stranger": 1, "eve malformed": 1, "eve refused": 1}
	if !maps.Equal(got, want) {
		t.Errorf("dropped were %v, want %v", got, want)
	}
}
