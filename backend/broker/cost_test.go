package broker

import (
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// costOf returns what the broker counts for a session, in tokens.
func (b *bench) costOf(id string) session.Cost {
	b.t.Helper()
	costs, err := b.dial(api.RoleOwner).Costs(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cost := range costs.Sessions {
		if cost.ID == id {
			return cost.Total
		}
	}
	return session.Cost{}
}

func tokensOf(texts ...string) (cost session.Cost) {
	for _, text := range texts {
		cost.Mail += int64(len(text))
	}
	return cost.Tokens()
}

func TestCTX_03_ATextCountsOnceWhenItWasHandedOver(t *testing.T) {
	b := newBench(t)
	web := b.join(api.Register{Name: "web", SessionID: "h1"})
	peer := b.join(api.Register{Name: "api", Kind: bridge.Codex, SessionID: "h2"})
	prompt := session.HookCall{Event: session.EventPrompt, SessionID: "h1"}
	b.hook(prompt, true)

	peer.mustSend(api.SendArgs{To: "web", Body: "the port is 4777", MessageID: "m-1"})
	reply := b.hook(prompt, false) // leased, and the hook ends
	eventually(t, "the mail is offered again", func() bool { return len(web.look()) == 1 })
	if got := b.costOf(web.ID); got.Mail != 0 {
		t.Errorf("leased text counts: %+v", got)
	}
	client := b.dial(api.RoleHook)
	hookReply, err := client.Hook(t.Context(), session.HookCall{Kind: bridge.Claude, Event: session.EventPrompt, HostEvent: "UserPromptSubmit", SessionID: "h1"})
	if err != nil || hookReply.Lease == nil || hookReply.Text != reply.Text {
		t.Fatalf("the hook got %+v, %v", hookReply, err)
	}
	if err := client.Nack(t.Context(), hookReply.Lease.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.costOf(web.ID); got.Mail != 0 {
		t.Errorf("text that was given back counts: %+v", got)
	}
	hookReply, err = client.Hook(t.Context(), session.HookCall{Kind: bridge.Claude, Event: session.EventPrompt, HostEvent: "UserPromptSubmit", SessionID: "h1"})
	if err != nil || hookReply.Lease == nil {
		t.Fatalf("the hook got %+v, %v", hookReply, err)
	}
	for range 2 { // the second time it did not hear the answer
		if err := client.Ack(t.Context(), api.Ack{Lease: *hookReply.Lease, Stage: bridge.StageHanded, Via: mail.ViaHook}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.costOf(web.ID), tokensOf(hookReply.Text); got != want {
		t.Errorf("counted %+v, the text has %+v", got, want)
	}
	b.restart()
	if got, want := b.costOf(web.ID), tokensOf(hookReply.Text); got != want {
		t.Errorf("the next broker counts %+v, want %+v", got, want)
	}
}

func TestCTX_03_NoticesCountForThemselves(t *testing.T) {
	b := newBench(t)
	web := b.join(api.Register{Name: "web", SessionID: "h1"})
	author := b.join(api.Register{Name: "api", Kind: bridge.Codex, SessionID: "h2"})
	if _, err := author.Decide(t.Context(), api.DecideArgs{Topic: "port", Text: "4777"}); err != nil {
		t.Fatal(err)
	}
	reply := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "h1"}, true)
	want := session.Cost{Notices: int64(len(reply.Text))}.Tokens()
	if got := b.costOf(web.ID); got != want || want.Notices == 0 {
		t.Errorf("counted %+v, want %+v for %q", got, want, reply.Text)
	}
}

// What an earlier broker leased is counted by its messages, because the size of the text
// is not known any more.
func TestCTX_03_AcksOfAnEarlierBrokersTextsCountOnce(t *testing.T) {
	for _, journal := range []bool{false, true} {
		b := newBench(t)
		b.join(api.Register{Name: "web", SessionID: "h1"})
		peer := b.join(api.Register{Name: "api", Kind: bridge.Codex, SessionID: "h2"})
		peer.mustSend(api.SendArgs{To: "web", Body: "the port is 4777", MessageID: "m-1"})
		reply := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "h1"}, false)
		ack := api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaHook}
		if journal {
			if err := (ipc.Journal{Dir: b.home.ReadJournal()}).Keep(ack, 1); err != nil {
				t.Fatal(err)
			}
		}
		b.restart()
		web := b.join(api.Register{Name: "web", SessionID: "h1"})
		for range 2 {
			if err := b.dial(api.RoleHook).Ack(t.Context(), ack); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := b.costOf(web.ID), tokensOf(reply.Text); got != want {
			t.Errorf("journal %t: counted %+v, want %+v", journal, got, want)
		}
	}
}

func TestCTX_03_AProcessReportsTotalsOfItsOwn(t *testing.T) {
	b := newBench(t)
	web := b.join(api.Register{Name: "web", SessionID: "h1"})
	report := api.CostReport{Reporter: "server-1", Costs: []api.HostCost{{Cost: session.Cost{Tools: 4000, Notes: 400}}}}
	if err := web.ReportCost(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	note := api.CostReport{Agent: bridge.Claude, Costs: []api.HostCost{{SessionID: "h1", Cost: session.Cost{Notes: 40}}}}
	early := api.CostReport{Agent: bridge.Claude, Costs: []api.HostCost{{SessionID: "h9", Cost: session.Cost{Notes: 80}}}}
	for _, report := range []api.CostReport{note, early} {
		if err := b.dial(api.RoleHook).ReportCost(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	b.restart()
	web = b.join(api.Register{Name: "web", SessionID: "h1"})
	report.Costs[0].Tools += 8
	for range 3 {
		if err := web.ReportCost(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.costOf(web.ID), (session.Cost{Tools: 1002, Notes: 110}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	peer := b.join(api.Register{Name: "late", SessionID: "h9"})
	if got, want := b.costOf(peer.ID), (session.Cost{Notes: 20}); got != want {
		t.Errorf("the session that was unknown at its note: %+v, want %+v", got, want)
	}
	for name, wrong := range map[string]api.CostReport{
		"less than nothing": {Reporter: "r", Costs: []api.HostCost{{Cost: session.Cost{Mail: -1}}}},
		"a reporter":        {Reporter: "a\nb"},
		"too many":          {Costs: make([]api.HostCost, 201)},
	} {
		wantCode(t, name, web.ReportCost(t.Context(), wrong), bridge.Invalid)
	}
}

func TestCTX_03_OnlyTheOwnersProgramsSeeTheCosts(t *testing.T) {
	b := newBench(t)
	web := b.join(api.Register{Name: "web", SessionID: "h1"})
	_, err := web.Costs(t.Context())
	wantCode(t, "a session", err, bridge.Denied)
}
