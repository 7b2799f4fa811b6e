package broker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// finds asks until the index has everything and returns topics and snippets.
func (p peer) finds(args api.SearchArgs) []string {
	p.b.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; {
		result, err := p.SearchHistory(p.b.t.Context(), args)
		if err == nil && result.Behind == 0 {
			found := []string{}
			for _, hit := range result.Results {
				found = append(found, strings.TrimSpace(hit.Topic+" "+hit.Snippet))
			}
			slices.Sort(found)
			return found
		}
		if time.Now().After(deadline) {
			p.b.t.Fatalf("%s searches %+v: %+v, %v", p.Name, args, result, err)
		}
	}
}

// A session finds what it was part of and nothing else; so does one that comes
// back under its host session.
func TestASessionSearchesOnlyWhatItMayRead(t *testing.T) {
	b := newBench(t)
	alpha := b.join(api.Register{Name: "alpha", SessionID: "host-a"})
	beta := b.join(api.Register{Name: "beta", SessionID: "host-b"})
	gamma := b.join(api.Register{Name: "gamma", SessionID: "host-c", Cwd: "/code/other"})
	alpha.mustSend(api.SendArgs{To: "beta", Body: "the secret plan of two"})
	alpha.mustSend(api.SendArgs{To: "*", Body: "a plan for all"})
	for topic, scope := range map[string]string{"shop plan": `{"project":"/code/shop"}`, "other plan": `{"project":"/code/other"}`, "common plan": `"all"`} {
		args := api.DecideArgs{Topic: topic, Text: "settled", Scope: mustScope(t, scope)}
		if _, err := beta.Decide(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	two := []string{"a plan for all", "common plan settled", "shop plan settled", "the secret plan of two"}
	for _, tt := range []struct {
		who  peer
		args api.SearchArgs
		want []string
	}{
		{alpha, api.SearchArgs{Query: "plan", Kind: "decision"}, []string{"common plan settled", "shop plan settled"}},
		{beta, api.SearchArgs{Query: "secret"}, []string{"the secret plan of two"}},
		{gamma, api.SearchArgs{Query: "secret"}, []string{}},
		{gamma, api.SearchArgs{Query: "plan -secret", Kind: "message"}, []string{}},
		{gamma, api.SearchArgs{Query: `"plan for"`}, []string{"a plan for all"}},
		{gamma, api.SearchArgs{Query: "plan", Kind: "decision"}, []string{"common plan settled", "other plan settled"}},
	} {
		if got := tt.who.finds(tt.args); !slices.Equal(got, tt.want) {
			t.Errorf("%s finds %q by %+v, want %q", tt.who.Name, got, tt.args, tt.want)
		}
	}
	if err := alpha.Close(); err != nil {
		t.Fatal(err)
	}
	successor := b.join(api.Register{Name: "alpha", SessionID: "host-a"})
	for _, want := range two {
		if got := successor.finds(api.SearchArgs{Query: "plan", Limit: 50}); !slices.Contains(got, want) {
			t.Errorf("the session that came back finds %q, not %q", got, want)
		}
	}
	for _, bad := range []api.SearchArgs{{}, {Query: "--"}, {Query: "a", Kind: "run"}, {Query: "a", Limit: -1}, {Query: "a", Limit: 51}} {
		if _, err := gamma.SearchHistory(t.Context(), bad); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%+v: %v, want a refusal", bad, err)
		}
	}
}
