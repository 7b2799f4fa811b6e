package broker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// mod is a scripted mod of claude in one conversation.
type mod struct {
	*ipc.Client
	b       *bench
	session string
}

func (b *bench) mod(sessionID string) *mod {
	return &mod{Client: b.dial(api.RoleMod), b: b, session: sessionID}
}

// prompts asks in the background, so that the mod is there.
func (m *mod) prompts() <-chan api.ModPrompt {
	m.b.t.Helper()
	found := make(chan api.ModPrompt, 1)
	go func() {
		wait := api.ModWait{SessionID: m.session}
		for {
			reply, err := m.Mod(m.b.t.Context(), wait)
			if err != nil {
				return
			}
			if reply.Line != nil {
				wait.Line = *reply.Line
			}
			if reply.Prompt != nil {
				found <- *reply.Prompt
			}
		}
	}()
	m.b.modThere(m.session, true)
	return found
}

// modThere waits until the broker has a mod for the conversation, or none.
func (b *bench) modThere(sessionID string, exists bool) {
	b.t.Helper()
	eventually(b.t, "the mod of "+sessionID, func() bool {
		b.broker.Lock()
		defer b.broker.Unlock()
		s, ok := b.broker.Roster.ByHost(bridge.Claude, sessionID)
		return ok && b.broker.Boxes.HasMod(s) == exists
	})
}

func (m *mod) tell(event api.ModEvent, prompt api.ModPrompt, detail string) {
	m.b.t.Helper()
	report := api.ModReport{Event: event, ID: prompt.ID, Recipient: prompt.Recipient, SessionID: m.session, Detail: detail, At: time.Now().UnixMilli()}
	client := m.b.dial(api.RoleMod) // a call of its own, as the real ones
	defer client.Close()
	if err := client.ModReport(m.b.t.Context(), report); err != nil {
		m.b.t.Fatalf("the mod tells %+v: %v", report, err)
	}
}

// none checks that the mod is given nothing, nor would be if it asked now.
func (m *mod) none(prompts <-chan api.ModPrompt, why string) {
	m.b.t.Helper()
	b := m.b.broker
	b.Lock()
	s, ok := b.Roster.ByHost(bridge.Claude, m.session)
	var l *link
	for conn, other := range b.Conns {
		if conn.Hello().Role == api.RoleMod && ok && b.Boxes[s.ID].Mod.Is(&other.Mod) {
			l = other
		}
	}
	b.Unlock()
	if l != nil {
		if prompt, _, err := b.mods.modPrompt(m.b.t.Context(), l, s); err != nil || prompt != nil {
			m.b.t.Errorf("%s: the mod would be given %+v (%v)", why, prompt, err)
		}
	}
	select {
	case prompt := <-prompts:
		m.b.t.Errorf("%s: the mod is given %q", why, prompt.Text)
	default:
	}
}

// claude is a session whose hooks have reported, idle.
func (b *bench) claude(name, sessionID string, store string) peer {
	b.t.Helper()
	p := b.join(api.Register{Name: name, SessionID: sessionID, CLIDataDir: store})
	b.hook(session.HookCall{Event: session.EventStart, SessionID: sessionID}, true)
	return p
}

func (b *bench) woken(messageID string) string {
	b.t.Helper()
	row, err := b.db.Find(b.t.Context(), messageID)
	if err != nil {
		b.t.Fatal(err)
	}
	return row.Deliveries[0].Woken.Evidence
}

const text = "  look at $(date) `x`\n\n"

