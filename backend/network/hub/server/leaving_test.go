package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	teamhub "bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
)

func (h *hub) names() []string {
	h.t.Helper()
	members, err := h.dial().PCs(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

func TestHUB_03_WhoLeavesIsTakenOutByItsOwnWord(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.enrol("anna"), h.enrol("bert")
	annas, changed := anna.client()
	berts, bertsLook := bert.client()
	for !berts.State().Up {
		next(t, "bert's way to the hub", bertsLook)
	}
	key, err := bert.member.Key()
	if err != nil {
		t.Fatal(err)
	}
	if err := teamhub.Leave(t.Context(), berts, key); err != nil {
		t.Fatal(err)
	}
	if names := h.names(); !slices.Equal(names, []string{"anna"}) {
		t.Errorf("the team is %v", names)
	}
	for {
		if _, err := annas.Of(bert.identity.ID); annas.State().Up && bridge.CodeOf(err) == bridge.Unauthorized {
			break
		}
		next(t, "that bert is of the team no more", changed)
	}
	if err := bert.connect(false); err == nil {
		t.Error("its key opens the hub still")
	}
	h.log.await(t, "a PC has left the team", "pc=bert")
}

// TestHUB_03_NobodyLeavesForAnother: a PC can have the engine repeat under another's name
// what it has stored, with that one's own signature on it.
func TestHUB_03_NobodyLeavesForAnother(t *testing.T) {
	h := openHub(t, nil)
	eve, anna := h.join("eve"), h.join("anna")
	at := subject.BucketKey(subject.PresenceBucket("crew"), anna.identity.ID)
	word := func(p *pc) []byte {
		t.Helper()
		key, err := p.member.Key()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, `{"session":%q,"gone":true,"left":%q}`, strings.Repeat("5", 32), key)
	}
	earlier := hubtest.Signed(anna.identity, at, time.Now().UnixNano(), word(anna))
	if err := anna.joinBy(h.Addresses()[0], h.dialInvite()); err != nil { // by a new key
		t.Fatal(err)
	}
	stored := subject.Subject{Team: "crew", From: eve.identity.ID, Sort: subject.Decision}.String()
	for name, forged := range map[string]*nats.Msg{
		"by another's signature":   hubtest.Signed(eve.identity, at, time.Now().UnixNano(), word(anna)),
		"without one":              {Data: word(anna)},
		"of an earlier membership": earlier,
	} {
		t.Run(name, func(t *testing.T) {
			forged.Subject = stored
			ack, err := eve.js.PublishMsg(t.Context(), forged)
			if err != nil {
				t.Fatal(err)
			}
			logged := h.log.length()
			ask := fmt.Appendf(nil, `{"seq":%d}`, ack.Sequence)
			if err := eve.conn.PublishRequest("$JS.API.DIRECT.GET."+subject.DecisionStream("crew"), at, ask); err != nil {
				t.Fatal(err)
			}
			h.log.awaitAfter(t, logged, "what a PC says of itself co")
			if names := h.names(); !slices.Equal(names, []string{"anna", "eve"}) {
				t.Errorf("the team is %v", names)
			}
		})
	}
	if err := anna.connect(true); err != nil {
		t.Fatal(err)
	}
	right := hubtest.Signed(anna.identity, at, time.Now().UnixNano(), word(anna))
	if err := anna.conn.PublishMsg(right); err != nil {
		t.Fatal(err)
	}
	h.log.await(t, "a PC has left the team", "pc=anna")
	if names := h.names(); !slices.Equal(names, []string{"eve"}) {
		t.Errorf("the team is %v", names)
	}
}

// TestHUB_02_TheHubNotesTheKeyOfWhoJoinedBefore: of a PC that opened nothing when it
// joined, others learn the key from the roster once it was there with a later release.
func TestHUB_02_TheHubNotesTheKeyOfWhoJoinedBefore(t *testing.T) {
	h := openHub(t, nil)
	anna := h.enrol("anna")
	before, err := h.roster.find("anna")
	if err != nil || before.Box != seal.Text(anna.identity.Key()) {
		t.Fatalf("it joined as %+v, %v", before, err)
	}
	before.Box = ""
	if err := record(t.Context(), h.Server, before); err != nil {
		t.Fatal(err)
	}
	h.roster.put(before)
	bucket, err := h.js.KeyValue(t.Context(), subject.RosterBucket("crew"))
	if err != nil {
		t.Fatal(err)
	}
	watch, err := bucket.Watch(t.Context(), anna.identity.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Stop() }()
	anna.client(func(opts *teamhub.Options) { opts.Open = anna.identity.Open })
	for {
		found := next(t, "the key in the roster", watch.Updates())
		if found == nil {
			continue
		}
		body, _, err := subject.Open(h.ID(), subject.BucketKey(subject.RosterBucket("crew"), anna.identity.ID), found.Value())
		if err != nil {
			t.Fatal(err)
		}
		if member, err := subject.ParseMember(body); err != nil || member == (subject.Member{Name: "anna", Box: seal.Text(anna.identity.Key())}) {
			return
		}
	}
}

// TestHUB_02_WhoWasNeverMetCanBeSealedTo: by the key that the hub passes on.
func TestHUB_02_WhoWasNeverMetCanBeSealedTo(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.enrol("anna"), h.enrol("bert")
	sender, changed := bert.client(func(opts *teamhub.Options) { opts.Seal = func() bool { return true } })
	for !sender.State().Up || known(sender, anna) != nil {
		next(t, "the way to anna", changed)
	}
	if names := teamhub.Keyless(sender); len(names) != 0 {
		t.Errorf("without a key are %v", names)
	}
	if err := sender.Inbox.Store(t.Context(), anna.identity.ID, remote.Frame{Type: "x", Payload: []byte(`"secret"`)}); err != nil {
		t.Fatal(err)
	}
	if err := anna.connect(true); err != nil {
		t.Fatal(err)
	}
	msg := anna.take(1)[0]
	if body, err := anna.identity.Open(msg.Subject(), msg.Data()); err != nil || !strings.Contains(string(body), "secret") || strings.Contains(string(msg.Data()), "secret") {
		t.Errorf("it opens as %q, %v", body, err)
	}
}

func known(client *teamhub.Hub, other *pc) error {
	_, err := client.Of(other.identity.ID)
	return err
}
