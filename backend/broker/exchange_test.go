package broker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/needs"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// chatter is a bench with two sessions that answer each other, and a third one.
type chatter struct {
	*bench
	web, api, docs peer
	pass           func(time.Duration)
	sent           int
}

func newChatter(t *testing.T) *chatter {
	t.Helper()
	c := &chatter{bench: newBench(t)}
	c.pace = Timing{Debounce: time.Millisecond, Confirm: time.Hour}
	c.limits(config.Mail{Exchange: bridge.DefaultExchange})
	c.pass = c.clock()
	c.join()
	return c
}

// join has the sessions join, after a start of the broker.
func (c *chatter) join() {
	c.web = c.bench.join(api.Register{Name: "web", SessionID: "s1"})
	c.api = c.bench.join(api.Register{Name: "api", SessionID: "s2"})
	c.docs = c.bench.join(api.Register{Name: "docs", SessionID: "s3"})
}

// exchange has the two answer each other n times, and read each answer.
func (c *chatter) exchange(n int) (last api.SendResult) {
	c.t.Helper()
	for range n {
		c.sent++
		from, peer := c.web, c.api
		if c.sent%2 == 0 {
			from, peer = peer, from
		}
		last = from.mustSend(api.SendArgs{To: peer.Name, Body: fmt.Sprintf("answer %d", c.sent)})
		peer.read()
	}
	return last
}

