package pairing

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/server"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// teamHub is a real hub within the test.
type teamHub struct {
	*server.Server
	t      *testing.T
	client *server.Client
}

func newHub(t *testing.T) *teamHub {
	t.Helper()
	home, err := server.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set := server.Usual()
	set.Team, set.Listen, set.Port, set.NATSPort, set.MaxBytes = "crew", "127.0.0.1", 0, 0, 1<<30
	h := &teamHub{t: t}
	h.Server, err = server.Open(t.Context(), server.Options{Home: home, Settings: set, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if h.client, err = server.Dial(home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.Close)
	return h
}

// enrols makes a PC one of the team, as `bridge join` does.
func (h *teamHub) enrols(p *pc) api.Joined {
	h.t.Helper()
	invited, err := h.client.Invite(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	joined, err := call[api.Joined](h.t, p, api.OpJoinTeam.Name, api.LinkArgs{Address: h.Addresses()[0], Code: invited.Code})
	if err != nil || joined.Team != "crew" || joined.Name != p.Name() || joined.Hub != h.ID() {
		h.t.Fatalf("joined as %+v, %v", joined, err)
	}
	return joined
}

func teamUp(n api.Network) bool { return n.Team != nil && n.Team.Up }

func TestHUB_03_JoinedHeardAndLeft(t *testing.T) {
	h := newHub(t)
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	h.enrols(a)
	h.enrols(b)
	network := a.await("desk in the team", up)
	if pc := network.Peers[0]; pc.Name != "desk" || !pc.Member || pc.Paired || pc.Allowed != (api.PCAllowed{}) || !teamUp(network) {
		t.Errorf("a new PC of the team is %+v, %+v", pc, network.Team)
	}
	b.await("laptop in the team", up)
	desk := network.Peers[0].ID
	if err := a.Ways().Send(t.Context(), desk, remote.Frame{Type: "x"}); err != nil {
		t.Fatal(err)
	}
	select {
	case frame := <-b.frames:
		if frame.Type != "x" {
			t.Errorf("it heard %+v", frame)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the frame did not come")
	}
	// A second team is refused, and what cannot be read is left as it is.
	if _, err := call[api.Joined](t, a, api.OpJoinTeam.Name, api.LinkArgs{Address: h.Addresses()[0], Code: "7K3M-QX9T"}); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("joined twice: %v", err)
	}
	if info, err := os.Stat(a.Team().teamPath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("network/team.json is %v, %v", info.Mode(), err)
	}
	// What the owner allows is by name, and goes with the membership.
	a.set(func(n *config.Network) { n.Messages.AllowPeers = []string{"desk", "other"} })
	if left, err := call[api.Joined](t, a, api.OpLeaveTeam.Name, api.Empty{}); err != nil || left.Team != "crew" {
		t.Fatalf("left %+v, %v", left, err)
	}
	if settings, _ := a.read(); !slices.Equal(settings.Messages.AllowPeers, []string{"other"}) {
		t.Errorf("allowed are %v", settings.Messages.AllowPeers)
	}
	if network, _ := a.Network(); len(network.Peers) != 0 || network.Team != nil {
		t.Errorf("afterwards it stands as %+v", network)
	}
	if data, err := os.ReadFile(a.Team().teamPath()); err != nil || strings.Contains(string(data), "SU") {
		t.Errorf("the key for the hub is still there: %s, %v", data, err)
	}
	if _, err := call[api.Joined](t, a, api.OpLeaveTeam.Name, api.Empty{}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("left twice: %v", err)
	}
	b.await("the end of laptop", func(n api.Network) bool { return len(n.Peers) == 0 })
}

func TestHUB_03_ARemovedPCIsOutAtOnce(t *testing.T) {
	h := newHub(t)
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	h.enrols(a)
	h.enrols(b)
	a.await("desk", up)
	a.set(func(n *config.Network) { n.Messages.AllowPeers = []string{"desk"} })
	if _, err := h.client.Remove(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	a.await("the end of desk", func(n api.Network) bool { return len(n.Peers) == 0 })
	if settings, _ := a.read(); len(settings.Messages.AllowPeers) != 0 {
		t.Errorf("allowed are %v: the next one of that name may write here", settings.Messages.AllowPeers)
	}
	b.await("its own end", func(n api.Network) bool { return n.Team != nil && !n.Team.Up })
}

func TestHUB_04_AnotherPCOfTheSameNameIsAllowedNothing(t *testing.T) {
	h := newHub(t)
	a, first := newPC(t, "laptop"), newPC(t, "desk")
	h.enrols(a)
	h.enrols(first)
	a.await("desk", up)
	a.set(func(n *config.Network) { n.Messages.AllowPeers = []string{"desk"} })
	a.set(func(n *config.Network) { n.Enabled = false })
	a.await("no way to the hub", func(n api.Network) bool { return n.Team != nil && !n.Team.Up })
	if _, err := h.client.Remove(t.Context(), "desk"); err != nil { // while it is away
		t.Fatal(err)
	}
	second := newPC(t, "desk")
	h.enrols(second)
	a.set(func(n *config.Network) { n.Enabled = true })
	network := a.await("the second desk", up)
	if network.Peers[0].ID != second.identity.ID || network.Peers[0].Allowed != (api.PCAllowed{}) {
		t.Errorf("it is %+v", network.Peers[0])
	}
}

func TestHUB_04_PairsAndTheTeamSideBySide(t *testing.T) {
	h := newHub(t)
	a, b, twin := newPC(t, "laptop"), newPC(t, "desk"), newPC(t, "third")
	pairUp(t, a, b)
	a.await("the link", up)
	h.enrols(a)
	h.enrols(b)
	both := a.await("desk both ways", func(n api.Network) bool { return len(n.Peers) == 1 && n.Peers[0].Member && teamUp(n) })
	if pc := both.Peers[0]; !pc.Paired || !pc.Up {
		t.Errorf("desk is %+v", pc)
	}
	// Without the link, the hub carries on.
	links := a.links
	if err := a.Unlink("desk"); err != nil {
		t.Fatal(err)
	}
	alone := a.await("desk by the hub", func(n api.Network) bool { return len(n.Peers) == 1 && !n.Peers[0].Paired && n.Peers[0].Up })
	if len(links.Status()) != 0 {
		t.Error("it is still paired")
	}
	if err := a.Ways().Send(t.Context(), alone.Peers[0].ID, remote.Frame{Type: "x"}); err != nil {
		t.Fatal(err)
	}
	if frame := <-b.frames; frame.Type != "x" {
		t.Errorf("it heard %+v", frame)
	}
	// A pair of that name, and another PC of the team that has it, too: the pair is it.
	b.await("laptop", up)
	twin.set(func(n *config.Network) { n.Name = "desk" })
	pairUp(t, a, twin)
	network := a.await("the pair of that name", func(n api.Network) bool { return len(n.Peers) == 1 && n.Peers[0].Paired && n.Peers[0].Up })
	if network.Peers[0].ID != twin.identity.ID || !slices.Equal(network.Team.Unheard, []string{"desk"}) {
		t.Errorf("it stands as %+v, %+v", network.Peers, network.Team)
	}
	if err := a.Ways().Send(t.Context(), b.identity.ID, remote.Frame{Type: "x"}); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("to who has the pair's name: %v", err)
	}
}

// TestHUB_04_WhatIsRefusedOfTheTeamIsShown: beside what the transport itself dropped. A
// pair's refusals are no matter of the team's.
func TestHUB_04_WhatIsRefusedOfTheTeamIsShown(t *testing.T) {
	h := newHub(t)
	a, b, paired := newPC(t, "laptop"), newPC(t, "desk"), newPC(t, "third")
	h.enrols(a)
	h.enrols(b)
	a.await("desk", up)
	pairUp(t, a, paired)
	denied := bridge.Errorf(bridge.Denied, "messages are not allowed here")
	for _, of := range []*pc{b, b, paired} {
		a.Team().Refused(remote.PC{ID: of.identity.ID, Name: of.Name()}, denied)
	}
	network, err := a.Network()
	if err != nil || len(network.Team.Dropped) != 1 {
		t.Fatalf("dropped are %+v, %v", network.Team, err)
	}
	if d := network.Team.Dropped[0]; d.Words != "said by desk, and not allowed here" || d.Count != 2 || d.Hostile || d.Why != string(hub.Refused) {
		t.Errorf("it shows %+v", d)
	}
}

// TestHUB_03_ANameThatIsAnotherPCsNowIsShown: whether this Bridge ran meanwhile or not, and
// from then on.
func TestHUB_03_ANameThatIsAnotherPCsNowIsShown(t *testing.T) {
	for name, runs := range map[string]bool{"seen at once": true, "seen later": false} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			a, b, twin, third := newPC(t, "laptop"), newPC(t, "desk"), newPC(t, "desk"), newPC(t, "third")
			for _, p := range []*pc{a, b, third} {
				h.enrols(p)
			}
			two := func(n api.Network) bool { return len(n.Peers) == 2 && n.Peers[0].Up && n.Peers[1].Up }
			for _, pc := range a.await("the team", two).Peers {
				if pc.Before != nil {
					t.Errorf("at first it says %+v of %s", pc.Before, pc.Name)
				}
			}
			reopen := func() {
				again, err := Open(a.opts)
				if err != nil {
					t.Fatal(err)
				}
				again.Run()
				t.Cleanup(again.Close)
				a.Peering = again
			}
			if !runs {
				a.Close()
			}
			for _, text := range []string{"desk", "third"} {
				if _, err := h.client.Remove(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			if runs {
				a.await("the end of both", func(n api.Network) bool { return len(n.Peers) == 0 })
			}
			h.enrols(twin)
			if _, err := call[api.Joined](t, third, api.OpLeaveTeam.Name, api.Empty{}); err != nil {
				t.Fatal(err)
			}
			h.enrols(third) // by the identity that it had
			if !runs {
				reopen()
			}
			for range 2 {
				for _, pc := range a.await("the new team", two).Peers {
					if (pc.Before != nil) != (pc.Name == "desk") {
						t.Errorf("it says %+v of %s", pc.Before, pc.Name)
					}
					if pc.Before != nil && (pc.Before.ID != b.identity.ID || pc.ID != twin.identity.ID || pc.Before.Since == 0) {
						t.Errorf("it says %+v of %s", pc.Before, pc.ID)
					}
				}
				a.Close()
				reopen() // and it says so still
			}
		})
	}
}

// TestHUB_03_AListOfPCsIsOfOneStateOfTheTeam: one that changes meanwhile adds no PC to it, and
// takes none of them out of the team.
func TestHUB_03_AListOfPCsIsOfOneStateOfTheTeam(t *testing.T) {
	h := newHub(t)
	a, b, twin := newPC(t, "laptop"), newPC(t, "desk"), newPC(t, "desk")
	h.enrols(a)
	h.enrols(b)
	a.await("desk", up)
	current := func() teamFile {
		a.Peering.mu.Lock()
		defer a.Peering.mu.Unlock()
		return a.team
	}
	before := current()
	if _, err := h.client.Remove(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	a.await("the end of desk", func(n api.Network) bool { return len(n.Peers) == 0 })
	h.enrols(twin)
	a.await("the other desk", up)
	for _, c := range []struct {
		name string
		team teamFile
		want *pc
		had  string // the PC that had the name before
	}{
		{"before", before, b, ""},
		{"after", current(), twin, b.identity.ID},
	} {
		peers := a.peers(c.team, remote.Policy{})
		if len(peers) != 1 || peers[0].ID != c.want.identity.ID || peers[0].Name != "desk" || !peers[0].Member || peers[0].Before.Before != c.had {
			t.Errorf("%s: the list is %+v", c.name, peers)
		}
	}
}

// TestHUB_06_DecisionsThatWaitForTheHubAreShown: while the hub is reached. That it is not
// is told in its place.
func TestHUB_06_DecisionsThatWaitForTheHubAreShown(t *testing.T) {
	h := newHub(t)
	a := newPC(t, "laptop")
	h.enrols(a)
	a.await("the team", teamUp)
	full := bridge.Errorf(bridge.Busy, "the team's hub did not store it: its disk is full")
	for _, c := range []struct {
		waits int
		words string
	}{
		{1, "1 decision for the team waits on this PC because the team's hub did not store it: its disk is full; it is tried again"},
		{2, "2 decisions for the team wait on this PC, the first because the team's hub did not store it: its disk is full; it is tried again"},
		{0, ""},
		{1, "1 decision for the team waits on this PC because the team's hub did not store it: its disk is full; it is tried again"},
	} {
		a.Team().Waits(c.waits, full)
		network, err := a.Network()
		if err != nil || (network.Team.Waits != nil) != (c.waits > 0) {
			t.Fatalf("with %d it shows %+v, %v", c.waits, network.Team, err)
		}
		if w := network.Team.Waits; w != nil && (w.Words != c.words || w.Decisions != c.waits || w.Why != full.Error() || w.Since == 0) {
			t.Errorf("with %d it shows %+v", c.waits, w)
		}
	}
	h.client.Close()
	h.Close()
	if network := a.await("the end of the hub", func(n api.Network) bool { return n.Team != nil && !n.Team.Up }); network.Team.Waits != nil {
		t.Errorf("without a hub it shows %+v", network.Team.Waits)
	}
}

func TestHUB_05_APCOfTheTeamIsKnownWhileTheHubIsAway(t *testing.T) {
	h := newHub(t)
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	h.enrols(a)
	h.enrols(b)
	a.await("desk", up)
	h.client.Close()
	h.Close()
	a.await("the end of the hub", down)
	a.Close()
	again, err := Open(a.opts)
	if err != nil {
		t.Fatal(err)
	}
	again.Run()
	t.Cleanup(again.Close)
	list := again.Ways().Status()
	if len(list) != 1 || list[0].Name != "desk" || list[0].Up {
		t.Errorf("after a restart without the hub it knows %+v: what waits would be refused", list)
	}
	if err := again.Ways().Send(t.Context(), b.identity.ID, remote.Frame{Type: "x"}); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("a command: %v", err)
	}
}

func TestHUB_03_ADamagedTeamIsLeftAsItIs(t *testing.T) {
	p := newPC(t, "laptop")
	p.Close()
	if err := os.MkdirAll(p.folder(), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{`{`: "network/team.json is left as it is", `{"version":2}`: "version 2"} {
		if err := os.WriteFile(p.Team().teamPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Open(p.opts)
		if err != nil {
			t.Fatal(err)
		}
		network, err := again.Network()
		if err != nil || network.Team == nil || !strings.Contains(network.Team.Failed, want) {
			t.Errorf("with %s it stands as %+v, %v", text, network.Team, err)
		}
		if _, err := again.Team().Enrol(t.Context(), "127.0.0.1:1", "7K3M-QX9T"); err == nil {
			t.Error("it joined over what it could not read")
		}
		again.Close()
		if after, _ := os.ReadFile(p.Team().teamPath()); string(after) != text {
			t.Errorf("it is %q now", after)
		}
	}
}
