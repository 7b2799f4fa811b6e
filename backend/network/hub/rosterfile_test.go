package hub_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/subject"
)

func keeps(file string) func(*hub.Options) {
	return func(opts *hub.Options) { opts.Roster = file }
}

// TestHUB_01_AnOlderRosterCountsForNothing has the server show again what it had before a
// PC was removed, to a PC that has started again meanwhile.
func TestHUB_01_AnOlderRosterCountsForNothing(t *testing.T) {
	n := hubtest.Start(t)
	pc, desk, eve := n.Enrol("laptop"), n.Enrol("desk"), n.Enrol("eve")
	file := filepath.Join(t.TempDir(), "roster.json")
	laptop := open(t, n, pc, keeps(file))
	laptop.await("the team", func() bool { return len(laptop.Status()) == 2 })
	js, err := jetstream.New(n.Admin())
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(t.Context(), subject.RosterBucket(hubtest.Team))
	if err != nil {
		t.Fatal(err)
	}
	before, err := bucket.Get(t.Context(), eve.ID)
	if err != nil {
		t.Fatal(err)
	}
	n.Note(eve.ID, subject.Member{Name: "eve", Removed: true}) // and its key still opens the server
	laptop.await("the removal", func() bool { _, err := laptop.Of(eve.ID); return err != nil })
	newest, err := hub.Seen(file, hubtest.Team, n.ID, eve.ID)
	if err != nil || newest == 0 {
		t.Fatalf("the newest word about eve is %d, %v", newest, err)
	}
	laptop.Close()
	if _, err := bucket.Put(t.Context(), eve.ID, before.Value()); err != nil {
		t.Fatal(err)
	}
	if err := bucket.Purge(t.Context(), desk.ID); err != nil { // desk's it holds back altogether
		t.Fatal(err)
	}
	again := open(t, n, pc, keeps(file))
	again.await("the way to the hub", func() bool { return again.State().Up })
	if _, err := again.Of(eve.ID); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("who was removed is in the team again: %v", err)
	}
	if status, err := again.Of(desk.ID); err != nil || status.Name != "desk" {
		t.Errorf("whom the server does not show any more is forgotten: %+v, %v", status, err)
	}
	if now, err := hub.Seen(file, hubtest.Team, n.ID, eve.ID); err != nil || now != newest {
		t.Errorf("the newest word about eve was %d and is %d, %v", newest, now, err)
	}
	// A newer word counts: the owner has taken eve in again. Another team's say nothing here.
	n.Note(eve.ID, subject.Member{Name: "eve"})
	again.await("eve", func() bool { _, err := again.Of(eve.ID); return err == nil })
	if other, err := hub.Seen(file, hubtest.Team, strings.Repeat("1", 64), eve.ID); err != nil || other != 0 {
		t.Errorf("of another key's roster it has seen %d, %v", other, err)
	}
}

func TestHUB_01_WhatCannotBeKeptIsNotHeard(t *testing.T) {
	n := hubtest.Start(t)
	pc := n.Enrol("laptop")
	n.Enrol("desk")
	laptop := open(t, n, pc, keeps(filepath.Join(t.TempDir(), "missing", "roster.json")))
	laptop.await("the way to the hub", func() bool { return laptop.State().Up })
	if list := laptop.Status(); len(list) != 0 {
		t.Errorf("it hears %+v", list)
	}
	for words, text := range map[string]string{"is of version 2": `{"version":2}`, "cannot be read": "{"} {
		file := filepath.Join(t.TempDir(), "roster.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := hub.Open(hub.Options{Team: hubtest.Team, Hub: n.ID, Roster: file, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("with %s it opens with %v, want %q", text, err, words)
		}
	}
}
