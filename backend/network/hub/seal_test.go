package hub_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/wire"
)

// opens has a PC open what is sealed to it, and sealing seal what it says.
func opens(pc hubtest.PC) func(*hub.Options) {
	return func(opts *hub.Options) { opts.Open = pc.Open }
}

func sealing(opts *hub.Options) { opts.Seal = func() bool { return true } }

// carried is all that the server hears or has stored of a team.
type carried struct {
	t     *testing.T
	heard *nats.Subscription
	msgs  []*nats.Msg
}

func carries(t *testing.T, n *hubtest.NATS) *carried {
	t.Helper()
	subscription, err := n.Admin().SubscribeSync("bridge.v1.>")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = subscription.Unsubscribe() })
	return &carried{t: t, heard: subscription}
}

// has lists what was carried with those words in it or in its subject, as soon as there
// are that many.
func (c *carried) has(words string, atLeast int) (found []*nats.Msg) {
	c.t.Helper()
	read := 0
	for {
		for ; read < len(c.msgs); read++ {
			if msg := c.msgs[read]; bytes.Contains(msg.Data, []byte(words)) || strings.Contains(msg.Subject, words) {
				found = append(found, msg)
			}
		}
		if waiting, _, _ := c.heard.Pending(); waiting == 0 && len(found) >= atLeast {
			return found
		}
		msg, err := c.heard.NextMsg(2 * time.Minute)
		if err != nil {
			c.t.Fatalf("%d of %d with %s: %v", len(found), atLeast, words, err)
		}
		c.msgs = append(c.msgs, msg)
	}
}

const secret = "nobody but desk reads this"

// TestHUB_02_WhatIsSealedOnlyItsReceiverReads: frames and what lies at the hub, by a real
// server and with its own eyes; without network.hub.seal these see it.
func TestHUB_02_WhatIsSealedOnlyItsReceiverReads(t *testing.T) {
	for name, seals := range map[string]bool{"sealed": true, "readable": false} {
		t.Run(name, func(t *testing.T) {
			n := hubtest.Start(t)
			sees := carries(t, n)
			pc, other := n.Enrol("laptop"), n.Enrol("desk")
			lay := newLying()
			a := open(t, n, pc, opens(pc), func(opts *hub.Options) { opts.Seal = func() bool { return seals } })
			b := open(t, n, other, opens(other), lay.take)
			a.sees(b, true)
			b.sees(a, true)
			frame := remote.Frame{Type: "x", Payload: []byte(`"` + secret + `"`), Body: []byte(secret)}
			if err := a.Send(t.Context(), b.ID, frame); err != nil {
				t.Fatal(err)
			}
			if err := a.SendBulk(t.Context(), b.ID, frame); err != nil {
				t.Fatal(err)
			}
			if err := a.Inbox.Store(t.Context(), b.ID, frame); err != nil {
				t.Fatal(err)
			}
			got := []remote.Frame{b.next("the frame").frame, b.next("the one in bulk").frame}
			stored := stores(t, n, secret) // while it lies there
			got = append(got, (<-lay.came).frame)
			lay.answer <- nil
			for _, frame := range got {
				if frame.Type != "x" || string(frame.Body) != secret || string(frame.Payload) != `"`+secret+`"` {
					t.Errorf("it opened %+v", frame)
				}
			}
			if err := n.Admin().Flush(); err != nil {
				t.Fatal(err)
			}
			if all := len(sees.has(pc.ID+"."+other.ID, 3)); all != 3 {
				t.Errorf("the server carried %d, want 3: this test did not look where they are", all)
			}
			if heard := len(sees.has(secret, 0)); (heard == 0) != seals || stored == seals {
				t.Errorf("the server read it %d times, and in its store: %v", heard, stored)
			}
			// What is not sealed is heard: the setting is about what a PC itself says.
			if err := b.Send(t.Context(), a.ID, remote.Frame{Type: "open"}); err != nil {
				t.Fatal(err)
			}
			if got := a.next("what is not sealed"); got.frame.Type != "open" {
				t.Errorf("it heard %+v", got)
			}
		})
	}
}

