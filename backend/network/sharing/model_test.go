package sharing

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/testing/testkit"
)

// crossing is what a test knows of messages of one PC to the other.
type crossing struct {
	from, to *pc
	sent     []string
	read     map[string]bool // by the session there
}

// alive restarts a PC that broke off.
func (p *pc) alive() {
	if p.dead.Load() {
		p.stop()
		p.start()
	}
}

// relink has the link go, or another one come.
func relink(up bool, ends ...*pc) {
	for _, p := range ends {
		p.link.Add(1)
		p.cut.Store(!up)
	}
	for _, p := range ends {
		if !p.dead.Load() {
			p.broker.Changed()
		}
	}
}

// onFrame has something happen at the n-th frame that the PC sends from now on.
func (p *pc) onFrame(n int, what func(remote.Frame) (before, after bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trip = func(frame remote.Frame) (bool, bool) {
		if n--; n >= 0 {
			return false, false
		}
		p.trip = nil
		return what(frame)
	}
}

// TestRMT_21_WhateverHappensEachMessageCrossesOnceInItsOrder has two PCs write to each
// other and read, while links are cut, frames come twice, and either PC dies before or
// after a frame or at any moment, in any order. At the end, when both are there, nothing
// is lost, nothing came twice or out of order, and each sender knows what was read.
func TestRMT_21_WhateverHappensEachMessageCrossesOnceInItsOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		end, other := pairingtest.InMemory(t, Capabilities()...)
		laptop, desk := newPC(t, "laptop", end), newPC(t, "desk", other)
		laptop.everything("desk").start()
		desk.everything("laptop").start()
		ways := []*crossing{{laptop, desk, nil, map[string]bool{}}, {desk, laptop, nil, map[string]bool{}}}
		way := rapid.SampledFrom(ways)
		count := 0
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				w := way.Draw(rt, "way")
				w.from.alive()
				count++
				id := fmt.Sprintf("%s-%03d", w.from.name, count)
				w.from.write(id, "api", w.to)
				w.sent = append(w.sent, id)
			},
			"read": func(rt *rapid.T) {
				w := way.Draw(rt, "way")
				w.to.alive()
				for _, message := range w.to.mail("api") {
					if !w.read[message.ID] {
						w.to.mark(bridge.StageConsumed, message.ID, "api")
						w.read[message.ID] = true
						return
					}
				}
			},
			"cut":  func(*rapid.T) { relink(false, laptop, desk) },
			"link": func(*rapid.T) { relink(true, laptop, desk) },
			"die": func(rt *rapid.T) {
				p := way.Draw(rt, "way").from
				p.dead.Store(true)
				p.alive()
			},
			"die at a frame": func(rt *rapid.T) {
				after := rapid.Bool().Draw(rt, "after it was sent")
				way.Draw(rt, "way").from.onFrame(rapid.IntRange(0, 3).Draw(rt, "frame"), func(remote.Frame) (bool, bool) { return !after, after })
			},
			"send a frame twice": func(rt *rapid.T) {
				w := way.Draw(rt, "way")
				w.from.onFrame(rapid.IntRange(0, 3).Draw(rt, "frame"), func(frame remote.Frame) (bool, bool) {
					_ = w.from.end.Send(context.Background(), w.to.end.Self.ID, frame) // the link may be cut
					return false, false
				})
			},
		})
		for _, p := range []*pc{laptop, desk} {
			p.mu.Lock()
			p.trip = nil
			p.mu.Unlock()
		}
		relink(true, laptop, desk)
		limit := time.Now().Add(testkit.Patience)
		for _, w := range ways {
			for _, id := range w.sent {
				for done := false; !done; {
					laptop.alive() // it may just have died
					desk.alive()
					stage, _ := w.from.stage(id)
					done = stage == bridge.StageArrived && !w.read[id] || stage == bridge.StageConsumed && w.read[id]
					if !done && time.Now().After(limit) {
						rt.Fatalf("%s of %s is %s, read %v", id, w.from.name, stage, w.read[id])
					}
					if !done {
						<-time.After(2 * time.Millisecond) // the PCs come and go
					}
				}
			}
			if got := ids(w.to.mail("api")); !slices.Equal(got, w.sent) {
				rt.Fatalf("%s has %v of %v", w.to.name, got, w.sent)
			}
		}
		laptop.stop()
		desk.stop()
	})
}
