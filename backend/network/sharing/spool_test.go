package sharing

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/server"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/network/pairing/pairingtest"
	"bridge/backend/testing/testkit"
)

const (
	hubHomeEnv  = "BRIDGE_TEST_HUB_HOME"
	hubPortEnv  = "BRIDGE_TEST_HUB_PORT"
	hubFreeEnv  = "BRIDGE_TEST_HUB_FREE" // how many bytes of its disk it leaves free
	hubPatience = 2 * time.Minute
)

// serveHub is the hub's process, which ends by being killed or with its test.
func serveHub() {
	if os.Getenv(hubHomeEnv) == "" {
		return
	}
	home, err := server.At(os.Getenv(hubHomeEnv))
	if err != nil {
		panic(err)
	}
	set := server.Usual()
	set.Team, set.Listen, set.Port, set.MaxBytes = "crew", "127.0.0.1", 0, 1<<30
	if set.NATSPort, err = strconv.Atoi(os.Getenv(hubPortEnv)); err != nil {
		panic(err)
	}
	free, _ := strconv.ParseInt(os.Getenv(hubFreeEnv), 10, 64) // 0 for the usual
	s, err := server.Open(context.Background(), server.Options{Home: home, Settings: set, Now: time.Now, Log: slog.New(slog.DiscardHandler), KeepFree: free})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Addresses()[0])
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the test is gone
	os.Exit(0)
}

// hubProcess is a real hub in a process of its own.
type hubProcess struct {
	t       *testing.T
	home    string
	port    string
	cmd     *exec.Cmd
	address string // where PCs enrol
}

func startHub(t *testing.T) *hubProcess {
	t.Helper()
	return startHubIn(t, t.TempDir())
}

func startHubIn(t *testing.T, home string) *hubProcess {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	h := &hubProcess{t: t, home: home, port: port}
	t.Cleanup(h.kill)
	h.start()
	return h
}

func (h *hubProcess) start() {
	h.t.Helper()
	h.cmd = exec.Command(os.Args[0]) //nolint:gosec // this very test
	h.cmd.Env = append(os.Environ(), hubHomeEnv+"="+h.home, hubPortEnv+"="+h.port)
	h.cmd.Stderr = os.Stderr
	if _, err := h.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatal("the hub does not start: ", err)
	}
	h.address = strings.TrimSpace(line)
}

// kill ends it as a power cut would, but for its disk.
func (h *hubProcess) kill() {
	if h.cmd != nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		h.cmd = nil
	}
}

// awayPC is a PC of a team, with a real store, over a real hub.
type awayPC struct {
	*pc
	identity link.Identity
	member   join.Membership
	others   []remote.PC
	hub      *hub.Hub
	lost     atomic.Int64 // how often the next acknowledgements are lost
}

