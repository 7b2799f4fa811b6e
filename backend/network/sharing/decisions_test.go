package sharing

import (
	"context"
	"fmt"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/testing/testkit"
)

// decide records a decision for all sessions.
func (p *pc) decide(id string) {
	p.t.Helper()
	_, _, err := p.db.RecordDecision(context.Background(), decision.Revision{
		ID: id, Topic: id, Text: "x", Scope: decision.AllSessions(),
		Author: bridge.Address{ID: "peer-docs", Name: "docs", Agent: bridge.Codex}, CreatedAt: p.now().UnixMilli(),
	}, func(decision.Revision) []decision.Notification { return nil })
	if err != nil {
		p.t.Fatal(err)
	}
	p.broker.Changed()
}

// awaitDecisions waits until it has so many.
func (p *pc) awaitDecisions(n int) {
	p.t.Helper()
	p.await(fmt.Sprintf("decision %d", n), func() bool {
		all, err := p.db.Decisions(context.Background(), decision.Lookup{History: true})
		return err == nil && len(all) == n
	})
}

// awaitRefused waits until so many frames found no room.
func (p *pc) awaitRefused(n int) {
	p.t.Helper()
	p.await(fmt.Sprintf("frame %d without room", n), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.refused[bridge.Busy] >= n
	})
}

// One frame is at work, 16 wait, and what comes then is dropped.
func TestRMT_22_OfMoreDecisionsThanThereIsRoomForNoneIsMissed(t *testing.T) {
	pc, other := pairingtest.InMemory(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc).everything("desk").start(), newPC(t, "desk", other).everything("laptop").start()
	laptop.decide("of-laptop")
	desk.decide("of-desk")
	laptop.awaitDecisions(2)
	desk.awaitDecisions(2)
	laptop.held.Lock()
	for i := range 40 {
		desk.decide(fmt.Sprintf("d-%02d", i))
	}
	laptop.awaitRefused(40 - 17)
	laptop.held.Unlock()
	laptop.awaitDecisions(42)
}

// spoken is a paired PC of which the test says the frames about decisions itself.
type spoken struct {
	t    *testing.T
	end  *pairingtest.End
	to   *pc
	came chan remote.Sync
}

func newSpoken(t *testing.T) (laptop *pc, desk *spoken) {
	end, other := pairingtest.InMemory(t, Capabilities()...)
	desk = &spoken{t: t, end: other, came: make(chan remote.Sync, 100)}
	other.Serve(func(_ remote.PC, frame remote.Frame) {
		if in, err := remote.ParseSync(frame.Payload, time.Now().UnixMilli()); err == nil && frame.Type == remote.DecisionsFrame {
			desk.came <- in
		}
	})
	desk.to = newPC(t, "laptop", end).everything("desk").start()
	return desk.to, desk
}