// stores reports whether the server's stream of messages has those words.
func stores(t *testing.T, n *hubtest.NATS, words string) bool {
	t.Helper()
	msg, err := n.Admin().Request("$JS.API.STREAM.MSG.GET."+subject.MessageStream(hubtest.Team), []byte(`{"seq":1}`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Message struct {
			Data []byte `json:"data"`
		} `json:"message"`
	}
	if err := bridge.DecodeAdditive(msg.Data, 1<<20, &answer); err != nil || len(answer.Message.Data) == 0 {
		t.Fatalf("the stream has %s, %v", msg.Data, err)
	}
	return bytes.Contains(answer.Message.Data, []byte(words))
}

// TestHUB_02_WhatWasSealedIsNobodyElsesWord: nobody changes it, says it again, or says it
// as the own; what cannot be opened is counted.
func TestHUB_02_WhatWasSealedIsNobodyElsesWord(t *testing.T) {
	n := hubtest.Start(t)
	sees := carries(t, n)
	pc, other, third := n.Enrol("laptop"), n.Enrol("desk"), n.Enrol("eve")
	a, b := open(t, n, pc, opens(pc), sealing), open(t, n, other, opens(other))
	eve := open(t, n, third, opens(third))
	a.sees(b, true)
	b.sees(a, true)
	b.sees(eve, true)
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "x", Body: []byte(secret)}); err != nil {
		t.Fatal(err)
	}
	b.next("the frame")
	if err := n.Admin().Flush(); err != nil {
		t.Fatal(err)
	}
	sent := sees.has(pc.ID+"."+other.ID, 1)[0]
	changed := *sent
	changed.Data = slices.Clone(sent.Data)
	changed.Data[len(changed.Data)-1] ^= 1
	const session = 32
	fromEve := subject.Subject{Team: hubtest.Team, From: eve.ID, To: b.ID, Sort: subject.Frame}.String()
	toEve, err := seal.Seal(third.Key(), fromEve, []byte("to herself"))
	if err != nil {
		t.Fatal(err)
	}
	number := time.Now().UnixNano()
	for i, body := range [][]byte{sent.Data[session:], toEve, sent.Data[session : session+20]} {
		msg := hubtest.Signed(third.Identity, fromEve, number+int64(i), slices.Concat(sent.Data[:session], body))
		if err := n.Admin().PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	for _, msg := range []*nats.Msg{sent, &changed} {
		msg.Reply, msg.Sub = "", nil
		if err := n.Admin().PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Admin().Flush(); err != nil { // before what comes by another connection
		t.Fatal(err)
	}
	if err := a.Send(t.Context(), b.ID, remote.Frame{Type: "last"}); err != nil {
		t.Fatal(err)
	}
	if got := b.next("what came after it"); got.frame.Type != "last" || got.from.Name != "laptop" {
		t.Errorf("it heard %+v", got)
	}
	got := map[string]int64{}
	for _, d := range b.Drops() {
		got[d.Words()] = d.Count
	}
	for words, want := range map[string]int64{
		"said by eve, and sealed so that this PC cannot open it":                  3,
		"said by laptop once, and sent here again":                                1,
		"said in the name of laptop, and not signed with its key":                 1,
		"said by laptop, and not to be read":                                      0,
		"said by eve, and not to be read":                                         0,
		"said by laptop, and sealed so that this PC cannot open it":               0,
		"said in the name of eve, and not signed with its key":                    0,
		"said by a PC that is not in the team":                                    0,
		"said by laptop to an earlier Bridge on this PC, which had ended":         0,
		"said by eve to an earlier Bridge on this PC, which had ended":            0,
		"said by laptop, and larger than anything may be":                         0,
		"written into the list of the team about desk, and not signed by the hub": 0,
	} {
		if got[words] != want {
			t.Errorf("%d were %s, want %d (%v)", got[words], words, want, got)
		}
	}
}

// TestHUB_02_AHubThatSwapsKeysIsNotBelieved: the key is that of the identity, or none. With
// none nothing is sent.
func TestHUB_02_AHubThatSwapsKeysIsNotBelieved(t *testing.T) {
	n := hubtest.Start(t)
	sees := carries(t, n)
	pc, older, eve := n.Enrol("laptop"), n.Enrol("desk"), n.Enrol("eve")
	desk := open(t, n, older) // of a release that opens nothing
	a := open(t, n, pc, opens(pc), sealing)
	a.sees(desk, true)
	n.Note(older.ID, subject.Member{Name: "desk", Box: seal.Text(eve.Key())})
	known := n.Enrol("known") // the roster is read in order
	a.await("the whole roster", func() bool { _, err := a.Of(known.ID); return err == nil })
	frame := remote.Frame{Type: "x", Body: []byte(secret)}
	for what, err := range map[string]error{
		"a frame": a.Send(t.Context(), older.ID, frame), "in bulk": a.SendBulk(t.Context(), older.ID, frame), "to lie there": a.Inbox.Store(t.Context(), older.ID, frame),
	} {
		if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "desk has no key to seal to") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names := hub.Keyless(a.Hub); !slices.Equal(names, []string{"desk", "eve", "known"}) {
		t.Errorf("without a key are %v", names)
	}
	// Its own key counts, while it is away, too.
	desk.Close()
	n.Note(older.ID, subject.Member{Name: "desk", Box: seal.Text(older.Key())})
	a.await("the key", func() bool { return !slices.Contains(hub.Keyless(a.Hub), "desk") })
	if err := a.Inbox.Store(t.Context(), older.ID, frame); err != nil {
		t.Fatal(err)
	}
	lay := newLying()
	open(t, n, older, opens(older), lay.take)
	if got := <-lay.came; string(got.frame.Body) != secret {
		t.Errorf("it opened %+v", got.frame)
	}
	lay.answer <- nil
	if err := n.Admin().Flush(); err != nil {
		t.Fatal(err)
	}
	if all, readable := len(sees.has(pc.ID+"."+older.ID, 1)), len(sees.has(secret, 0)); all != 1 || readable != 0 {
		t.Errorf("the server carried %d, want 1, and read %d of them", all, readable)
	}
	if whole, err := wire.EncodeWhole(remote.Frame{Type: "x"}); err != nil || seal.IsSealed(whole.Head) {
		t.Errorf("what is not sealed looks as if it were: %v", err)
	}
}
