package decision

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

func TestPGE_04_AWithdrawalSaysSo(t *testing.T) {
	longest := strings.Repeat("ß", bridge.MaxDecisionChars-len("Withdrawn: "))
	for _, tt := range []struct {
		name, topic, reason, text string
		code                      bridge.Code
	}{
		{"without a reason", " DB ", "  ", "Withdrawn.", ""},
		{"with a reason", "db", " it is too slow\n", "Withdrawn: it is too slow", ""},
		{"the longest reason", "db", longest, "Withdrawn: " + longest, ""},
		{"a longer one", "db", longest + "x", "", bridge.TooLarge},
		{"not UTF-8", "db", "\xff", "", bridge.Invalid},
		{"no topic", " ", "", "", bridge.Invalid},
		{"a topic of two lines", "a\nb", "", "", bridge.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rev, err := NewWithdrawal(tt.topic, tt.reason)
			if bridge.CodeOf(err) != tt.code && (err != nil || tt.code != "") {
				t.Fatalf("%v, want %q", err, tt.code)
			}
			if tt.code != "" {
				return
			}
			if rev.Topic != "db" || rev.Text != tt.text || !rev.Withdrawn || rev.Current || CheckText(rev.Text) != nil {
				t.Errorf("it is %+v", rev)
			}
		})
	}
}

func TestDEC_02_OnlyAWithdrawalHasATenthMember(t *testing.T) {
	for _, withdrawn := range []bool{false, true} {
		data, err := json.Marshal(Revision{Scope: AllSessions(), Withdrawn: withdrawn})
		var members map[string]any
		if err == nil {
			err = json.Unmarshal(data, &members)
		}
		want := 9
		if withdrawn {
			want = 10
		}
		if err != nil || len(members) != want || withdrawn && members["withdrawn"] != true {
			t.Errorf("withdrawn %v: %s, %v", withdrawn, data, err)
		}
	}
}

func TestPGE_04_WhatARevisionMayReplace(t *testing.T) {
	inForce := Revision{ID: "d2", Topic: "db", Scope: ProjectOf("/shop"), Current: true}
	earlier := Revision{ID: "d1", Topic: "db", Scope: AllSessions()}
	ended := Revision{ID: "d3", Topic: "db", Scope: AllSessions(), Withdrawn: true}
	for _, tt := range []struct {
		name      string
		withdraws bool
		saw       string
		topic     []Revision
		want      bridge.Code
	}{
		{"a withdrawal of what is in force", true, "", []Revision{inForce, earlier}, ""},
		{"of what its owner saw", true, "d2", []Revision{inForce, earlier}, ""},
		{"of what was replaced since", true, "d1", []Revision{inForce, earlier}, bridge.Conflict},
		{"of a topic that nobody decided on", true, "", nil, bridge.NotFound},
		{"of a withdrawn one", true, "", []Revision{ended, earlier}, bridge.NotFound},
		{"a new decision", false, "", nil, ""},
		{"one on a withdrawn topic", false, "", []Revision{ended}, ""},
		{"a revision of what its owner saw", false, "d2", []Revision{inForce}, ""},
		{"of what was replaced since", false, "d1", []Revision{inForce, earlier}, bridge.Conflict},
		{"of what was withdrawn since", false, "d1", []Revision{ended, earlier}, bridge.NotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rev := Revision{Topic: "db", Withdrawn: tt.withdraws}
			if tt.saw != "" {
				rev.Supersedes = &tt.saw
			}
			err := rev.Replace(tt.topic)
			if bridge.CodeOf(err) != tt.want && (err != nil || tt.want != "") {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), `"db"`) {
				t.Errorf("the refusal does not name the topic: %v", err)
			}
			if err == nil && tt.withdraws && rev.Scope.Project != inForce.Scope.Project {
				t.Errorf("its scope is %+v", rev.Scope)
			}
		})
	}
}

