package broker

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// pins records a decision of the owner for all sessions.
func (b *bench) pins(topic, text string) api.DecideResult {
	b.t.Helper()
	all := decision.AllSessions()
	owner := b.dial(api.RoleOwner)
	defer owner.Close()
	pinned, err := owner.PinDecision(b.t.Context(), api.DecideArgs{Topic: topic, Text: text, Scope: &all})
	if err != nil {
		b.t.Fatal(err)
	}
	return pinned
}

func (b *bench) withdraws(topic, reason string) api.DecideResult {
	b.t.Helper()
	owner := b.dial(api.RoleOwner)
	defer owner.Close()
	ended, err := owner.WithdrawDecision(b.t.Context(), api.WithdrawDecisionArgs{Topic: topic, Reason: reason})
	if err != nil {
		b.t.Fatal(err)
	}
	return ended
}

func TestPGE_04_DEC_10_DEC_12_AWithdrawalIsToldOnce(t *testing.T) {
	b := newBench(t)
	here := b.join(api.Register{Name: "here", SessionID: "s1", Cwd: "/a"})
	away := b.join(api.Register{Name: "away", SessionID: "s2", Cwd: "/b"})
	b.broker.Delegate(anyJob{})
	runner := b.join(api.Register{Name: "codex-job-00000001", SessionID: "codex-job-00000001", Runner: true})
	pinned := b.pins("DB", "SQLite it is")
	if pinned.Decision.Author != bridge.OwnerAddress() || !pinned.Decision.Current || pinned.Decision.Topic != "db" {
		t.Errorf("pinned is %+v", pinned.Decision)
	}
	b.leaves(away)
	ended := b.withdraws("db", "it is too slow")
	if d := ended.Decision; d.Author != bridge.OwnerAddress() || d.Current || !d.Withdrawn || d.Text != "Withdrawn: it is too slow" || !d.Scope.All || *d.Supersedes != pinned.Decision.ID {
		t.Errorf("withdrawn is %+v", d)
	}
	if diff := cmp.Diff([]string{"here"}, ended.DeliveredTo); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	wantNotices := func(when string, p peer, want int) {
		t.Helper()
		if got := tellings(t, p, "Withdrawn: it is too slow"); got != want {
			t.Errorf("%s %s is told %d times, want %d", when, p.Name, got, want)
		}
	}
	late := b.join(api.Register{Name: "late", SessionID: "s4", Cwd: "/c"})
	away = b.join(api.Register{Name: "away", SessionID: "s2", Cwd: "/b"})
	wantNotices("at once", here, 1)
	wantNotices("at its return", away, 1)
	wantNotices("who came later", late, 0)
	wantNotices("a runner", runner, 0)
	if got := len(late.look()); got != 0 {
		t.Errorf("who came later is told %q", late.look())
	}
	b.restart() // and again by the same host sessions
	here = b.join(api.Register{Name: "here", SessionID: "s1", Cwd: "/a"})
	away = b.join(api.Register{Name: "away", SessionID: "s2", Cwd: "/elsewhere"})
	wantNotices("after a restart", here, 1)
	wantNotices("after a restart", away, 1)
}

func TestPGE_04_DEC_11_AWithdrawalWakesNobody(t *testing.T) {
	b := newBench(t)
	b.join(api.Register{Name: "p", SessionID: "s1"})
	b.pins("db", "SQLite it is")
	ended := b.withdraws("db", "")
	row, err := b.db.DecisionNotices(t.Context(), "db")
	if err != nil || len(row) != 2 || row[0].Hop != bridge.DecisionHop || row[0].ConversationID != bridge.DecisionConversation+ended.Decision.ID {
		t.Errorf("the notices are %+v, %v", row, err)
	}
	if reply := b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true); reply.Text != "" {
		t.Errorf("the turn is kept running: %q", reply.Text)
	}
}

// TestPGE_04_AWithdrawnTopicIsInNoLookup but that of the history, until it is decided again.
func TestPGE_04_AWithdrawnTopicIsInNoLookup(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1"})
	look := func(history bool) (list []string) {
		t.Helper()
		found, err := p.Decisions(t.Context(), api.DecisionsArgs{History: history})
		if err != nil {
			t.Fatal(err)
		}
		for _, rev := range found {
			list = append(list, rev.Text)
		}
		return list
	}
	note := func() string {
		t.Helper()
		return b.join(api.Register{Name: "fresh"}).Note
	}
	b.pins("db", "SQLite it is")
	if !strings.Contains(note(), "SQLite it is") {
		t.Fatal("a session's first note does not have it")
	}
	b.withdraws("db", "")
	if got := look(false); len(got) != 0 || note() != "" {
		t.Errorf("in force is %q, noted %q", got, note())
	}
	if diff := cmp.Diff([]string{"Withdrawn.", "SQLite it is"}, look(true)); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	if _, err := p.Decide(t.Context(), api.DecideArgs{Topic: "db", Text: "Postgres"}); err != nil {
		t.Fatal(err)
	}
	if got := look(false); !slices.Equal(got, []string{"Postgres"}) || !strings.Contains(note(), "Postgres") {
		t.Errorf("decided again, in force is %q", got)
	}
}

