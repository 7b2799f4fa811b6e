package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

// expect waits for the server's refusal of what a PC did, and for the PC's name beside it
// in the hub's log.
func (p *pc) expect(h *hub, words ...string) {
	p.t.Helper()
	if err := next(p.t, "a refusal", p.errs); !errors.Is(err, nats.ErrPermissionViolation) {
		p.t.Errorf("%q: %v, want a violation of permissions", words, err)
	}
	h.log.await(p.t, append(words, p.name+" ("+link.Fingerprint(p.identity.ID)+")")...)
}

// isTold waits until the team is told that the hub refused a PC that.
func (h *hub) isTold(subscription *nats.Subscription, of *pc, why string) {
	h.t.Helper()
	for {
		for _, line := range h.told(nextOf(h.t, subscription)).Lines {
			for _, refusal := range line.Refusals {
				if line.PC == of.identity.ID && refusal.Why == why && refusal.Count > 0 && refusal.Last > 0 {
					return
				}
			}
		}
	}
}

func TestHUB_02_WhatAPCMayNotDoIsRefusedAndNamed(t *testing.T) {
	h := openHub(t, nil)
	eve, anna, bert := h.join("eve"), h.join("anna"), h.join("bert")
	subscription := anna.hears(subject.Presence("crew", "hub-1"))
	stream, dec := subject.MessageStream("crew"), subject.DecisionStream("crew")
	for _, to := range []string{
		anna.subject(bert, subject.Frame), anna.subject(bert, subject.Message),
		subject.Subject{Team: "crew", From: anna.identity.ID, Sort: subject.Decision}.String(),
		subject.BucketKey(subject.PresenceBucket("crew"), anna.identity.ID),
		subject.BucketKey(subject.RosterBucket("crew"), eve.identity.ID),
		"$JS.API.CONSUMER.MSG.NEXT." + stream + "." + anna.identity.ID,
		"$JS.API.CONSUMER.CREATE." + stream, "$JS.API.CONSUMER.CREATE." + stream + ".own." + subject.Inbox("crew", eve.identity.ID),
		"$JS.API.CONSUMER.INFO." + stream + "." + anna.identity.ID, "$JS.API.CONSUMER.DELETE." + stream + "." + anna.identity.ID,
		"$JS.API.CONSUMER.DELETE." + stream + "." + eve.identity.ID, "$JS.API.CONSUMER.DURABLE.CREATE." + stream + "." + eve.identity.ID,
		"$JS.API.CONSUMER.PAUSE." + stream + "." + anna.identity.ID, "$JS.API.CONSUMER.NAMES." + stream, "$JS.API.CONSUMER.LIST." + stream,
		"$JS.API.DIRECT.GET." + stream, "$JS.API.DIRECT.GET." + stream + "." + anna.subject(bert, subject.Message), "$JS.API.STREAM.INFO." + stream,
		"$JS.API.STREAM.MSG.GET." + stream, "$JS.API.STREAM.MSG.DELETE." + stream, "$JS.API.STREAM.UPDATE." + stream, "$JS.API.STREAM.CREATE.own",
		"$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.PURGE." + dec, "$JS.API.STREAM.DELETE." + stream,
		"$JS.ACK." + stream + "." + anna.identity.ID + ".1.1.1.1.0",
		subject.Refused("crew", "hub-1", anna.identity.ID), subject.Presence("crew", "hub-1"),
		"bridge.hub.hub-1.remove", "bridge.hub.hub-1.invite", "_INBOX_" + anna.identity.ID + ".x", "$SYS.REQ.SERVER.PING", "anything",
	} {
		if err := eve.conn.Publish(to, []byte("mine")); err != nil {
			t.Fatal(err)
		}
		eve.expect(h, "Publish Violation", to)
	}
	for _, from := range []string{
		subject.Inbox("crew", anna.identity.ID), subject.Frames("crew", anna.identity.ID), subject.InboxPrefix(anna.identity.ID) + ".>",
		"bridge.>", ">", "_INBOX.>", "$JS.>", "bridge.hub.>", subject.MessageSubjects("crew"), "$SYS.>",
	} {
		if _, err := eve.conn.SubscribeSync(from); err != nil {
			t.Fatal(err)
		}
		eve.expect(h, "Subscription Violation", from)
	}
	if err := anna.send(bert, "still here"); err != nil || string(bert.take(1)[0].Data()) != "still here" {
		t.Errorf("the others do not get on: %v", err)
	}
	h.isTold(subscription, eve, subject.RefusedForbidden)
	if err := h.dialStatus(); err != nil {
		t.Error(err)
	}
}