func TestCHT_20_TheOwnersWordsAndOnlyTheyGoToTheMod(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	prompts := b.mod("s1").prompts()
	b.join(api.Register{Name: "other"}).mustSend(api.SendArgs{To: "p", Body: "from a peer"})
	got := b.chat(chat.Request{Session: p.ID, Body: text, MessageID: "m-1"})
	if got.State != chat.Queued || got.Transport != chat.Bridge || got.Message != "m-1" || !strings.Contains(got.Detail, "as a prompt of yours") {
		t.Errorf("the answer is %+v", got)
	}
	prompt := <-prompts
	if prompt.Text != text || prompt.ID != "m-1" || prompt.SessionID != "s1" || prompt.Recipient != p.ID {
		t.Errorf("the mod is given %+v", prompt)
	}
	for _, event := range []session.Event{session.EventTool, session.EventStop, session.EventPrompt} {
		reply := b.hook(session.HookCall{Event: event, SessionID: "s1"}, true)
		if strings.Contains(reply.Text, "look at") {
			t.Errorf("the hook %s shows what the mod has: %q", event, reply.Text)
		}
	}
	if got := b.stage("m-1"); got != bridge.StageHanded {
		t.Errorf("without the mod's word it is %s", got)
	}
	m := b.mod("s1")
	m.tell(api.ModEntered, prompt, "uuid")
	if got := b.stage("m-1"); got != bridge.StageConsumed {
		t.Errorf("entered, it is %s", got)
	}
	m.none(prompts, "after the only words")
	wantBodies(t, "what is left", p.look())
}

func TestCHT_20_OnePromptAtATimeAndOnlyBetweenTurns(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	m := b.mod("s1")
	prompts := m.prompts()
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: "work"}, true)
	for _, body := range []string{"first", "second"} {
		b.chat(chat.Request{Session: p.ID, Body: body, MessageID: body})
	}
	if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true); reply.Text != "" {
		t.Errorf("a step shows %q", reply.Text)
	}
	if reply := b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true); reply.Text != "" {
		t.Errorf("the stop shows %q", reply.Text)
	}
	m.none(prompts, "before the turn has ended")
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	prompt := <-prompts
	if prompt.Text != "first" {
		t.Errorf("the mod is given %q first", prompt.Text)
	}
	m.tell(api.ModBusy, prompt, "a turn is under way") // a person was quicker
	if got := b.stage("first"); got != bridge.StageDurable {
		t.Errorf("refused, it is %s", got)
	}
	m.none(prompts, "while a person's turn is under way")
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	if prompt = <-prompts; prompt.Text != "first" {
		t.Errorf("the mod is given %q first", prompt.Text)
	}
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: "first"}, true)
	m.tell(api.ModEntered, prompt, "uuid")
	m.none(prompts, "while the first one's turn is under way")
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	if prompt = <-prompts; prompt.Text != "second" {
		t.Errorf("then it is given %q", prompt.Text)
	}
}

func TestCHT_20_ALateWordOfATurnsEndDoesNotEndTheNextTurn(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	m := b.mod("s1")
	prompts := m.prompts()
	ended := time.Now().Add(-time.Second).UnixMilli()
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: "the next one"}, true)
	if err := b.dial(api.RoleMod).ModReport(t.Context(), api.ModReport{Event: api.ModTurnEnded, SessionID: "s1", At: ended}); err != nil {
		t.Fatal(err)
	}
	b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
	m.none(prompts, "during the next turn")
	if s, _ := b.broker.Roster.Get(p.ID); !b.broker.IsBusy(s) {
		t.Error("the next turn counts as ended")
	}
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	<-prompts
}

func TestCHT_20_WhatClaudeDropsIsMailAgainAndNeverSubmittedTwice(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	m := b.mod("s1")
	prompts := m.prompts()
	b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
	m.tell(api.ModDropped, <-prompts, "the prompt was removed from the queue before it ran")
	if got := b.woken("m-1"); !strings.Contains(got, "the prompt was removed from the queue before it ran") {
		t.Errorf("the reason is not kept: %q", got)
	}
	m.tell(api.ModTurnEnded, api.ModPrompt{}, "")
	wantBodies(t, "the inbox", p.look(), "words")
	if reply := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: "x"}, true); !strings.Contains(reply.Text, "words") {
		t.Errorf("the next prompt shows %q", reply.Text)
	}
	m.none(prompts, "what was dropped")
}