// facts returns the pairs that need the owner.
func (c *chatter) facts() []needs.ExchangeFact {
	c.t.Helper()
	facts, err := c.broker.Exchanges.Facts(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return facts
}

// wantCard checks that there is one card for so many messages, or none for 0.
func (c *chatter) wantCard(what string, messages int) {
	c.t.Helper()
	facts := c.facts()
	if messages == 0 {
		if len(facts) != 0 {
			c.t.Errorf("%s: %+v, want no card", what, facts)
		}
		return
	}
	if len(facts) != 1 || facts[0].Paused || facts[0].Messages != bridge.Count(messages) || facts[0].A.Name != "api" || facts[0].B.Name != "web" {
		c.t.Errorf("%s: %+v, want one card of %d messages", what, facts, messages)
	}
}

// decide pauses or resumes two sessions as the owner does.
func (c *chatter) decide(a, b string, action api.ExchangeAction) (api.Exchange, error) {
	return api.OpExchange.Call(c.t.Context(), c.dial(api.RoleOwner), api.ExchangeArgs{A: a, B: b, Action: action})
}

func (c *chatter) mustDecide(action api.ExchangeAction, want api.Exchange) {
	c.t.Helper()
	if got, err := c.decide("web", "api", action); err != nil || got != want {
		c.t.Errorf("%s: %+v, %v; want %+v", action, got, err, want)
	}
}

// hookOf makes a hook call of the session s1, web.
func (c *chatter) hookOf(event session.Event) session.HookReply {
	c.t.Helper()
	return c.hook(session.HookCall{Event: event, SessionID: "s1"}, true)
}

func TestQUI_02_TwoSessionsThatOnlyAnswerEachOtherAreOneCard(t *testing.T) {
	const most = bridge.DefaultExchange
	c := newChatter(t)
	c.exchange(most)
	c.wantCard("as many as allowed", 0)
	c.exchange(1)
	c.wantCard("one more", most+1)
	first := c.facts()[0].Since
	c.exchange(3)
	c.wantCard("three more", most+4)
	if since := c.facts()[0].Since; since != first {
		t.Errorf("each message is a card of its own: %d, then %d", first, since)
	}
	c.pass(15 * time.Minute)
	c.wantCard("after 15 minutes of silence", 0)
}

func TestQUI_02_WordsOfTheOwnerAndWorkStartTheCountAnew(t *testing.T) {
	const most = bridge.DefaultExchange
	tool := func(session string, call session.HookCall) func(c *chatter) {
		return func(c *chatter) {
			call.SessionID = session
			c.hook(call, true)
		}
	}
	for _, tt := range []struct {
		name string
		does func(c *chatter)
		want int // messages of the card after it
	}{
		{"a message of the owner", func(c *chatter) { c.chat(chat.Request{Session: c.api.ID, Body: "stop that"}) }, 0},
		{"a message of the owner to all", func(c *chatter) {
			if _, err := c.broker.SendOwner(c.t.Context(), "", api.SendArgs{To: "*", Body: "stop that"}); err != nil {
				c.t.Fatal(err)
			}
		}, 0},
		{"a prompt of the owner in the terminal", tool("s1", session.HookCall{Event: session.EventPrompt, Prompt: "go on with the tests"}), 0},
		{"a tool of the one", tool("s1", session.HookCall{Event: session.EventTool, Works: true}), 0},
		{"a tool of the other", tool("s2", session.HookCall{Event: session.EventTool, Works: true}), 0},
		{"a tool of a native child", tool("s2", session.HookCall{Event: session.EventTool, Works: true, ChildID: "c-1"}), 0},
		{"a tool of Bridge's", tool("s1", session.HookCall{Event: session.EventTool}), most + 1},
		{"a prompt by which Bridge starts a turn", tool("s1", session.HookCall{Event: session.EventPrompt, Prompt: mail.WakePrompt}), most + 1},
		{"a prompt of a native child", tool("s1", session.HookCall{Event: session.EventPrompt, Prompt: "look", ChildID: "c-1"}), most + 1},
		{"a tool of a third session", tool("s3", session.HookCall{Event: session.EventTool, Works: true}), most + 1},
		{"a message to a third session", func(c *chatter) { c.web.mustSend(api.SendArgs{To: "docs", Body: "hello"}) }, most + 1},
		{"a decision", func(c *chatter) {
			if _, err := c.web.Decide(c.t.Context(), api.DecideArgs{Topic: "port", Text: "4000"}); err != nil {
				c.t.Fatal(err)
			}
		}, most + 1},
		{"that they may go on", func(c *chatter) {
			c.mustDecide(api.ExchangeResume, api.Exchange{A: "web", B: "api"})
			c.exchange(most)
		}, 0},
		{"that the setting is off", func(c *chatter) { c.limits(config.Mail{}) }, 0},
		{"that more are allowed", func(c *chatter) { c.limits(config.Mail{Exchange: most + 1}) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newChatter(t)
			c.exchange(most + 1)
			c.wantCard("before it", most+1)
			tt.does(c)
			c.wantCard("after it", tt.want)
		})
	}
}

// The wakes of two sessions that answer each other for ever stop with the pause, and what
// they wrote meanwhile comes once and in order.
func TestQUI_02_PausedMailWaitsAndWakesNobody(t *testing.T) {
	c := newChatter(t)
	c.exchange(9)
	c.mustDecide(api.ExchangePause, api.Exchange{A: "web", B: "api", Paused: true, Changed: true})
	c.mustDecide(api.ExchangePause, api.Exchange{A: "web", B: "api", Paused: true})
	c.hookOf(session.EventStop)
	waiting := c.wakeHook(false)
	eventually(t, "the hook waits", func() bool { return c.bench.waits(c.web.ID, false) })

	const reason = "waits: the owner paused the messages between api and web"
	var paused []api.SendResult
	for i := range 3 {
		sent := c.api.mustSend(api.SendArgs{To: "web", Body: fmt.Sprintf("paused %d", i)})
		if recipient := sent.Recipients[0]; recipient.Wake || !recipient.Online || !strings.HasPrefix(recipient.Note, reason) {
			t.Errorf("the sender is told %+v", recipient)
		}
		paused = append(paused, sent)
	}
	c.wantWaiting(paused[0], reason)
	repeat := c.api.mustSend(api.SendArgs{To: "web", Body: "paused 0", MessageID: paused[0].ID, Again: true})
	if recipient := repeat.Recipients[0]; recipient.Wake || !strings.HasPrefix(recipient.Note, reason) {
		t.Errorf("the sender is told of the first again %+v", recipient)
	}
	back := c.web.mustSend(api.SendArgs{To: "api", Body: "paused back"})
	if recipient := back.Recipients[0]; recipient.Wake || !strings.Contains(recipient.Note, "between web and api") {
		t.Errorf("the other sender is told %+v", recipient)
	}
	wantBodies(t, "the inbox of web", c.web.look())
	wantBodies(t, "the inbox of api", c.api.read())
	if facts := c.facts(); len(facts) != 1 || !facts[0].Paused || facts[0].Messages != 4 {
		t.Errorf("what the owner sees: %+v", facts)
	}

	// Mail of others, and the owner's words, come.
	c.docs.mustSend(api.SendArgs{To: "web", Body: "of another session"})
	wantText(t, "the wake by another session", (<-waiting).Text, []string{"of another session"}, []string{"paused"})
	c.hookOf(session.EventPrompt)
	c.chat(chat.Request{Session: c.web.ID, Body: "the owner's words"})
	wantText(t, "the next step", c.hookOf(session.EventTool).Text, []string{"the owner's words"}, []string{"paused"})
	if text := c.hookOf(session.EventStop).Text; text != "" {
		t.Errorf("the end of the turn brought %q", text)
	}

	// The pause holds after a restart.
	c.restart()
	c.join()
	c.hookOf(session.EventStop)
	waiting = c.wakeHook(false)
	eventually(t, "the hook waits", func() bool { return c.bench.waits(c.web.ID, false) })
	c.wantWaiting(paused[2], reason)
	if recipient := c.api.mustSend(api.SendArgs{To: "web", Body: "paused 3"}).Recipients[0]; recipient.Wake || recipient.Note == "" {
		t.Errorf("after a restart the sender is told %+v", recipient)
	}
	wantBodies(t, "the inbox of web after a restart", c.web.look())

	// After it, everything comes once and in order.
	c.mustDecide(api.ExchangeResume, api.Exchange{A: "web", B: "api", Changed: true, Waiting: 5})
	text := (<-waiting).Text
	wantText(t, "the wake by the owner's decision", text, []string{"paused 0", "paused 1", "paused 2", "paused 3"}, []string{"paused back"})
	if strings.Index(text, "paused 0") > strings.Index(text, "paused 3") {
		t.Errorf("out of order: %q", text)
	}
	c.hookOf(session.EventPrompt)
	wantBodies(t, "the inbox of web after it", c.web.look())
	wantBodies(t, "the inbox of api after it", c.api.read(), "paused back")
	if stage := c.stage(paused[0].ID); stage != bridge.StageHanded {
		t.Errorf("the first is %s", stage)
	}
	c.wantCard("after it", 0)
	if recipient := c.web.mustSend(api.SendArgs{To: "api", Body: "goes on"}).Recipients[0]; recipient.Note != "" {
		t.Errorf("after it the sender is told %+v", recipient)
	}
}

// wantWaiting checks that the status of a message of api says why it waits.
func (c *chatter) wantWaiting(sent api.SendResult, reason string) {
	c.t.Helper()
	status, err := c.api.SendStatus(c.t.Context(), api.SentArgs{MessageID: sent.ID})
	if err != nil || status.Recipients[0].Stage != bridge.StageDurable || !strings.HasPrefix(status.Recipients[0].Evidence, reason) {
		c.t.Errorf("its status is %+v, %v", status, err)
	}
}

func wantText(t *testing.T, what, text string, with, without []string) {
	t.Helper()
	wantAll(t, what, text, with...)
	for _, part := range without {
		if strings.Contains(text, part) {
			t.Errorf("%s: %q, want no %q in it", what, text, part)
		}
	}
}

// However much of it waits, paused mail holds up no other mail.
func TestQUI_02_MuchPausedMailHoldsUpNoOther(t *testing.T) {
	c := newChatter(t)
	c.mustDecide(api.ExchangePause, api.Exchange{A: "web", B: "api", Paused: true, Changed: true})
	for i := range 2 * hookScan {
		c.api.mustSend(api.SendArgs{To: "web", Body: fmt.Sprintf("paused %d", i)})
	}
	c.docs.mustSend(api.SendArgs{To: "web", Body: "of another session"})
	box, err := c.web.Inbox(t.Context(), api.InboxArgs{Limit: 1})
	if err != nil || len(box.Messages) != 1 || box.Messages[0].Body != "of another session" || box.Remaining != 0 {
		t.Errorf("%+v, %v", box, err)
	}
	wantText(t, "the hook", c.hookOf(session.EventTool).Text, []string{"of another session"}, []string{"paused"})
}

func TestQUI_02_ACallThatWaitsForPausedMailWaits(t *testing.T) {
	c := newChatter(t)
	c.mustDecide(api.ExchangePause, api.Exchange{A: "web", B: "api", Paused: true, Changed: true})
	got := make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testkit.Patience)
		defer cancel()
		result, err := c.web.Wait(ctx, api.WaitArgs{From: "api", TimeoutMillis: 60_000})
		if err != nil || result.Message == nil {
			got <- fmt.Sprintf("%+v, %v", result, err)
			return
		}
		got <- result.Message.Body
	}()
	c.api.mustSend(api.SendArgs{To: "web", Body: "paused"})
	select {
	case body := <-got:
		t.Fatalf("the call got %q", body)
	default:
	}
	c.mustDecide(api.ExchangeResume, api.Exchange{A: "web", B: "api", Changed: true, Waiting: 1})
	if body := <-got; body != "paused" {
		t.Errorf("the call got %q", body)
	}
}

