package config

import (
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/remote"
)

// TestHUB_06_TheWholeTeamIsNamedForDecisionsAlone: what else pairs may do, each PC is
// allowed by its own name.
func TestHUB_06_TheWholeTeamIsNamedForDecisionsAlone(t *testing.T) {
	crew := []string{"@crew"}
	for name, test := range map[string]struct {
		network Network
		fine    bool
	}{
		"decisions": {Network{Decisions: Sharing{AllowPeers: crew}}, true},
		"messages":  {Network{Messages: Sharing{AllowPeers: crew}}, false},
		"dashboard": {Network{Dashboard: Sharing{AllowPeers: crew}}, false},
		"jobs":      {Network{RemoteJobs: remote.RemoteJobs{AllowPeers: crew}}, false},
		"no team":   {Network{Decisions: Sharing{AllowPeers: []string{"@"}}}, false},
	} {
		if err := test.network.check(); (err == nil) != test.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
	network := Network{Enabled: true, Decisions: Sharing{AllowPeers: crew}}
	if err := network.Policy().AllowShare(remote.ShareDecisions, remote.TeamShare("crew")); err != nil {
		t.Error(err)
	}
	if err := network.Policy().AllowShare(remote.ShareDecisions, remote.TeamShare("other")); err == nil {
		t.Error("another team is allowed")
	}
	for team, want := range map[string]bool{"crew": true, "other": false, "": false} {
		if may := network.May("desk", team, job.AccessRead); may.Decisions != want || may.Messages {
			t.Errorf("a PC of the team %q may do %+v", team, may)
		}
	}
	if names := network.Names(); len(names) != 0 {
		t.Errorf("the team is taken for a PC: %v", names)
	}
	if teams := network.Teams(); len(teams) != 1 || teams[0] != "crew" || !network.SharesWith("crew") || network.SharesWith("other") || network.SharesWith("") {
		t.Errorf("it shares with the teams %v", teams)
	}
	if left := network.Without(remote.TeamShare("crew")); len(left.Decisions.AllowPeers) != 0 {
		t.Errorf("after it left, the team is still in %v", left.Decisions)
	}
}