func TestCHT_20_WhatClaudeWouldRunAsACommandGoesAsMailAndSaysWhy(t *testing.T) {
	for _, body := range []string{"/clear", " \n/exit now", "\u00a0/help"} {
		b := newBench(t)
		p := b.claude("p", "s1", "")
		m := b.mod("s1")
		prompts := m.prompts()
		got := b.chat(chat.Request{Session: p.ID, Body: body, MessageID: "m-1"})
		if !strings.Contains(got.Detail, "begins with /") || !strings.Contains(got.Detail, "no user input") {
			t.Errorf("%q: the answer does not say why: %q", body, got.Detail)
		}
		if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true); !strings.Contains(reply.Text, strings.TrimSpace(body)) {
			t.Errorf("%q: the hook shows %q", body, reply.Text)
		}
		m.none(prompts, body)
	}
}

// transcript is claude's own record of a conversation, with what Bridge entered.
func transcript(t *testing.T, sessionID string, entered ...string) (store string) {
	t.Helper()
	store = t.TempDir()
	dir := filepath.Join(store, "projects", "-work-shop")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, text := range append([]string{"typed"}, entered...) {
		row := map[string]any{"type": "user", "timestamp": time.Now().Add(time.Hour), "message": map[string]any{"role": "user", "content": text}}
		if text != "typed" {
			row["origin"] = map[string]any{"kind": "plugin", "name": "bridge", "asUser": true}
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, sessionID+".jsonl"), []byte(lines.String()), 0o600); err != nil { //nolint:forbidigo // a test's file
		t.Fatal(err)
	}
	return store
}

func TestCHT_20_AnUnclearOutcomeIsLookedUpBeforeAnythingIsOfferedAgain(t *testing.T) {
	tests := []struct {
		name    string
		store   func(t *testing.T) string
		prompt  string // that a hook reports
		want    bridge.Stage
		offered bool
	}{
		{"the transcript holds it", func(t *testing.T) string { return transcript(t, "s1", "other", "words") }, "", bridge.StageConsumed, false},
		{"the transcript holds other words", func(t *testing.T) string { return transcript(t, "s1", "word", "words ") }, "", bridge.StageDurable, true},
		{"only another conversation holds it", func(t *testing.T) string { return transcript(t, "s2", "words") }, "", bridge.StageHanded, false},
		{"a hook shows it", func(*testing.T) string { return "" }, "words", bridge.StageConsumed, false},
		{"nothing can be read", func(*testing.T) string { return "" }, "", bridge.StageHanded, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.stop()
			b.pace = Timing{Settle: time.Millisecond, Doubt: time.Millisecond}
			b.start()
			p := b.claude("p", "s1", tt.store(t))
			m := b.mod("s1")
			prompts := m.prompts()
			b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
			<-prompts
			if err := m.Close(); err != nil { // and no word of it
				t.Fatal(err)
			}
			b.modThere("s1", false)
			if tt.prompt != "" {
				b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: tt.prompt}, true)
			}
			eventually(t, "its stage is "+string(tt.want), func() bool {
				row, err := b.db.Find(t.Context(), "m-1")
				return err == nil && row.Deliveries[0].Handed.Happened() != tt.offered && (tt.want == bridge.StageConsumed) == row.Deliveries[0].Consumed.Happened()
			})
			reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true)
			if got := strings.Contains(reply.Text, "words"); got != tt.offered {
				t.Errorf("a hook shows it: %t, want %t", got, tt.offered)
			}
		})
	}
}

// What Bridge itself says in the owner's name is no prompt: the word of a decision,
// and a note about a child.
func TestCHT_20_WhatTheOwnerDidNotTypeIsNoPrompt(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	prompts := b.mod("s1").prompts()
	notice := bridge.Message{
		ID: "d-1", Recipient: p.ID, From: bridge.OwnerAddress(), To: "p", ConversationID: "decision-1", Body: "Tabs.", CreatedAt: time.Now().UnixMilli(),
	}
	if _, _, err := b.db.Append(t.Context(), []bridge.Message{notice}); err != nil {
		t.Fatal(err)
	}
	b.hook(session.HookCall{Event: session.EventChildStart, SessionID: "s1", ChildID: "child-1", ChildTitle: "explorer"}, true)
	b.chat(chat.Request{Session: p.ID, Body: "hurry", Child: "child-1", ToParent: true, MessageID: "m-1"})
	reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true)
	for _, text := range []string{"Tabs.", "hurry"} {
		if !strings.Contains(reply.Text, text) {
			t.Errorf("the hook does not show %q: %q", text, reply.Text)
		}
	}
	b.mod("s1").none(prompts, "neither is a prompt")
}

