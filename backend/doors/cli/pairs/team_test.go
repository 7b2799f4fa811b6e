package pairs

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/platform/ipc/api"
)

func TestHUB_06_TheTeamsTextSaysWhichDecisionsWait(t *testing.T) {
	now := time.Now()
	crew := TeamOf(api.Network{Team: &api.Team{Team: "crew", Name: "laptop", Hub: strings.Repeat("4", 64), Up: true, Since: now.UnixMilli(), Server: "hub-1"}})
	if text := crew.Text(now); strings.Contains(text, "wait") {
		t.Errorf("nothing waits, and it says %q", text)
	}
	crew.Waits = &api.Waits{Decisions: 2, Why: "its disk is full", Since: now.Add(-5 * time.Minute).UnixMilli(), Words: "2 decisions wait"}
	if text := crew.Text(now); !strings.Contains(text, "2 decisions wait (first seen 5 min ago).\n") {
		t.Errorf("it says %q", text)
	}
}

func TestHUB_03_TheTeamsTextSaysThatANameIsAnotherPCs(t *testing.T) {
	at := time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC)
	crew := TeamOf(api.Network{
		Team:  &api.Team{Team: "crew", Name: "laptop", Hub: strings.Repeat("4", 64), Up: true, Since: at.UnixMilli(), Server: "hub-1"},
		Peers: []api.PC{{Name: "desk", ID: strings.Repeat("6", 64), Member: true, Before: &api.Before{ID: strings.Repeat("5", 64), Since: at.UnixMilli()}}},
	})
	if text := crew.Text(at); !strings.Contains(text, "\n  Since 2026-03-04 14:00 UTC desk is another PC: before it was 5555 5555 5555.\n") {
		t.Errorf("it says %q", text)
	}
}
