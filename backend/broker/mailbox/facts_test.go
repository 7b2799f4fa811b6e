package mailbox

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/proof"
	"bridge/backend/core/session"
)

// owned is a message of the owner, which a mod may enter as a prompt.
func owned(id string) mail.Delivery {
	return mail.Delivery{Message: bridge.Message{ID: id, From: bridge.Address{ID: bridge.OwnerID, Agent: bridge.Owner}, Body: "go on"}}
}

func TestCHT_03_CHT_20_OnlyAModOfThePresentConversationGetsTheOwnersMail(t *testing.T) {
	for _, tt := range []struct {
		name    string
		session session.Session
		noBox   bool
		mod     bool
	}{
		{name: "in its conversation", session: session.Session{Kind: bridge.Claude, SessionID: "s1"}, mod: true},
		{name: "in another conversation", session: session.Session{Kind: bridge.Claude, SessionID: "s2"}},
		{name: "beside a channel", session: session.Session{Kind: bridge.Claude, SessionID: "s1", Channel: true}},
		{name: "of another agent", session: session.Session{Kind: bridge.Codex, SessionID: "s1"}},
		{name: "of a session that left", session: session.Session{Kind: bridge.Claude, SessionID: "s1"}, noBox: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, box := &tt.session, New()
			s.ID = "p1"
			box.Mod.Hello(&wake.ModLink{Number: 1}, "s1", false)
			all := Boxes{"p1": box}
			if tt.noBox {
				all = Boxes{}
			}
			if got := all.HasMod(s); got != tt.mod {
				t.Errorf("a mod: %t", got)
			}
			reserved := all.ReservedForMod(s)
			if reserved(owned("o")) != tt.mod || reserved(deliveries("a")[0]) {
				t.Errorf("the owner's mail is reserved: %t, other mail: %t", reserved(owned("o")), reserved(deliveries("a")[0]))
			}
			if got := all.Facts(s); got.Mod != tt.mod {
				t.Errorf("the facts: %+v", got)
			}
		})
	}
}

func TestCHT_20_JOB_01_HooksGetNeitherTheModsMailNorAwaitedMail(t *testing.T) {
	s, box := &session.Session{ID: "p1", Kind: bridge.Claude, SessionID: "s1"}, New()
	all := Boxes{"p1": box}
	mail3 := func() []mail.Delivery { return append(deliveries("a", "b"), owned("o")) }
	if got := mail.IDs(all.ForHooks(s, mail3())); !slices.Equal(got, []string{"a", "b", "o"}) {
		t.Errorf("without a mod and a wait: %v", got)
	}
	box.Mod.Hello(&wake.ModLink{Number: 1}, "s1", false)
	leave := box.Await(func(d mail.Delivery) bool { return d.ID == "a" })
	if got := mail.IDs(all.ForHooks(s, mail3())); !slices.Equal(got, []string{"b"}) {
		t.Errorf("with both: %v", got)
	}
	if leave(); !slices.Equal(mail.IDs(all.ForHooks(s, mail3())), []string{"a", "b"}) {
		t.Error("mail stays reserved after the wait")
	}
}

func TestCHT_03_TheFactsOfASession(t *testing.T) {
	s := &session.Session{ID: "p1", Name: "web", Kind: bridge.OpenCode, SessionID: "s1", Activity: session.Activity{Busy: true}, Channel: true, Plugin: true, HooksSeen: true, Host: session.HostServer, Wake: session.Policy{AutoWake: true, WakeOnDirect: true}}
	want := delivery.Facts{Name: "web", Kind: bridge.OpenCode, SessionID: "s1", Busy: true, Channel: true, Plugin: true, Hooks: true, Threads: true, AutoWake: true, WakeOnDirect: true}
	if got := (Boxes{}).Facts(s); !reflect.DeepEqual(got, want) {
		t.Errorf("without a box: %+v, want %+v", got, want)
	}
	box := New()
	all := Boxes{"p1": box}
	if got := all.Facts(s); !reflect.DeepEqual(got, want) {
		t.Errorf("with a new box: %+v, want %+v", got, want)
	}
	box.Hooks.Wait(true)
	if want.Waiting = true; !reflect.DeepEqual(all.Facts(s), want) {
		t.Errorf("with a waiting hook: %+v", all.Facts(s))
	}
	box.Queue.Note(chat.QueueRefused, "it is full")
	if want.Failed = true; !reflect.DeepEqual(all.Facts(s), want) {
		t.Errorf("with a queue that refused: %+v", all.Facts(s))
	}
	idle := &session.Session{ID: "p2", Kind: bridge.Claude}
	if got, want := all.Facts(idle), (delivery.Facts{Kind: bridge.Claude}); !reflect.DeepEqual(got, want) {
		t.Errorf("an idle one: %+v, want %+v", got, want)
	}
}

