package mailbox

import (
	"slices"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

func deliveries(ids ...string) (list []mail.Delivery) {
	for _, id := range ids {
		list = append(list, mail.Delivery{Message: bridge.Message{ID: id}})
	}
	return list
}

func free(b *Box, ids ...string) (freeIDs []string) { return mail.IDs(b.Free(deliveries(ids...))) }

func TestMSG_06_WhatIsLeasedIsGivenToNobodyElse(t *testing.T) {
	box, holder, s := New(), &Holder{}, &session.Session{ID: "p1", Process: "7:x"}
	before, arrived := box.Reading(), box.Arrived()
	lease := box.Lease(holder, s, mail.Presentation{Shown: deliveries("a"), Announced: deliveries("b")})
	if got := free(box, "a", "b", "c"); len(got) != 1 || got[0] != "c" {
		t.Errorf("free beside the lease: %v", got)
	}
	if lease.Recipient != "p1" || lease.Process != "7:x" || len(lease.Messages) != 1 || holder.Find(lease.ID) != lease {
		t.Errorf("leased %+v", lease)
	}
	if !box.IsStale(before) || box.Leased() != 2 {
		t.Errorf("a reading before the lease is stale: %t, %d leased", box.IsStale(before), box.Leased())
	}
	reading := box.Reading()
	if reading.Hidden() != 2 || box.IsStale(reading) {
		t.Errorf("a reading beside the lease: %d", reading.Hidden())
	}
	holder.End()
	if got := free(box, "a", "b"); len(got) != 2 || !box.IsStale(reading) || holder.Find(lease.ID) != nil {
		t.Errorf("after the holder's end: %v", got)
	}
	select {
	case <-arrived:
	default:
		t.Error("nobody was told that mail is free again")
	}
}

func TestMSG_06_AnAcknowledgedLeaseEndsAndItsAnnouncementsCount(t *testing.T) {
	box, holder, s := New(), &Holder{}, &session.Session{ID: "p1"}
	lease := box.Lease(holder, s, mail.Presentation{Announced: deliveries("long")})
	box.Ack(lease.Lease)
	if !box.Announced()["long"] || box.Leased() != 0 || len(box.Unannounced(deliveries("long"))) != 0 {
		t.Errorf("announced %v, %d leased", box.Announced(), box.Leased())
	}
	if box.Reading().Hidden() != 1 {
		t.Error("mail behind an announced message waits for it")
	}
	other := box.Lease(&Holder{}, s, mail.Presentation{Shown: deliveries("long")})
	box.Ack(session.Lease{ID: "of an earlier broker", Messages: []string{"long"}})
	if box.Announced()["long"] || box.Leased() != 0 {
		t.Errorf("what was shown whole: announced %v, leased %t", box.Announced(), box.IsLeased("long"))
	}
	other.Release() // a second end changes nothing
	box.Lease(holder, s, mail.Presentation{Announced: deliveries("long")})
	box.Forget("long")
	if box.Announced()["long"] {
		t.Error("forgotten, and still announced")
	}
}

// A lease that ended is acknowledged when part of its mail is on lease to another holder:
// the rest of that lease stays with this holder.
func TestMSG_06_PRF_01_AnAckOfAnEarlierLeaseEndsNoOtherLease(t *testing.T) {
	box, first, second, s := New(), &Holder{}, &Holder{}, &session.Session{ID: "p1"}
	earlier := box.Lease(first, s, mail.Presentation{Shown: deliveries("a")})
	first.End()
	later := box.Lease(second, s, mail.Presentation{Shown: deliveries("a", "b")})
	reading := box.Reading()
	box.Ack(earlier.Lease)
	if box.IsLeased("a") || !box.IsLeased("b") || second.Find(later.ID) != later {
		t.Errorf("on lease are a: %t, b: %t", box.IsLeased("a"), box.IsLeased("b"))
	}
	if !box.IsStale(reading) {
		t.Error("mail that was read before the ack is not out of date")
	}
	if later.Release(); box.Leased() != 0 {
		t.Errorf("%d messages stay on lease", box.Leased())
	}
}

func TestMSG_06_AnEarlierBrokersLeaseIsHeldOnceItsHolderHasASession(t *testing.T) {
	holder, box, stand := &Holder{}, New(), New()
	holder.Keep([]session.Lease{{ID: "l1", Messages: []string{"a"}}})
	holder.Keep([]session.Lease{{ID: "l1", Messages: []string{"b"}}}) // it is told at each registration
	holder.Join(stand)
	if !stand.IsLeased("a") || stand.IsLeased("b") {
		t.Errorf("held: %v", stand.leases)
	}
	if holder.Join(box); box.Leased() != 0 {
		t.Error("held in two boxes")
	}
	if box.TakeOver(stand); !box.IsLeased("a") {
		t.Error("the session that it turned out to be may give it to another")
	}
	holder.Find("l1").Release()
	if box.IsLeased("a") {
		t.Error("returned, and still leased")
	}
	restoredHolder := &Holder{}
	restoredHolder.Keep([]session.Lease{{ID: "l2", Messages: []string{"c"}}})
	if restoredHolder.End(); restoredHolder.Find("l2") != nil {
		t.Error("a lease without a box outlives its holder")
	}
}

func TestMSG_06_WhatIsHandedWhileActivityIsNotedStaysOpen(t *testing.T) {
	box := New()
	if !box.Open() || !box.Hooks.Open() || !box.Mod.Open() {
		t.Error("an earlier broker may have handed some")
	}
	at := box.Handovers()
	box.Handed(mail.ViaHook)
	if box.Consumed(at); !box.Open() {
		t.Error("what was handed meanwhile counts as read")
	}
	if box.Consumed(box.Handovers()); box.Open() {
		t.Error("all is read, and some is open")
	}
	if box.Doubt(); !box.Open() {
		t.Error("doubted, and nothing is open")
	}
	if box.Active(5); box.LastActive() != 5 {
		t.Errorf("last active %d", box.LastActive())
	}
}

func TestJOB_01_WhatIsWaitedForIsKeptUntilTheWaitsEnd(t *testing.T) {
	box := New()
	is := func(id string) func(mail.Delivery) bool { return func(d mail.Delivery) bool { return d.ID == id } }
	remaining := func() []string { return mail.IDs(box.Unawaited(deliveries("a", "b", "c"))) }
	first, second, third := box.Await(is("a")), box.Await(is("b")), box.Await(is("a"))
	arrived := box.Arrived()
	for _, step := range []struct {
		leave func()
		want  []string
	}{{func() {}, []string{"c"}}, {first, []string{"c"}}, {second, []string{"b", "c"}}, {third, []string{"a", "b", "c"}}} {
		if step.leave(); !slices.Equal(remaining(), step.want) {
			t.Errorf("free are %v, want %v", remaining(), step.want)
		}
	}
	select {
	case <-arrived:
	default:
		t.Error("nobody looks again")
	}
}

func TestMSG_03_ABoxIsFoundByAFormerID(t *testing.T) {
	box := New()
	box.FormerIDs = []string{"old"}
	all := Boxes{"new": box, "other": New()}
	for recipient, want := range map[string]string{"new": "new", "old": "new", "nobody": ""} {
		if id, found := all.Of(recipient); id != want || (found == box) != (want != "") {
			t.Errorf("%s is %q", recipient, id)
		}
	}
}

// The mail of a lease stays reserved for it when an earlier broker's lease of the same mail
// comes later and ends.
func TestMSG_06_AReservedMessageIsNotReservedTwice(t *testing.T) {
	box, holder, earlier := New(), &Holder{}, &Holder{}
	first := box.Lease(holder, &session.Session{ID: "p1"}, mail.Presentation{Shown: deliveries("a")})
	earlier.Keep([]session.Lease{{ID: "l1", Recipient: "p1", Messages: []string{"a", "b"}}})
	earlier.Join(box)
	if !box.IsLeased("b") {
		t.Error("the earlier lease reserves nothing")
	}
	if earlier.End(); !box.IsLeased("a") || box.IsLeased("b") {
		t.Errorf("after the end of the earlier lease: a %t, b %t", box.IsLeased("a"), box.IsLeased("b"))
	}
	if first.Release(); box.IsLeased("a") {
		t.Error("the first lease has ended, and its message is reserved")
	}
}

func TestMSG_06_HandoversAreCounted(t *testing.T) {
	box := New()
	for want := 1; want < 3; want++ {
		if box.Handed(mail.ViaHook); box.Handovers() != want {
			t.Errorf("%d handovers, want %d", box.Handovers(), want)
		}
	}
}
