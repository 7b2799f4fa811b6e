package sharing

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/config"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// mate is one PC of a test's team: a store and a broker of its own, and a way to the hub.
type mate struct {
	t    *testing.T
	nats *hubtest.NATS
	who  hubtest.PC
	home config.Home
	fast time.Duration // how far its clock is ahead

	db      *store.DB
	broker  *broker.Broker
	sharing *Sharing
	hub     *hub.Hub

	mu     sync.Mutex
	shares bool
	away   bool // nobody is connected to the broker
	told   []decision.News
	waits  waits // as it was told the last time
}

func newMate(t *testing.T, n *hubtest.NATS, name string) *mate {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), name), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &mate{t: t, nats: n, who: n.Enrol(name), home: home, shares: true}
	t.Cleanup(m.stop)
	return m
}

func (m *mate) now() time.Time { return time.Now().Add(m.fast) }

// openStore opens its store, without anything that runs.
func (m *mate) openStore() *mate {
	m.t.Helper()
	if m.db != nil {
		return m
	}
	var err error
	if m.db, err = store.Open(m.t.Context(), m.home.DB(), store.Options{Now: m.now, Log: slog.New(slog.DiscardHandler)}); err != nil {
		m.t.Fatal(err)
	}
	return m
}

func (m *mate) start() *mate {
	m.t.Helper()
	log := slog.New(slog.DiscardHandler)
	m.openStore()
	var err error
	m.broker, err = broker.New(m.t.Context(), broker.Options{
		Home: m.home, Settings: func() (config.Settings, error) { return m.home.Settings(func(string) string { return "" }) }, DB: m.db, Now: m.now, Log: log,
		Host: "serve", Version: "test", URL: func() string { return "" }, Retire: func() {},
		Queue: func() (agent.Queue, error) { return agent.Queue{}, nil },
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.hub, err = hub.Open(hub.Options{
		Team: hubtest.Team, Self: m.who.ID, Hub: m.nats.ID, URLs: []string{m.nats.URL()}, Login: m.who.Login, Sign: m.who.Sign, Numbers: m.who.Numbers,
		Word:   func() hub.Announcement { return hub.Announcement{Release: "1.0"} },
		Handle: func(remote.PC, remote.Frame) {}, Changed: func(remote.PC) { m.broker.Changed() }, Now: m.now, Log: log,
		Timing: hub.Timing{Presence: 50 * time.Millisecond, TTL: 30 * time.Second, Ping: time.Second, Retry: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, Answer: 3 * time.Second},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.sharing = New(Options{
		Transport: m.hub, Team: m.stream, Policy: m.policy, DB: m.db, Broker: listening{m.broker, m}, Now: m.now, Log: log,
		Waits: func(decisions int, why error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.waits = (waits{count: decisions}); decisions > 0 {
				m.waits.why = why.Error()
			}
		},
	})
	m.sharing.Run()
	if m.shares { // what it decides before it takes part stays here
		m.await("its part in the team's decisions", func() bool {
			place, err := m.db.Remote().TeamPosition(context.Background())
			return err == nil && place.Stream != ""
		})
	}
	return m
}

func (m *mate) stream() (pairing.TeamStream, bool) {
	return pairing.TeamStream{
		Decisions: m.hub.Decisions(), Team: hubtest.Team, Hub: m.nats.ID, Self: m.who.ID, Called: func(pc remote.PC) string { return pc.Name },
	}, m.hub.State().Up
}

func (m *mate) policy() (remote.Policy, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	policy := remote.Policy{Enabled: true, Shares: map[remote.Share][]string{}}
	if m.shares {
		policy.Shares[remote.ShareDecisions] = []string{"@" + hubtest.Team}
	}
	return policy, nil
}

func (m *mate) set(shares, away bool) {
	m.mu.Lock()
	m.shares, m.away = shares, away
	m.mu.Unlock()
	m.broker.Changed()
}

// listening is a broker with one session, which hears what it is told.
type listening struct {
	*broker.Broker
	m *mate
}

func (l listening) NotifyDecisions(_ context.Context, news []decision.News) (map[string]bool, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	heard := map[string]bool{}
	for _, notice := range news {
		if heard[notice.ID] = !l.m.away; !l.m.away {
			l.m.told = append(l.m.told, notice)
		}
	}
	return heard, nil
}

func (m *mate) stop() {
	if m.sharing != nil {
		m.sharing.Close()
		m.hub.Close()
		m.broker.Close()
		m.sharing = nil
	}
	if m.db != nil {
		if err := m.db.Close(); err != nil {
			m.t.Error(err)
		}
		m.db = nil
	}
}

func (m *mate) decide(id, topic, text string) decision.Revision {
	m.t.Helper()
	return m.decideFor(id, topic, text, decision.AllSessions())
}

func (m *mate) decideFor(id, topic, text string, scope decision.Scope) decision.Revision {
	m.t.Helper()
	rev, _, err := m.db.RecordDecision(context.Background(), decision.Revision{
		ID: id, Topic: topic, Text: text, Scope: scope, Author: bridge.Address{ID: "peer-api", Name: "api", Agent: bridge.Codex}, CreatedAt: m.now().UnixMilli(),
	}, func(decision.Revision) []decision.Notification { return nil })
	if err != nil {
		m.t.Error(err)
	}
	if m.broker != nil {
		m.broker.Changed()
	}
	return rev
}

// history lists what was decided on a topic, the newest first, as all PCs should see it.
func (m *mate) history(topic string) (list []string) {
	m.t.Helper()
	all, err := m.db.Decisions(context.Background(), decision.Lookup{Topic: topic, History: true})
	if err != nil {
		m.t.Error(err)
	}
	for _, revision := range all {
		before := "-"
		if revision.Supersedes != nil {
			before = *revision.Supersedes
		}
		list = append(list, fmt.Sprintf("%s after %s %v", revision.ID, before, revision.Current))
	}
	return list
}

func (m *mate) ids(topic string) (list []string) {
	for _, text := range m.history(topic) {
		id, _, _ := strings.Cut(text, " ")
		list = append(list, id)
	}
	return list
}

// await waits until what is stored here is as it should be: it stays so.
func (m *mate) await(what string, is func() bool) {
	m.t.Helper()
	changes, stop := m.broker.Watch()
	defer stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(testkit.Patience)
	for !is() {
		select {
		case <-changes:
		case <-again.C:
		case <-late:
			m.t.Fatalf("%s did not come to %s: it has %.2000q", what, m.who.Name, m.history(""))
		}
	}
}

// awaitAll waits until it has so many revisions of a topic, all with their places.
func (m *mate) awaitAll(topic string, count int) {
	m.t.Helper()
	m.await(fmt.Sprintf("%d decisions on %q", count, topic), func() bool {
		own, err := m.db.Remote().ForTeam(context.Background())
		return err == nil && len(own) == 0 && len(m.history(topic)) == count && m.hasRead()
	})
}

// hasRead reports whether it has read the stream to its end.
func (m *mate) hasRead() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state, err := m.hub.Decisions().Stream(ctx)
	place, placeErr := m.db.Remote().TeamPosition(ctx)
	return err == nil && placeErr == nil && place.Stream == state.Stream && place.Sequence == state.Last
}

// stored is the stream as the hub has it.
func (m *mate) stored() (ids []string) {
	m.t.Helper()
	said, _, err := m.hub.Decisions().Read(m.t.Context(), 1)
	for len(said) > 0 && err == nil {
		for _, statement := range said {
			var in remote.TeamDecided
			if json.Unmarshal(statement.Body, &in) != nil || statement.Refused != nil {
				in.Decision.ID = "?"
			}
			ids = append(ids, in.Decision.ID)
		}
		said, _, err = m.hub.Decisions().Read(m.t.Context(), said[len(said)-1].Sequence+1)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return ids
}

// heardOf is what the session was told, each as id, or id|beside.
func (m *mate) heardOf() (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, notice := range m.told {
		list = append(list, words(notice))
	}
	return list
}

func words(notice decision.News) string {
	if notice.Beside == nil {
		return notice.ID
	}
	return notice.ID + "|" + notice.Beside.ID
}

func requireSame(t *testing.T, topic string, all ...*mate) {
	t.Helper()
	for _, m := range all[1:] {
		if want, got := all[0].history(topic), m.history(topic); !slices.Equal(want, got) {
			t.Errorf("%s has\n%q, %s has\n%q", all[0].who.Name, want, m.who.Name, got)
		}
	}
}

// drops is what it has counted as dropped of laptop, by reason.
func (m *mate) drops(want map[hub.Why]int64) {
	m.t.Helper()
	got := map[hub.Why]int64{}
	for _, d := range m.hub.Drops() {
		got[d.Why] += d.Count
		if d.PC.Name != "laptop" {
			m.t.Errorf("%s dropped %+v", m.who.Name, d)
		}
	}
	if !maps.Equal(got, want) {
		m.t.Errorf("%s dropped %v, want %v", m.who.Name, got, want)
	}
}

func TestHUB_06_TwoOwnersDecideOneTopicAtOnce(t *testing.T) {
	n := hubtest.Start(t)
	desk, laptop, tower := newMate(t, n, "desk"), newMate(t, n, "laptop"), newMate(t, n, "tower")
	laptop.fast = -10 * time.Minute // the clocks have no say
	for _, m := range []*mate{desk, laptop, tower} {
		m.start()
	}
	rounds := testkit.Rounds(t, 100, 1000)
	var both sync.WaitGroup
	for i := range rounds {
		for _, m := range []*mate{desk, laptop} {
			both.Go(func() { m.decide(fmt.Sprintf("%s-%04d", m.who.Name, i), "db", "round "+fmt.Sprint(i)) })
		}
		both.Wait()
	}
	for _, m := range []*mate{desk, laptop, tower} {
		m.awaitAll("db", 2*rounds)
	}
	requireSame(t, "db", desk, laptop, tower)
	order := desk.stored()
	slices.Reverse(order)
	if got := desk.ids("db"); !slices.Equal(got, order) {
		t.Errorf("the stream's order is\n%q, the history's\n%q", order, got)
	}
	// Of each two that were made at the same time both owners' sessions know.
	next, err := tower.db.Together(t.Context(), "db")
	if err != nil || len(next) == 0 {
		t.Fatalf("%d were made at the same time, %v", len(next), err)
	}
	owner := func(id string) *mate {
		if strings.HasPrefix(id, "desk") {
			return desk
		}
		return laptop
	}
	for first, second := range next {
		for id, who := range map[string]*mate{first: owner(second), second: owner(first)} {
			who.await("word of "+id, func() bool {
				return slices.ContainsFunc(who.heardOf(), func(heard string) bool { return strings.HasPrefix(heard, id+"|") })
			})
		}
	}
	for _, m := range []*mate{desk, laptop, tower} {
		heard := m.heardOf()
		if slices.Sort(heard); len(slices.Compact(heard)) != len(m.heardOf()) {
			t.Errorf("%s is told twice: %q", m.who.Name, m.heardOf())
		}
	}
	t.Logf("%d decisions, %d times two at once", len(order), len(next))
}

func TestHUB_06_LateJoinersAndPCsThatWereOff(t *testing.T) {
	n := hubtest.Start(t)
	desk, laptop := newMate(t, n, "desk").start(), newMate(t, n, "laptop").start()
	for i := range 3 {
		desk.decide(fmt.Sprintf("d%d", i), "db", "desk")
		laptop.awaitAll("db", i+1)
	}
	desk.decideFor("secret", "db-2", "stays", decision.ProjectOf("/src"))
	// The hub goes; both decide, and one of them goes, too.
	n.Stop()
	desk.await("the end of the connection", func() bool { return !desk.hub.State().Up })
	desk.decide("d3", "db", "desk without the hub")
	laptop.decide("l0", "db", "laptop without the hub")
	laptop.stop()
	n.Resume()
	desk.awaitAll("db", 4)
	laptop.start()
	for _, m := range []*mate{desk, laptop} {
		m.awaitAll("db", 5)
	}
	want := []string{"l0 after d3 true", "d3 after d2 false", "d2 after d1 false", "d1 after d0 false", "d0 after - false"}
	if got := desk.history("db"); !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
	// Somebody joins later, who has decided before: what is older than the team's word
	// stays below it, what is newer counts for all.
	tower := newMate(t, n, "tower").openStore()
	tower.fast = -time.Hour
	tower.decide("old", "db", "before")
	tower.decide("only", "editor", "nobody else has")
	tower.fast = time.Hour
	tower.decide("new", "style", "nobody else has")
	tower.start()
	tower.awaitAll("db", 6)
	desk.awaitAll("editor", 1)
	laptop.awaitAll("style", 1)
	if got, want := tower.history("db")[:5], want[:5]; !slices.Equal(got[:4], want[:4]) || tower.ids("db")[5] != "old" {
		t.Errorf("the late joiner has %q", tower.history("db"))
	}
	requireSame(t, "editor", desk, laptop, tower)
	if _, err := desk.db.Decisions(t.Context(), decision.Lookup{Topic: "db"}); err != nil || len(desk.history("db")) != 5 || len(laptop.history("db-2")) != 0 {
		t.Errorf("desk has %q, and the laptop %q of what stays, %v", desk.history("db"), laptop.history("db-2"), err)
	}
	if all, _ := tower.db.Decisions(t.Context(), decision.Lookup{Topic: "db"}); len(all) != 1 || all[0].Author.Name != "laptop/api" {
		t.Errorf("in force is %+v", all)
	}
}

func TestHUB_06_AStreamThatWasWipedOrRestoredIsReadAnew(t *testing.T) {
	for _, how := range []string{"wiped", "restored", "restored, and longer by now"} {
		t.Run(how, func(t *testing.T) {
			n := hubtest.Start(t)
			desk, laptop := newMate(t, n, "desk").start(), newMate(t, n, "laptop").start()
			desk.decide("d0", "db", "desk")
			laptop.awaitAll("db", 1)
			backup := filepath.Join(t.TempDir(), "backup")
			n.Stop()
			if err := os.CopyFS(backup, os.DirFS(n.Store())); err != nil {
				t.Fatal(err)
			}
			n.Resume()
			laptop.decide("l0", "db", "laptop")
			desk.awaitAll("db", 2)
			desk.decide("d1", "db", "desk again")
			laptop.awaitAll("db", 3)
			before := desk.history("db")
			laptop.await("word of it", func() bool { return slices.Contains(laptop.heardOf(), "d1") })
			told := len(laptop.heardOf())
			longer := how == "restored, and longer by now"
			if longer {
				laptop.stop()
			}
			if how == "wiped" {
				n.WipeDecisions()
			} else {
				n.Stop()
				if err := os.RemoveAll(n.Store()); err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(n.Store(), os.DirFS(backup)); err != nil {
					t.Fatal(err)
				}
				n.Resume()
			}
			desk.decide("d2", "db", "after it")
			desk.decide("d3", "db", "and on")
			if longer {
				desk.await("all of its own in the stream", func() bool { return desk.hub.State().Up && len(desk.stored()) == 4 })
				laptop.start()
			}
			for _, m := range []*mate{desk, laptop} {
				m.await("the stream with all five", func() bool { return m.hub.State().Up && len(m.stored()) >= 5 })
				m.awaitAll("db", 5)
			}
			requireSame(t, "db", desk, laptop)
			order := slices.Compact(desk.stored())
			slices.Reverse(order)
			if got := desk.ids("db"); !slices.Equal(got, order) {
				t.Errorf("the stream's order is %q, the history's %q (before %q)", order, got, before)
			}
			for _, id := range []string{"d0", "d1"} {
				if slices.Index(laptop.heardOf()[told:], id) >= 0 {
					t.Errorf("%s is told again", id)
				}
			}
		})
	}
}

func TestHUB_06_DoublesForgeriesAndReplaysHaveNoEffect(t *testing.T) {
	n := hubtest.Start(t)
	desk, laptop, tower := newMate(t, n, "desk").start(), newMate(t, n, "laptop").start(), newMate(t, n, "tower").start()
	desk.decide("d0", "db", "SQLite")
	laptop.awaitAll("db", 1)
	tower.awaitAll("db", 1)
	body := func(id, text string, createdAt int64) []byte {
		data, err := json.Marshal(remote.TeamDecided{Decision: remote.Decided{ID: id, Topic: "db", Text: text, Author: "api", CreatedAt: createdAt}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	now := time.Now().UnixMilli()
	say := func(m *mate, data []byte) {
		t.Helper()
		if err := m.hub.Decisions().Say(t.Context(), data, 0); err != nil {
			t.Fatal(err)
		}
	}
	// The acknowledgement was lost, so that it went up twice.
	say(laptop, body("l0", "Postgres", now))
	say(laptop, body("l0", "Postgres", now))
	// An id that is another decision's, what no Bridge makes, and a day that is not there yet.
	say(laptop, body("d0", "MySQL", now))
	say(laptop, []byte(`{"decision":{"id":"x"}}`))
	say(laptop, []byte("no JSON"))
	say(laptop, body("l1", "from the future", now+48*60*60*1000))
	say(laptop, body("l2", "last", now))
	// What it said before, and somebody kept.
	at := subject.Subject{Team: hubtest.Team, From: laptop.who.ID, Sort: subject.Decision}.String()
	if _, err := n.Admin().RequestMsg(hubtest.Signed(laptop.who.Identity, at, 1, body("r0", "kept", now)), time.Minute); err != nil {
		t.Fatal(err)
	}
	desk.decide("d1", "editor", "behind it")
	for _, m := range []*mate{laptop, tower} {
		m.awaitAll("editor", 1)
	}
	for _, m := range []*mate{desk, laptop, tower} {
		m.awaitAll("db", 3)
	}
	requireSame(t, "db", desk, laptop, tower)
	if got, want := desk.ids("db"), []string{"l2", "l0", "d0"}; !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
	if all, _ := tower.db.Decisions(t.Context(), decision.Lookup{Topic: "db", History: true}); all[2].Text != "SQLite" || all[2].Author.Name != "desk/api" {
		t.Errorf("the decision whose id was taken is %+v", all[2])
	}
	for _, m := range []*mate{desk, tower} {
		m.drops(map[hub.Why]int64{hub.Replayed: 1, hub.Malformed: 3})
	}
	laptop.drops(map[hub.Why]int64{}) // its own
	if got := len(desk.stored()); got != 10 {
		t.Errorf("the stream has %d, and should have doubles", got)
	}
}

func TestHUB_06_ARemovedPCsDecisionsStayAndNewOnesCountForNothing(t *testing.T) {
	n := hubtest.Start(t)
	desk, laptop := newMate(t, n, "desk").start(), newMate(t, n, "laptop").start()
	laptop.decide("l0", "db", "laptop")
	desk.awaitAll("db", 1)
	n.Remove(laptop.who)
	// Its connection is still there in this test, so what it says reaches the stream.
	data, err := json.Marshal(remote.TeamDecided{Decision: remote.Decided{ID: "l1", Topic: "db", Text: "late", Author: "api", CreatedAt: time.Now().UnixMilli()}})
	if err == nil {
		err = laptop.hub.Decisions().Say(t.Context(), data, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	desk.decide("d0", "db", "desk")
	desk.awaitAll("db", 2)
	tower := newMate(t, n, "tower").start()
	tower.awaitAll("db", 2)
	requireSame(t, "db", desk, tower)
	for _, m := range []*mate{desk, tower} {
		m.drops(map[hub.Why]int64{hub.Stranger: 1})
	}
	if got, want := tower.history("db"), []string{"d0 after l0 true", "l0 after - false"}; !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
}

func TestHUB_06_OnlyWhatTheOwnerSharesWithTheTeam(t *testing.T) {
	n := hubtest.Start(t)
	desk, laptop := newMate(t, n, "desk"), newMate(t, n, "laptop")
	desk.shares = false
	desk.start()
	laptop.start()
	desk.decide("d0", "db", "desk's own")
	laptop.decide("l0", "db", "laptop's")
	laptop.awaitAll("db", 1)
	if got := laptop.stored(); !slices.Equal(got, []string{"l0"}) {
		t.Fatalf("the stream has %q", got)
	}
	if got := desk.ids("db"); !slices.Equal(got, []string{"d0"}) {
		t.Errorf("who shares nothing has %q", got)
	}
	desk.set(true, true)
	desk.awaitAll("db", 2)
	desk.decide("d1", "editor", "desk's")
	laptop.awaitAll("editor", 1)
	if got := laptop.stored(); !slices.Equal(got, []string{"l0", "d1"}) {
		t.Errorf("the stream has %q: what was decided before and replaced by now stays", got)
	}
	// Two decide at once, while nobody is there at one of them to be told.
	n.Stop()
	for _, m := range []*mate{desk, laptop} {
		m.await("the end of the connection", func() bool { return !m.hub.State().Up })
		m.decide(m.who.Name, "style", "tabs")
	}
	n.Resume()
	for _, m := range []*mate{desk, laptop} {
		m.awaitAll("style", 2)
	}
	laptop.await("word of the other decision", func() bool { return slices.Contains(laptop.heardOf(), "desk|laptop") })
	if got := desk.heardOf(); len(got) != 0 {
		t.Errorf("nobody heard %q", got)
	}
	desk.set(true, false)
	desk.await("word of the other decision", func() bool { return slices.Contains(desk.heardOf(), "laptop|desk") })
}

// TestHUB_06_DecisionsThatTheHubDoesNotTakeSayWhy: as long as it does not, and no longer.
func TestHUB_06_DecisionsThatTheHubDoesNotTakeSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		bad, good func(*hubtest.NATS)
		why       string
	}{
		"a full disk": {
			func(n *hubtest.NATS) { n.Fill(true) }, func(n *hubtest.NATS) { n.Fill(false) }, "the team's hub did not store it: its disk is full",
		},
		"no stream for them": {
			(*hubtest.NATS).DropDecisions, (*hubtest.NATS).WipeDecisions, "the team's hub has no decisions: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := hubtest.Start(t)
			desk, laptop := newMate(t, n, "desk").start(), newMate(t, n, "laptop").start()
			laptop.decide("laptop-0", "db", "before")
			desk.awaitAll("db", 1)
			laptop.awaitAll("db", 1)
			c.bad(n)
			laptop.decide("laptop-1", "db", "one")
			laptop.decide("laptop-2", "db", "two")
			laptop.await("why they wait", func() bool {
				laptop.mu.Lock()
				defer laptop.mu.Unlock()
				return laptop.waits.count == 2 && strings.HasPrefix(laptop.waits.why, c.why)
			})
			if got := desk.ids("db"); len(got) != 1 {
				t.Errorf("desk has %q", got)
			}
			c.good(n)
			for _, m := range []*mate{desk, laptop} {
				m.awaitAll("db", 3)
				m.await("that nothing waits", func() bool {
					m.mu.Lock()
					defer m.mu.Unlock()
					return m.waits == waits{}
				})
			}
			requireSame(t, "db", desk, laptop)
		})
	}
}
