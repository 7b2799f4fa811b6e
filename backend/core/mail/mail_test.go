package mail

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

func did(at int64, evidence string) Fact { return Fact{At: at, Evidence: evidence} }

func TestMSG_04_TheFurthestStageOfADelivery(t *testing.T) {
	stored := Fact{At: 1, Evidence: "committed to the store"}
	away := Crossing{Host: "lab"}
	at := func(change func(*Crossing)) Crossing {
		crossing := away
		change(&crossing)
		return crossing
	}
	arrived, refused, hub := did(5, "it took it"), did(6, "no such session"), did(7, "stored")
	for _, tt := range []struct {
		name  string
		of    Delivery
		stage bridge.Stage
		fact  Fact
	}{
		{"stored", Delivery{}, bridge.StageDurable, stored},
		{"woken", Delivery{Woken: did(2, "wake hook")}, bridge.StageWoken, did(2, "wake hook")},
		{"handed over after a wake", Delivery{Woken: did(2, "a"), Handed: did(3, "hook")}, bridge.StageHanded, did(3, "hook")},
		{"expired after it was handed over", Delivery{Handed: did(3, "hook"), Expired: did(4, "too old")}, bridge.StageExpired, did(4, "too old")},
		{"read after it expired", Delivery{Expired: did(4, "too old"), Consumed: did(5, "tool inbox")}, bridge.StageConsumed, did(5, "tool inbox")},
		{"read, where only the time was kept", Delivery{Message: bridge.Message{ReadAt: 8}, Handed: did(3, "hook")}, bridge.StageConsumed, did(8, "marked read")},
		{"read, without words", Delivery{Message: bridge.Message{ReadAt: 8}, Consumed: Fact{At: 9}}, bridge.StageConsumed, did(9, "marked read")},
		{"answered", Delivery{Consumed: did(5, "a"), Answered: did(6, "reply m-2")}, bridge.StageAnswered, did(6, "reply m-2")},
		{"waits for another PC", Delivery{Remote: away}, bridge.StageDurable, did(1, "accepted, durable, waiting for lab")},
		{"at the hub", Delivery{Remote: at(func(c *Crossing) { c.AtHub = hub })}, bridge.StageAtHub, hub},
		{"on the other PC, after the hub", Delivery{Remote: at(func(c *Crossing) { c.AtHub, c.Arrived = hub, arrived })}, bridge.StageArrived, arrived},
		{"woken on the other PC", Delivery{Remote: at(func(c *Crossing) { c.Arrived = arrived }), Woken: did(8, "x")}, bridge.StageWoken, did(8, "x")},
		{"refused by the other PC", Delivery{Remote: at(func(c *Crossing) { c.Refused = refused }), Expired: did(9, "x")}, bridge.StageRefused, refused},
		{"read there after all", Delivery{Remote: at(func(c *Crossing) { c.Refused = refused }), Consumed: did(9, "x")}, bridge.StageConsumed, did(9, "x")},
	} {
		tt.of.CreatedAt = 1
		stage, fact := tt.of.Reached()
		if stage != tt.stage || stage != tt.of.Stage() || fact != tt.fact {
			t.Errorf("%s: %s, %+v; want %s, %+v", tt.name, stage, fact, tt.stage, tt.fact)
		}
	}
}

func TestMSG_04_WhereAMessageToAnotherPCIs(t *testing.T) {
	done := did(1, "no such session")
	for _, tt := range []struct {
		of    Crossing
		words string
		waits bool
	}{
		{Crossing{}, "", false},
		{Crossing{Arrived: done}, "", false},
		{Crossing{Host: "lab"}, "waiting for lab", true},
		{Crossing{Host: "lab", Held: "the disk is full"}, "waiting for lab: the disk is full", true},
		{Crossing{Host: "lab", Held: "the disk is full", AtHub: done}, "at the team's hub, not on lab yet", false},
		{Crossing{Host: "lab", AtHub: done, Arrived: done}, "on lab", false},
		{Crossing{Host: "lab", Arrived: done}, "on lab", false},
		{Crossing{Host: "lab", Refused: done}, "lab refused it: no such session", false},
	} {
		if words, waits := tt.of.Words(), tt.of.IsWaiting(); words != tt.words || waits != tt.waits {
			t.Errorf("%+v: %q, waits %v", tt.of, words, waits)
		}
	}
}

