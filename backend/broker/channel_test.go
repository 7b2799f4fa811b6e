package broker

import (
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// push takes what the session's channel is given, as its MCP server does, and
// answers how many messages that were.
func (b *bench) push(app peer) int {
	b.t.Helper()
	inbox, err := app.Take(b.t.Context(), api.Caller{})
	if err != nil {
		b.t.Fatal(err)
	}
	if inbox.Lease != nil {
		ack := api.Ack{Lease: *inbox.Lease, Stage: bridge.StageHanded, Via: mail.ViaChannel}
		if err := app.Ack(b.t.Context(), ack); err != nil {
			b.t.Fatal(err)
		}
	}
	return len(inbox.Messages)
}

// Nothing answers what is pushed into a channel, and a claude that was asked for
// one may still drop it all. What was not shown is never called read, and comes
// another way.
func TestCHT_03_AChannelIsBelievedByTheTurnThatItStarts(t *testing.T) {
	for name, happens := range map[string]func(*testing.T){
		"shown": channelShows,
		"dropped, and the next turn is another's": channelDropsBeforeAnothersTurn,
		"dropped, and nothing follows":            channelDrops,
		"at work its hooks do it":                 channelAtWork,
	} {
		t.Run(name, happens)
	}
}

// What the owner writes to a session with a channel.
const (
	pushedWords = "the owner's words"
	pushedID    = "m-1"
)

// withChannel is a session with a channel, idle.
func (b *bench) withChannel() peer {
	app := b.join(api.Register{Name: "app", SessionID: "s1", Channel: true})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	return app
}

func promptOf(text string) session.HookCall {
	return session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: text}
}

func channelShows(t *testing.T) {
	b := newBench(t)
	app := b.withChannel()
	b.chat(chat.Request{Session: app.ID, Body: pushedWords, MessageID: pushedID})
	if got := b.push(app); got != 1 {
		t.Fatalf("the channel is given %d messages", got)
	}
	reply := b.hook(promptOf(`<channel source="bridge" message_id="`+pushedID+`">`+pushedWords+`</channel>`), true)
	if got := b.stage(pushedID); got != bridge.StageConsumed || strings.Contains(reply.Text, pushedWords) {
		t.Errorf("it is %s, and the prompt's hook adds %q", got, reply.Text)
	}
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	b.chat(chat.Request{Session: app.ID, Body: "more", MessageID: "m-2"})
	if got := b.push(app); got != 1 {
		t.Errorf("afterwards the channel is given %d messages", got)
	}
}

func channelDropsBeforeAnothersTurn(t *testing.T) {
	b := newBench(t)
	pass := b.clock()
	app := b.withChannel()
	b.chat(chat.Request{Session: app.ID, Body: pushedWords, MessageID: pushedID})
	b.push(app)
	pass(Timing{}.OrUsual().Settle) // a host that shows it has begun with it by now
	reply := b.hook(promptOf("something else"), true)
	if !strings.Contains(reply.Text, pushedWords) || b.stage(pushedID) != bridge.StageHanded {
		t.Errorf("the prompt's hook shows %q; the words are %s", reply.Text, b.stage(pushedID))
	}
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	if out := b.chat(chat.Request{Session: app.ID, Body: "more", MessageID: "m-2"}); b.push(app) != 0 || strings.Contains(out.Detail, "channel") {
		t.Errorf("the channel that showed nothing is used again: %q", out.Detail)
	}
}

func channelDrops(t *testing.T) {
	b := newBench(t)
	b.quick()
	app := b.withChannel()
	b.chat(chat.Request{Session: app.ID, Body: pushedWords, MessageID: pushedID})
	b.push(app)
	standby := b.wakeHook(true)
	if reply := <-standby; !strings.Contains(reply.Text, pushedWords) {
		t.Errorf("the standby's wake says %q", reply.Text)
	}
}

func channelAtWork(t *testing.T) {
	b := newBench(t)
	app := b.withChannel()
	b.hook(promptOf("work"), true)
	if out := b.chat(chat.Request{Session: app.ID, Body: pushedWords, MessageID: pushedID}); b.push(app) != 0 || strings.Contains(out.Detail, "channel") {
		t.Errorf("a session at work has it pushed: %q", out.Detail)
	}
	if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true); !strings.Contains(reply.Text, pushedWords) {
		t.Errorf("the tool's hook shows %q", reply.Text)
	}
}
