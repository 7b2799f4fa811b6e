package sharing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
)

// limit sets a limit for one test.
func limit(t *testing.T, limit *remote.Limit, burst, perMinute int) {
	before := *limit
	limit.Burst, limit.PerMinute = burst, perMinute
	t.Cleanup(func() { *limit = before })
}

// TestSEC_12_DecisionsBeyondTheLimitComeLater has a PC bring far more decisions than are
// taken at once, such as were made before the link and such as are made on it: the rest
// waits, and none is lost.
func TestSEC_12_DecisionsBeyondTheLimitComeLater(t *testing.T) {
	limit(t, &remote.DecisionLimit, 50, 6000) // 100 a second
	pc, other := pairingtest.InMemory(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc).everything("desk"), newPC(t, "desk", other).everything("laptop").start()
	const before, after = 200, 100
	for i := range before {
		desk.decide(fmt.Sprintf("before-%03d", i))
	}
	began := time.Now()
	laptop.start()
	laptop.awaitDecisions(before)
	if took, least := time.Since(began), time.Second; took < least {
		t.Errorf("%d decisions came in %v: %d at once and 100 a second take more than %v", before, took, 50+remote.MaxDecisions, least)
	}
	for i := range after {
		desk.decide(fmt.Sprintf("after-%03d", i))
	}
	laptop.awaitDecisions(before + after)
	all, err := laptop.db.Decisions(t.Context(), decision.Lookup{})
	if err != nil || len(all) != before+after {
		t.Errorf("%d decisions are in force, %v", len(all), err)
	}
}

// TestSEC_12_MessagesBeyondTheLimitComeLater has a PC send more messages than are taken at
// once: the rest waits at its sender, and comes in its order.
func TestSEC_12_MessagesBeyondTheLimitComeLater(t *testing.T) {
	limit(t, &remote.MessageLimit, 10, 1200) // 20 a second
	pc, other := pairingtest.InMemory(t, Capabilities()...)
	laptop, desk := newPC(t, "laptop", pc).start(), newPC(t, "desk", other).everything("laptop")
	const all = 30
	for i := range all {
		laptop.write(fmt.Sprintf("m-%03d", i), "api", desk)
	}
	began := time.Now()
	desk.start()
	desk.await("all of them", func() bool {
		count, err := desk.db.UnreadCount(t.Context(), "peer-api")
		return err == nil && count >= all
	})
	if took, least := time.Since(began), time.Second; took < least {
		t.Errorf("%d messages came in %v: 10 at once and 20 a second take more than %v", all, took, least)
	}
	if got := ids(desk.mail("api")); len(got) != all || !slices.IsSorted(got) {
		t.Errorf("%d messages came: %v", len(got), got)
	}
}
