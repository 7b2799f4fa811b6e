package mail

import (
	"fmt"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

func TestMayWake(t *testing.T) {
	const auto, onDirect, direct = true, true, true
	peer, owner := bridge.Claude, bridge.Owner
	for _, tt := range []struct {
		name                   string
		from                   bridge.AgentKind
		conversation           string
		hop, maxHops           int
		auto, onDirect, direct bool
		want                   bool
	}{
		{"MSG-07 below the limit", peer, "c", 5, 6, auto, !onDirect, !direct, true},
		{"MSG-07 at the limit", peer, "c", 6, 6, auto, onDirect, direct, false},
		{"MSG-07 above the limit", peer, "c", 7, 6, auto, onDirect, direct, false},
		{"MSG-07 the first message", peer, "c", 0, 1, auto, !onDirect, !direct, true},
		{"MSG-07 no hops at all", peer, "c", 0, 0, auto, onDirect, direct, false},
		{"MSG-07 below the highest limit", peer, "c", 99, 100, auto, !onDirect, !direct, true},
		{"MSG-07 a limit is at most 100", peer, "c", 100, 1000, auto, onDirect, direct, false},
		{"CHT-18 auto-wake off", peer, "c", 0, 6, !auto, !onDirect, direct, false},
		{"CHT-18 auto-wake off, direct, wakeOnDirect", peer, "c", 0, 6, !auto, onDirect, direct, true},
		{"CHT-18 wakeOnDirect is for direct mail", peer, "c", 0, 6, !auto, onDirect, !direct, false},
		{"CHT-18 wakeOnDirect takes nothing from auto-wake", peer, "c", 0, 6, auto, !onDirect, direct, true},
		{"CHT-18 the hop limit still excludes", peer, "c", 6, 6, !auto, onDirect, direct, false},
		{"CHT-18 status notes still exclude", peer, "job-1:note", 0, 6, !auto, onDirect, direct, false},
		{"CHT-18 acknowledgements still exclude", peer, "job-1:ack", 0, 6, auto, onDirect, direct, false},
		{"DEC-11 decisions wake nobody", peer, "decision-1", 100, 100, auto, onDirect, direct, false},
		{"DEC-11 whatever their hop", peer, "decision-1", 0, 6, auto, onDirect, direct, false},
		{"DEC-11 their hop alone excludes", peer, "c", 100, 100, auto, onDirect, direct, false},
		{"the owner's word always may", owner, "c", 0, 6, !auto, !onDirect, !direct, true},
		{"the owner's word at the hop limit", owner, "c", 6, 6, !auto, !onDirect, !direct, true},
		{"the owner's quiet note", owner, "c:note", 0, 6, auto, onDirect, direct, false},
		{"a conversation that only begins like a note", peer, ":note-book", 0, 6, auto, !onDirect, !direct, true},
		{"one that only ends like a decision", peer, "my-decision-", 0, 6, auto, !onDirect, !direct, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := bridge.Message{From: bridge.Address{Agent: tt.from}, ConversationID: tt.conversation, Hop: tt.hop}
			policy := session.Policy{AutoWake: tt.auto, WakeOnDirect: tt.onDirect, MaxHops: tt.maxHops}
			if got := MayWake(m, tt.direct, policy); got != tt.want {
				t.Errorf("may wake: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestMSG_07_WakeLaws goes through every combination and asks what must always
// hold, whoever changes the order of the rule.
func TestMSG_07_WakeLaws(t *testing.T) {
	bools := []bool{false, true}
	for bits := range 16 {
		auto, onDirect, direct, fromOwner := bools[bits&1], bools[bits>>1&1], bools[bits>>2&1], bools[bits>>3&1]
		for maxHops := range 102 {
			policy := session.Policy{AutoWake: auto, WakeOnDirect: onDirect, MaxHops: maxHops}
			for hop := range 101 {
				m := bridge.Message{Hop: hop, ConversationID: "c", From: bridge.Address{Agent: bridge.Codex}}
				if fromOwner {
					m.From = bridge.OwnerAddress()
				}
				wakes := MayWake(m, direct, policy)
				where := fmt.Sprintf("%+v direct %t hop %d owner %t: wakes %t", policy, direct, hop, fromOwner, wakes)
				below := hop < maxHops && hop < 100
				if wanted := fromOwner || below && (auto || onDirect && direct); wakes != wanted {
					t.Fatal(where)
				}
				for _, quiet := range []string{"x:note", "x:ack", "decision-x"} {
					m.ConversationID = quiet
					if MayWake(m, direct, policy) {
						t.Fatalf("%s although quiet (%s)", where, quiet)
					}
				}
			}
		}
	}
}

func TestCHT_18_Direct(t *testing.T) {
	identified := &session.Session{ID: "p1", Name: "alice", Kind: bridge.Claude, SessionID: "h1"}
	unknown := &session.Session{ID: "p1", Name: "alice", Kind: bridge.Claude}
	for _, tt := range []struct {
		to     string
		target *session.Session
		want   bool
	}{
		{"alice", identified, true},
		{"p1", identified, true},
		{"h1", identified, true},
		{"*", identified, false},
		{"claude", identified, false},
		{"Alice", identified, false},
		{"bob", identified, false},
		{"", identified, false},
		{"h1", unknown, false},
		{"", unknown, false},
		{"alice", unknown, true},
	} {
		if got := Direct(bridge.Message{To: tt.to}, tt.target); got != tt.want {
			t.Errorf("to %q (host session %q) is direct: %t", tt.to, tt.target.SessionID, got)
		}
	}
}

func TestStages(t *testing.T) {
	at := Fact{At: 1}
	for _, tt := range []struct {
		name string
		d    Delivery
		want bridge.Stage
	}{
		{"stored", Delivery{}, bridge.StageDurable},
		{"woken", Delivery{Woken: at}, bridge.StageWoken},
		{"handed", Delivery{Woken: at, Handed: at}, bridge.StageHanded},
		{"handed without a wake", Delivery{Handed: at}, bridge.StageHanded},
		{"consumed", Delivery{Handed: at, Consumed: at}, bridge.StageConsumed},
		{"an old store's read mark", Delivery{Message: bridge.Message{ReadAt: 1}}, bridge.StageConsumed},
		{"answered", Delivery{Consumed: at, Answered: at}, bridge.StageAnswered},
		{"answered before it was consumed", Delivery{Answered: at}, bridge.StageAnswered},
		{"MSG-12 expired", Delivery{Expired: at}, bridge.StageExpired},
		{"MSG-12 expired after it was handed", Delivery{Woken: at, Handed: at, Expired: at}, bridge.StageExpired},
		{"MSG-12 what was read did not expire", Delivery{Consumed: at, Expired: at}, bridge.StageConsumed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.d.Stage(); got != tt.want {
				t.Errorf("stage %q, want %q", got, tt.want)
			}
		})
	}
}

func TestARowIsAsFarAsItsLastDelivery(t *testing.T) {
	at := Fact{At: 1}
	order := []struct { // least advanced first
		stage bridge.Stage
		d     Delivery
	}{
		{bridge.StageExpired, Delivery{Expired: at}},
		{bridge.StageDurable, Delivery{}},
		{bridge.StageWoken, Delivery{Woken: at}},
		{bridge.StageHanded, Delivery{Handed: at}},
		{bridge.StageConsumed, Delivery{Consumed: at}},
		{bridge.StageAnswered, Delivery{Answered: at}},
	}
	for i, less := range order {
		for _, more := range order[i:] {
			for _, row := range []HistoryRow{{Deliveries: []Delivery{less.d, more.d}}, {Deliveries: []Delivery{more.d, less.d, more.d}}} {
				if got := row.Stage(); got != less.stage {
					t.Errorf("%s and %s together are %s", less.stage, more.stage, got)
				}
			}
		}
	}
	if got := (HistoryRow{}).Stage(); got != bridge.StageDurable {
		t.Errorf("a row without deliveries is %s: nobody answered it", got)
	}
}

func TestRWM_16_MailIsDirectInEitherNormalForm(t *testing.T) {
	target := &session.Session{ID: "1", Name: "codex-\u00fcber"}
	for to, want := range map[string]bool{"codex-\u00fcber": true, "codex-u\u0308ber": true, "codex-uber": false} {
		if got := Direct(bridge.Message{To: to}, target); got != want {
			t.Errorf("to %q: %t", to, got)
		}
	}
}

func TestQUI_02_WhichPromptsAPersonTyped(t *testing.T) {
	mail := func(body string) string {
		d := Delivery{Message: bridge.Message{ID: "m-1", From: bridge.Address{ID: "1", Name: "web", Agent: bridge.Claude}, ConversationID: "m-1", Body: body}}
		return Present([]Delivery{d}, InOrder).Text
	}
	for prompt, want := range map[string]bool{
		"":                                  false,
		" \n":                               false,
		"please go on":                      true,
		"what is a bridge-message?":         true,
		WakePrompt:                          false,
		WakePrompt + "\n":                   false,
		mail("hello"):                       false,
		mail(strings.Repeat("long ", 4000)): false,
		`<channel source="bridge" message_id="m-1">hello</channel>`:     false,
		"<task-notification>\n<task-id>1</task-id></task-notification>": false,
	} {
		if got := IsOfPerson(prompt); got != want {
			t.Errorf("%.60q: %t", prompt, got)
		}
	}
}
