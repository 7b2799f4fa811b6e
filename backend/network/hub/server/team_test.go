package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

func TestHUB_01_TheEngineSyncsBeforeItAcknowledges(t *testing.T) {
	h := openHub(t, nil)
	config := h.engine.JetStreamConfig()
	if !config.SyncAlways || !strings.HasPrefix(config.StoreDir, h.home.Dir()) {
		t.Errorf("the store is %+v", config)
	}
	client := h.dial()
	for _, name := range []string{subject.MessageStream("crew"), subject.DecisionStream("crew"), subject.BucketStream(subject.RosterBucket("crew"))} {
		stream, err := client.js.Stream(t.Context(), name)
		if err != nil || stream.CachedInfo().Config.Storage.String() != "File" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHUB_03_ARemovedPCIsOutAtOnce(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.join("anna"), h.join("bert")
	for _, sent := range []struct{ from, to *pc }{{bert, anna}, {anna, bert}, {anna, bert}} {
		if err := sent.from.send(sent.to, "on its way"); err != nil {
			t.Fatal(err)
		}
	}
	client := h.dial()
	removed, err := client.Remove(t.Context(), "bert")
	if err != nil || removed.ID != bert.identity.ID {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	next(t, "the end of bert's connection", bert.closed)
	if err := bert.connect(false); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("bert comes again: %v", err)
	}
	if status, err := client.Status(t.Context()); err != nil || status.Waiting != 0 || status.PCs != 1 {
		t.Errorf("of what was under way %+v is left (%v)", status, err)
	}
	if err := anna.send(anna, "to myself"); err != nil || len(anna.take(1)) != 1 {
		t.Errorf("anna does not get on: %v", err)
	}
	if _, err := client.Remove(t.Context(), "bert"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("removed twice: %v", err)
	}
	again := reopen(h)
	if members, err := again.dial().PCs(t.Context()); err != nil || len(members) != 1 || members[0].Name != "anna" {
		t.Errorf("after a restart the team is %+v (%v)", members, err)
	}
}

// reopen ends a hub and starts it again.
func reopen(h *hub) *hub {
	h.t.Helper()
	h.Close()
	return reopenHub(h.t, h.home, nil)
}

func TestHUB_03_APCThatJoinsAgainHasANewKeyOnly(t *testing.T) {
	h := openHub(t, nil)
	anna := h.join("anna")
	before := *anna
	if err := anna.joinBy(h.Addresses()[0], h.dialInvite()); err != nil {
		t.Fatal(err)
	}
	next(t, "the end of the earlier connection", anna.closed)
	if err := before.connect(false); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("the earlier key: %v", err)
	}
	if err := anna.connect(true); err != nil {
		t.Fatal(err)
	}
	if members, err := h.dial().PCs(t.Context()); err != nil || len(members) != 1 || !members[0].Up {
		t.Errorf("the team is %+v (%v)", members, err)
	}
}

func TestHUB_03_NamesAreUniqueInATeam(t *testing.T) {
	h := openHub(t, nil)
	h.join("anna")
	identity, err := link.OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other := &pc{t: t, name: "anna", identity: identity}
	err = other.joinBy(h.Addresses()[0], h.dialInvite())
	if err == nil || !strings.Contains(err.Error(), `another PC named "anna" belongs to the team`) {
		t.Errorf("a second anna: %v", err)
	}
}

func TestHUB_03_AnEarlierInvitationEnds(t *testing.T) {
	h := openHub(t, nil)
	client := h.dial()
	first, err := client.Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state, err := client.Invitation(t.Context(), first.ID); err != nil || state.State != link.InvitationExpired {
		t.Errorf("the first is %+v (%v)", state, err)
	}
	if err := client.Withdraw(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if state, err := client.Invitation(t.Context(), second.ID); err != nil || state.State != link.InvitationOpen {
		t.Errorf("the second is %+v (%v)", state, err)
	}
	if err := client.Withdraw(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if state, err := client.Invitation(t.Context(), second.ID); err != nil || state.State != link.InvitationExpired {
		t.Errorf("the second is %+v after it was withdrawn (%v)", state, err)
	}
}

func TestHUB_03_APCHasFourConnectionsAtMost(t *testing.T) {
	h := openHub(t, nil)
	anna := h.join("anna")
	for i := range 5 {
		more := *anna
		if err := more.connect(false); (err == nil) != (i < 3) {
			t.Errorf("connection %d: %v", i+2, err)
		}
	}
	anna.conn.Close()
	h.log.await(t, "it has 4 connections already")
}

func TestHUB_05_WhatWasAcknowledgedOutlivesARestart(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.join("anna"), h.join("bert")
	for i := range 20 {
		if err := anna.send(bert, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	ports := []int{h.NATSPort()}
	h.Close()
	reopenHub(t, h.home, func(o *Options) { o.Settings.NATSPort = ports[0] })
	if err := bert.connect(true); err != nil {
		t.Fatal(err)
	}
	for i, msg := range bert.take(20) {
		if string(msg.Data()) != fmt.Sprint(i) {
			t.Errorf("message %d is %q", i, msg.Data())
		}
	}
}

func TestHUB_03_OneHubAHome(t *testing.T) {
	h := openHub(t, nil)
	_, err := Open(t.Context(), Options{Home: h.home, Settings: settings(), Now: h.opts.Now, Log: h.opts.Log})
	if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "a hub runs in "+h.home.Dir()+" already") {
		t.Errorf("a second hub of the home: %v", err)
	}
	h.Close()
	other := settings()
	other.Team = "others"
	_, err = Open(t.Context(), Options{Home: h.home, Settings: other, Now: h.opts.Now, Log: h.opts.Log})
	if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), `this home is the hub of "crew"`) {
		t.Errorf("another team: %v", err)
	}
	if _, err := Dial(h.home); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("a hub that has ended: %v", err)
	}
}

func TestHUB_03_TheHomeIsItsOwnersAlone(t *testing.T) {
	h := openHub(t, nil)
	h.join("anna")
	for _, name := range []string{".", "hub.json", "admin.nk", "network", "network/identity.pem", "running.json", "store"} {
		info, err := os.Stat(filepath.Join(h.home.Dir(), name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestHUB_01_SettingsThatNoHubCanRunWith(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"a version":   func(s *Settings) { s.Version = 2 },
		"a team":      func(s *Settings) { s.Team = "No Team" },
		"a node":      func(s *Settings) { s.Node = "a.b" },
		"a port":      func(s *Settings) { s.Port = 65536 },
		"little room": func(s *Settings) { s.MaxBytes = 67_108_863 },
		"two nodes":   func(s *Settings) { s.Cluster, s.Peers = "127.0.0.1:1", []string{"127.0.0.1:2"} },
		"peers alone": func(s *Settings) { s.Peers = []string{"127.0.0.1:2", "127.0.0.1:3"} },
		"a URL":       func(s *Settings) { s.URLs = []string{"http://hub"} },
	} {
		set := settings()
		change(&set)
		if err := set.check(); err == nil {
			t.Errorf("%s: %+v is taken", name, set)
		}
	}
	if set := settings(); set.check() != nil {
		t.Errorf("%+v is not taken", set)
	}
}