func TestPGE_04_WhatIsRefusedChangesNothing(t *testing.T) {
	b := newBench(t)
	pinned := b.pins("db", "SQLite it is")
	all := decision.AllSessions()
	owner := b.dial(api.RoleOwner)
	for _, tt := range []struct {
		name string
		args any
		want bridge.Code
		says string
	}{
		{"a withdrawal of nothing", api.WithdrawDecisionArgs{Topic: "editor"}, bridge.NotFound, `"editor"`},
		{"of another one", api.WithdrawDecisionArgs{Topic: "db", Supersedes: "d-0"}, bridge.Conflict, `"db"`},
		{"without a topic", api.WithdrawDecisionArgs{}, bridge.Invalid, "topic"},
		{"with a long reason", api.WithdrawDecisionArgs{Topic: "db", Reason: strings.Repeat("x", bridge.MaxDecisionChars)}, bridge.TooLarge, "reason"},
		{"with a malformed id", api.WithdrawDecisionArgs{Topic: "db", ID: "a b"}, bridge.Invalid, "id"},
		{"under an id that is taken", api.WithdrawDecisionArgs{Topic: "db", ID: pinned.Decision.ID}, bridge.Conflict, pinned.Decision.ID},
		{"a decision without a scope", api.DecideArgs{Topic: "db", Text: "x"}, bridge.Invalid, "scope"},
		{"without a text", api.DecideArgs{Topic: "db", Text: " ", Scope: &all}, bridge.Invalid, "text"},
		{"a revision of another one", api.DecideArgs{Topic: "db", Text: "x", Scope: &all, Supersedes: "d-0"}, bridge.Conflict, `"db"`},
		{"a revision of nothing", api.DecideArgs{Topic: "editor", Text: "x", Scope: &all, Supersedes: "d-0"}, bridge.NotFound, `"editor"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			switch args := tt.args.(type) {
			case api.WithdrawDecisionArgs:
				_, err = owner.WithdrawDecision(t.Context(), args)
			case api.DecideArgs:
				_, err = owner.PinDecision(t.Context(), args)
			}
			wantCode(t, tt.name, err, tt.want)
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("it says %q, want %q", err, tt.says)
			}
		})
	}
	found, err := b.db.Decisions(t.Context(), decision.Lookup{History: true})
	if err != nil || len(found) != 1 || !found[0].Current {
		t.Errorf("stored is %+v, %v", found, err)
	}
}

// TestPGE_04_SEC_07_AnAgentPinsNothingAsTheOwner, whatever connection its program opens.
func TestPGE_04_SEC_07_AnAgentPinsNothingAsTheOwner(t *testing.T) {
	b := newBench(t)
	b.pins("db", "SQLite it is")
	b.join(api.Register{Name: "agent", SessionID: "s1", AgentPID: os.Getppid(), HostKnown: true})
	owner, all := b.dial(api.RoleOwner), decision.AllSessions()
	_, err := owner.PinDecision(t.Context(), api.DecideArgs{Topic: "db", Text: "x", Scope: &all})
	wantCode(t, "an agent that pins", err, bridge.Denied)
	_, err = owner.WithdrawDecision(t.Context(), api.WithdrawDecisionArgs{Topic: "db"})
	wantCode(t, "an agent that withdraws", err, bridge.Denied)
	found, err := b.db.Decisions(t.Context(), decision.Lookup{History: true})
	if err != nil || len(found) != 1 {
		t.Errorf("stored is %+v, %v", found, err)
	}
}

// TestRMT_22_PGE_04_WhoWasToldHearsOfAnotherPCsWithdrawal, and nobody else.
func TestRMT_22_PGE_04_WhoWasToldHearsOfAnotherPCsWithdrawal(t *testing.T) {
	b := newBench(t)
	author := bridge.Address{ID: "desk/owner", Name: "desk/owner"}
	first := decision.Revision{ID: "d1", Topic: "db", Text: "Postgres", Scope: decision.AllSessions(), CreatedAt: 1000, Author: author}
	ended := decision.Revision{ID: "d2", Topic: "db", Text: "Withdrawn.", Scope: decision.AllSessions(), CreatedAt: 2000, Author: author, Withdrawn: true}
	unheard := decision.Revision{ID: "d3", Topic: "editor", Text: "Withdrawn: unheard", Scope: decision.AllSessions(), CreatedAt: 2000, Author: author, Withdrawn: true}
	imported := func(list ...decision.Revision) {
		t.Helper()
		if _, err := b.broker.Import(t.Context(), desk, list, true); err != nil {
			t.Fatal(err)
		}
	}
	listener := b.join(api.Register{Name: "heard", SessionID: "s1", Cwd: "/a"})
	away := b.join(api.Register{Name: "away", SessionID: "s2", Cwd: "/a"})
	imported(first)
	b.leaves(away)
	imported(first, ended, unheard)
	imported(first, ended, unheard)
	away = b.join(api.Register{Name: "away", SessionID: "s2", Cwd: "/a"})
	late := b.join(api.Register{Name: "late", SessionID: "s3", Cwd: "/a"})
	imported(first, ended, unheard)
	for p, want := range map[*peer]int{&listener: 1, &away: 1, &late: 0} {
		if got := tellings(t, *p, "Withdrawn."); got != want {
			t.Errorf("%s is told %d times, want %d", p.Name, got, want)
		}
		if got := tellings(t, *p, "unheard"); got != 0 {
			t.Errorf("%s is told of the end of what it never heard of", p.Name)
		}
	}
}
