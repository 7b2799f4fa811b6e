package sharing

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"bridge/backend/core/remote"
	"bridge/backend/network/pairing/pairingtest"
)

// large is the way to a team of many PCs, all of which are there and take everything.
type large struct {
	pcs   []remote.Status
	sent  chan string   // to whom, by identity
	looks chan struct{} // at who is there
}

func newLarge(pcs int) *large {
	l := &large{sent: make(chan string, 1000), looks: make(chan struct{})}
	for i := range pcs {
		l.pcs = append(l.pcs, remote.Status{
			PC: remote.PC{ID: fmt.Sprintf("%064x", i), Name: fmt.Sprintf("pc-%04d", i)}, Up: true, Since: time.Unix(1, 0), Capabilities: Capabilities(),
		})
	}
	return l
}

func (l *large) Send(_ context.Context, id string, _ remote.Frame) error {
	l.sent <- id
	return nil
}

func (l *large) SendBulk(ctx context.Context, id string, f remote.Frame) error {
	return l.Send(ctx, id, f)
}

func (l *large) Status() []remote.Status {
	select {
	case l.looks <- struct{}{}:
	default: // nobody waits for one
	}
	return slices.Clone(l.pcs)
}

func (l *large) Of(id string) (remote.Status, error) {
	for _, status := range l.pcs {
		if status.ID == id {
			return status, nil
		}
	}
	return remote.Status{}, context.Canceled // nobody asks
}

func (s *Sharing) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pairs)
}

// In a team of a thousand PCs, what changes here concerns those few for which there is
// something to do: for all the others nothing runs.
func TestHUB_08_NothingRunsForPCsWithNothingToDo(t *testing.T) {
	team := newLarge(1000)
	p := newPC(t, "laptop", &pairingtest.End{Transport: team, Self: remote.PC{ID: "self", Name: "laptop"}})
	p.allow(team.pcs[7].Name, remote.ShareDecisions)
	p.start()
	desk := &pc{name: team.pcs[500].Name, end: &pairingtest.End{Self: team.pcs[500].PC}}
	p.write("one", "api", desk)
	for both := map[string]bool{}; len(both) < 2; both[<-team.sent] = true {
	}
	for range 10 { // looks, each after a change
		p.broker.Changed()
		<-team.looks
	}
	if n := p.sharing.running(); n != 2 {
		t.Errorf("something runs for %d PCs: one is asked for decisions, and one is written to", n)
	}
	for range len(team.sent) {
		if id := <-team.sent; id != team.pcs[7].ID && id != desk.end.Self.ID {
			t.Errorf("something was sent to %s", id)
		}
	}
}
