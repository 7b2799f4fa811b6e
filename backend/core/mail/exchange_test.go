package mail

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQUI_02_TheOwnerIsAskedOnceAboutALongExchange(t *testing.T) {
	var e Exchange
	for i := range int64(8) {
		if e.Sent(i, 8) || !e.MayWake() {
			t.Fatalf("message %d of 8 asks", i+1)
		}
	}
	if !e.Sent(8, 8) || e.MayWake() || e.Sent(9, 8) {
		t.Error("the ninth message does not ask, or the tenth does again")
	}
	e.Continue()
	if !e.MayWake() || e.Messages(9) != 0 {
		t.Error("the owner's answer does not reset it")
	}
	e.Pause()
	for i := range int64(20) {
		if e.Sent(i, 8) || e.MayWake() {
			t.Fatal("a paused exchange asks or wakes")
		}
	}
	e.Reset()
	if e.MayWake() {
		t.Error("work ends the owner's pause")
	}
	e.Continue()
	if late := exchangeFor.Milliseconds(); e.Sent(0, 1) || e.Sent(late, 1) || e.Messages(late) != 1 {
		t.Error("an old message counts")
	}
	if PairOf("b", "a") != PairOf("a", "b") || !PairOf("b", "a").Has("b") || PairOf("b", "a").Has("c") {
		t.Error("the order of a pair counts")
	}
}

// Two sessions that write forever wake each other at most so often between two resets.
func TestQUI_02_AnEndlessExchangeEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 10).Draw(t, "most")
		var e Exchange
		wakes, asked := 0, 0
		for i := range rapid.IntRange(0, 100).Draw(t, "messages") {
			if e.Sent(int64(i)*time.Second.Milliseconds(), most) {
				asked++
			}
			if e.MayWake() {
				wakes++
			}
		}
		if wakes > most || asked > 1 {
			t.Errorf("%d wakes and %d questions, at most %d and 1", wakes, asked, most)
		}
	})
}
