package hub_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/platform/wire"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Now //nolint:forbidigo // of real connections

// pace is a hub's in tests: quick, but for what no test waits for.
var pace = hub.Timing{Presence: 50 * time.Millisecond, TTL: 30 * time.Second, Ping: time.Second, Retry: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, Answer: 20 * time.Second}

type heard struct {
	from  remote.PC
	frame remote.Frame
}

// pc is one PC of a test's team.
type pc struct {
	*hub.Hub
	hubtest.PC
	t       *testing.T
	changed chan struct{} // capacity 1: look again
	frames  chan heard
}

func open(t *testing.T, n *hubtest.NATS, who hubtest.PC, change ...func(*hub.Options)) *pc {
	t.Helper()
	p := &pc{PC: who, t: t, changed: make(chan struct{}, 1), frames: make(chan heard, 1000)}
	opts := hub.Options{
		Team: hubtest.Team, Self: who.ID, Hub: n.ID, URLs: []string{n.URL()}, Login: who.Login, Sign: who.Sign, Numbers: who.Numbers,
		Word: func() hub.Announcement {
			return hub.Announcement{Release: "1.0", Capabilities: []string{"messages-v1"}}
		},
		Handle: func(from remote.PC, frame remote.Frame) { p.frames <- heard{from, frame} },
		Changed: func(remote.PC) {
			select {
			case p.changed <- struct{}{}:
			default:
			}
		},
		Now: clock, Log: slog.New(slog.DiscardHandler), Timing: pace,
	}
	for _, call := range change {
		call(&opts)
	}
	var err error
	if p.Hub, err = hub.Open(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// await waits until it stands as it should.
func (p *pc) await(what string, is func() bool) {
	p.t.Helper()
	late := time.After(testkit.Patience)
	for !is() {
		select {
		case <-p.changed:
		case <-late:
			p.t.Fatalf("%s did not come: %+v, %+v", what, p.State(), p.Status())
		}
	}
}

// sees waits until another PC is there, or not.
func (p *pc) sees(other *pc, up bool) remote.Status {
	p.t.Helper()
	var status remote.Status
	p.await(other.Name, func() bool {
		var err error
		status, err = p.Of(other.ID)
		return err == nil && status.Up == up
	})
	return status
}

func (p *pc) next(what string) heard {
	p.t.Helper()
	select {
	case came := <-p.frames:
		return came
	case <-time.After(testkit.Patience):
		p.t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func TestHUB_04_FramesComeFromWhomTheHubNames(t *testing.T) {
	n := hubtest.Start(t)
	a, b := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk"))
	status := a.sees(b, true)
	b.sees(a, true)
	if status.Name != "desk" || status.Release != "1.0" || !status.Can("messages-v1") || status.Can("x") || status.Since.IsZero() {
		t.Errorf("it stands with desk as %+v", status)
	}
	sent := remote.Frame{Type: "x", Payload: []byte(`{"peer":{"id":"somebody else"}}`), Body: []byte("as it is")}
	if err := a.Send(t.Context(), b.ID, sent); err != nil {
		t.Fatal(err)
	}
	if err := a.SendBulk(t.Context(), b.ID, sent); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := b.next("the frame")
		if got.from != (remote.PC{ID: a.ID, Name: "laptop"}) || string(got.frame.Payload) != string(sent.Payload) || string(got.frame.Body) != "as it is" {
			t.Errorf("it heard %+v", got)
		}
	}
	if err := a.Send(t.Context(), strings.Repeat("0", 64), sent); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("to nobody: %v", err)
	}
	large := remote.Frame{Type: "x", Body: make([]byte, 1<<20)}
	if err := a.Send(t.Context(), b.ID, large); bridge.CodeOf(err) != bridge.TooLarge {
		t.Errorf("too large: %v", err)
	}
}

// session is what a PC's word of presence says, as everybody in the team can read it.
func session(t *testing.T, n *hubtest.NATS, who *pc) string {
	t.Helper()
	js, err := jetstream.New(n.Admin())
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(t.Context(), subject.PresenceBucket(hubtest.Team))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := bucket.Get(t.Context(), who.ID)
	if err != nil {
		t.Fatal(err)
	}
	var word struct{ Session string }
	if err := json.Unmarshal(entry.Value(), &word); err != nil || word.Session == "" {
		t.Fatalf("%s, %v", entry.Value(), err)
	}
	return word.Session
}

func TestHUB_02_WhatNobodyOfTheTeamSignedIsNotHeard(t *testing.T) {
	n := hubtest.Start(t)
	a, b := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk"))
	removed, stranger := n.Enrol("old"), hubtest.PC{Identity: identity(t), Name: "stranger"}
	n.Remove(removed)
	twin := n.Enrol("laptop") // a second one of that name: the hub said so last
	n.Note(a.ID, subject.Member{Name: "laptop"})
	known := n.Enrol("known") // the roster is read in order: what stood before this was read, too
	b.await("the whole roster", func() bool { _, err := b.Of(known.ID); return err == nil })
	a.await("the whole roster", func() bool { _, err := a.Of(known.ID); return err == nil })
	a.sees(b, true)
	b.sees(a, true)
	whole, err := wire.EncodeWhole(remote.Frame{Type: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	now := session(t, n, b)
	frame := func(session string) []byte { return append([]byte(session), whole.Head...) }
	under := func(from hubtest.PC) string {
		return subject.Subject{Team: hubtest.Team, From: from.ID, To: b.ID, Sort: subject.Frame}.String()
	}
	number := time.Now().UnixNano()
	numbered := func(identity link.Identity, at string, body []byte) *nats.Msg {
		number++
		return hubtest.Signed(identity, at, number, body)
	}
	replayed := numbered(a.Identity, under(a.PC), frame(now))
	tests := map[string]*nats.Msg{
		"unsigned":              {Subject: under(a.PC), Data: frame(now)},
		"signed by another":     numbered(removed.Identity, under(a.PC), frame(now)),
		"of a stranger":         numbered(stranger.Identity, under(stranger), frame(now)),
		"of who was removed":    numbered(removed.Identity, under(removed), frame(now)),
		"of an earlier name":    numbered(twin.Identity, under(twin), frame(now)),
		"to an earlier process": numbered(a.Identity, under(a.PC), frame(strings.Repeat("0", 32))),
		"cut short":             numbered(a.Identity, under(a.PC), frame(now)[:40]),
		"no frame":              numbered(a.Identity, under(a.PC), []byte(now)),
		"too large":             numbered(a.Identity, under(a.PC), []byte(now+"\xff\xff\xff\xff")),
	}
	publish := func(msg *nats.Msg) {
		t.Helper()
		if err := n.Admin().PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	for _, msg := range tests {
		publish(msg)
	}
	publish(replayed)
	publish(replayed)
	if err := n.Admin().FlushTimeout(time.Minute); err != nil { // they come before what another connection says next
		t.Fatal(err)
	}
	if got := b.next("the frame that is right"); got.frame.Type != "forged" || got.from.Name != "laptop" {
		t.Fatalf("it heard %+v", got)
	}
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "last"}); err != nil {
		t.Fatal(err)
	}
	if got := b.next("what came after it"); got.frame.Type != "last" {
		t.Errorf("it heard %+v, too", got)
	}
	// All of it is counted, under the name that it stood under.
	got := map[string]int64{}
	for _, d := range b.Drops() {
		got[d.PC.Name+" "+string(d.Why)] += d.Count
		if age := clock().Sub(d.Last); age < 0 || age > 2*time.Minute {
			t.Errorf("%+v is dated %s", d, d.Last)
		}
	}
	want := map[string]int64{
		"laptop unsigned": 2, " stranger": 1, "old stranger": 1, "laptop stranger": 1, "laptop late": 1, "laptop malformed": 2, "laptop too large": 1, "laptop replayed": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("dropped were %v, want %v", got, want)
	}
	if _, err := a.Of(twin.ID); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("who has another's name is known: %v", err)
	}
}

func TestHUB_02_WhatAPCSaidBeforeItsRestartIsNotHeardAgain(t *testing.T) {
	n := hubtest.Start(t)
	a, b := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk"))
	first := a.sees(b, true)
	b.sees(a, true)
	tap, err := n.Admin().SubscribeSync(subject.Frames(hubtest.Team, b.ID))
	if err == nil {
		err = n.Admin().Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "once"}); err != nil {
		t.Fatal(err)
	}
	b.next("the frame")
	msg, err := tap.NextMsg(2 * time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	b.sees(a, false)
	again := open(t, n, a.PC)
	if second := b.sees(again, true); !second.Since.After(first.Since) {
		t.Fatalf("the new process is not seen: %+v", second)
	}
	again.sees(b, true)
	if err := n.Admin().PublishMsg(msg); err != nil {
		t.Fatal(err)
	}
	b.await("the name of what came again", func() bool { return len(b.Drops()) == 1 && b.Drops()[0].Why == hub.Replayed })
	if err := again.Send(t.Context(), b.ID, remote.Frame{Type: "new"}); err != nil {
		t.Fatal(err)
	}
	if got := b.next("what the new process says"); got.frame.Type != "new" {
		t.Errorf("it heard %s", got.frame.Type)
	}
}

// What a PC says is heard, however its clock stands; and what it said before it ended
// does not bring it back.
func TestHUB_02_AClockThatWasPutBackSilencesNobody(t *testing.T) {
	n := hubtest.Start(t)
	a, b := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk"))
	words, err := n.Admin().SubscribeSync(subject.BucketKey(subject.PresenceBucket(hubtest.Team), a.ID))
	if err == nil {
		err = n.Admin().Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	b.sees(a, true)
	a.sees(b, true)
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "before"}); err != nil {
		t.Fatal(err)
	}
	b.next("the frame")
	msg, err := words.NextMsg(2 * time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	b.sees(a, false)
	if err := n.Admin().PublishMsg(&nats.Msg{Subject: msg.Subject, Header: msg.Header, Data: msg.Data}); err != nil {
		t.Fatal(err)
	}
	b.sees(open(t, n, n.Enrol("third")), true) // what came before it was taken
	for _, status := range b.Status() {
		if status.ID == a.ID && status.Up {
			t.Errorf("an earlier word brought it back: %+v", status)
		}
	}
	again := open(t, n, a.PC, func(opts *hub.Options) {
		opts.Now = func() time.Time { return clock().Add(-24 * time.Hour) }
	})
	b.sees(again, true)
	again.sees(b, true)
	if err := again.Send(t.Context(), b.ID, remote.Frame{Type: "after"}); err != nil {
		t.Fatal(err)
	}
	if got := b.next("what it says a day before"); got.frame.Type != "after" {
		t.Errorf("it heard %s", got.frame.Type)
	}
}

func identity(t *testing.T) link.Identity {
	t.Helper()
	identity, err := link.OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func TestHUB_02_OnlyTheHubSaysWhoBelongsToTheTeam(t *testing.T) {
	n := hubtest.Start(t)
	a, b := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk"))
	a.sees(b, true)
	stranger := identity(t)
	entry, err := subject.Member{Name: "evil"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	number := time.Now().UnixNano()
	n.Seal(stranger, stranger.ID, number, entry)                               // by itself
	n.Seal(b.Identity, a.ID, number, []byte(`{"name":"desk","removed":true}`)) // by another
	subscription, err := n.Admin().SubscribeSync(subject.BucketKey(subject.RosterBucket(hubtest.Team), "*"))
	if err == nil {
		err = n.Admin().Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	third := n.Enrol("third") // and then the hub does
	earlier, err := subscription.NextMsg(2 * time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a.await("the third", func() bool { _, err := a.Of(third.ID); return err == nil })
	if _, err := a.Of(stranger.ID); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("who named itself is known: %v", err)
	}
	unsealed := map[string]int64{}
	for _, d := range a.Drops() {
		unsealed[d.PC.Name+" "+string(d.Why)] += d.Count
	}
	if !maps.Equal(unsealed, map[string]int64{" unsealed": 1, "laptop unsealed": 1}) {
		t.Errorf("dropped were %v", unsealed)
	}
	if b.Removed() || a.Removed() {
		t.Error("a PC removed another one")
	}
	n.Remove(third)
	a.await("the end of the third", func() bool { _, err := a.Of(third.ID); return bridge.CodeOf(err) == bridge.Unauthorized })
	if err := n.Admin().PublishMsg(&nats.Msg{Subject: earlier.Subject, Data: earlier.Data}); err != nil { // what the hub said before it removed it
		t.Fatal(err)
	}
	n.Remove(b.PC)
	b.await("its own end", b.Removed)
	a.await("the end of desk", func() bool { _, err := a.Of(b.ID); return bridge.CodeOf(err) == bridge.Unauthorized })
	if _, err := a.Of(third.ID); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("an earlier word of the hub's took a removed PC in again: %v", err)
	}
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "x"}); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("to who was removed: %v", err)
	}
}

// An entry of the roster that the engine was storing when a PC read it is heard by no
// live word either: who speaks and is not known is looked up again.
func TestHUB_04_WhomTheRosterLackedIsLookedUp(t *testing.T) {
	n := hubtest.Start(t)
	pc := n.Enrol("laptop")
	n.Deafen(pc)
	a := open(t, n, pc)
	a.await("the way to the hub", func() bool { return a.State().Up })
	b := open(t, n, n.Enrol("desk"))
	a.sees(b, true)
}

func TestHUB_04_CommandsFailAtOnceWhileTheHubIsAway(t *testing.T) {
	n := hubtest.Start(t)
	a, b := open(t, n, n.Enrol("laptop"), soon), open(t, n, n.Enrol("desk"), soon)
	before := a.sees(b, true)
	b.sees(a, true)
	n.Stop()
	a.sees(b, false)
	b.sees(a, false) // or it hears nothing of what comes next, and does not know that
	began := clock()
	err := a.Send(t.Context(), b.ID, remote.Frame{Type: "x"})
	if bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), "desk") || !strings.Contains(err.Error(), "the team's hub cannot be reached") {
		t.Errorf("it says %v", err)
	}
	if took := clock().Sub(began); took > time.Second {
		t.Errorf("it said so after %s", took)
	}
	n.Resume()
	after := a.sees(b, true)
	b.sees(a, true)
	if !after.Since.After(before.Since) {
		t.Errorf("it is up since %s, and was since %s", after.Since, before.Since)
	}
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "again"}); err != nil {
		t.Fatal(err)
	}
	if got := b.next("a frame"); got.frame.Type != "again" {
		t.Errorf("it heard %s: what was refused was sent", got.frame.Type)
	}
}

