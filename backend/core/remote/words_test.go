package remote

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

func TestRMT_06_WhatAPCMayIsSaidInOneSentence(t *testing.T) {
	jobs := func(access job.Access) May {
		return May{Linked: true, Jobs: true, Roots: []string{"/home/x/src"}, Agents: []bridge.AgentKind{bridge.Codex, bridge.Claude}, Access: access}
	}
	all := jobs(job.AccessEdit)
	all.Messages, all.Decisions, all.Dashboard, all.Files = true, true, true, true
	off, noAgents, noRoots, twoRoots := jobs(job.AccessEdit), jobs(job.AccessEdit), jobs(job.AccessEdit), jobs(job.AccessEdit)
	off.Linked = false
	noAgents.Agents = nil
	noRoots.Roots = nil
	twoRoots.Roots = []string{"/a", "/b"}
	tests := map[string]struct {
		may  May
		want string
	}{
		"nothing":                {May{Linked: true}, "desk may do nothing here."},
		"nothing, and links off": {May{}, "desk may do nothing here."},
		"jobs":                   {jobs(job.AccessEdit), "desk may start codex and claude jobs that edit files below /home/x/src (besides these they read the system and their agents' settings, and their agents reach the network); nothing else."},
		"jobs that read":         {jobs(job.AccessRead), "desk may start codex and claude jobs that read files below /home/x/src (besides these they read the system and their agents' settings, and their agents reach the network); nothing else."},
		"jobs that ask":          {jobs(job.AccessAsk), "desk may start codex and claude jobs that edit files, each change with a question, below /home/x/src (besides these they read the system and their agents' settings, and their agents reach the network); nothing else."},
		"two folders":            {twoRoots, "desk may start codex and claude jobs that edit files below /a and /b (besides these they read the system and their agents' settings, and their agents reach the network); nothing else."},
		"no agents":              {noAgents, "desk may do nothing here. It is allowed jobs, but no agent for them: none starts."},
		"no folders":             {noRoots, "desk may do nothing here. It is allowed jobs, but no folder for them: none starts."},
		"links off":              {off, "Links are off, so desk may do nothing here. Were they on: desk may start codex and claude jobs that edit files below /home/x/src (besides these they read the system and their agents' settings, and their agents reach the network); nothing else."},
		"messages":               {May{Linked: true, Messages: true}, "desk may write to the sessions here; nothing else."},
		"decisions":              {May{Linked: true, Decisions: true}, "desk may share decisions that are for everybody, in both directions; nothing else."},
		"dashboard":              {May{Linked: true, Dashboard: true}, "desk may see which sessions and jobs there are here; nothing else."},
		"files":                  {May{Linked: true, Files: true}, "desk may send files into the inbox here; nothing else."},
		"all": {all, "desk may start codex and claude jobs that edit files below /home/x/src (besides these they read the system and their agents' settings, and their agents reach the network); write to the sessions here; " +
			"share decisions that are for everybody, in both directions; see which sessions and jobs there are here; send files into the inbox here; nothing else."},
	}
	for name, tt := range tests {
		if got := tt.may.Words("desk"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestHUB_06_WhatATeamSharesIsSaidInOneSentence(t *testing.T) {
	shares := "the whole team crew shares decisions that are for everybody: all its PCs read those made here, also PCs that join later, and those made there hold here."
	tests := map[string]struct {
		linked, decisions bool
		want              string
	}{
		"nothing":                {true, false, "No decisions are shared with the team crew as a whole."},
		"nothing, and links off": {false, false, "No decisions are shared with the team crew as a whole."},
		"decisions":              {true, true, "T" + shares[1:]},
		"links off":              {false, true, "Links are off, so nothing is shared with the team crew. Were they on: " + shares},
	}
	for name, tt := range tests {
		if got := TeamWords("crew", tt.linked, tt.decisions); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