func TestMSG_04_AMessageIsAsFarAsItsLastRecipient(t *testing.T) {
	stages := map[bridge.Stage]Delivery{
		bridge.StageDurable: {}, bridge.StageWoken: {Woken: did(1, "")}, bridge.StageHanded: {Handed: did(1, "")}, bridge.StageConsumed: {Consumed: did(1, "")},
		bridge.StageAnswered: {Answered: did(1, "")}, bridge.StageExpired: {Expired: did(1, "")}, bridge.StageRefused: {Remote: Crossing{Host: "lab", Refused: did(1, "")}},
		bridge.StageArrived: {Remote: Crossing{Host: "lab", Arrived: did(1, "")}}, bridge.StageAtHub: {Remote: Crossing{Host: "lab", AtHub: did(1, "")}},
	}
	if got := (HistoryRow{}).Stage(); got != bridge.StageDurable {
		t.Errorf("without deliveries: %s", got)
	}
	// Each stage holds back those of the groups behind its own.
	order := [][]bridge.Stage{
		{bridge.StageExpired, bridge.StageRefused},
		{bridge.StageDurable, bridge.StageAtHub, bridge.StageArrived},
		{bridge.StageWoken},
		{bridge.StageHanded},
		{bridge.StageConsumed},
		{bridge.StageAnswered},
	}
	for i, group := range order {
		for _, first := range group {
			for _, second := range slices.Concat(order[i+1:]...) {
				for _, both := range [][]Delivery{{stages[first], stages[second]}, {stages[second], stages[first]}} {
					if got := (HistoryRow{Deliveries: both}).Stage(); got != first {
						t.Errorf("%s and %s: %s", first, second, got)
					}
				}
			}
			if i > 0 {
				if got := (HistoryRow{Deliveries: []Delivery{stages[first]}}).Stage(); got != first {
					t.Errorf("%s alone: %s", first, got)
				}
			}
		}
		for _, other := range group { // of one group the first recipient's
			if got := (HistoryRow{Deliveries: []Delivery{stages[group[0]], stages[other]}}).Stage(); got != group[0] {
				t.Errorf("%s and %s: %s", group[0], other, got)
			}
		}
	}
}

