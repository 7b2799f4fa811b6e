package broker

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// limits sets the limits of wakes for sessions that join later.
func (b *bench) limits(limits config.Mail) {
	b.t.Helper()
	if _, err := b.home.UpdateConfig(func(c *config.Config) error { c.Mail = limits; return nil }); err != nil {
		b.t.Fatal(err)
	}
}

// wakeAgain does what the broker does at the time of the next wake.
func (b *bench) wakeAgain(peerID string) {
	b.t.Helper()
	b.broker.wakes.wakeAgain(b.t.Context(), b.sessionOf(peerID))
}

// wantWaits checks that a message wakes nobody yet, and that its sender is told why.
func (p peer) wantWaits(sent api.SendResult) {
	p.b.t.Helper()
	const reason = "waits: app was woken "
	if recipient := sent.Recipients[0]; recipient.Wake || !strings.HasPrefix(recipient.Note, reason) {
		p.b.t.Errorf("the sender is told %+v", recipient)
	}
	status, err := p.SendStatus(p.b.t.Context(), api.SentArgs{MessageID: sent.ID})
	if err != nil || status.Recipients[0].Stage != bridge.StageDurable || !strings.HasPrefix(status.Recipients[0].Evidence, reason) {
		p.b.t.Errorf("its status is %+v, %v", status, err)
	}
	if app := p.b.peerNamed("app"); app.NextWake <= app.WokenAt || app.WokenAt == 0 {
		p.b.t.Errorf("woken at %d, next at %d", app.WokenAt, app.NextWake)
	}
}

// sessionOf returns the live session of a peer id.
func (b *bench) sessionOf(peerID string) *session.Session {
	b.t.Helper()
	b.broker.Lock()
	defer b.broker.Unlock()
	s, live := b.broker.Roster.Get(peerID)
	if !live {
		b.t.Fatal("the session has left")
	}
	return s
}

// lastWake returns when agents' mail last woke a session, as the limits count it.
func (b *bench) lastWake(peerID string) int64 {
	b.broker.Lock()
	defer b.broker.Unlock()
	return b.broker.Boxes[peerID].Rate.Last()
}

// turnOf reports a whole turn of the session s1.
func (b *bench) turnOf(kind bridge.AgentKind) (prompt session.HookReply) {
	b.t.Helper()
	prompt = b.hook(session.HookCall{Kind: kind, Event: session.EventPrompt, SessionID: "s1"}, true)
	b.hook(session.HookCall{Kind: kind, Event: session.EventStop, SessionID: "s1"}, true)
	return prompt
}

// limited is a bench whose sessions agents wake once an hour. pass moves its clock.
func limited(t *testing.T) (b *bench, from peer, pass func(time.Duration)) {
	t.Helper()
	b = newBench(t)
	b.pace = Timing{Debounce: time.Millisecond, Confirm: time.Hour}
	b.limits(config.Mail{SecondsBetweenWakes: 3600})
	pass = b.clock()
	return b, b.join(api.Register{Name: "from"}), pass
}

// says sends app a message.
func (p peer) says(body string) api.SendResult {
	p.b.t.Helper()
	return p.mustSend(api.SendArgs{To: "app", Body: body})
}

func wantAll(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q, want %q in it", what, text, part)
		}
	}
}

