package sharing

import (
	"context"
	"slices"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// withdraw has the owner withdraw the decision on a topic.
func (p *pc) withdraw(topic string) decision.Revision {
	p.t.Helper()
	ended, err := p.broker.WithdrawOwner(context.Background(), api.WithdrawDecisionArgs{Topic: topic})
	if err != nil {
		p.t.Fatal(err)
	}
	p.broker.Changed()
	return ended.Decision
}

// inForce lists the topics of a store that have a decision in force.
func inForce(t *testing.T, db *store.DB) (topics []string) {
	t.Helper()
	all, err := db.Decisions(context.Background(), decision.Lookup{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rev := range all {
		topics = append(topics, rev.Topic)
	}
	slices.Sort(topics)
	return topics
}

// TestRMT_22_PGE_04_AWithdrawalTravels over every transport, in either direction: the PCs
// agree on it, and on what is decided after it.
func TestRMT_22_PGE_04_AWithdrawalTravels(t *testing.T) {
	overEach(t, func(t *testing.T, laptop, desk *pc) {
		laptop.everything("desk").start()
		desk.everything("laptop").start()
		laptop.decide("of-laptop")
		laptop.decide("stays")
		desk.decide("of-desk")
		laptop.awaitDecisions(3)
		desk.awaitDecisions(3)
		own, revision := laptop.withdraw("of-laptop"), laptop.withdraw("of-desk") // what it could revise, too
		for _, p := range []*pc{laptop, desk} {
			p.awaitDecisions(5)
			if got := inForce(t, p.db); !slices.Equal(got, []string{"stays"}) {
				t.Errorf("on %s is in force: %q", p.name, got)
			}
		}
		all, err := desk.db.Decisions(t.Context(), decision.Lookup{History: true})
		for _, rev := range all {
			if withdrawn := rev.ID == own.ID || rev.ID == revision.ID; err != nil || rev.Withdrawn != withdrawn {
				t.Errorf("on desk there is %+v, %v", rev, err)
			}
			if rev.ID == own.ID && (rev.Author.Name != "laptop/"+bridge.OwnerName || *rev.Supersedes != "of-laptop") {
				t.Errorf("on desk it is %+v", rev)
			}
		}
		desk.revise("again", "of-laptop")
		for _, p := range []*pc{laptop, desk} {
			p.awaitDecisions(6)
			if got := inForce(t, p.db); !slices.Equal(got, []string{"of-laptop", "stays"}) {
				t.Errorf("decided again, on %s is in force: %q", p.name, got)
			}
		}
	})
}

// revise records a decision for all sessions on a topic.
func (p *pc) revise(id, topic string) {
	p.t.Helper()
	all := decision.AllSessions()
	if _, err := p.broker.DecideOwner(context.Background(), "", api.DecideArgs{ID: id, Topic: topic, Text: "x", Scope: &all}); err != nil {
		p.t.Fatal(err)
	}
	p.broker.Changed()
}

// TestRMT_22_PGE_04_AnOlderBridgeGetsAWithdrawalAsText: it refuses a frame with a member
// that it does not know.
func TestRMT_22_PGE_04_AnOlderBridgeGetsAWithdrawalAsText(t *testing.T) {
	older := slices.DeleteFunc(Capabilities(), func(can string) bool { return can == remote.WithdrawalsCapability })
	for _, tt := range []struct {
		name string
		can  []string
		want bool
	}{{"an older one", older, false}, {"one of this release", Capabilities(), true}} {
		t.Run(tt.name, func(t *testing.T) {
			pc, other := pairingtest.InMemory(t, tt.can...)
			desk := &spoken{t: t, end: other, came: make(chan remote.Sync, 100)}
			other.Serve(func(_ remote.PC, frame remote.Frame) {
				if in, err := remote.ParseSync(frame.Payload, time.Now().UnixMilli()); err == nil && frame.Type == remote.DecisionsFrame {
					desk.came <- in
				}
			})
			laptop := newPC(t, "laptop", pc).everything("desk").start()
			desk.to = laptop
			desk.hears(remote.SyncRequest)
			desk.says(remote.Sync{Kind: remote.SyncState})
			laptop.decide("db")
			desk.hears(remote.SyncUpsert)
			laptop.withdraw("db")
			if got := desk.hears(remote.SyncUpsert).Upsert; got.Text != "Withdrawn." || got.Withdrawn != tt.want {
				t.Errorf("it is told %+v", got)
			}
			desk.says(remote.Sync{Kind: remote.SyncRequest, Since: &remote.Cursor{}})
			got := desk.hears(remote.SyncState).Decisions // in any order within a millisecond
			for _, want := range []remote.Decided{{Text: "x"}, {Text: "Withdrawn.", Withdrawn: tt.want}} {
				if !slices.ContainsFunc(got, func(d remote.Decided) bool { return d.Text == want.Text && d.Withdrawn == want.Withdrawn }) || len(got) != 2 {
					t.Errorf("it is answered %+v", got)
				}
			}
		})
	}
}

// TestHUB_06_PGE_04_AWithdrawalTravelsInATeam: all PCs agree on it, also one that reads the
// stream later.
func TestHUB_06_PGE_04_AWithdrawalTravelsInATeam(t *testing.T) {
	n := hubtest.Start(t)
	item, two := newMate(t, n, "one").start(), newMate(t, n, "two").start()
	item.decide("d1", "db", "SQLite")
	two.awaitAll("db", 1)
	ended, err := two.broker.WithdrawOwner(t.Context(), api.WithdrawDecisionArgs{Topic: "db", Reason: "too slow"})
	if err != nil {
		t.Fatal(err)
	}
	two.broker.Changed()
	three := newMate(t, n, "three").start()
	for _, m := range []*mate{item, two, three} {
		m.awaitAll("db", 2)
		if got, want := m.history("db"), []string{ended.Decision.ID + " after d1 false", "d1 after - false"}; !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", m.who.Name, got, want)
		}
		if got := inForce(t, m.db); len(got) != 0 {
			t.Errorf("at %s is in force: %q", m.who.Name, got)
		}
	}
	three.decide("d3", "db", "Postgres")
	for _, m := range []*mate{item, two, three} {
		m.awaitAll("db", 3)
		if got := inForce(t, m.db); !slices.Equal(got, []string{"db"}) {
			t.Errorf("decided again, at %s is in force: %q", m.who.Name, got)
		}
	}
}