func TestCHT_20_AModOfAnotherConversationGetsNothing(t *testing.T) {
	b := newBench(t)
	peer, two := b.claude("one", "s1", ""), b.claude("two", "s2", "")
	first, second := b.mod("s1"), b.mod("s2")
	firsts, seconds := first.prompts(), second.prompts()
	b.chat(chat.Request{Session: two.ID, Body: "for two", MessageID: "m-2"})
	if got := <-seconds; got.Text != "for two" || got.SessionID != "s2" {
		t.Errorf("the second is given %+v", got)
	}
	b.chat(chat.Request{Session: peer.ID, Body: "for one", MessageID: "m-1"})
	if got := <-firsts; got.Text != "for one" || got.SessionID != "s1" {
		t.Errorf("the first is given %+v", got)
	}
	second.tell(api.ModEntered, api.ModPrompt{ID: "m-1", Recipient: two.ID}, "") // not its own
	if got := b.stage("m-1"); got != bridge.StageHanded {
		t.Errorf("another's word made it %s", got)
	}
}

func TestCHT_20_AfterClearThePromptGoesToTheNewConversationsMod(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1", AgentPID: os.Getppid(), HostKnown: true})
	old := b.mod("s1")
	prompts := old.prompts()
	b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
	prompt := <-prompts
	old.tell(api.ModMoved, prompt, "another conversation")
	old.none(prompts, "after it has moved on")
	b.modThere("s1", false)
	b.hook(session.HookCall{Event: session.EventEnd, SessionID: "s1", Source: "clear"}, true)
	b.hook(session.HookCall{Event: session.EventStart, SessionID: "s2", Source: "clear", Ancestors: []int{os.Getppid()}}, true)
	if got := b.stage("m-1"); got != bridge.StageDurable {
		t.Errorf("not entered, it is %s", got)
	}
	if got := <-b.mod("s2").prompts(); got.Text != "words" || got.SessionID != "s2" {
		t.Errorf("the new conversation's mod is given %+v", got)
	}
	old.none(prompts, "what another one has")
}

func TestCHT_20_WhoWritesIsToldThatTheModBeginsATurn(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	b.mod("s1").prompts()
	for body, wake := range map[string]bool{"words": true, "/clear": false} {
		sent, err := b.broker.SendOwner(t.Context(), p.ID, api.SendArgs{To: "p", Body: body})
		if err != nil || len(sent.Recipients) != 1 || sent.Recipients[0].Wake != wake {
			t.Errorf("%q: %+v, %v; want wake %t", body, sent, err, wake)
		}
	}
	sent := b.join(api.Register{Name: "other"}).mustSend(api.SendArgs{To: "p", Body: "from a peer"})
	if sent.Recipients[0].Wake {
		t.Error("a peer's mail is said to wake it, though no hook waits")
	}
}

func TestCHT_20_AConversationThatNoModSpokeOfHasItsHooks(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1", AgentPID: os.Getppid(), HostKnown: true})
	prompts := b.mod("s1").prompts()
	b.hook(session.HookCall{Event: session.EventStart, SessionID: "s2", Source: "clear", Ancestors: []int{os.Getppid()}}, true)
	b.modThere("s2", false)
	b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
	if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s2"}, true); !strings.Contains(reply.Text, "words") {
		t.Errorf("the hook shows %q", reply.Text)
	}
	b.mod("s2").none(prompts, "the mod of the conversation before")
}