func TestQUI_03_CHT_03_AHookWakesOnceForMailWithinTheTime(t *testing.T) {
	b, from, pass := limited(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	waits := func() <-chan api.WakeReply {
		waiting := b.wakeHook(false)
		eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
		return waiting
	}
	waiting := waits()
	if sent := from.says("one"); !sent.Recipients[0].Wake || sent.Recipients[0].Note != "" {
		t.Errorf("of the first the sender is told %+v", sent.Recipients[0])
	}
	wantAll(t, "the first wake", (<-waiting).Text, "one")
	b.turnOf(bridge.Claude)
	waiting = waits()
	from.wantWaits(from.says("two"))
	from.wantWaits(from.says("three"))
	pass(time.Hour)
	b.wakeAgain(app.ID)
	wantAll(t, "the next wake", (<-waiting).Text, "two", "three")
	b.turnOf(bridge.Claude)
	waiting = waits()
	from.wantWaits(from.says("four"))
	b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
	wantAll(t, "the owner's wake", (<-waiting).Text, "the owner's words", "four")
}

func TestQUI_03_CHT_03_AChannelWakesOnceForMailWithinTheTime(t *testing.T) {
	b, from, pass := limited(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1", Channel: true})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	wantPushed := func(what string, want int) {
		t.Helper()
		if got := b.push(app); got != want {
			t.Errorf("%s: %d messages are pushed, want %d", what, got, want)
		}
	}
	if _, err := b.broker.SendOwner(t.Context(), app.ID, api.SendArgs{To: "app", Body: "a note", Reply: mail.ReplyNone}); err != nil {
		t.Fatal(err)
	}
	from.says("one")
	wantPushed("the first, with the owner's note, which wakes nobody", 2)
	b.turnOf(bridge.Claude)
	two := from.says("two")
	from.wantWaits(two)
	wantPushed("within the time", 0)
	b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
	inbox, err := app.Take(t.Context(), api.Caller{})
	if err != nil || len(inbox.Messages) != 2 {
		t.Fatalf("with the owner's words %d messages are pushed, %v", len(inbox.Messages), err)
	}
	if status, err := from.SendStatus(t.Context(), api.SentArgs{MessageID: two.ID}); err != nil || strings.HasPrefix(status.Recipients[0].Evidence, "waits") {
		t.Errorf("of a message that was pushed the sender is told %+v, %v", status.Recipients, err)
	}
	app.ack(*inbox.Lease, bridge.StageHanded)
	b.turnOf(bridge.Claude)
	from.says("three")
	wantPushed("after them", 0)
	pass(time.Hour)
	wantPushed("after the time", 1)
}

func TestQUI_03_CHT_04_AQueueWakesOnceForMailWithinTheTime(t *testing.T) {
	b, from, pass := limited(t)
	arrived := b.codex("exit 0")
	app := b.join(api.Register{Name: "app", Kind: bridge.Codex, SessionID: "s1"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "s1"}, true)
	result := from.says("one")
	eventually(t, "the first wake is noted", func() bool { return b.stage(result.ID) == bridge.StageWoken })
	wantAll(t, "the woken turn", b.turnOf(bridge.Codex).Text, "one")
	two := from.says("two")
	from.wantWaits(two)
	b.broker.queues.queueWake(t.Context(), b.sessionOf(app.ID)) // as for mail that came while the first wake was prepared
	if got := arrived(); len(got) != 1 {
		t.Errorf("codex was asked %d times", len(got))
	}
	pass(time.Hour)
	b.wakeAgain(app.ID)
	eventually(t, "the next wake is noted", func() bool { return b.stage(two.ID) == bridge.StageWoken })
	if got := arrived(); len(got) != 2 {
		t.Errorf("codex was asked %d times", len(got))
	}
}

func TestQUI_03_CHT_07_APluginWakesOnceForMailWithinTheTime(t *testing.T) {
	b, from, pass := limited(t)
	plugin := b.dial(api.RolePlugin)
	app, err := plugin.Register(t.Context(), api.Register{Kind: bridge.OpenCode, Name: "app", SessionID: "s1", Cwd: "/code/shop", Hooks: true})
	if err != nil {
		t.Fatal(err)
	}
	idle := func() string {
		return b.hook(session.HookCall{Kind: bridge.OpenCode, Event: session.EventStop, SessionID: "s1"}, true).Text
	}
	if sent := from.says("one"); !sent.Recipients[0].Wake {
		t.Error("the first asks for no wake")
	}
	wantAll(t, "the first wake", idle(), "one")
	from.says("in the turn")
	wantAll(t, "the end of the turn", idle(), "in the turn")
	if text := idle(); text != "" {
		t.Errorf("then it shows %q", text)
	}
	two := from.says("two")
	from.wantWaits(two)
	if text := idle(); text != "" {
		t.Errorf("within the time it is woken with %q", text)
	}
	pass(time.Hour)
	b.wakeAgain(app.ID)
	if got := b.stage(two.ID); got != bridge.StageWoken {
		t.Errorf("the plugin was not told: the message is %s", got)
	}
	wantAll(t, "after the time", idle(), "two")
	idle()
	from.says("three")
	b.chat(chat.Request{Session: app.ID, Body: "the owner's words"})
	wantAll(t, "the owner's wake", idle(), "the owner's words", "three")
	idle()
	pass(time.Hour)
	b.chat(chat.Request{Session: app.ID, Body: "more of the owner's words"})
	wantAll(t, "the owner's next wake", idle(), "more of the owner's words")
	idle()
	if sent := from.says("four"); !sent.Recipients[0].Wake {
		t.Errorf("after a wake of the owner the sender is told %+v", sent.Recipients[0])
	}
}

func TestQUI_03_MailThatWakesNobodyIsNotAnnouncedAgain(t *testing.T) {
	b, from, _ := limited(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	from.mustSend(api.SendArgs{To: "app", Body: "thanks", Reply: mail.ReplyNone})
	before, err := b.broker.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.wakeAgain(app.ID)
	if after, err := b.broker.Status(t.Context()); err != nil || after.Revision != before.Revision {
		t.Errorf("the page is told of a change: revision %d, then %d, %v", before.Revision, after.Revision, err)
	}
}

// The broker gives the next wake by itself.
func TestQUI_03_TheNextWakeComesAtItsTime(t *testing.T) {
	b, from, _ := limited(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	const between = 100 * time.Millisecond
	b.broker.Lock()
	s, _ := b.broker.Roster.Get(app.ID)
	s.Wake.BetweenWakes = between
	b.broker.Unlock()
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	from.says("one")
	wantAll(t, "the first wake", (<-b.wakeHook(false)).Text, "one")
	first := b.lastWake(app.ID)
	b.turnOf(bridge.Claude)
	from.says("two")
	wantAll(t, "the next wake", (<-b.wakeHook(false)).Text, "two")
	if later := b.lastWake(app.ID) - first; later < between.Milliseconds() {
		t.Errorf("the next wake came %d ms later", later)
	}
}

// A wake that no sign of the session follows does not count: the standby gets the mail.
func TestQUI_03_CHT_03_AWakeWithoutEffectDoesNotCount(t *testing.T) {
	b, from, _ := limited(t)
	b.quick()
	from = b.join(api.Register{Name: "from"})
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	from.says("one")
	wantAll(t, "the first hook", (<-b.wakeHook(false)).Text, "one")
	wantAll(t, "the standby", (<-b.wakeHook(true)).Text, "one")
	eventually(t, "nothing counts", func() bool { return b.lastWake(app.ID) == 0 })
}

func TestQUI_03_AtMostSoManyWakesInAnHour(t *testing.T) {
	b, from, pass := limited(t)
	b.limits(config.Mail{WakesPerHour: 2})
	app := b.join(api.Register{Name: "app", SessionID: "s1", Channel: true})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	pushed := []int{}
	for _, body := range []string{"one", "two", "three"} {
		from.says(body)
		pushed = append(pushed, b.push(app))
		b.hook(promptOf("its wake"), true)
		b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	}
	if !slices.Equal(pushed, []int{1, 1, 0}) {
		t.Errorf("pushed %v", pushed)
	}
	from.wantWaits(from.says("four"))
	pass(time.Hour)
	if got := b.push(app); got != 1 {
		t.Errorf("an hour later %d messages are pushed", got)
	}
}

// The owner alone says how often a session may be woken, whatever it registers with.
func TestQUI_03_TheLimitsComeFromTheSettings(t *testing.T) {
	usual := session.Policy{WakeOnDirect: true, MaxHops: bridge.DefaultMaxHops, WakesPerHour: 30, BetweenWakes: time.Minute}
	for _, tt := range []struct {
		name   string
		config string
		prefs  *api.WakePolicy
		want   session.Policy
	}{
		{"none", "", nil, usual},
		{"unreadable", "{", nil, usual},
		{"some", `{"autoWake": true, "mail": {"wakesPerHour": 7, "secondsBetweenWakes": 0}}`, nil,
			session.Policy{AutoWake: true, WakeOnDirect: true, MaxHops: bridge.DefaultMaxHops, WakesPerHour: 7}},
		{"with a session's wishes", `{"mail": {"wakesPerHour": 0, "secondsBetweenWakes": 9}}`, &api.WakePolicy{AutoWake: true, MaxHops: 3},
			session.Policy{AutoWake: true, MaxHops: 3, BetweenWakes: 9 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			if tt.config != "" {
				if err := os.WriteFile(b.home.ConfigFile(), []byte(tt.config), 0o600); err != nil { //nolint:forbidigo // as its owner writes it
					t.Fatal(err)
				}
			}
			app := b.join(api.Register{Name: "app", WakePrefs: tt.prefs})
			if got := b.sessionOf(app.ID).Wake; got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// A turn that Bridge was not told of ends like any other: its end brings mail.
func TestQUI_03_TheEndOfATurnBringsMailWithinTheTime(t *testing.T) {
	b, from, _ := limited(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1", Channel: true})
	stop := session.HookCall{Event: session.EventStop, SessionID: "s1"}
	b.hook(stop, true)
	if from.says("one"); b.push(app) != 1 {
		t.Fatal("the first is not pushed")
	}
	b.turnOf(bridge.Claude)
	from.wantWaits(from.says("two"))
	wantAll(t, "the end of the turn", b.hook(stop, true).Text, "two")
}

// The sender is told of the wake that its message asked for, even if the session took the
// message before the answer.
func TestQUI_03_TheAnswerTellsHowTheMessageArrived(t *testing.T) {
	b, from, _ := limited(t)
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	stored := []bridge.Message{{ID: "m-1", Recipient: app.ID, From: bridge.Address{ID: from.ID, Name: "from", Agent: bridge.Claude}, To: "app"}}
	for _, tt := range []struct {
		arrivals map[string]arrival
		want     api.Recipient
	}{
		{map[string]arrival{app.ID: {transport: mail.ViaWakeHook}}, api.Recipient{Name: "app", Online: true, Wake: true}},
		{map[string]arrival{app.ID: {waits: "waits"}}, api.Recipient{Name: "app", Online: true, Note: "waits"}},
		{nil, api.Recipient{Name: "app", Online: true}},
	} {
		if got := b.broker.messages.sendResult(stored, tt.arrivals).Recipients[0]; got != tt.want {
			t.Errorf("%+v: told %+v, want %+v", tt.arrivals, got, tt.want)
		}
	}
}