// TestHUB_02_ThePageNamesWhomTheHubRefused: what the team is told of it each PC shows beside
// what it dropped itself. Nobody but the hub can say such a thing.
func TestHUB_02_ThePageNamesWhomTheHubRefused(t *testing.T) {
	h := openHub(t, nil)
	eve, anna, bert := h.join("eve"), h.join("anna"), h.enrol("bert")
	page, changed := bert.client()
	drops := func() (words []string) {
		for _, d := range page.Drops() {
			words = append(words, fmt.Sprintf("%d × %s, hostile %v", d.Count, d.Words(), d.Hostile()))
		}
		return words
	}
	await := func(want ...string) {
		t.Helper()
		for late := time.After(testkit.Patience); ; {
			got := drops()
			if slices.Sort(got); slices.Equal(got, want) {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("it shows %q, want %q", got, want)
			}
		}
	}
	// Eve has the engine answer where only nodes of the hub speak, as if anna had been refused.
	key := subject.BucketKey(subject.PresenceBucket("crew"), eve.identity.ID)
	if _, err := eve.js.Publish(t.Context(), key, []byte(`{"why":"forbidden","count":9,"last":9}`)); err != nil {
		t.Fatal(err)
	}
	forged := subject.Refused("crew", "hub-1", anna.identity.ID)
	if err := eve.conn.PublishRequest("$JS.API.DIRECT.GET."+subject.BucketStream(subject.PresenceBucket("crew"))+"."+key, forged, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := eve.conn.Publish(anna.subject(eve, subject.Frame), []byte("as anna")); err != nil {
			t.Fatal(err)
		}
	}
	await("2 × tried by eve at the hub, and not allowed there, hostile true")
	if _, err := eve.conn.SubscribeSync(subject.Inbox("crew", anna.identity.ID)); err != nil {
		t.Fatal(err)
	}
	if err := eve.conn.Publish("anything", nil); err != nil { // a fourth time
		t.Fatal(err)
	}
	await("4 × tried by eve at the hub, and not allowed there, hostile true")
	_, _ = eve.raw().Write([]byte("PUB " + eve.subject(anna, subject.Frame) + " 104857600\r\n"))
	await("1 × sent by eve to the hub, and larger than it takes, hostile true", "4 × tried by eve at the hub, and not allowed there, hostile true")
}