func (h *hubProcess) enrol(name string) *awayPC {
	h.t.Helper()
	m := &awayPC{pc: newPC(h.t, name, nil)}
	home, err := server.At(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	client, err := server.Dial(home)
	if err != nil {
		h.t.Fatal(err)
	}
	defer client.Close()
	invited, err := client.Invite(h.t.Context())
	if err == nil {
		m.identity, err = link.OpenIdentity(h.t.TempDir())
	}
	if err == nil {
		err = join.Join(h.t.Context(), m.identity, name, h.address, invited.Code, func(joined join.Membership) error { m.member = joined; return nil })
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(m.off)
	return m
}

// meet has two PCs know and allow each other.
func meet(a, b *awayPC) {
	for _, two := range [][2]*awayPC{{a, b}, {b, a}} {
		two[0].everything(two[1].name)
		two[0].others = append(two[0].others, remote.PC{ID: two[1].identity.ID, Name: two[1].name})
	}
}

// awayWay is the hub as a transport that remembers who is in the team.
type awayWay struct {
	*hub.Hub
	m *awayPC
}

func (w awayWay) Of(id string) (remote.Status, error) {
	status, err := w.Hub.Of(id)
	for _, pc := range w.m.others {
		if err != nil && pc.ID == id {
			return remote.Status{PC: pc}, nil
		}
	}
	return status, err
}

func (w awayWay) Status() (all []remote.Status) {
	for _, pc := range w.m.others {
		status, _ := w.Of(pc.ID)
		all = append(all, status)
	}
	return all
}

func (m *awayPC) Keeps() (ids []string) {
	for _, pc := range m.others {
		ids = append(ids, pc.ID)
	}
	return ids
}

func (m *awayPC) Store(ctx context.Context, id string, frame remote.Frame) error {
	return m.hub.Inbox.Store(ctx, id, frame)
}

func (m *awayPC) login() []nats.Option {
	m.t.Helper()
	key, err := nkeys.FromSeed([]byte(m.member.Seed))
	if err != nil {
		m.t.Fatal(err)
	}
	public, _ := key.PublicKey()
	return []nats.Option{nats.Nkey(public, key.Sign), nats.Secure(link.Pinned(m.member.Hub)), nats.TLSHandshakeFirst()}
}

// on starts the PC.
func (m *awayPC) on() {
	m.t.Helper()
	if m.spool == nil {
		m.spool = m
	}
	ready := make(chan struct{})
	var err error
	m.hub, err = hub.Open(hub.Options{
		Numbers: filepath.Join(m.home.Dir(), "said.json"),
		Team:    m.member.Team, Self: m.identity.ID, Hub: m.member.Hub, URLs: m.member.URLs, Sign: m.identity.Sign,
		Login: m.login(),
		Word:  func() hub.Announcement { return hub.Announcement{Release: "1.0", Capabilities: Capabilities()} },
		Handle: func(from remote.PC, frame remote.Frame) {
			<-ready
			m.sharing.Take(from, frame)
		},
		Stored: func(ctx context.Context, from remote.PC, frame remote.Frame, since time.Time) error {
			<-ready
			err := m.sharing.ProcessStored(ctx, from, frame, since)
			if err == nil && m.lost.Add(-1) >= 0 { // it is stored, and the hub never hears so
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		},
		Changed: func(remote.PC) {
			select {
			case <-ready:
				m.broker.Changed()
			default:
			}
		},
		Now: m.now, Log: slog.New(slog.DiscardHandler),
		Timing: hub.Timing{Presence: time.Second, TTL: 30 * time.Second, Ping: time.Second, Retry: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Answer: 3 * time.Second},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.end = &pairingtest.End{Transport: awayWay{m.hub, m}, Self: remote.PC{ID: m.identity.ID, Name: m.name}}
	m.start()
	close(ready)
}

func (m *awayPC) off() {
	if m.hub != nil {
		m.hub.Close()
		m.stop()
		m.hub = nil
	}
}

// writes stores so many messages of each of four sessions here, each session's in its
// order.
func (m *awayPC) writes(pc *awayPC, count int) {
	m.t.Helper()
	var tasks sync.WaitGroup
	for s := range 4 {
		tasks.Go(func() {
			from := bridge.Address{ID: fmt.Sprintf("peer-%d", s), Name: fmt.Sprintf("s%d", s), Agent: bridge.Codex}
			for i := range count / 4 {
				id := fmt.Sprintf("%s-%d-%05d", m.name, s, i)
				msg := bridge.Message{ID: id, Recipient: pc.name + "/api", From: from, To: pc.name + "/api", ConversationID: "talk", Body: "body of " + id, CreatedAt: m.now().UnixMilli()}
				if _, _, err := m.db.Remote().Append(context.Background(), msg, pc.identity.ID); err != nil {
					m.t.Error(err)
				}
			}
		})
	}
	tasks.Wait()
	m.broker.Changed()
}

// count is how many messages that were sent from here are at a stage.
func (m *awayPC) count(stage bridge.Stage) int {
	m.t.Helper()
	rows, err := m.db.Recent(context.Background(), 50_000)
	if err != nil {
		m.t.Fatal(err)
	}
	n := 0
	for _, row := range rows {
		if len(row.Deliveries) == 1 && strings.Contains(row.Deliveries[0].Recipient, "/") && row.Stage() == stage {
			n++
		}
	}
	return n
}

// stands waits until so many messages are at a stage.
func (m *awayPC) stands(stage bridge.Stage, want int) {
	m.t.Helper()
	m.await(fmt.Sprintf("%d %s", want, stage), func() bool {
		for _, pc := range m.others { // counting all takes its time
			waiting, err := m.db.Remote().Waiting(m.t.Context(), pc.ID, 1, 1)
			atHub, hubErr := m.db.Remote().AtHub(m.t.Context(), pc.ID)
			if err != nil || hubErr != nil || len(waiting) > 0 || stage != bridge.StageAtHub && atHub > 0 {
				return false
			}
		}
		return m.count(stage) == want
	})
}

// has wants all messages of the other one here, once, and those of each sender in order.
func (m *awayPC) has(pc *awayPC, count int) {
	m.t.Helper()
	all := map[string][]string{}
	for _, msg := range m.mail("api") {
		if msg.From.Name != pc.name+"/"+strings.TrimPrefix(msg.From.Name, pc.name+"/") || msg.Body != "body of "+msg.ID {
			m.t.Fatalf("it has %+v", msg)
		}
		all[msg.From.Name] = append(all[msg.From.Name], msg.ID)
	}
	got := 0
	for sender, ids := range all {
		got += len(ids)
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
			m.t.Errorf("%s has those of %s out of order or twice: %v", m.name, sender, ids)
		}
	}
	if got != count {
		m.t.Errorf("%s has %d messages of %s, want %d", m.name, got, pc.name, count)
	}
}

// expires is a look for what is too old.
func (m *awayPC) expires() {
	m.t.Helper()
	if n, err := m.broker.Expire(m.t.Context()); n != 0 || err != nil {
		m.t.Errorf("%s: %d expired, %v", m.name, n, err)
	}
}

// emptied waits until nothing lies at the hub for the PC, taken and acknowledged.
func (m *awayPC) emptied() {
	m.t.Helper()
	conn, err := nats.Connect(strings.Join(m.member.URLs, ","), append(m.login(), nats.CustomInboxPrefix(subject.InboxPrefix(m.identity.ID)))...)
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	m.await("an empty inbox", func() bool {
		answer, err := conn.Request("$JS.API.CONSUMER.INFO."+subject.MessageStream("crew")+"."+subject.Consumer(m.identity.ID), nil, hubPatience)
		if err != nil {
			m.t.Fatal(err)
		}
		var info struct {
			Pending int `json:"num_pending"`
			Taken   int `json:"num_ack_pending"`
		}
		if err := json.Unmarshal(answer.Data, &info); err != nil {
			m.t.Fatal(err)
		}
		return info.Pending+info.Taken == 0
	})
}

// TestHUB_05_AWeekApartEverythingIsThereOnceInItsOrder: two PCs that are never on at the
// same time write to each other, one of them without its hub for a week.
func TestHUB_05_AWeekApartEverythingIsThereOnceInItsOrder(t *testing.T) {
	count := testkit.Rounds(t, 80, 10_000) // that wait on each side
	h := startHub(t)
	laptop, desk := h.enrol("laptop"), h.enrol("desk")
	meet(laptop, desk)
	h.kill() // desk has no hub at first
	desk.on()
	desk.writes(laptop, count)
	if n := desk.count(bridge.StageDurable); n != count {
		t.Errorf("%d wait on desk", n)
	}
	desk.off()
	h.start()
	took := func(what string, since time.Time) {
		t.Logf("%s: %d messages in %v, %v each", what, count, time.Since(since).Round(time.Millisecond), (time.Since(since) / time.Duration(count)).Round(time.Microsecond))
	}
	laptop.on()
	laptop.writes(desk, count)
	begun := time.Now()
	laptop.stands(bridge.StageAtHub, count)
	took("to the hub, after the last was written", begun)
	if _, fact := laptop.stage("laptop-0-00000"); fact.Evidence != "the team's hub has stored it, desk has not taken it yet" {
		t.Errorf("it says %q", fact.Evidence)
	}
	laptop.off()
	const week = 7*24*time.Hour - time.Hour
	laptop.fast, desk.fast = week, week
	begun = time.Now()
	desk.on()
	desk.expires()
	desk.stands(bridge.StageAtHub, count)
	desk.emptied()
	took("from the hub and to the hub", begun)
	desk.expires()
	desk.mark(bridge.StageConsumed, "laptop-3-00000", "api")
	desk.await("the receipt is at the hub", func() bool {
		news, err := desk.db.Remote().News(t.Context(), laptop.identity.ID, 10)
		return err == nil && len(news) == 0
	})
	desk.off()
	begun = time.Now()
	laptop.on()
	laptop.stands(bridge.StageArrived, count-1)
	took("from the hub, with the answers", begun)
	laptop.stands(bridge.StageConsumed, 1)
	laptop.expires()
	laptop.off()
	desk.on()
	desk.stands(bridge.StageArrived, count)
	desk.has(laptop, count)
	desk.off()
	laptop.on()
	laptop.has(desk, count)
	for _, msg := range laptop.mail("api")[:4] { // by the clock of this PC, and not of when it came
		if age := laptop.now().Sub(time.UnixMilli(msg.CreatedAt)); age < week-time.Hour || age > week+time.Hour {
			t.Errorf("%s is %v old", msg.ID, age)
		}
	}
}

// TestHUB_05_WhateverDiesEachMessageIsThereOnceInItsOrder kills the hub while messages go
// into it and come out of it, and a PC between what it has stored and its acknowledgement.
func TestHUB_05_WhateverDiesEachMessageIsThereOnceInItsOrder(t *testing.T) {
	const count = 40
	h := startHub(t)
	laptop, desk := h.enrol("laptop"), h.enrol("desk")
	meet(laptop, desk)
	laptop.on()
	var writing sync.WaitGroup
	writing.Go(func() { laptop.writes(desk, count) })
	for range 3 { // while it acknowledges
		laptop.await("something at the hub", func() bool {
			since, err := laptop.db.Remote().AtHub(t.Context(), desk.identity.ID)
			return err == nil && since > 0
		})
		h.kill()
		h.start()
	}
	writing.Wait()
	laptop.stands(bridge.StageAtHub, count)
	desk.lost.Store(1) // it stores what comes first, and dies before it says so
	desk.on()
	desk.await("something of laptop's", func() bool { return len(desk.mail("api")) > 0 })
	desk.off()
	desk.on()
	h.kill()
	h.start()
	desk.await("all of laptop's", func() bool { return len(desk.mail("api")) >= count })
	laptop.stands(bridge.StageArrived, count)
	desk.has(laptop, count)
}

// full is a hub that takes nothing while it is so.
type full struct {
	*awayPC
	is atomic.Bool
}

func (f *full) Store(ctx context.Context, id string, frame remote.Frame) error {
	if f.is.Load() {
		return bridge.Errorf(bridge.Busy, "the team's hub did not store it: maximum bytes exceeded")
	}
	return f.awayPC.Store(ctx, id, frame)
}

// TestHUB_05_WhatTheHubRefusesWaitsHereAndSaysWhy, and what the hub loses is sent from
// here when the other PC is there: the store of its own PC stays the truth.
func TestHUB_05_WhatTheHubRefusesWaitsHereAndSaysWhy(t *testing.T) {
	h := startHub(t)
	laptop, desk := h.enrol("laptop"), h.enrol("desk")
	meet(laptop, desk)
	hub := &full{awayPC: laptop}
	hub.is.Store(true)
	laptop.spool = hub
	laptop.on()
	laptop.writes(desk, 4)
	laptop.await("the reason", func() bool {
		stage, fact := laptop.stage("laptop-3-00000")
		return stage == bridge.StageDurable && fact.Evidence == "accepted, durable, waiting for desk: the team's hub did not store it: maximum bytes exceeded; it is tried again"
	})
	laptop.off()
	hub.is.Store(false)
	laptop.on()
	laptop.stands(bridge.StageAtHub, 4)
	laptop.off()
	h.loses()
	laptop.on()
	laptop.stands(bridge.StageAtHub, 4)
	desk.on()
	laptop.stands(bridge.StageArrived, 4)
	desk.has(laptop, 4)
}

// loses has the hub lose what lies there.
func (h *hubProcess) loses() {
	h.t.Helper()
	home, err := server.At(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	h.kill()
	set, err := home.Load()
	if err != nil {
		h.t.Fatal(err)
	}
	store := filepath.Join(h.home, "store", "jetstream", set.Team, "streams", subject.MessageStream(set.Team), "msgs")
	if err := os.RemoveAll(store); err != nil {
		h.t.Fatal(err)
	}
	if err := os.MkdirAll(store, 0o700); err != nil {
		h.t.Fatal(err)
	}
	h.start()
}
