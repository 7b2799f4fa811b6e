package server

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
	"bridge/backend/testing/testkit"
)

// TestHUB_02_TheRosterIsTheHubsAlone: a PC can have the engine write its answers into the
// roster's bucket. Nobody joins by that, nobody is removed, and what the hub said is there
// again.
func TestHUB_02_TheRosterIsTheHubsAlone(t *testing.T) {
	h := openHub(t, nil)
	eve, anna := h.join("eve"), h.join("anna")
	roster := subject.RosterBucket("crew")
	own := subject.BucketKey(subject.PresenceBucket("crew"), eve.identity.ID)
	bucket, err := h.js.KeyValue(t.Context(), roster)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := h.roster.find("eve")
	if err != nil {
		t.Fatal(err)
	}
	key := pc.Key
	value := func(pc entry) []byte {
		data, err := json.Marshal(pc)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	stranger := strings.Repeat("5", 64)
	sealedBy := func(pc entry) []byte {
		data, err := subject.Seal(eve.identity.Sign, subject.BucketKey(roster, pc.ID), time.Now().UnixNano()*2, value(pc))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, forged := range map[string]struct {
		at   string
		data []byte
		head nats.Header
	}{
		"a new PC":            {stranger, value(entry{ID: stranger, Name: "stranger", Key: key}), nil},
		"sealed by another":   {stranger, sealedBy(entry{ID: stranger, Name: "stranger", Key: key}), nil},
		"another's new key":   {anna.identity.ID, sealedBy(entry{ID: anna.identity.ID, Name: "anna", Key: key}), nil},
		"another's removal":   {anna.identity.ID, sealedBy(entry{ID: anna.identity.ID, Name: "anna", Key: key, Removed: true}), nil},
		"another's deletion":  {anna.identity.ID, nil, nats.Header{"KV-Operation": {"DEL"}}},
		"what is no entry":    {anna.identity.ID, []byte("{"), nil},
		"eve's own in anna's": {anna.identity.ID, mustGet(t, bucket, eve.identity.ID), nil},
	} {
		t.Run(name, func(t *testing.T) {
			msg := &nats.Msg{Subject: own, Data: forged.data, Header: forged.head}
			if _, err := eve.js.PublishMsg(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
			logged := h.log.length()
			ask := "$JS.API.DIRECT.GET." + subject.BucketStream(subject.PresenceBucket("crew")) + "." + own
			if err := eve.conn.PublishRequest(ask, subject.BucketKey(roster, forged.at), nil); err != nil {
				t.Fatal(err)
			}
			h.log.awaitAfter(t, logged, "is not this hub's own")
			if pc, err := h.roster.find("stranger"); err == nil {
				t.Errorf("%+v belongs to the team", pc)
			}
			if pc, err := h.roster.find("anna"); err != nil || pc.Key == key {
				t.Errorf("anna is %+v, %v", pc, err)
			}
		})
	}
	again := reopen(h) // as it is, however far the hub has got with putting it right
	if members, err := again.dial().PCs(t.Context()); err != nil || len(members) != 2 || members[0].Name != "anna" || members[0].Key == key {
		t.Errorf("after a restart the team is %+v (%v)", members, err)
	}
	if bucket, err = again.js.KeyValue(t.Context(), roster); err != nil {
		t.Fatal(err)
	}
	watch, err := bucket.Watch(t.Context(), anna.identity.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Stop() }()
	for {
		found := next(t, "the right entry of anna", watch.Updates())
		if found == nil {
			continue
		}
		body, _, err := subject.Open(h.ID(), subject.BucketKey(roster, anna.identity.ID), found.Value())
		if err != nil {
			continue
		}
		if member, err := subject.ParseMember(body); err == nil && member == (subject.Member{Name: "anna", Box: seal.Text(anna.identity.Key())}) {
			return
		}
	}
}

// TestHUB_02_WhatIsPutRightIsPutRightOnce: a PC that has the engine write over an entry many
// times, one right after the other, does not have the hub follow its own words for good.
func TestHUB_02_WhatIsPutRightIsPutRightOnce(t *testing.T) {
	h := openHub(t, nil)
	eve, anna := h.join("eve"), h.join("anna")
	roster := subject.RosterBucket("crew")
	own := subject.BucketKey(subject.PresenceBucket("crew"), eve.identity.ID)
	if _, err := eve.js.Publish(t.Context(), own, []byte("{")); err != nil {
		t.Fatal(err)
	}
	over := func(pc string) {
		ask := "$JS.API.DIRECT.GET." + subject.BucketStream(subject.PresenceBucket("crew")) + "." + own
		if err := eve.conn.PublishRequest(ask, subject.BucketKey(roster, pc), nil); err != nil {
			t.Fatal(err)
		}
	}
	newest := func() uint64 {
		stream, err := h.js.Stream(t.Context(), subject.BucketStream(roster))
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.LastSeq
	}
	before := newest()
	const forged, looks = 20, 5
	for range forged {
		over(anna.identity.ID)
	}
	for i := range looks { // each is put right after what came before it
		stranger := strings.Repeat(strconv.Itoa(i), 64)
		over(stranger)
		h.log.await(t, "key="+stranger)
	}
	// Each was written, and put right once; the last may be on its way.
	if all := newest() - before; all > 2*(forged+looks) || all < 2*(forged+looks)-1 {
		t.Errorf("%d entries written over gave %d words in the roster", forged+looks, all)
	}
}

// entry is what somebody might slip into the roster.
type entry struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Key     string `json:"key"`
	Removed bool   `json:"removed"`
}

func (j *journal) length() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Len()
}

// awaitAfter waits for words beyond the first so many bytes of the log.
func (j *journal) awaitAfter(t *testing.T, start int, words string) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	for {
		j.mu.Lock()
		text, changed := j.text.String()[start:], j.changed
		j.mu.Unlock()
		if strings.Contains(text, words) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the log does not say %q:\n%s", words, text)
		}
	}
}

func mustGet(t *testing.T, bucket jetstream.KeyValue, id string) []byte {
	t.Helper()
	found, err := bucket.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return found.Value()
}
