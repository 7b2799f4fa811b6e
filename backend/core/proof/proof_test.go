package proof

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

// made returns a proof of a version of codex: pairs of a route and its state.
func made(version string, at bridge.UnixMillis, pairs ...any) Proof {
	p := Proof{Kind: bridge.Codex, Version: version, At: at, Routes: []Result{}}
	for i := 0; i < len(pairs); i += 2 {
		p.Routes = append(p.Routes, Result{Route: pairs[i].(Route), State: pairs[i+1].(State)})
	}
	return p
}

func failed(version string, at bridge.UnixMillis, problem string) Proof {
	p := made(version, at)
	p.Problem = problem
	return p
}

// record records proofs one after the other.
func record(proofs ...Proof) (all []Proof) {
	for _, p := range proofs {
		all = Record(all, p)
	}
	return all
}

func TestCAN_02_SinceWhenARouteIsBroken(t *testing.T) {
	other := made("9", 5, Wake, Works)
	other.Kind = bridge.Claude
	for _, c := range []struct {
		name          string
		proofs        []Proof // the last one has the broken route
		since, worked string
	}{
		{"the first proof", []Proof{made("1", 1, Wake, Broken)}, "1", ""},
		{"it worked before", []Proof{made("1", 1, Wake, Works), made("2", 2, Wake, Broken)}, "2", "1"},
		{"broken for two versions", []Proof{made("1", 1, Wake, Works), made("2", 2, Wake, Broken), made("3", 3, Wake, Broken)}, "2", "1"},
		{"mended between", []Proof{made("1", 1, Wake, Broken), made("2", 2, Wake, Works), made("3", 3, Wake, Broken)}, "3", "2"},
		{"not tried between", []Proof{made("1", 1, Wake, Works), made("2", 2, Wake, NotTried), made("3", 3, Wake, Broken)}, "3", "1"},
		{"a problem between", []Proof{made("1", 1, Wake, Broken), failed("2", 2, "no"), made("3", 3, Wake, Broken)}, "1", ""},
		{"the same version again", []Proof{made("1", 1, Wake, Works), made("2", 2, Wake, Works), made("2", 3, Wake, Broken)}, "2", "1"},
		{"another route was broken", []Proof{made("1", 1, StartNote, Broken), made("2", 2, Wake, Broken)}, "2", ""},
		{"another kind", []Proof{other, made("2", 9, Wake, Broken)}, "2", ""},
		{"a proof from the future", []Proof{made("3", 90, Wake, Works), made("2", 9, Wake, Broken)}, "2", ""},
	} {
		all := record(c.proofs...)
		last := c.proofs[len(c.proofs)-1]
		got, found := Find(all, last.Kind, last.Version)
		if !found || len(got.Broken()) != 1 || got.Broken()[0].Since != c.since || got.Broken()[0].Worked != c.worked {
			t.Errorf("%s: %+v, want broken since %q, worked in %q", c.name, got, c.since, c.worked)
		}
	}
}

func TestCAN_02_OneThatWorksHasNoHistory(t *testing.T) {
	p := made("1", 1, Wake, Works)
	p.Routes[0].Since, p.Routes[0].Worked = "x", "y" // a stranger's
	all := Record(nil, p)
	if got := all[0].Routes[0]; got.Since != "" || got.Worked != "" {
		t.Errorf("%+v", got)
	}
	if p.Routes[0].Since != "x" {
		t.Error("the given proof was changed")
	}
}