// Decisions and mail of the other pairs of a paused session come.
func TestQUI_02_APauseIsOfThePairAlone(t *testing.T) {
	c := newChatter(t)
	c.mustDecide(api.ExchangePause, api.Exchange{A: "web", B: "api", Paused: true, Changed: true})
	if _, err := c.api.Decide(t.Context(), api.DecideArgs{Topic: "port", Text: "use 4000"}); err != nil {
		t.Fatal(err)
	}
	c.api.mustSend(api.SendArgs{To: "*", Body: "to all"})
	wantText(t, "web", c.hookOf(session.EventTool).Text, []string{"use 4000"}, []string{"to all"})
	if read := c.docs.read(); len(read) != 2 || read[1] != "to all" {
		t.Errorf("docs read %q", read)
	}
}

func TestQUI_02_OnlyTheOwnerPausesAndOnlyTwoSessions(t *testing.T) {
	c := newChatter(t)
	for _, tt := range []struct {
		a, b   string
		action api.ExchangeAction
		code   bridge.Code
		says   string
	}{
		{"web", "wbe", api.ExchangePause, bridge.NotFound, "web"},
		{"web", "web", api.ExchangePause, bridge.Invalid, "two different sessions"},
		{"web", "s1", api.ExchangePause, bridge.Invalid, "two different sessions"},
		{"web", "*", api.ExchangePause, bridge.Invalid, "name two sessions"},
		{"web", "laptop/api", api.ExchangePause, bridge.Invalid, "another PC"},
		{"web", "", api.ExchangePause, bridge.Invalid, "name two sessions"},
		{"web", "api", "stop", bridge.Invalid, "action must be pause or resume"},
	} {
		_, err := c.decide(tt.a, tt.b, tt.action)
		if bridge.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.says) {
			t.Errorf("%s and %s: %v", tt.a, tt.b, err)
		}
	}
	_, err := api.OpExchange.Call(t.Context(), c.web.Client, api.ExchangeArgs{A: "web", B: "api", Action: api.ExchangePause})
	wantCode(t, "a session", err, bridge.Denied)
	if facts := c.facts(); len(facts) != 0 {
		t.Errorf("paused: %+v", facts)
	}
}

