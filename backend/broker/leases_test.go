package broker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// A wait that its caller gave up must not swallow the mail that comes later.
func TestMSG_06_ACancelledWaitTakesNoMail(t *testing.T) {
	b := newBench(t)
	reader, writer := b.join(api.Register{}), b.join(api.Register{})
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := reader.Wait(ctx, api.WaitArgs{TimeoutMillis: 100_000})
			ended <- err
		}()
		cancel()
		wantCode(t, "a cancelled wait", <-ended, bridge.Unavailable)
		writer.mustSend(api.SendArgs{To: reader.Name, Body: "still here"})
		var got []string
		eventually(t, "the message is offered again", func() bool {
			got = reader.read()
			return len(got) > 0
		})
		wantBodies(t, "read after a cancelled wait", got, "still here")
	}
}

// Mail that a session holds when its broker dies stays out of everybody else's
// hands under the next one, until it is confirmed or the session is gone.
func TestMSG_06_ALeaseOutlivesItsBroker(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		b := newBench(t)
		reader := b.join(api.Register{SessionID: "host-1"})
		sent := b.join(api.Register{}).mustSend(api.SendArgs{To: reader.Name, Body: "in flight"})
		box, err := reader.Inbox(t.Context(), api.InboxArgs{MarkRead: true})
		if err != nil || box.Lease == nil {
			t.Fatalf("inbox: %+v, %v", box, err)
		}
		b.restart()
		successor := b.join(api.Register{SessionID: "host-1", Previous: reader.ID, Leases: []session.Lease{*box.Lease}})
		wantBodies(t, "inbox while the mail is in flight", successor.look())
		if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "host-1"}, false); reply.Text != "" {
			t.Errorf("a hook shows what is in flight: %q", reply.Text)
		}
		if confirmed {
			successor.ack(*box.Lease, bridge.StageConsumed)
			wantBodies(t, "inbox after the confirmation", successor.look())
			if stage := b.stage(sent.ID); stage != bridge.StageConsumed {
				t.Errorf("stage %q, want consumed", stage)
			}
			continue
		}
		successor.Close()
		third := b.join(api.Register{SessionID: "host-1"})
		eventually(t, "the mail is offered again", func() bool { return len(third.look()) == 1 })
	}
}

// However much mail is in flight, what stands behind it is given out: an answer
// without messages means that none wait.
func TestMSG_06_MailBehindALeaseIsNotHeldUp(t *testing.T) {
	b := newBench(t)
	reader, writer := b.join(api.Register{}), b.join(api.Register{})
	for n := range 2*100 + 1 {
		writer.mustSend(api.SendArgs{To: reader.Name, Body: fmt.Sprint("note ", n)})
	}
	for n, want := range []struct{ count, remaining int }{{100, 101}, {100, 1}, {1, 0}, {0, 0}} {
		box, err := reader.Inbox(t.Context(), api.InboxArgs{MarkRead: true, Limit: 100})
		if err != nil || len(box.Messages) != want.count || box.Remaining != want.remaining {
			t.Errorf("call %d gave %d and says that %d remain, %v; want %+v", n, len(box.Messages), box.Remaining, err, want)
		}
	}
}

// A session that learns its lasting id while its mail is in flight is not shown
// that mail again.
func TestMSG_06_AConfirmationFollowsTheSession(t *testing.T) {
	b := newBench(t)
	writer := b.join(api.Register{Cwd: "/code/other"})
	first := b.join(api.Register{SessionID: "host-1"})
	first.Close()
	eventually(t, "the first life ends", func() bool {
		found, err := writer.Peers(t.Context(), api.Caller{})
		return err == nil && len(found.Peers) == 1
	})
	second := b.join(api.Register{AgentPID: os.Getppid(), HostKnown: true})
	if second.ID == first.ID {
		t.Fatal("the second life knows its id already: this test needs one that does not")
	}
	sent := writer.mustSend(api.SendArgs{To: second.ID, Body: "in flight"})
	box, err := second.Inbox(t.Context(), api.InboxArgs{MarkRead: true})
	if err != nil || box.Lease == nil {
		t.Fatalf("inbox: %+v, %v", box, err)
	}
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "host-1", Ancestors: []int{os.Getppid()}}, false)
	wantBodies(t, "inbox while the mail is in flight", second.look())
	second.ack(*box.Lease, bridge.StageConsumed)
	wantBodies(t, "inbox after the confirmation", second.look())
	row, err := b.db.Find(t.Context(), sent.ID)
	if err != nil || len(row.Deliveries) != 1 || row.Deliveries[0].Recipient != first.ID || row.Stage() != bridge.StageConsumed {
		t.Errorf("stored as %+v (%v), want one delivery to %s, consumed", row, err, first.ID)
	}
}