func TestCHT_20_OneWakeAtATimeOverModAndWakeHook(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	m := b.mod("s1")
	prompts := m.prompts()
	hook := b.dial(api.RoleHook)
	woken := make(chan api.WakeReply, 1)
	go func() {
		reply, err := hook.WakeWait(t.Context(), api.WakeWait{Call: session.HookCall{Kind: bridge.Claude, Event: session.EventStop, SessionID: "s1"}})
		if err == nil {
			woken <- reply
		}
	}()
	b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
	prompt := <-prompts
	b.join(api.Register{Name: "other"}).mustSend(api.SendArgs{To: "p", Body: "from a peer"})
	s, _ := b.broker.Roster.Get(p.ID)
	if reply, held, err := b.broker.wakeHooks.wakeNow(t.Context(), new(link), s, false); err != nil || !held || reply.Text != "" {
		t.Errorf("beside the mod's prompt the wake hook would be given %q (held: %t, %v)", reply.Text, held, err)
	}
	m.tell(api.ModEntered, prompt, "uuid")
	m.tell(api.ModTurnEnded, prompt, "")
	reply := <-woken
	if !strings.Contains(reply.Text, "from a peer") || strings.Contains(reply.Text, "words") {
		t.Errorf("then the wake hook is given %q", reply.Text)
	}
	b.chat(chat.Request{Session: p.ID, Body: "more", MessageID: "m-2"})
	m.none(prompts, "while the wake hook's turn has not begun")
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: reply.Text}, true)
	m.none(prompts, "during the wake hook's turn")
	m.tell(api.ModTurnEnded, prompt, "")
	if got := <-prompts; got.Text != "more" {
		t.Errorf("after it the mod is given %q", got.Text)
	}
}

func TestCHT_20_ANewBrokerHearsWhatBecameOfAPrompt(t *testing.T) {
	b := newBench(t)
	p := b.claude("p", "s1", "")
	m := b.mod("s1")
	prompts := m.prompts()
	b.chat(chat.Request{Session: p.ID, Body: "words", MessageID: "m-1"})
	prompt := <-prompts
	b.restart()
	b.join(api.Register{Name: "p", SessionID: "s1", Previous: p.ID, Hooks: true})
	successor := b.mod("s1")
	prompts = successor.prompts()
	successor.none(prompts, "what an earlier broker gave out")
	successor.tell(api.ModEntered, prompt, "uuid")
	if got := b.stage("m-1"); got != bridge.StageConsumed {
		t.Errorf("entered, it is %s", got)
	}
	successor.none(prompts, "what was entered")
}

func TestCHT_21_TheLineSaysWhatWaitsAndNoWordOfIt(t *testing.T) {
	b := newBench(t)
	b.claude("p", "s1", "")
	m := b.mod("s1")
	b.join(api.Register{Name: "api"}).mustSend(api.SendArgs{To: "p", Body: "secret"})
	reply, err := m.Mod(t.Context(), api.ModWait{SessionID: "s1"})
	if err != nil || reply.Line == nil || *reply.Line != "Bridge: 1 message from api" {
		t.Fatalf("the line is %v, %v", reply.Line, err)
	}
	b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true)
	reply, err = m.Mod(t.Context(), api.ModWait{SessionID: "s1", Line: *reply.Line})
	if err != nil || reply.Line == nil || *reply.Line != "" {
		t.Errorf("handed over, the line is %v, %v", reply.Line, err)
	}
	if err := os.WriteFile(b.home.ConfigFile(), []byte(`{"claude":{"statusLine":false}}`), 0o600); err != nil { //nolint:forbidigo // a test's file
		t.Fatal(err)
	}
	b.join(api.Register{Name: "web"}).mustSend(api.SendArgs{To: "p", Body: "secret"})
	reply, err = m.Mod(t.Context(), api.ModWait{SessionID: "s1", Line: "Bridge: 1 message from api"})
	if err != nil || reply.Line == nil || *reply.Line != "" {
		t.Errorf("switched off, the line is %v, %v", reply.Line, err)
	}
}