func TestCAN_02_WhatAProofReplaces(t *testing.T) {
	works, broken := made("1", 2, Wake, Works), made("1", 3, Wake, Broken)
	for _, c := range []struct {
		name   string
		proofs []Proof
		want   []string // version@at, with ! for a problem
	}{
		{"a later one of the same version", []Proof{works, broken}, []string{"1@3"}},
		{"a problem replaces no results", []Proof{works, failed("1", 9, "no")}, []string{"1@2"}},
		{"results replace a problem", []Proof{failed("1", 1, "no"), works}, []string{"1@2"}},
		{"a problem replaces a problem", []Proof{failed("1", 1, "no"), failed("1", 9, "still no")}, []string{"1@9!"}},
		{"another version", []Proof{works, made("2", 1, Wake, Works)}, []string{"2@1", "1@2"}},
	} {
		var got []string
		for _, p := range record(c.proofs...) {
			text := fmt.Sprintf("%s@%d", p.Version, p.At)
			if p.Problem != "" {
				text += "!"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCAN_02_TheOldestProofsOfAKindAreLeftOut(t *testing.T) {
	claude := made("1", 0, Wake, Works)
	claude.Kind = bridge.Claude
	all := Record(nil, claude)
	for i := range keptVersions + 3 {
		all = Record(all, made(fmt.Sprint(i), bridge.UnixMillis(i+1), Wake, Works))
	}
	if len(all) != keptVersions+1 || all[0].Kind != bridge.Claude {
		t.Fatalf("%d proofs are kept, the first is of %s", len(all), all[0].Kind)
	}
	if _, found := Find(all, bridge.Codex, "2"); found {
		t.Error("an old one is kept")
	}
	if _, found := Find(all, bridge.Codex, fmt.Sprint(keptVersions+2)); !found {
		t.Error("the newest one is left out")
	}
}

func TestCAN_02_WhenAVersionIsDue(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	ago := func(d time.Duration) bridge.UnixMillis { return now.Add(-d).UnixMilli() }
	for _, c := range []struct {
		name   string
		proofs []Proof
		want   bool
	}{
		{"nobody has tried", nil, true},
		{"another version was tried", []Proof{made("2", 0, Wake, Works)}, true},
		{"it was tried", []Proof{made("1", 0, Wake, Broken)}, false},
		{"it could not be tried just now", []Proof{failed("1", ago(Retry-time.Second), "no")}, false},
		{"it could not be tried a day ago", []Proof{failed("1", ago(Retry), "no")}, true},
	} {
		if got := IsDue(c.proofs, bridge.Codex, "1", now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if !IsDue([]Proof{made("1", 0, Wake, Works)}, bridge.Claude, "1", now) {
		t.Error("another kind of the same version counts")
	}
}

func TestCAN_02_TheNewestProof(t *testing.T) {
	all := []Proof{made("1", 5), made("3", 9), made("2", 7)}
	if got, found := Newest(all, bridge.Codex); !found || got.Version != "3" {
		t.Errorf("%+v", got)
	}
	if _, found := Newest(all, bridge.Claude); found {
		t.Error("a kind without proofs has one")
	}
}

func TestCAN_02_WhatPeopleAreTold(t *testing.T) {
	p, _ := Find(record(
		made("0.170.0", 1, Wake, Works, StartNote, Works),
		made("0.171.0", 2, Wake, Broken, StartNote, Works, MailAtStop, Broken),
	), bridge.Codex, "0.171.0")
	want := Summary{Kind: bridge.Codex, Version: "0.171.0", At: 2, Broken: []BrokenRoute{
		{Wake, "0.171.0", "0.170.0", "wake is broken since 0.171.0: mail waits for the next prompt"},
		{MailAtStop, "0.171.0", "", "mail at the stop is broken since 0.171.0: mail that comes late in a turn waits for the next prompt"},
	}}
	if diff := cmp.Diff(want, p.Sum()); diff != "" {
		t.Error(diff)
	}
	const text = "Wake is broken since 0.171.0: mail waits for the next prompt. It worked in 0.170.0. " +
		"Mail at the stop is broken since 0.171.0: mail that comes late in a turn waits for the next prompt."
	if got := p.Sum().Text(); got != text {
		t.Errorf("%s", got)
	}
	if got := made("1", 1, Wake, Works).Sum(); got.Text() != "" || got.Broken == nil {
		t.Errorf("%+v", got)
	}
	if got := failed("1", 1, "no").Sum().Problem; got != "no" {
		t.Errorf("problem %q", got)
	}
	if got := (Result{Route: Wake}).Text(); got != "wake is broken: mail waits for the next prompt" {
		t.Errorf("without a version: %s", got)
	}
}

func TestCAN_02_EachRouteHasPlainWords(t *testing.T) {
	for _, route := range Routes() {
		text := Result{Route: route, State: Broken, Since: "1.2.3"}.Text()
		if route.Title() == "" || strings.Count(text, "broken since 1.2.3: ") != 1 || strings.HasSuffix(text, ".") || strings.HasPrefix(text, " ") {
			t.Errorf("%s: %q, %q", route, route.Title(), text)
		}
		if len(strings.Fields(text)) > 20 {
			t.Errorf("%s: too many words: %s", route, text)
		}
	}
	if len(texts) != len(Routes()) {
		t.Errorf("%d texts for %d routes", len(texts), len(Routes()))
	}
}

func TestCAN_02_CAN_03_Faults(t *testing.T) {
	p := made("1", 1, Wake, Broken, StartNote, Works, YourWords, Broken)
	p.Routes[0].Since = "0.9"
	faults := p.Faults()
	if diff := cmp.Diff(Faults{Wake: "0.9", YourWords: ""}, faults); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		routes []Route
		want   bool
	}{{nil, true}, {[]Route{Wake}, true}, {[]Route{Wake, YourWords}, true}, {[]Route{Wake, StartNote}, false}, {[]Route{DelegatedJob}, false}} {
		if got := faults.Has(c.routes...); got != c.want {
			t.Errorf("%v: %v", c.routes, got)
		}
	}
	if p.HasNew(faults) || !p.HasNew(Faults{Wake: "0.9"}) || !p.HasNew(nil) || made("1", 1, Wake, Works).HasNew(nil) {
		t.Error("what is new is not what was unknown")
	}
}

func TestCAN_02_TwoTries(t *testing.T) {
	const openWake = "one of two tries found this broken, and the other one did not reach it: wake of an idle session"
	for _, c := range []struct {
		name          string
		first, second Proof
		want          Proof
	}{
		{"broken twice", made("1", 1, Wake, Broken), made("1", 2, Wake, Broken), made("1", 2, Wake, Broken)},
		{"broken first", made("1", 1, Wake, Broken), made("1", 2, Wake, Works), made("1", 2, Wake, Works)},
		{"broken second", made("1", 1, Wake, Works, StartNote, Broken), made("1", 2, Wake, Broken, StartNote, Broken), made("1", 2, StartNote, Broken, Wake, Works)},
		{
			"all broken by an early one", made("1", 1, Connects, Broken, Wake, NotTried), made("1", 2, Connects, Works, Wake, Works),
			made("1", 2, Connects, Works, Wake, Works),
		},
		{"the second cannot run", made("1", 1, Wake, Broken), failed("1", 2, "no"), failed("1", 2, "the first try found a broken route, and the second one could not run: no")},
		{
			"the second does not reach it", made("1", 1, Connects, Works, Wake, Broken), made("1", 2, Connects, Broken, Wake, NotTried),
			func() Proof {
				p := made("1", 2, Connects, Works, Wake, NotTried)
				p.Problem = openWake
				return p
			}(),
		},
		{
			"one is broken twice, another one is open", made("1", 1, Connects, Broken, Wake, Broken), made("1", 2, Connects, Broken, Wake, NotTried),
			made("1", 2, Connects, Broken, Wake, NotTried),
		},
		{"not offered stays so", made("1", 1, Connects, Broken, Wake, NotOffered), made("1", 2, Connects, Works, Wake, NotOffered), made("1", 2, Connects, Works, Wake, NotOffered)},
	} {
		if diff := cmp.Diff(c.want.Routes, Confirm(c.first, c.second).Routes); c.want.Problem == "" && diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		got := Confirm(c.first, c.second)
		if got.Problem != c.want.Problem || got.At != c.want.At || got.Version != "1" || got.Kind != bridge.Codex {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.Problem != "" && len(got.Broken()) > 0 {
			t.Errorf("%s: with a problem something is broken: %+v", c.name, got)
		}
	}
}

func TestCAN_02_ARouteThatOneTryLacksIsNotBroken(t *testing.T) {
	got := Confirm(made("1", 1, Connects, Works, Wake, Broken), made("1", 2, Connects, Works))
	if len(got.Broken()) != 0 || got.Problem == "" || got.Routes[1].State != NotTried || got.Routes[1].Why == "" {
		t.Errorf("%+v", got)
	}
}
