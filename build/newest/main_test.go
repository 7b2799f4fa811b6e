package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCAN_05_TheColumnsNameWhatIsBroken(t *testing.T) {
	agent := func(kind, version string, broken ...string) triedAgent {
		tried := triedAgent{Kind: kind, Version: version, Routes: []triedRoute{{Route: "connects", State: "works"}, {Route: "child", State: "not-offered"}}}
		for _, route := range broken {
			tried.Routes = append(tried.Routes, triedRoute{route, "broken", "an idle session", "a turn with the mail", "no turn"})
		}
		return tried
	}
	for _, tt := range []struct {
		name           string
		pinned, newest []triedAgent
		want           []string
	}{
		{"all work", []triedAgent{agent("claude", "2.1.329")}, []triedAgent{agent("claude", "2.1.332")},
			[]string{"claude  2.1.329: all routes work  2.1.332: all routes work"}},
		{"a route is broken", []triedAgent{agent("codex", "0.169.0")}, []triedAgent{agent("codex", "0.171.0", "wake", "job")},
			[]string{"0.171.0: wake, job broken", `codex 0.171.0, wake, in the step "an idle session":`, "expected a turn with the mail", "got      no turn"}},
		{"one column lacks the agent", []triedAgent{agent("opencode", "1.18.33")}, nil, []string{"opencode  1.18.33: all routes work  not tried"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := newestTable(tt.pinned, tt.newest)
			for _, line := range tt.want {
				if !strings.Contains(table, line) {
					t.Errorf("no %q in\n%s", line, table)
				}
			}
		})
	}
}

func TestCAN_05_TheNewestVersionsAreThoseOfThePinnedPackages(t *testing.T) {
	got, err := latestVersions([]byte(`{"name":"x","dependencies":{"opencode-ai":"1.18.33","@openai/codex":"0.169.0"}}`))
	if want := []string{"@openai/codex@latest", "opencode-ai@latest"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("latestVersions = %q, %v; want %q", got, err, want)
	}
	if _, err := latestVersions([]byte("{")); err == nil {
		t.Error("half a file is read")
	}
}
