package broker

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/transfer"
	"bridge/backend/testing/testkit"
)

// status is the answer without its times, which must lie within the test's own.
func (p peer) status(messageID string) []api.SentStage {
	p.b.t.Helper()
	answer, err := p.SendStatus(p.b.t.Context(), api.SentArgs{MessageID: messageID})
	if err != nil || answer.ID != messageID {
		p.b.t.Fatalf("%s asks for %s: %+v, %v", p.Name, messageID, answer, err)
	}
	for i, r := range answer.Recipients {
		if age := p.b.now().Sub(time.UnixMilli(r.At)); age < -time.Second || age > testkit.Patience {
			p.b.t.Errorf("%s was %s at %v", r.Name, r.Stage, time.UnixMilli(r.At))
		}
		answer.Recipients[i].At = 0
	}
	return answer.Recipients
}

func (p peer) wantStatus(what, messageID string, want ...api.SentStage) {
	p.b.t.Helper()
	if diff := cmp.Diff(want, p.status(messageID)); diff != "" {
		p.b.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestMSG_12_TheSenderSeesEveryStage: what is accepted and not durable has no
// answer yet that could be asked about.
func TestMSG_12_TheSenderSeesEveryStage(t *testing.T) {
	b := newBench(t)
	from := b.join(api.Register{Name: "from"})
	peer := b.join(api.Register{Name: "to", SessionID: "h1"})
	open := from.mustSend(api.SendArgs{To: "to", Body: "Which one?"})
	from.wantStatus("sent", open.ID, api.SentStage{Name: "to", Stage: "durable", Evidence: "committed to the store"})
	b.hook(session.HookCall{SessionID: "h1", Event: session.EventTool, HostEvent: "PostToolUse"}, true)
	from.wantStatus("handed over", open.ID, api.SentStage{Name: "to", Stage: "handed", Evidence: "hook PostToolUse"})
	b.hook(session.HookCall{SessionID: "h1", Event: session.EventPreTool, HostEvent: "PreToolUse"}, true)
	from.wantStatus("read", open.ID, api.SentStage{Name: "to", Stage: "consumed", Evidence: "next activity: PreToolUse"})
	reply := peer.mustSend(api.SendArgs{To: "from", Body: "That one.", ReplyTo: open.ID})
	from.wantStatus("answered", open.ID, api.SentStage{Name: "to", Stage: "answered", Evidence: "reply " + reply.ID})

	plugin := b.dial(api.RolePlugin)
	if _, err := plugin.Register(t.Context(), api.Register{Kind: bridge.OpenCode, Name: "open", SessionID: "ses_1", Cwd: "/home/u/shop"}); err != nil {
		t.Fatal(err)
	}
	woken := from.mustSend(api.SendArgs{To: "open", Body: "Start."})
	from.wantStatus("woken", woken.ID, api.SentStage{Name: "open", Stage: "woken", Evidence: "its plugin was asked to start a turn"})
}

func TestMSG_12_TheSenderSeesThatItsMessageExpired(t *testing.T) {
	b := newBench(t)
	from := b.join(api.Register{Name: "from", SessionID: "h1"})
	former := b.join(api.Register{Name: "gone", SessionID: "h2"})
	former.Close()
	eventually(t, "gone left", func() bool { p, err := from.Peers(t.Context(), api.Caller{}); return err == nil && len(p.Peers) == 1 })
	sent := from.mustSend(api.SendArgs{To: "gone", Body: "in vain"})
	b.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	b.restart()
	from = b.join(api.Register{Name: "from", SessionID: "h1"})
	if n, err := b.broker.Expire(t.Context()); n != 1 || err != nil {
		t.Fatalf("Expire = %d, %v; want 1", n, err)
	}
	want := api.SentStage{Name: "gone", Stage: "expired", Evidence: "waited too long for its session"}
	from.wantStatus("expired", sent.ID, want)

	later := b.now().Add(time.Hour).UnixMilli()
	eventually(t, "it is in the archive beside the store", func() bool {
		moved, err := transfer.ArchiveMessages(t.Context(), b.home.DB(), b.home.Archive(), transfer.ArchiveRule{Before: later, Now: later})
		return err == nil && moved == 1
	})
	from.wantStatus("expired and archived", sent.ID, want)
}

func TestMSG_12_EachRecipientHasItsOwnStage(t *testing.T) {
	b := newBench(t)
	from := b.join(api.Register{Name: "from"})
	a := b.join(api.Register{Name: "a"})
	b.join(api.Register{Name: "b", SessionID: "hb"})
	c := b.join(api.Register{Name: "c"})
	sent := from.mustSend(api.SendArgs{To: "*", Body: "for all"})
	wantBodies(t, "a", a.read(), "for all")
	b.hook(session.HookCall{SessionID: "hb", Event: session.EventTool, HostEvent: "PostToolUse"}, true)
	c.Close()
	from.wantStatus("three recipients", sent.ID,
		api.SentStage{Name: "a", Stage: "consumed", Evidence: "tool inbox"},
		api.SentStage{Name: "b", Stage: "handed", Evidence: "hook PostToolUse"},
		api.SentStage{Name: "c", Stage: "durable", Evidence: "committed to the store"})
	later := b.now().Add(time.Hour).UnixMilli()
	if moved, err := transfer.ArchiveMessages(t.Context(), b.home.DB(), b.home.Archive(), transfer.ArchiveRule{Before: later, Now: later}); moved != 1 || err != nil {
		t.Fatalf("%d rows are archived, %v", moved, err)
	}
	if got := from.status(sent.ID); len(got) != 3 || got[0].Stage != "consumed" {
		t.Errorf("with one of them in the archive: %+v", got)
	}
}

// TestMSG_12_OnlyTheSenderIsTold: what others sent is refused by the very words
// for what nobody sent, the owner's and a decision's message included.
func TestMSG_12_OnlyTheSenderIsTold(t *testing.T) {
	b := newBench(t)
	from := b.join(api.Register{Name: "from"})
	peer := b.join(api.Register{Name: "to"})
	sent := from.mustSend(api.SendArgs{To: "to", Body: "for two"})
	owners, err := b.dial(api.RoleOwner).Send(t.Context(), api.SendArgs{To: "to", Body: "from the owner"})
	if err != nil {
		t.Fatal(err)
	}
	for what, id := range map[string]string{"another's": sent.ID, "the owner's": owners.ID, "nobody's": "m-0"} {
		_, err := peer.SendStatus(t.Context(), api.SentArgs{MessageID: id})
		wantCode(t, what, err, bridge.NotFound)
		if want := `this session has sent no message with the id "` + id + `"`; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	for what, id := range map[string]string{"none": "", "too long": strings.Repeat("m", 129), "odd": "a b"} {
		_, err := peer.SendStatus(t.Context(), api.SentArgs{MessageID: id})
		wantCode(t, what, err, bridge.Invalid)
	}
}

func TestMSG_12_AMessageStaysItsSendersOwn(t *testing.T) {
	b := newBench(t)
	b.join(api.Register{Name: "to"})
	ask := func(p peer, id string) error {
		_, err := p.SendStatus(t.Context(), api.SentArgs{MessageID: id})
		return err
	}
	from := b.join(api.Register{Name: "from", SessionID: "h1"})
	sent := from.mustSend(api.SendArgs{To: "to", Body: "x"})
	from.Close()
	eventually(t, "it left", func() bool { b.broker.Lock(); defer b.broker.Unlock(); return b.broker.Roster.Len() == 1 })
	heir := b.join(api.Register{Name: "from", SessionID: "h2"})
	wantCode(t, "another session of the name", ask(heir, sent.ID), bridge.NotFound)
	other := b.join(api.Register{Name: "codex", SessionID: "h1", Kind: bridge.Codex})
	wantCode(t, "another agent's session of the id", ask(other, sent.ID), bridge.NotFound)
	b.restart()
	successor := b.join(api.Register{Name: "from", SessionID: "h1"})
	if err := ask(successor, sent.ID); err != nil {
		t.Errorf("the same host session in a new process, under a new broker: %v", err)
	}

	// One that is known only later: what it sent before is its own.
	early := b.join(api.Register{Name: "early"})
	before := early.mustSend(api.SendArgs{To: "from", Body: "y"})
	successor.Close()
	eventually(t, "it left", func() bool { b.broker.Lock(); defer b.broker.Unlock(); return b.broker.Roster.Len() == 1 })
	if _, err := early.Peers(t.Context(), api.Caller{SessionID: "h1"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{before.ID, sent.ID} {
		if err := ask(early, id); err != nil {
			t.Errorf("a session that learned who it is asks for %s: %v", id, err)
		}
	}
}

// TestMSG_12_AHostSessionOfAnotherHomeIsTheSame: two stores that were merged know
// one host session by two peer ids.
func TestMSG_12_AHostSessionOfAnotherHomeIsTheSame(t *testing.T) {
	b := newBench(t)
	b.stop()
	db, err := store.Open(context.WithoutCancel(t.Context()), b.home.DB(), store.Options{Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []store.Peer{
		{ID: "elsewhere", Name: "from", Agent: bridge.Claude, SessionID: "h1", SeenAt: 1},
		{ID: "here", Name: "from", Agent: bridge.Claude, SessionID: "h1", SeenAt: 2},
	} {
		if err := db.SavePeer(t.Context(), peer); err != nil {
			t.Fatal(err)
		}
	}
	message := bridge.Message{
		ID: "m-1", Recipient: "r", From: bridge.Address{ID: "elsewhere", Name: "from", Agent: bridge.Claude}, To: "r", ConversationID: "m-1", Body: "x", CreatedAt: b.now().UnixMilli(),
	}
	if _, _, err := db.Append(t.Context(), []bridge.Message{message}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b.start()
	from := b.join(api.Register{Name: "from", SessionID: "h1"})
	if from.ID != "here" {
		t.Fatalf("it is %s", from.ID)
	}
	from.wantStatus("sent elsewhere", "m-1", api.SentStage{Name: "r", Stage: "durable", Evidence: "committed to the store"})
}

func TestMSG_12_AnArchiveThatCannotBeReadIsNamed(t *testing.T) {
	b := newBench(t)
	b.stop()
	if err := os.WriteFile(b.home.Archive(), []byte(strings.Repeat("damaged ", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	from := b.join(api.Register{Name: "from"})
	b.join(api.Register{Name: "to"})
	_, err := from.SendStatus(t.Context(), api.SentArgs{MessageID: "m-0"})
	wantCode(t, "what may be in the archive", err, bridge.Unavailable)
	sent := from.mustSend(api.SendArgs{To: "to", Body: "x"})
	from.wantStatus("what is in the store", sent.ID, api.SentStage{Name: "to", Stage: "durable", Evidence: "committed to the store"})
}