func TestCHT_03_TheTransportThatWakesNow(t *testing.T) {
	policy := session.Policy{AutoWake: true, WakeOnDirect: true, MaxHops: 8}
	s := &session.Session{ID: "p1", Name: "web", Kind: bridge.Claude, SessionID: "s1", Wake: policy}
	box := New()
	all, m := Boxes{"p1": box}, bridge.Message{ID: "m", To: "web", Body: "x", From: bridge.Address{ID: "p2", Agent: bridge.Codex}}
	if got := all.WakeNow(s, m, 0); got != "" {
		t.Errorf("nothing waits: %q", got)
	}
	if box.Hooks.Wait(false); all.WakeNow(s, m, 0) != mail.ViaWakeHook {
		t.Errorf("a hook waits: %q", all.WakeNow(s, m, 0))
	}
	if s.Channel = true; all.WakeNow(s, m, 0) != mail.ViaChannel {
		t.Errorf("it has a channel: %q", all.WakeNow(s, m, 0))
	}
	s.Channel = false
	if box.Mod.Hello(&wake.ModLink{Number: 1}, "s1", false); all.WakeNow(s, owned("o").Message, 0) != mail.ViaMod {
		t.Errorf("it has a mod: %q", all.WakeNow(s, owned("o").Message, 0))
	}
	if s.Busy = true; all.WakeNow(s, m, 0) != "" {
		t.Errorf("it is busy: %q", all.WakeNow(s, m, 0))
	}
}

func TestCHT_03_ASignalIsSeenByWhoeverAskedBefore(t *testing.T) {
	box := New()
	before := box.Arrived()
	box.Signal()
	after := box.Arrived()
	select {
	case <-before:
	default:
		t.Error("a reader that asked before the signal waits on")
	}
	select {
	case <-after:
		t.Error("a signal is seen twice")
	default:
	}
}

func TestCTX_03_TheSizeOfALeasedTextIsTakenOnce(t *testing.T) {
	box, holder, s := New(), &Holder{}, &session.Session{ID: "p1"}
	presentation := mail.Present(deliveries("a", "b"), func(mail.Delivery) bool { return true })
	if presentation.Cost() == (session.Cost{}) {
		t.Fatal("the text has no size")
	}
	lease := box.Lease(holder, s, presentation)
	box.Lease(holder, s, mail.Presentation{Shown: deliveries("c")})
	if cost, ok := box.TakeCost(lease.ID); !ok || cost != presentation.Cost() {
		t.Errorf("taken %+v, %t, want %+v", cost, ok, presentation.Cost())
	}
	if cost, ok := box.TakeCost(lease.ID); !ok || cost != (session.Cost{}) {
		t.Errorf("taken again %+v, %t", cost, ok)
	}
	if _, ok := box.TakeCost("unknown"); ok {
		t.Error("an unknown lease has a size")
	}
	restoredHolder := &Holder{}
	restoredHolder.Keep([]session.Lease{{ID: "l1", Messages: []string{"d"}}})
	restoredHolder.Join(box)
	if _, ok := box.TakeCost("l1"); ok {
		t.Error("the lease of an earlier broker has a size")
	}
}

func TestQUI_03_OnlyMailOfAgentsWaitsForTheNextWake(t *testing.T) {
	s := &session.Session{ID: "p1", Name: "web", Kind: bridge.Claude, SessionID: "s1", Wake: session.Policy{AutoWake: true, MaxHops: 8, BetweenWakes: time.Minute}}
	box, m := New(), bridge.Message{ID: "m", To: "web", Body: "x", From: bridge.Address{ID: "p2", Agent: bridge.Codex}}
	all := Boxes{"p1": box}
	box.Hooks.Wait(false)
	if all.WakeNow(s, m, 5) != mail.ViaWakeHook || all.Waits(s, m, 5) != "" {
		t.Errorf("the first: %q, %q", all.WakeNow(s, m, 5), all.Waits(s, m, 5))
	}
	box.Rate.Woken(s.Wake, 5)
	if got, why := all.WakeNow(s, m, 6), all.Waits(s, m, 6); got != "" || why != "waits: web was woken 0 s ago; next wake in 60 s" && why != "waits: web was woken 0 s ago; next wake in 1 min" {
		t.Errorf("the next: %q, %q", got, why)
	}
	if got, why := all.WakeNow(s, owned("o").Message, 6), all.Waits(s, owned("o").Message, 6); got != mail.ViaWakeHook || why != "" {
		t.Errorf("the owner's: %q, %q", got, why)
	}
	if got := all.WakeNow(s, m, 5+time.Minute.Milliseconds()); got != mail.ViaWakeHook {
		t.Errorf("a minute later: %q", got)
	}
	if s.Busy = true; all.Waits(s, m, 6) != "" {
		t.Errorf("a busy one: %q", all.Waits(s, m, 6))
	}
	if got := (Boxes{}).WakeNow(&session.Session{ID: "p9", Kind: bridge.Claude, Channel: true, Wake: s.Wake}, m, 6); got != mail.ViaChannel {
		t.Errorf("without a box: %q", got)
	}
}

func TestCAN_03_AModThatIsProvenBrokenGetsNoMail(t *testing.T) {
	s := &session.Session{ID: "p1", Kind: bridge.Claude, SessionID: "s1"}
	for name, tt := range map[string]struct {
		broken proof.Faults
		mod    bool
	}{
		"nothing":       {nil, true},
		"another route": {proof.Faults{proof.Wake: "2"}, true},
		"the owner's":   {proof.Faults{proof.YourWords: "2"}, false},
		"both of them":  {proof.Faults{proof.Wake: "2", proof.YourWords: "2"}, false},
	} {
		box := New()
		box.Mod.Hello(&wake.ModLink{Number: 1}, "s1", false)
		box.Broken = tt.broken
		all := Boxes{"p1": box}
		facts := all.Facts(s)
		if all.HasMod(s) != tt.mod || all.ReservedForMod(s)(owned("o")) != tt.mod || facts.Mod != tt.mod || !reflect.DeepEqual(facts.Broken, tt.broken) {
			t.Errorf("%s is broken: %+v", name, facts)
		}
	}
}