// TestHUB_02_NobodyTakesOutWhatLiesThereForAnother: whoever may acknowledge under its own
// consumer may name any message there.
func TestHUB_02_NobodyTakesOutWhatLiesThereForAnother(t *testing.T) {
	h := openHub(t, nil)
	eve, anna, bert := h.join("eve"), h.join("anna"), h.join("bert")
	for _, text := range []string{"first", "second"} {
		if err := anna.send(bert, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := anna.send(eve, "for eve"); err != nil { // so that her consumer is past the others
		t.Fatal(err)
	}
	eve.take(1)
	for sequence := range 4 {
		for _, word := range []string{"+ACK", "+TERM", "-NAK"} {
			at := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.1.1.0", subject.MessageStream("crew"), eve.identity.ID, sequence)
			if err := eve.conn.Publish(at, []byte(word)); err != nil {
				t.Fatal(at, word, err)
			}
		}
	}
	if err := anna.send(eve, "more for eve"); err != nil {
		t.Fatal(err)
	}
	eve.take(1) // what her consumer was told before this is done
	for _, text := range []string{"first", "second"} {
		if got := bert.take(1); string(got[0].Data()) != text {
			t.Errorf("bert took %q, want %q", got[0].Data(), text)
		}
	}
}

func (h *hub) dialStatus() error {
	_, err := h.dial().Status(h.t.Context())
	return err
}

func TestHUB_02_AFrameOf100MiBEndsTheConnectionThatSentIt(t *testing.T) {
	h := openHub(t, nil)
	eve, anna, bert := h.enrol("eve"), h.join("anna"), h.join("bert")
	subscription := anna.hears(subject.Presence("crew", "hub-1"))
	// The client library refuses by itself what the server does not take, so what speaks
	// here is the protocol.
	raw := eve.raw()
	_, _ = raw.Write([]byte("PUB " + eve.subject(bert, subject.Frame) + " 104857600\r\n" + strings.Repeat("x", 1<<20)))
	buf := make([]byte, 64<<10)
	said := ""
	_ = raw.SetReadDeadline(time.Now().Add(testkit.Patience))
	for {
		n, err := raw.Read(buf)
		said += string(buf[:n])
		if err != nil {
			break
		}
	}
	if !strings.Contains(said, "Maximum Payload Violation") {
		t.Errorf("the server said %q", said)
	}
	h.log.await(t, "maximum payload exceeded", "104857600", "eve ("+link.Fingerprint(eve.identity.ID)+")")
	h.isTold(subscription, eve, subject.RefusedTooLarge)
	if err := anna.conn.Publish(anna.subject(bert, subject.Message), make([]byte, 1_064_961)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("one byte over the limit: %v", err)
	}
	if err := anna.send(bert, strings.Repeat("x", 1<<20)); err != nil || len(bert.take(1)[0].Data()) != 1<<20 {
		t.Errorf("a full frame: %v", err)
	}
}

// raw is a connection of the PC's, logged in, without a client that would hold back
// anything.
func (p *pc) raw() net.Conn {
	p.t.Helper()
	raw, err := tls.Dial("tcp", strings.TrimPrefix(p.member.URLs[0], "tls://"), link.Pinned(p.member.Hub))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(testkit.Patience))
	line, err := bufio.NewReader(raw).ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	var info struct{ Nonce string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info); err != nil {
		p.t.Fatal(err)
	}
	pair, err := nkeys.FromSeed([]byte(p.member.Seed))
	if err != nil {
		p.t.Fatal(err)
	}
	key, _ := pair.PublicKey()
	sig, _ := pair.Sign([]byte(info.Nonce))
	login, _ := json.Marshal(map[string]any{"verbose": false, "protocol": 1, "headers": true, "nkey": key, "sig": base64.RawURLEncoding.EncodeToString(sig)})
	if _, err := raw.Write([]byte("CONNECT " + string(login) + "\r\n")); err != nil {
		p.t.Fatal(err)
	}
	return raw
}

func TestHUB_02_NobodyWithoutAKeyOfTheTeamGetsIn(t *testing.T) {
	h := openHub(t, nil)
	anna, other := h.join("anna"), openHub(t, nil).join("anna")
	stranger := *other
	stranger.member.URLs, stranger.member.Hub = anna.member.URLs, anna.member.Hub
	if err := stranger.connect(false); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a PC of another team: %v", err)
	}
	h.log.await(t, "its key belongs to no PC of the team")
	for name, options := range map[string][]nats.Option{
		"no key": nil, "a name and a password": {nats.UserInfo("hub", "hub")}, "a token": {nats.Token("x")},
	} {
		options = append(options, nats.Secure(link.Pinned(anna.member.Hub)), nats.TLSHandshakeFirst(), nats.NoReconnect(), nats.Timeout(testkit.Patience))
		if conn, err := nats.Connect(anna.member.URLs[0], options...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
			conn.Close()
		}
	}
	if conn, err := nats.Connect(strings.Replace(anna.member.URLs[0], "tls", "nats", 1), nats.NoReconnect(), nats.Timeout(10*time.Second)); err == nil {
		conn.Close()
		t.Error("a connection without TLS")
	}
	wrong := *anna
	wrong.member.Hub = strings.Repeat("0", 64)
	if err := wrong.connect(false); err == nil {
		t.Error("a PC talked to a hub that is not the one it joined")
	}
}

// TestHUB_02_TheEnginesAnswersProveNobody: who asks the engine chooses where the answer
// goes, also to a subject that it may not publish to. What arrives there is not signed by
// the PC that the subject names.
func TestHUB_02_TheEnginesAnswersProveNobody(t *testing.T) {
	h := openHub(t, nil)
	eve, anna, bert := h.join("eve"), h.join("anna"), h.join("bert")
	heard := make(chan *nats.Msg, 100)
	if _, err := bert.conn.ChanSubscribe(subject.Frames("crew", bert.identity.ID), heard); err != nil {
		t.Fatal(err)
	}
	if err := bert.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	key := subject.BucketKey(subject.PresenceBucket("crew"), eve.identity.ID)
	if _, err := eve.js.Publish(t.Context(), key, []byte(`{"type":"remote-job"}`)); err != nil {
		t.Fatal(err)
	}
	forged := anna.subject(bert, subject.Frame)
	if err := eve.conn.PublishRequest("$JS.API.DIRECT.GET."+subject.BucketStream(subject.PresenceBucket("crew"))+"."+key, forged, nil); err != nil {
		t.Fatal(err)
	}
	msg := next(t, "the answer under a subject of another PC", heard)
	if msg.Subject != forged || string(msg.Data) != `{"type":"remote-job"}` {
		t.Fatalf("the engine closes this by itself now: %s %q", msg.Subject, msg.Data)
	}
	if proof, err := subject.ParseProof(msg.Header.Get); err == nil && proof.Check(anna.identity.ID, msg.Subject, msg.Data) == nil {
		t.Error("what eve had sent is taken as anna's")
	}
	// What anna signs is.
	at := time.Now().UnixNano()
	k, sig := anna.identity.Sign(subject.Signed(forged, at, []byte("hello")))
	out := nats.NewMsg(forged)
	out.Data = []byte("hello")
	for name, value := range (subject.Proof{Key: k, Number: at, Signature: sig}).Headers() {
		out.Header.Set(name, value)
	}
	if err := anna.conn.PublishMsg(out); err != nil {
		t.Fatal(err)
	}
	msg = next(t, "anna's own words", heard)
	proof, err := subject.ParseProof(msg.Header.Get)
	if err != nil || proof.Check(anna.identity.ID, msg.Subject, msg.Data) != nil {
		t.Errorf("anna's own words are refused: %v", err)
	}
}