// A damaged file pauses nothing, is left as it is, and hinders no mail.
func TestQUI_02_ADamagedFileOfPausesIsLeftAsItIs(t *testing.T) {
	c := newChatter(t)
	c.mustDecide(api.ExchangePause, api.Exchange{A: "web", B: "api", Paused: true, Changed: true})
	path := filepath.Join(c.home.Dir(), config.PausesStore)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	damaged := string(content[:len(content)/2])
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start()
	c.join()
	if recipient := c.api.mustSend(api.SendArgs{To: "web", Body: "hello"}).Recipients[0]; recipient.Note != "" {
		t.Errorf("the sender is told %+v", recipient)
	}
	wantBodies(t, "the inbox of web", c.web.read(), "hello")
	_, err = c.decide("web", "docs", api.ExchangePause)
	wantCode(t, "a pause", err, bridge.Storage)
	if _, err := c.decide("web", "api", api.ExchangeResume); err != nil {
		t.Errorf("that they go on: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != damaged {
		t.Errorf("the file is %q, %v", after, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.decide("web", "docs", api.ExchangePause); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	if facts := c.facts(); len(facts) != 2 {
		t.Errorf("after the repair %+v", facts)
	}
}

// A session keeps its pause, and the mail from before, when it gets its lasting id.
func TestQUI_02_APauseFollowsASessionToItsLastingID(t *testing.T) {
	c := newChatter(t)
	before := c.bench.join(api.Register{Name: "late", SessionID: "s9"})
	before.Close()
	eventually(t, "the earlier one has left", func() bool {
		c.broker.Lock()
		defer c.broker.Unlock()
		_, live := c.broker.Roster.Get(before.ID)
		return !live
	})
	peer := c.bench.join(api.Register{Name: "late"})
	peer.mustSend(api.SendArgs{To: "web", Body: "before"})
	if _, err := c.decide("web", "late", api.ExchangePause); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Peers(t.Context(), api.Caller{SessionID: "s9"}); err != nil {
		t.Fatal(err)
	}
	peer.mustSend(api.SendArgs{To: "web", Body: "after", Caller: api.Caller{SessionID: "s9"}})
	wantBodies(t, "the inbox of web", c.web.look())
	if got, err := c.decide("web", "s9", api.ExchangeResume); err != nil || !got.Changed || got.Waiting != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	wantBodies(t, "the inbox of web after it", c.web.read(), "before", "after")
}