func TestPGE_04_AWithdrawnTopicHasNothingInForce(t *testing.T) {
	for _, author := range []string{"planner", "laptop/planner"} { // two ways of ordering
		all := []OrderedRevision{
			{Revision: Revision{ID: "d2", Topic: "db", CreatedAt: 2, Withdrawn: true}},
			{Revision: Revision{ID: "d1", Topic: "db", CreatedAt: 1, Author: bridge.Address{Name: author}}},
		}
		if got := NewestFirst(all); got[0].ID != "d2" || got[0].Current || got[1].Current {
			t.Errorf("by %s: %+v", author, got)
		}
		again := append([]OrderedRevision{{Revision: Revision{ID: "d3", Topic: "db", CreatedAt: 3}}}, all...)
		if got := NewestFirst(again); got[0].ID != "d3" || !got[0].Current || got[1].Current {
			t.Errorf("decided again, by %s: %+v", author, got)
		}
	}
}

func TestPGE_04_WhoIsToldOfAWithdrawal(t *testing.T) {
	shop := ProjectOf("/shop")
	rev := func(id string, withdrawn bool, scope Scope, supersedes string) Revision {
		r := Revision{ID: id, Topic: "db", Scope: scope, Withdrawn: withdrawn}
		if supersedes != "" {
			r.Supersedes = &supersedes
		}
		return r
	}
	topic := []Revision{rev("d4", true, shop, "d3"), rev("d3", false, shop, "d2"), rev("d2", true, shop, "d1"), rev("d1", false, shop, "")}
	for _, tt := range []struct {
		name string
		told Receipts
		cwd  string
		want bool
	}{
		{"told of what was withdrawn", Receipts{"d3": "m3"}, "/shop", true},
		{"and elsewhere since", Receipts{"d3": "m3"}, "/other", true},
		{"told of an earlier decision", Receipts{"d1": "m1"}, "/shop", true},
		{"of an earlier one, and elsewhere since", Receipts{"d1": "m1"}, "/other", false},
		{"told of the earlier withdrawal last", Receipts{"d1": "m1", "d2": "m2"}, "/shop", false},
		{"told of the withdrawal", Receipts{"d3": "m3", "d4": "m4"}, "/shop", false},
		{"counted only", Receipts{"d3": ""}, "/shop", false},
		{"never told", Receipts{}, "/shop", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Withdrawals(topic, tt.told, Target{ID: "p", Cwd: tt.cwd})
			if (len(got) == 1) != tt.want || tt.want && got[0].ID != "d4" {
				t.Errorf("told %v gives %+v", tt.told, got)
			}
			news, _ := CatchUp(topic, tt.told, Target{ID: "p", Cwd: tt.cwd})
			if (len(news) == 1) != tt.want {
				t.Errorf("caught up with %+v", news)
			}
		})
	}
	if got := Withdrawals(topic[1:], Receipts{"d3": "m3"}, Target{Cwd: "/shop"}); len(got) != 0 {
		t.Errorf("a topic that is in force: %+v", got)
	}
}

func TestSEC_12_WhatCameFromOnePC(t *testing.T) {
	of := func(id, author string) Revision { return Revision{ID: id, Author: bridge.Address{Name: author}} }
	all := []Revision{of("d1", "laptop/api"), of("d2", "api"), of("d3", "desk/api"), of("d4", "laptop/web"), of("d5", "laptop")}
	var got []string
	for _, r := range FromPC(all, "Laptop") {
		got = append(got, r.ID)
	}
	if diff := cmp.Diff([]string{"d1", "d4"}, got); diff != "" || len(FromPC(all, "")) != 0 || len(all) != 5 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPGE_04_TheNoticeOfAWithdrawal(t *testing.T) {
	revision := &Revision{Author: bridge.Address{Name: "desk/api"}}
	rev := Revision{Topic: `say "no"`, Text: "Withdrawn: too slow", Scope: AllSessions(), Author: bridge.OwnerAddress(), Withdrawn: true}
	for _, tt := range []struct {
		news News
		want string
	}{
		{News{Revision: rev}, `Decision on "say \"no\"" withdrawn, for all sessions by `},
		{News{Revision: rev, Beside: revision, Newest: true}, "came later in the team's order and counts"},
		{News{Revision: rev, Beside: revision}, "not in force: desk/api decided"},
	} {
		body := tt.news.Body()
		if !strings.Contains(body, tt.want) || !strings.Contains(body, ":\n\nWithdrawn: too slow\n\nThe tool `decisions` ") {
			t.Errorf("it says %q, want %q", body, tt.want)
		}
	}
}