func TestMSG_06_ListsAreMergedNewestFirst(t *testing.T) {
	rows := func(list ...int64) (made []HistoryRow) {
		for _, at := range list {
			made = append(made, HistoryRow{ID: fmt.Sprint(at), CreatedAt: at})
		}
		return made
	}
	for _, tt := range []struct {
		name  string
		a, b  []HistoryRow
		limit int
		want  string
	}{
		{"one is empty", rows(3, 2), nil, 9, "[3 2]"},
		{"the other is empty", nil, rows(3, 2), 9, "[3 2]"},
		{"both", rows(5, 3, 1), rows(4, 2), 9, "[5 4 3 2 1]"},
		{"up to the limit", rows(5, 3, 1), rows(4, 2), 3, "[5 4 3]"},
		{"none", rows(5), rows(4), 0, "[]"},
		{"a clock jumped back within one", rows(2, 9), rows(5), 9, "[5 2 9]"},
	} {
		ids := []string{}
		for _, row := range Newest(tt.a, tt.b, tt.limit) {
			ids = append(ids, row.ID)
		}
		if got := fmt.Sprint(ids); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	same := Newest([]HistoryRow{{ID: "a", CreatedAt: 1}}, []HistoryRow{{ID: "b", CreatedAt: 1}}, 2)
	if same[0].ID != "a" || same[1].ID != "b" {
		t.Errorf("of one time: %+v", same)
	}
}

func TestMSG_06_ARowTakesTheDeliveriesThatItLacks(t *testing.T) {
	to := func(recipient, evidence string) Delivery {
		return Delivery{Message: bridge.Message{ID: "m-1", Recipient: recipient}, Handed: did(1, evidence)}
	}
	row := HistoryRow{ID: "m-1", Deliveries: make([]Delivery, 1, 4)}
	row.Deliveries[0] = to("p-1", "own")
	whole := row.With(HistoryRow{Deliveries: []Delivery{to("p-1", "other"), to("p-2", "other")}})
	want := []Delivery{to("p-1", "own"), to("p-2", "other")}
	if difference := cmp.Diff(want, whole.Deliveries); difference != "" {
		t.Error(difference)
	}
	row.With(HistoryRow{Deliveries: []Delivery{to("p-3", "other")}})
	if difference := cmp.Diff(want, whole.Deliveries); difference != "" {
		t.Errorf("two rows share one list: %s", difference)
	}
	if got := IDs(want); !slices.Equal(got, []string{"m-1", "m-1"}) {
		t.Errorf("its ids are %q", got)
	}
}

func TestMSG_06_UrgentMailGoesFirst(t *testing.T) {
	urgent := Priority(func(d Delivery) bool { return d.ID == "u" })
	u, x := Delivery{Message: bridge.Message{ID: "u"}}, Delivery{Message: bridge.Message{ID: "x"}}
	for _, tt := range []struct {
		by   Priority
		a, b Delivery
		want int
	}{{urgent, u, x, -1}, {urgent, x, u, 1}, {urgent, u, u, 0}, {urgent, x, x, 0}, {InOrder, u, x, 0}} {
		if got := tt.by.Compare(tt.a, tt.b); got != tt.want {
			t.Errorf("%s and %s: %d, want %d", tt.a.ID, tt.b.ID, got, tt.want)
		}
	}
}

func TestMSG_06_TheWayOfAMessage(t *testing.T) {
	for _, tt := range []struct {
		via                Via
		detail, words      string
		wake, queue, later bool
	}{
		{ViaHook, "PostToolUse", "hook PostToolUse", false, false, false},
		{ViaWakeHook, "x", "wake hook", true, false, true},
		{ViaChannel, "x", "channel notification", true, false, true},
		{ViaMod, "x", "its mod submitted it as a prompt", false, false, true},
		{ViaPlugin, "", "plugin", false, false, false},
		{ViaPlugin, "stored it", "plugin stored it", false, false, false},
		{ViaTool, "inbox", "tool inbox", false, false, false},
		{ViaQueue, "x", "codex queue took it", false, true, true},
		{ViaQueueUnclear, "no answer", "codex queue: no answer", false, true, true},
		{ViaReply, "m-2", "reply m-2", false, false, false},
	} {
		if got := tt.via.Evidence(tt.detail); got != tt.words {
			t.Errorf("%s says %q, want %q", tt.via, got, tt.words)
		}
		if tt.via.IsWake() != tt.wake || tt.via.InQueue() != tt.queue || tt.via.ShownLater() != tt.later {
			t.Errorf("%s: wake %v, queue %v, later %v", tt.via, tt.via.IsWake(), tt.via.InQueue(), tt.via.ShownLater())
		}
		if got := ViaOf(bridge.StageHanded, tt.words); got != tt.via {
			t.Errorf("%q is the way %q, want %q", tt.words, got, tt.via)
		}
	}
}

func TestMSG_06_TheWayIsReadFromOlderWords(t *testing.T) {
	for _, tt := range []struct {
		stage    bridge.Stage
		evidence string
		want     Via
	}{
		{bridge.StageWoken, "its wake hook returned", ViaWakeHook},
		{bridge.StageHanded, "its wake hook returned", ""},
		{bridge.StageWoken, "codex was started", ViaQueue},
		{bridge.StageHanded, "codex was started", ""},
		{bridge.StageConsumed, "codex showed it", ViaPrompt},
		{bridge.StageHanded, "opencode stored it", ViaPlugin},
		{bridge.StageWoken, "its plugin stored it", ViaPlugin},
		{bridge.StageWoken, "its mod submitted it as a prompt", ViaMod},
		{bridge.StageConsumed, "next activity: Stop", ViaActivity},
		{bridge.StageHanded, "", ""},
	} {
		if got := ViaOf(tt.stage, tt.evidence); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.stage, tt.evidence, got, tt.want)
		}
	}
}

func TestMSG_06_AHostsTextHoldsTheWholeMessage(t *testing.T) {
	m := bridge.Message{ID: "m-1", Body: " run <b>make</b> "}
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"as it was written", "[m-1] run <b>make</b>", true},
		{"as it was shown", "[m-1] " + neutral("run <b>make</b>"), true},
		{"without its id", "run <b>make</b>", false},
		{"another one's", "[m-2] run <b>make</b>", false},
		{"without its end", "[m-1] run <b>", false},
	} {
		if got := HeldIn(tt.text, m); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