func TestHUB_08_WhoGoesIsSeenToGo(t *testing.T) {
	n := hubtest.Start(t)
	dead, release := make(chan struct{}), make(chan struct{})
	mortal := func(o *hub.Options) {
		o.Timing.TTL = 2 * time.Second
		word := o.Word
		o.Word = func() hub.Announcement {
			select {
			case <-dead:
				<-release // it announces itself no more
			default:
			}
			return word()
		}
	}
	a, b, c := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk")), open(t, n, n.Enrol("dead"), mortal)
	t.Cleanup(func() { close(release) }) // before c closes
	a.sees(b, true)
	a.sees(c, true)
	close(dead)
	gone := a.sees(c, false)
	if !strings.Contains(gone.Failed, "not connected to the team's hub") {
		t.Errorf("it says %q", gone.Failed)
	}
	if status, _ := a.Of(b.ID); !status.Up {
		t.Error("who goes on speaking is gone, too")
	}
	first := a.sees(b, true)
	b.Close()
	a.sees(b, false)
	again := open(t, n, b.PC)
	if second := a.sees(again, true); !second.Since.After(first.Since) {
		t.Error("a new process is not told from the one before")
	}
}

// TestHUB_07_APCLeavesANodeThatDoesNotTakeItsWord: it can be reached, and has lost the
// others.
func TestHUB_07_APCLeavesANodeThatDoesNotTakeItsWord(t *testing.T) {
	n := hubtest.Start(t)
	pc := n.Enrol("laptop")
	alone, err := natsserver.NewServer(&natsserver.Options{ServerName: "hub-2", Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, AlwaysEnableNonce: true, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	alone.Start()
	t.Cleanup(alone.Shutdown)
	if !alone.ReadyForConnections(time.Minute) {
		t.Fatal("the other node does not come up")
	}
	n.Stop() // so that this is the node to which it comes
	a := open(t, n, pc, func(o *hub.Options) {
		o.URLs = []string{n.URL(), alone.ClientURL()}
		o.Timing.Presence, o.Timing.Answer = time.Hour, time.Second
	})
	a.await("the other node", func() bool { return strings.Contains(a.State().Failed, "no responders") })
	n.Resume()
	a.await("the node that has the team", func() bool { return a.State().Up })
	if server := a.State().Server; server != "hub-1" {
		t.Errorf("it is at %q", server)
	}
}

func TestHUB_08_TheLastWordOfWhoGoesIsThatItGoes(t *testing.T) {
	n := hubtest.Start(t)
	forever := func(opts *hub.Options) { opts.Timing.TTL = time.Hour }
	always := func(opts *hub.Options) { opts.Timing.Presence = time.Millisecond }
	a := open(t, n, n.Enrol("laptop"), forever)
	for _, name := range []string{"desk", "nas", "tower"} {
		b := open(t, n, n.Enrol(name), always)
		a.sees(b, true)
		b.Close()
		a.sees(b, false)
		c := open(t, n, n.Enrol(name+"-2")) // what was said before is heard by then
		a.sees(c, true)
		if status, err := a.Of(b.ID); err != nil || status.Up {
			t.Errorf("%s has gone, and is %+v, %v", name, status, err)
		}
	}
}

func TestHUB_04_MemoryStaysFlatUnderAFlood(t *testing.T) {
	n := hubtest.Start(t)
	held := make(chan struct{})
	a := open(t, n, n.Enrol("laptop"))
	b := open(t, n, n.Enrol("desk"), func(o *hub.Options) {
		o.Handle = func(remote.PC, remote.Frame) { <-held }
	})
	t.Cleanup(func() { close(held) })
	a.sees(b, true)
	b.sees(a, true)
	body := make([]byte, 256<<10)
	flood := func(frames int) uint64 {
		for range frames {
			if err := a.SendBulk(t.Context(), b.ID, remote.Frame{Type: "x", Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := flood(0)
	const frames = 800 // 200 MiB, in the same process on both ends
	after := flood(frames)
	if grown := int64(after) - int64(before); grown > 100<<20 {
		t.Errorf("after %d MiB the heap has grown by %d MiB", frames/4, grown>>20)
	} else {
		t.Logf("after %d MiB the heap has grown by %d MiB", frames/4, grown>>20)
	}
	b.await("the flood's name", func() bool { // 16 MiB wait, and one is handled: 800 less 64 or 65 are too many
		drops := b.Drops()
		return len(drops) > 0 && drops[0].PC.Name == "laptop" && drops[0].Why == hub.Flooded && drops[0].Count >= 512
	})
}

func TestHUB_04_AFrameOverTheServersLimitIsNamed(t *testing.T) {
	n := hubtest.Start(t, func(o *natsserver.Options) { o.MaxPayload = 64 << 10 }) // a server of their own
	a, b := open(t, n, n.Enrol("laptop")), open(t, n, n.Enrol("desk"))
	a.sees(b, true)
	err := a.Send(t.Context(), b.ID, remote.Frame{Type: "x", Body: make([]byte, 64<<10)})
	if bridge.CodeOf(err) != bridge.TooLarge || !strings.Contains(err.Error(), "takes 65536") {
		t.Errorf("it says %v", err)
	}
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "x", Body: make([]byte, 32<<10)}); err != nil {
		t.Error(err)
	}
	b.next("what fits")
}

// Whoever writes over a PC's word that it is there is answered by the PC: who comes
// afterwards finds it there.
func TestHUB_08_APCWhoseWordIsGoneSaysItAgain(t *testing.T) {
	n := hubtest.Start(t)
	b := open(t, n, n.Enrol("desk"))
	b.await("the way to the hub", func() bool { return b.State().Up })
	at := subject.BucketKey(subject.PresenceBucket(hubtest.Team), b.ID)
	if _, err := n.Admin().Request(at, []byte("something else"), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	a := open(t, n, n.Enrol("laptop"), func(opts *hub.Options) { opts.Timing.Presence = time.Hour })
	a.sees(b, true)
}
