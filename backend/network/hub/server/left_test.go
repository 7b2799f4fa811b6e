package server

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/remote"
	teamhub "bridge/backend/network/hub"
	"bridge/backend/network/hub/subject"
	"bridge/backend/testing/testkit"
)

// client is a PC as Bridge itself is one.
func (p *pc) client(change ...func(*teamhub.Options)) (h *teamhub.Hub, changed <-chan struct{}) {
	p.t.Helper()
	looks := make(chan struct{}, 1)
	opts := teamhub.Options{
		Team: "crew", Self: p.identity.ID, Hub: p.member.Hub, URLs: p.member.URLs, Login: p.options()[:3], Sign: p.identity.Sign, Numbers: filepath.Join(p.t.TempDir(), "said.json"),
		Word: func() teamhub.Announcement { return teamhub.Announcement{Release: "1.0"} }, Handle: func(remote.PC, remote.Frame) {},
		Changed: func(remote.PC) {
			select {
			case looks <- struct{}{}:
			default:
			}
		},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	for _, call := range change {
		call(&opts)
	}
	h, err := teamhub.Open(opts)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(h.Close)
	return h, looks
}

// signed is the PC's word that it is there, for a quarter of an hour.
func (p *pc) signed(number int64) *nats.Msg {
	at := subject.BucketKey(subject.PresenceBucket("crew"), p.identity.ID)
	body := []byte(fmt.Sprintf(`{"session":%q,"life":900}`, strings.Repeat("5", 32)))
	proof := subject.Proof{Number: number}
	proof.Key, proof.Signature = p.identity.Sign(subject.Signed(at, number, body))
	msg := &nats.Msg{Subject: at, Data: body, Header: nats.Header{}}
	for name, value := range proof.Headers() {
		msg.Header[name] = []string{value}
	}
	return msg
}

func (p *pc) says(number int64) {
	p.t.Helper()
	if _, err := p.js.PublishMsg(p.t.Context(), p.signed(number)); err != nil {
		p.t.Fatal(err)
	}
}

// In a large team a PC's word that it is there counts for minutes. Of one that breaks off
// the hub tells, and what the PC says afterwards counts.
func TestHUB_08_TheHubTellsOfAPCThatBreaksOff(t *testing.T) {
	h := openHub(t, func(opts *Options) { opts.AwayAfter = 50 * time.Millisecond })
	anna, bert := h.enrol("anna"), h.join("bert")
	team, changed := anna.client()
	sees := func(up bool) {
		t.Helper()
		late := time.After(testkit.Patience)
		for {
			status, err := team.Of(bert.identity.ID)
			if err == nil && status.Up == up {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("bert is %+v, %v", status, err)
			}
		}
	}
	first := time.Now().UnixNano()
	bert.says(first)
	sees(true)
	bert.conn.Close()
	sees(false)
	if members, err := h.dial().PCs(t.Context()); err != nil || slices.ContainsFunc(members, func(m Member) bool { return m.Name == "bert" && m.Up }) {
		t.Errorf("the hub has %+v, %v", members, err)
	}
	if err := bert.connect(true); err != nil {
		t.Fatal(err)
	}
	bert.says(first + 1) // its clock stands still
	sees(true)
	if err := h.recordLeave(t.Context(), bert.identity.ID); err != nil { // whatever it thinks
		t.Fatal(err)
	}
	sees(false)
	bert.says(first + 2)
	sees(true)
}

func TestHUB_08_WhoComesBackSoonWasNeverAway(t *testing.T) {
	watch := absent{since: map[string]time.Time{}}
	start := time.Unix(1, 0)
	for i, step := range []struct {
		after time.Duration
		up    []string
		gone  []string
		came  string // and had gone again before the look
	}{
		{0, []string{"anna", "bert"}, nil, ""},
		{1, []string{"bert"}, nil, ""},
		{5, []string{"anna", "bert"}, nil, ""},
		{6, []string{"bert"}, nil, ""},
		{15, []string{"bert"}, nil, ""},
		{16, []string{"bert"}, []string{"anna"}, ""},
		{30, []string{"bert"}, nil, ""}, // once
		{31, []string{"anna", "bert"}, nil, ""},
		{32, nil, nil, ""},
		{42, []string{"bert"}, []string{"anna"}, ""},
		{50, []string{"bert"}, nil, "carl"},
		{59, []string{"bert"}, nil, ""},
		{60, []string{"bert"}, []string{"carl"}, ""},
		{70, []string{"bert"}, nil, "bert"},
		{80, []string{"bert"}, nil, ""},
	} {
		up := map[string]bool{}
		for _, id := range step.up {
			up[id] = true
		}
		came := map[string]bool{}
		if step.came != "" {
			came[step.came] = true
		}
		if gone := watch.look(up, came, start.Add(step.after*time.Second), 10*time.Second); !slices.Equal(gone, step.gone) {
			t.Errorf("look %d: %v have gone, want %v", i, gone, step.gone)
		}
	}
}