func (s *spoken) says(sync remote.Sync) {
	s.t.Helper()
	payload, err := remote.EncodeSync(sync)
	if err == nil {
		err = s.end.Send(context.Background(), s.to.end.Self.ID, remote.Frame{Type: remote.DecisionsFrame, Payload: payload})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// hears waits for the next frame of a kind, and passes over the others.
func (s *spoken) hears(kind remote.SyncKind) remote.Sync {
	s.t.Helper()
	late := time.After(testkit.Patience)
	for {
		select {
		case in := <-s.came:
			if in.Kind == kind {
				return in
			}
		case <-late:
			s.t.Fatalf("no %s came", kind)
		}
	}
}

// made is a decision of the spoken PC.
func made(id string, at time.Time) remote.Decided {
	return remote.Decided{ID: id, Topic: id, Text: "x", Author: "docs", Agent: bridge.Codex, CreatedAt: at.UnixMilli()}
}

func TestRMT_22_AQuestionWithoutRoomIsAnsweredAndWhatWasDroppedAskedFor(t *testing.T) {
	laptop, desk := newSpoken(t)
	laptop.decide("of-laptop")
	desk.hears(remote.SyncRequest)
	desk.says(remote.Sync{Kind: remote.SyncState})
	laptop.held.Lock()
	for i := range 30 {
		decided := made(fmt.Sprintf("d-%02d", i), time.Now())
		desk.says(remote.Sync{Kind: remote.SyncUpsert, Upsert: &decided})
	}
	desk.says(remote.Sync{Kind: remote.SyncRequest, Since: &remote.Cursor{}})
	laptop.awaitRefused(31 - 17)
	laptop.held.Unlock()
	if got := desk.hears(remote.SyncState).Decisions; len(got) != 1 || got[0].ID != "of-laptop" {
		t.Errorf("the answer is %+v", got)
	}
	desk.hears(remote.SyncRequest)
}

// TestRMT_22_WhatALinkBreaksOffTheNextOneGoesOnWith, also where something newer came
// meanwhile.
func TestRMT_22_WhatALinkBreaksOffTheNextOneGoesOnWith(t *testing.T) {
	laptop, desk := newSpoken(t)
	if got := desk.hears(remote.SyncRequest).Since; *got != (remote.Cursor{}) {
		t.Errorf("it asks at first for what came after %+v", got)
	}
	part := remote.Sync{Kind: remote.SyncState, More: true}
	for i := range remote.MaxDecisions {
		part.Decisions = append(part.Decisions, made(fmt.Sprintf("d-%02d", i), time.Now().Add(-72*time.Hour)))
	}
	last := part.Decisions[len(part.Decisions)-1].Cursor()
	desk.says(part)
	if got := desk.hears(remote.SyncRequest).Since; *got != last {
		t.Errorf("it asks then for what came after %+v, not %+v", got, last)
	}
	fresh := made("fresh", time.Now())
	desk.says(remote.Sync{Kind: remote.SyncUpsert, Upsert: &fresh})
	laptop.awaitDecisions(len(part.Decisions) + 1)
	laptop.link.Add(1)
	if got := desk.hears(remote.SyncRequest).Since; got.After(last) {
		t.Errorf("on the next link it asks for what came after %+v, and so never for the rest after %+v", got, last)
	}
}

func TestRMT_22_AnAnswerThatNeverComesIsAskedForAgain(t *testing.T) {
	_, desk := newSpoken(t)
	desk.hears(remote.SyncRequest)
	desk.says(remote.Sync{Kind: remote.SyncState, Decisions: []remote.Decided{made("d-1", time.Now())}, More: true})
	for range 3 {
		desk.hears(remote.SyncRequest)
	}
}

// TestRMT_22_WhatIsDecidedBesideAnAnswerIsTold, also where a question is the first that
// comes on a link.
func TestRMT_22_WhatIsDecidedBesideAnAnswerIsTold(t *testing.T) {
	laptop, desk := newSpoken(t)
	desk.hears(remote.SyncRequest)
	desk.says(remote.Sync{Kind: remote.SyncState})
	laptop.decide("before")
	desk.hears(remote.SyncUpsert)
	done := false
	laptop.mu.Lock()
	laptop.trip = func(frame remote.Frame) (before, after bool) {
		if in, err := remote.ParseSync(frame.Payload, time.Now().UnixMilli()); err == nil && in.Kind == remote.SyncState && !done {
			done = true
			laptop.decide("meanwhile")
		}
		return false, false
	}
	laptop.mu.Unlock()
	laptop.link.Add(1)
	desk.says(remote.Sync{Kind: remote.SyncRequest, Since: &remote.Cursor{}})
	if got := desk.hears(remote.SyncState).Decisions; len(got) != 1 || got[0].ID != "before" {
		t.Errorf("the answer is %+v", got)
	}
	if got := desk.hears(remote.SyncUpsert).Upsert; got.ID != "meanwhile" {
		t.Errorf("it tells %+v", got)
	}
}
