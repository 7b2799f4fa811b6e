package pairing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/platform/ipc/api"
)

func TestHUB_01_JoinedByCredentialsAndLeftWithoutThem(t *testing.T) {
	n := hubtest.Start(t)
	a := newPC(t, "laptop")
	self, err := call[api.PCName](t, a, api.OpIdentify.Name, api.Empty{})
	if err != nil || self.Name != "laptop" || subject.CheckPC(self.ID) != nil {
		t.Fatalf("this PC is %+v, %v", self, err)
	}
	seed := n.Admit(link.Identity{ID: self.ID}, "laptop").Seed
	args := api.JoinExternalArgs{Team: hubtest.Team, Roster: n.ID, URLs: []string{n.URL()}, Creds: seed}
	js, err := jetstream.New(n.Admin())
	if err != nil {
		t.Fatal(err)
	}
	roster, err := js.KeyValue(t.Context(), subject.RosterBucket(hubtest.Team))
	if err != nil {
		t.Fatal(err)
	}
	older, err := roster.Get(t.Context(), self.ID)
	if err != nil {
		t.Fatal(err)
	}
	n.Note(self.ID, subject.Member{Name: "notebook"})

	joined, err := call[api.Joined](t, a, api.OpJoinOwn.Name, args)
	if err != nil || joined != (api.Joined{Team: hubtest.Team, Name: "notebook", Hub: n.ID, Own: true}) {
		t.Fatalf("joined as %+v, %v", joined, err)
	}
	if _, err := call[api.Joined](t, a, api.OpJoinOwn.Name, args); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("joined twice: %v", err)
	}
	network := a.await("the way to the server", teamUp)
	if !network.Team.Own || !strings.Contains(network.Team.Sees, "Whoever runs the NATS server sees") {
		t.Errorf("the team stands as %+v", network.Team)
	}
	file := filepath.Join(a.folder(), "team.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("network/team.json is %v, %v", info, err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), seed) {
		t.Errorf("the credentials are not in network/team.json: %v", err)
	}
	if left, err := call[api.Joined](t, a, api.OpLeaveTeam.Name, api.Empty{}); err != nil || !left.Own {
		t.Fatalf("left %+v, %v", left, err)
	}
	if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), seed) {
		t.Errorf("the credentials are still in network/team.json: %v", err)
	}

	// What the server says of this PC is not older than what it said before.
	if seen, err := hub.Seen(a.Team().rosterPath(), hubtest.Team, n.ID, self.ID); err != nil || seen == 0 {
		t.Errorf("the roster's newest word is %d, %v", seen, err)
	}
	if _, err := roster.Put(t.Context(), self.ID, older.Value()); err != nil {
		t.Fatal(err)
	}
	if _, err := call[api.Joined](t, a, api.OpJoinOwn.Name, args); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "older roster") {
		t.Errorf("with an older roster: %v", err)
	}
	if network, _ := a.Network(); network.Team != nil {
		t.Errorf("it belongs to %+v", network.Team)
	}
}

func TestHUB_03_WhoLeavesAnOwnServerIsHeardToLeave(t *testing.T) {
	n := hubtest.Start(t)
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	for _, p := range []*pc{a, b} {
		self, err := call[api.PCName](t, p, api.OpIdentify.Name, api.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		seed := n.Admit(link.Identity{ID: self.ID}, self.Name).Seed
		if _, err := call[api.Joined](t, p, api.OpJoinOwn.Name, api.JoinExternalArgs{Team: hubtest.Team, Roster: n.ID, URLs: []string{n.URL()}, Creds: seed}); err != nil {
			t.Fatal(err)
		}
	}
	b.await("laptop", up)
	if left, err := call[api.Joined](t, a, api.OpLeaveTeam.Name, api.Empty{}); err != nil || left.Untold != "" {
		t.Fatalf("left %+v, %v", left, err)
	}
	b.await("that laptop has left", func(n api.Network) bool {
		return len(n.Peers) == 1 && !n.Peers[0].Up && n.Peers[0].Failed == "it has left the team"
	})
	n.Stop()
	if left, err := call[api.Joined](t, b, api.OpLeaveTeam.Name, api.Empty{}); err != nil || !strings.Contains(left.Untold, "cannot be reached") {
		t.Errorf("without its server it left %+v, %v", left, err)
	}
}