func TestHUB_02_AReplayedMessageIsStoredOnce(t *testing.T) {
	h := openHub(t, nil)
	eve, bert := h.join("eve"), h.join("bert")
	for i := range 3 {
		ack, err := eve.js.Publish(t.Context(), eve.subject(bert, subject.Message), []byte("again"), jetstream.WithMsgID("one"))
		if err != nil || ack.Duplicate != (i > 0) {
			t.Errorf("time %d: %+v, %v", i, ack, err)
		}
	}
	if status, err := h.dial().Status(t.Context()); err != nil || status.Waiting != 1 {
		t.Errorf("%d wait (%v)", status.Waiting, err)
	}
}

func TestHUB_02_AFloodIsCutOffAndNamed(t *testing.T) {
	h := openHub(t, nil)
	eve, anna, bert := h.join("eve"), h.join("anna"), h.join("bert")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	flooded, subscription := eve.subject(bert, subject.Frame), anna.hears(subject.Presence("crew", "hub-1"))
	for ctx.Err() == nil && !eve.conn.IsClosed() {
		_ = eve.conn.Publish(flooded, []byte("x"))
	}
	h.log.await(t, "a PC floods the hub", "eve ("+link.Fingerprint(eve.identity.ID)+")")
	h.isTold(subscription, eve, subject.RefusedFlooding)
	if err := eve.connect(false); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("it comes again at once: %v", err)
	}
	if err := anna.send(bert, "still here"); err != nil || string(bert.take(1)[0].Data()) != "still here" {
		t.Errorf("the others do not get on: %v", err)
	}
}

func TestHUB_02_WhatIsAFlood(t *testing.T) {
	tests := []struct {
		name string
		sent []flow // at each look
		want bool
	}{
		{"as many as may be, at once", []flow{{25_000, 0}}, false},
		{"one more", []flow{{25_001, 0}}, true},
		{"as many in a window", []flow{{5000, 0}, {10000, 0}, {15000, 0}, {20000, 0}, {25000, 0}}, false},
		{"as many in each window", []flow{{5000, 0}, {10000, 0}, {15000, 0}, {20000, 0}, {25000, 0}, {30000, 0}, {35000, 0}}, false},
		{"more within a later window", []flow{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {12500, 0}, {25001, 0}}, true},
		{"as many bytes as may be", []flow{{1, 768 << 20}}, false},
		{"one byte more", []flow{{1, 768<<20 + 1}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			watch := flood{seen: map[uint64][]flow{}}
			var over bool
			for _, sent := range tt.sent {
				over = len(watch.look(map[uint64]flow{7: sent})) > 0
			}
			if over != tt.want {
				t.Errorf("a flood: %v, want %v", over, tt.want)
			}
			if watch.look(nil); len(watch.seen) != 0 {
				t.Error("a connection that ended is remembered")
			}
		})
	}
}

func TestHUB_02_WhatWaitsFromOnePCForAnotherIsBounded(t *testing.T) {
	h := openHub(t, nil)
	client := h.dial()
	stream, err := client.js.Stream(t.Context(), subject.MessageStream("crew"))
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	if config.MaxAge != 30*24*time.Hour || config.MaxBytes != 1<<30/4*3 || config.Storage != jetstream.FileStorage {
		t.Errorf("what lies in it is bounded by %v and %d bytes, in %v", config.MaxAge, config.MaxBytes, config.Storage)
	}
	if config.MaxMsgsPerSubject != 10_000 || !config.DiscardNewPerSubject || config.Discard != jetstream.DiscardNew || config.Retention != jetstream.WorkQueuePolicy {
		t.Errorf("the stream of messages is %+v", config)
	}
}