// Mail that is confirmed while another call reads the list is not given out of
// the old list.
func TestMSG_06_ManyReadersOfOneSessionShareItsMail(t *testing.T) {
	b := newBench(t)
	reader, writer := b.join(api.Register{}), b.join(api.Register{})
	const messages, readers = 200, 8
	seen := make(chan string, 4*messages)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, readers)
	for range readers {
		go func() {
			for ctx.Err() == nil {
				found, err := reader.Wait(ctx, api.WaitArgs{TimeoutMillis: 100_000})
				if err != nil || found.Message == nil {
					continue
				}
				seen <- found.Message.Body
				if err := reader.Ack(t.Context(), api.Ack{Lease: *found.Lease, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: "inbox"}); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	counts := map[string]int{}
	for range messages {
		writer.mustSend(api.SendArgs{To: reader.Name, Body: newMessageID()})
	}
	for len(counts) < messages {
		counts[<-seen]++
	}
	cancel()
	for range readers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	close(seen)
	for body := range seen {
		counts[body]++
	}
	for body, n := range counts {
		if n != 1 {
			t.Errorf("%s was shown %d times", body, n)
		}
	}
}

// TestJOB_01_WhatACallWaitsForIsItsAnswerAlone: a hook, a wake or a push would have the
// session read it twice.
func TestJOB_01_WhatACallWaitsForIsItsAnswerAlone(t *testing.T) {
	b := newBench(t)
	from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	s, _ := b.broker.Roster.Get(app.ID)
	waiting := b.wakeHook(false)
	eventually(t, "the wake hook waits", func() bool { return b.waits(app.ID, false) })
	leave := b.broker.inbox.await(s, api.WaitArgs{ConversationID: "job-1"})
	from.mustSend(api.SendArgs{To: "app", ConversationID: "job-1", Body: "the answer"})
	if reply, _, err := b.broker.wakeHooks.wakeNow(t.Context(), new(link), s, false); err != nil || reply.Text != "" {
		t.Errorf("a wake hook is given %q (%v)", reply.Text, err)
	}
	for _, event := range []session.Event{session.EventTool, session.EventStop, session.EventPrompt} {
		if reply := b.hook(session.HookCall{Event: event, SessionID: "s1"}, true); reply.Text != "" {
			t.Errorf("the hook %s shows %q", event, reply.Text)
		}
	}
	from.mustSend(api.SendArgs{To: "app", ConversationID: "another", Body: "something else"})
	if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true); !strings.Contains(reply.Text, "something else") || strings.Contains(reply.Text, "the answer") {
		t.Errorf("the next step shows %q", reply.Text)
	}
	found, err := app.Wait(t.Context(), api.WaitArgs{ConversationID: "job-1", TimeoutMillis: 20_000})
	if err != nil || found.Message == nil || found.Message.Body != "the answer" {
		t.Fatalf("the call gets %+v, %v", found, err)
	}
	if err := app.Nack(t.Context(), found.Lease.ID); err != nil { // its caller has gone
		t.Fatal(err)
	}
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	leave()
	if reply := <-waiting; !strings.Contains(reply.Text, "the answer") {
		t.Errorf("then the wake hook is given %q", reply.Text)
	}
}
