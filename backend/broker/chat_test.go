package broker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// codex puts a program in codex's place: it appends the message of every queue
// command to a file and then behaves as the script says. What arrived at its
// side is counted there.
func (b *bench) codex(script string) (arrived func() []string) {
	b.t.Helper()
	dir := b.t.TempDir()
	bin, log := filepath.Join(dir, "codex"), filepath.Join(dir, "log")
	if err := testkit.WriteProgram(bin, []byte("#!/bin/sh\nprintf '%s\\036' \"$5\" >> "+log+"\n"+script+"\n"), 0o700); err != nil { //nolint:forbidigo // a test's program
		b.t.Fatal(err)
	}
	b.queue = agent.Queue{Bin: bin, Timeout: testkit.Patience}
	return func() []string {
		raw, err := os.ReadFile(log)
		if err != nil {
			return nil
		}
		return strings.Split(strings.TrimSuffix(string(raw), "\x1e"), "\x1e")
	}
}

// refuses is a codex that certainly took nothing: it knows no such session.
const refuses = `echo "Error: No active session found matching '$3'." >&2; exit 1`

func (b *bench) chat(request chat.Request) chat.Outcome {
	b.t.Helper()
	outcome, err := b.broker.Chat(b.t.Context(), request)
	if err != nil {
		b.t.Fatalf("chat %+v: %v", request, err)
	}
	return outcome
}

func TestCHT_04_CHT_05_CHT_06_CHT_15_CodexGetsTheOwnersWordsOnceOrHonestlyNot(t *testing.T) {
	tests := []struct {
		name      string
		script    string
		state     chat.State
		transport chat.Transport
		copies    int  // at codex's side
		asMail    bool // it waits for the hooks
		evidence  string
	}{
		{"accepted", "exit 0", chat.Queued, chat.Native, 1, false, "took it"},
		{"refused", refuses, chat.Queued, chat.Bridge, 1, true, ""},
		{"too old", "echo 'error: unrecognized subcommand' >&2; exit 2", chat.Queued, chat.Bridge, 1, true, ""},
		{"hangs", "exec sleep 600", chat.Unconfirmed, chat.Native, 1, false, "unconfirmed"},
		{"fails without a word", "exit 1", chat.Unconfirmed, chat.Native, 1, false, "unconfirmed"},
		{"panics", "echo \"thread 'main' panicked at src/main.rs:1:1\" >&2; exit 101", chat.Unconfirmed, chat.Native, 1, false, "unconfirmed"},
		{"takes it, then fails", "echo 'Queued message m for thread thread-1.'; exit 1", chat.Unconfirmed, chat.Native, 1, false, "unconfirmed"},
		{"loses its server", "echo 'Error: timed out waiting for the server' >&2; exit 1", chat.Unconfirmed, chat.Native, 1, false, "timed out waiting"},
		{"dies after launch", "kill -9 $$", chat.Unconfirmed, chat.Native, 1, false, "unconfirmed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			arrived := b.codex(tt.script)
			if tt.name == "hangs" {
				b.queue.Timeout = 2 * time.Second
			}
			web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "thread-1"})
			b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStart, SessionID: "thread-1"}, true)
			got := b.chat(chat.Request{Session: web.ID, Body: "look at $(date) `x`", MessageID: "m-1"})
			if got.State != tt.state || got.Transport != tt.transport || (got.Message != "") != tt.asMail {
				t.Errorf("outcome %+v, want %s by %s, a receipt: %v", got, tt.state, tt.transport, tt.asMail)
			}
			if copies := arrived(); len(copies) != tt.copies || copies[0] != chat.OwnerLabel+"look at $(date) `x`" {
				t.Errorf("codex was given %q, want it %d times", copies, tt.copies)
			}
			// The next step and the end of the turn show it only where it is mail.
			count := 0
			for _, event := range []session.Event{session.EventTool, session.EventStop, session.EventPrompt} {
				reply := b.hook(session.HookCall{Kind: bridge.Codex, Event: event, SessionID: "thread-1"}, true)
				count += strings.Count(reply.Text, "look at")
			}
			if want := map[bool]int{true: 1, false: 0}[tt.asMail]; count != want {
				t.Errorf("the hooks showed it %d times, want %d", count, want)
			}
			row, err := b.db.Find(t.Context(), "m-1")
			if err != nil {
				t.Fatalf("CHT-16 the history lacks it: %v", err)
			}
			if d := row.Deliveries[0]; !strings.Contains(d.Handed.Evidence, tt.evidence) || !tt.asMail && d.Consumed.Happened() {
				t.Errorf("delivery %+v, want evidence %q and no read receipt", d, tt.evidence)
			}
		})
	}
}

func TestCHT_04_ThePromptThatShowsItIsTheReceipt(t *testing.T) {
	b := newBench(t)
	b.codex("exit 0")
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "thread-1"})
	b.chat(chat.Request{Session: web.ID, Body: "the words", MessageID: "m-1"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "thread-1", Prompt: "something else"}, true)
	if got := b.stage("m-1"); got != bridge.StageHanded {
		t.Errorf("another prompt made it %s", got)
	}
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "thread-1", Prompt: chat.OwnerLabel + "the words"}, true)
	if got := b.stage("m-1"); got != bridge.StageConsumed {
		t.Errorf("its own prompt made it %s, want consumed", got)
	}
	b.chat(chat.Request{Session: web.ID, Body: "more words\n\n", MessageID: "m-2"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "thread-1", Prompt: chat.OwnerLabel + "more words"}, true)
	if got := b.stage("m-2"); got != bridge.StageConsumed {
		t.Errorf("its own prompt without the line ends made it %s, want consumed", got)
	}
}

func TestCHT_06_ACrashWhileTheQueueRunsNeverMakesASecondCopy(t *testing.T) {
	b := newBench(t)
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "thread-1"})
	message := bridge.Message{ID: "m-1", Recipient: web.ID, From: bridge.OwnerAddress(), To: "web", ConversationID: "m-1", Body: "x", CreatedAt: 1}
	if err := b.db.AppendWithHandover(t.Context(), message, mail.ViaQueueUnclear, "launched, outcome not known"); err != nil {
		t.Fatal(err)
	}
	b.restart() // the broker died after it launched the queue command
	b.join(api.Register{Kind: bridge.Codex, SessionID: "thread-1"})
	for _, event := range []session.Event{session.EventTool, session.EventStop, session.EventPrompt} {
		if reply := b.hook(session.HookCall{Kind: bridge.Codex, Event: event, SessionID: "thread-1"}, true); reply.Text != "" {
			t.Errorf("%s showed a second copy: %q", event, reply.Text)
		}
	}
}

func TestCHT_10_CHT_11_ChildrenMustBeInTheListAndParentsGetANote(t *testing.T) {
	b := newBench(t)
	arrived := b.codex("exit 0")
	app := b.join(api.Register{Name: "app", SessionID: "s1"})
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	b.hook(session.HookCall{Event: session.EventChildStart, SessionID: "s1", ChildID: "c1", ChildTitle: "explore"}, true)
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventChildStart, SessionID: "t1", ChildID: "t2"}, true)
	for _, forged := range []chat.Request{
		{Session: app.ID, Child: "t2", Body: "x"},
		{Session: web.ID, Child: "c1", Body: "x"},
		{Session: app.ID, Child: "nobody", Body: "x"},
		{Session: app.ID, Child: "t2", ToParent: true, Body: "x"},
		{Session: web.ID, Child: web.ID, Body: "x"},
	} {
		_, err := b.broker.Chat(t.Context(), forged)
		wantCode(t, "a forged pair", err, bridge.Conflict)
	}
	_, err := b.broker.Chat(t.Context(), chat.Request{Session: "nobody", Body: "x"})
	wantCode(t, "an unknown session", err, bridge.NotFound)
	if got := b.chat(chat.Request{Session: app.ID, Child: "c1", Body: "x"}); got.State != chat.NotSupported || got.Transport != chat.Parent {
		t.Errorf("claude child: %+v, want not-supported with the parent option", got)
	}
	if got := b.chat(chat.Request{Session: web.ID, Child: "t2", Body: "to the child"}); got.State != chat.Queued || got.Transport != chat.Native || len(arrived()) != 1 {
		t.Errorf("codex child: %+v with %q at codex, want its own queue", got, arrived())
	}
	row := b.recent(1)[0]
	if row.To != "web (native child t2)" || row.Body != "to the child" || row.Deliveries[0].Handed.Evidence != "codex queue took it" {
		t.Errorf("the history has %+v, want the words to the child", row)
	}
	prompt := session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: "t1", Prompt: chat.OwnerLabel + "to the child"}
	b.hook(prompt, true)
	if got := b.stage(row.ID); got != bridge.StageHanded {
		t.Errorf("the parent's own prompt made the child's words %s", got)
	}
	prompt.ChildID = "t2"
	b.hook(prompt, true)
	if got := b.stage(row.ID); got != bridge.StageConsumed {
		t.Errorf("the child's prompt made its words %s, want consumed", got)
	}
	wantBodies(t, "nothing reached the parents by that", app.look())
	wantBodies(t, "nor codex's", web.look())
	if got := b.chat(chat.Request{Session: app.ID, Child: "c1", ToParent: true, Body: "stop digging"}); got.State != chat.Queued || got.Transport != chat.Parent || got.Message == "" {
		t.Errorf("note to the parent: %+v", got)
	}
	wantBodies(t, "the parent's note", app.read(), chat.ParentNote("c1", "explore", "stop digging"))
}

func TestCHT_06_UnclearWordsToAChildAreKeptAsUnconfirmed(t *testing.T) {
	b := newBench(t)
	b.codex("kill -9 $$")
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventChildStart, SessionID: "t1", ChildID: "t2"}, true)
	if got := b.chat(chat.Request{Session: web.ID, Child: "t2", Body: "x"}); got.State != chat.Unconfirmed || got.Message != "" {
		t.Errorf("outcome %+v, want unconfirmed without a receipt", got)
	}
	if row := b.recent(1)[0]; chat.ChildOf(row.To) != "t2" || !strings.Contains(row.Deliveries[0].Handed.Evidence, "unconfirmed") {
		t.Errorf("the history has %+v", row)
	}
	wantBodies(t, "nothing of it is the parent's", web.look())
}

func TestCHT_05_ACodexChildThatCannotBeAddressedOffersTheParent(t *testing.T) {
	b := newBench(t)
	b.codex(refuses)
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventChildStart, SessionID: "t1", ChildID: "t2"}, true)
	if got := b.chat(chat.Request{Session: web.ID, Child: "t2", Body: "x"}); got.State != chat.NotSupported || got.Transport != chat.Parent {
		t.Errorf("outcome %+v, want not-supported with the parent option", got)
	}
	wantBodies(t, "nothing falls to the parent by itself", web.look())
	if rows := b.recent(1); len(rows) != 0 {
		t.Errorf("nothing was sent, yet the history has %+v", rows)
	}
}

// recent is the newest of the history.
func (b *bench) recent(limit int) []mail.HistoryRow {
	b.t.Helper()
	rows, err := b.db.Recent(b.t.Context(), limit)
	if err != nil {
		b.t.Fatal(err)
	}
	return rows
}

// quick makes wakes immediate: a hook is looked after while it still holds the
// mail.
func (b *bench) quick() {
	b.t.Helper()
	b.pace = Timing{Debounce: time.Millisecond, Confirm: time.Millisecond}
	b.restart()
}

func TestCHT_18_CHT_19_AnIdleCodexIsWokenByItsQueueOncePerBatch(t *testing.T) {
	debounce := 150 * time.Millisecond
	for !wakesOncePerBatch(t, debounce) { // the disk was too slow for a batch
		debounce *= 2
	}
}

// wakesOncePerBatch reports whether two messages came within debounce.
func wakesOncePerBatch(t *testing.T, debounce time.Duration) bool {
	b := newBench(t)
	b.pace = Timing{Debounce: debounce}
	b.restart()
	arrived := b.codex("exit 0")
	from := b.join(api.Register{Name: "from"})
	b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	hook := func(event session.Event) string {
		return b.hook(session.HookCall{Kind: bridge.Codex, Event: event, SessionID: "t1"}, true).Text
	}
	hook(session.EventPrompt) // busy
	if sent := from.mustSend(api.SendArgs{To: "web", Body: "while busy"}); sent.Recipients[0].Wake {
		t.Error("a wake is said to be asked of a busy session")
	}
	hook(session.EventStop) // shows it, and the turn goes on
	hook(session.EventStop)
	from.mustSend(api.SendArgs{To: "*", Body: "to everyone"}) // wakeOnDirect is about direct mail only
	began := time.Now()
	first := from.mustSend(api.SendArgs{To: "web", Body: "one"})
	second := from.mustSend(api.SendArgs{To: "web", Body: "two"})
	if time.Since(began) >= debounce {
		return false
	}
	if !first.Recipients[0].Wake {
		t.Error("no wake is said to be asked of an idle session")
	}
	eventually(t, "the wake is noted", func() bool { return b.stage(second.ID) == bridge.StageWoken && b.stage(first.ID) == bridge.StageWoken })
	if got := arrived(); len(got) != 1 || got[0] != mail.WakePrompt {
		t.Errorf("codex was asked %q, want one wake without the mail in it", got)
	}
	from.mustSend(api.SendArgs{To: "web", Body: "three"}) // one wake is outstanding
	text := hook(session.EventPrompt)
	for _, want := range []string{"one", "two", "three", "to everyone"} {
		if !strings.Contains(text, want) {
			t.Errorf("the woken turn shows %q, which lacks %q", text, want)
		}
	}
	if got := arrived(); len(got) != 1 {
		t.Errorf("codex was asked %d times, want one outstanding wake", len(got))
	}
	return true
}

func TestCHT_19_ARefusedWakeLeavesTheMailUnreadAndSaysWhy(t *testing.T) {
	b := newBench(t)
	b.quick()
	b.codex("echo 'error: unrecognized subcommand' >&2; exit 2")
	from := b.join(api.Register{Name: "from"})
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "t1"}, true)
	from.mustSend(api.SendArgs{To: "web", Body: "wake up"})
	eventually(t, "the diagnosis says why", func() bool {
		peers, err := b.broker.Peers(t.Context())
		return err == nil && peers[1].Wake == delivery.WakeFailed && strings.Contains(peers[1].Detail, "too old")
	})
	wantBodies(t, "the mail is unread", web.look(), "wake up")
}

// Whether a wake is in codex's queue is not known after an unclear end, and one
// that is in stays there until the session reads it: asking again and again
// would make it a turn for each.
func TestCHT_06_CHT_19_WakesDoNotPileUpInTheQueue(t *testing.T) {
	tests := []struct {
		name, script string
		most         int // wakes without a sign of the session in between
		text         string
	}{
		{"unclear", "exit 101", 1, "exited with 101"},
		{"taken", "exit 0", 2, ""},
		{"refused", refuses, 4, "no session of this id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			var passed atomic.Int64
			b.now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
			b.quick()
			arrived := b.codex(tt.script)
			from := b.join(api.Register{Name: "from"})
			web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
			stop := func() {
				b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "t1"}, true)
			}
			// settled waits until a wake that was scheduled has been asked for.
			settled := func() {
				eventually(t, "no wake is under way", func() bool {
					b.broker.Lock()
					defer b.broker.Unlock()
					return b.broker.Boxes[web.ID].Queue.State(0) != wake.QueueScheduled
				})
			}
			stop()
			for range 4 {
				from.mustSend(api.SendArgs{To: "web", Body: "wake up"})
				settled()
				passed.Add(int64(time.Hour))
			}
			if got := len(arrived()); got != tt.most {
				t.Errorf("codex was asked %d times without a sign of the session, want %d", got, tt.most)
			}
			peers, err := b.broker.Peers(t.Context())
			if err != nil || !strings.Contains(peers[1].Detail, tt.text) {
				t.Errorf("the diagnosis is %+v, %v; want %q", peers[1], err, tt.text)
			}
			wantBodies(t, "the mail is unread", web.look(), "wake up", "wake up", "wake up", "wake up")

			stop() // it reads them at its turn's end
			stop()
			from.mustSend(api.SendArgs{To: "web", Body: "again"})
			settled()
			if got := len(arrived()); got != tt.most+1 {
				t.Errorf("after a sign of the session codex was asked %d times, want %d", got, tt.most+1)
			}
		})
	}
}

// Why the queue refused is said whatever else is known of the session, until it
// takes something.
func TestCHT_19_WhyTheQueueRefusedIsSaidWhateverElseIsKnown(t *testing.T) {
	call := func(event session.Event) session.HookCall {
		return session.HookCall{Kind: bridge.Codex, Event: event, SessionID: "t1"}
	}
	tests := []struct {
		name, script, reason string
		hooks                []session.Event // that reported before
		transport            delivery.Way
	}{
		{"no hook has reported", refuses, "codex knows no session of this id", nil, "tools only"},
		{"busy", refuses, "codex knows no session of this id", []session.Event{session.EventPrompt}, "hooks"},
		{"idle", "echo \"error: unrecognized subcommand 'queue'\" >&2; exit 2", "too old to know the command `queue`", []session.Event{session.EventStop}, "hooks"},
		{"unclear", "exit 7", "It is not known whether codex's queue took what it was given last: codex exited with 7", nil, "tools only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.codex(tt.script)
			web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
			for _, event := range tt.hooks {
				b.hook(call(event), true)
			}
			diagnosis := func() api.Peer {
				peers, err := b.broker.Peers(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return peers[0]
			}
			b.chat(chat.Request{Session: web.ID, Body: "hello"})
			got := diagnosis()
			if got.Transport != tt.transport || got.Wake != delivery.WakeFailed || !strings.Contains(got.Problem, tt.reason) || !strings.HasSuffix(got.Detail, got.Problem) {
				t.Errorf("the diagnosis is %+v, want why: %q", got, tt.reason)
			}
			b.codex("exit 0")
			b.chat(chat.Request{Session: web.ID, Body: "hello again"})
			if got := diagnosis(); got.Wake == delivery.WakeFailed || got.Problem != "" {
				t.Errorf("after the queue took something the diagnosis is %+v", got)
			}
		})
	}
}

// An idle codex reports nothing: what was known of its hooks comes with it to the
// next broker, or mail would wake it no more.
func TestCHT_18_MSG_01_AnIdleCodexIsWokenAfterItsBrokerDied(t *testing.T) {
	b := newBench(t)
	b.quick()
	b.codex("exit 0")
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1"})
	if web.Hooks {
		t.Error("hooks are said to report before any did")
	}
	b.hook(session.HookCall{Kind: bridge.Codex, Event: session.EventStop, SessionID: "t1"}, true)
	var registered api.Registered
	for !registered.Hooks {
		event := <-web.Events()
		if event.Name == api.EventJoined && json.Unmarshal(event.Data, &registered) != nil {
			t.Fatalf("the session is told %s", event.Data)
		}
	}
	b.restart()
	successor := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "t1", Previous: registered.ID, Hooks: registered.Hooks})
	if !successor.Hooks {
		t.Error("the next broker does not know of the hooks")
	}
	sent := b.join(api.Register{Name: "from"}).mustSend(api.SendArgs{To: "web", Body: "wake up"})
	eventually(t, "the wake is noted", func() bool { return b.stage(sent.ID) == bridge.StageWoken })
}

// wakeHook is a wake hook that waits in the background.
func (b *bench) wakeHook(standby bool) <-chan api.WakeReply {
	client := b.dial(api.RoleHook)
	replies := make(chan api.WakeReply, 1)
	go func() {
		call := session.HookCall{Kind: bridge.Claude, Event: session.EventStop, HostEvent: "Stop", SessionID: "s1"}
		reply, err := client.WakeWait(b.t.Context(), api.WakeWait{Call: call, Standby: standby})
		if err != nil {
			close(replies)
			return
		}
		if reply.Lease != nil {
			_ = client.Ack(b.t.Context(), api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaWakeHook})
		}
		replies <- reply
	}()
	return replies
}

func (b *bench) waits(peerID string, standby bool) bool {
	b.broker.Lock()
	defer b.broker.Unlock()
	box := b.broker.Boxes[peerID]
	return box != nil && box.Hooks.WaitsAs(standby)
}

func TestCHT_03_AnIdleClaudeIsWokenByItsWaitingHook(t *testing.T) {
	b := newBench(t)
	from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	older := b.wakeHook(false)
	eventually(t, "the first hook waits", func() bool { return b.waits(app.ID, false) })
	newer := b.wakeHook(false)
	if reply := <-older; !reply.Superseded {
		t.Errorf("the older hook got %+v, want superseded", reply)
	}
	if _, err := from.Decide(t.Context(), api.DecideArgs{Topic: "t", Text: "quiet"}); err != nil {
		t.Fatal(err)
	}
	from.mustSend(api.SendArgs{To: "*", Body: "for all"})
	sent := from.mustSend(api.SendArgs{To: "app", Body: "wake up"})
	if !sent.Recipients[0].Wake {
		t.Error("no wake is said to be asked for")
	}
	reply := <-newer
	if !strings.Contains(reply.Text, "wake up") || !strings.Contains(reply.Text, "for all") {
		t.Errorf("the hook got %q, want the mail", reply.Text)
	}
	eventually(t, "it is handed over", func() bool { return b.stage(sent.ID) == bridge.StageHanded })
	woken := "<task-notification>\nStop hook blocking error: " + reply.Text + "\n</task-notification>"
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1", Prompt: woken}, true)
	if got := b.stage(sent.ID); got != bridge.StageConsumed {
		t.Errorf("after the woken turn began: %s, want consumed", got)
	}
}

// clock is a time that a test moves on.
func (b *bench) clock() (pass func(time.Duration)) {
	b.t.Helper()
	var passed atomic.Int64
	b.now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	b.restart()
	return func(d time.Duration) { passed.Add(int64(d)) }
}

// wakeSign is a sign of a session that a wake hook was given mail for, and what the
// broker makes of it.
type wakeSign struct {
	after time.Duration
	event session.Event
	wakes bool // the prompt holds the wake's text
	shows bool // the hook shows the mail
	stage bridge.Stage
}

// hostReads is how long a host may take to read the end of a wake hook.
const hostReads = 10 * time.Second

// fatesOfAWake are what a host may make of a wake. A person's prompt may come first:
// then it shows the mail in the midst of that turn or after it, or it dropped the wake.
var fatesOfAWake = []struct {
	name  string
	signs []wakeSign
}{
	{"the host begins a turn with it", []wakeSign{
		{event: session.EventPrompt, wakes: true, stage: bridge.StageConsumed},
	}},
	{"it comes in the midst of a person's turn", []wakeSign{
		{event: session.EventPrompt, stage: bridge.StageHanded},
		{after: hostReads, event: session.EventTool, stage: bridge.StageHanded},
		{event: session.EventPrompt, wakes: true, stage: bridge.StageConsumed},
		{event: session.EventStop, stage: bridge.StageConsumed},
	}},
	{"it comes after a person's turn", []wakeSign{
		{event: session.EventPrompt, stage: bridge.StageHanded},
		{after: hostReads, event: session.EventStop, stage: bridge.StageHanded},
		{event: session.EventPrompt, wakes: true, stage: bridge.StageConsumed},
	}},
	{"it is dropped in a turn with steps", []wakeSign{
		{event: session.EventPrompt, stage: bridge.StageHanded},
		{event: session.EventTool, stage: bridge.StageHanded},
		{after: hostReads, event: session.EventTool, stage: bridge.StageHanded},
		{event: session.EventStop, shows: true, stage: bridge.StageHanded},
		{event: session.EventStop, stage: bridge.StageConsumed},
	}},
	{"it is dropped in a turn without steps", []wakeSign{
		{event: session.EventPrompt, stage: bridge.StageHanded},
		{after: hostReads, event: session.EventStop, stage: bridge.StageHanded},
		{event: session.EventPrompt, shows: true, stage: bridge.StageHanded},
		{event: session.EventStop, stage: bridge.StageConsumed},
	}},
	{"it is dropped, and a person comes later", []wakeSign{
		{after: hostReads, event: session.EventPrompt, shows: true, stage: bridge.StageHanded},
		{event: session.EventTool, stage: bridge.StageConsumed},
	}},
	{"the conversation is compacted first", []wakeSign{
		{event: session.EventStart, stage: bridge.StageHanded},
		{after: hostReads, event: session.EventStop, stage: bridge.StageHanded},
		{event: session.EventPrompt, shows: true, stage: bridge.StageHanded},
	}},
	{"the session ends first", []wakeSign{
		{event: session.EventEnd, stage: bridge.StageWoken},
		{event: session.EventPrompt, shows: true, stage: bridge.StageHanded},
	}},
	{"the woken turn's prompt is not heard of", []wakeSign{
		{event: session.EventTool, stage: bridge.StageConsumed},
		{after: hostReads, event: session.EventStop, stage: bridge.StageConsumed},
	}},
}

// Whatever the host does, the session sees the mail once.
func TestMSG_06_CHT_03_MailOfAWakeIsSeenOnce(t *testing.T) {
	for _, tt := range fatesOfAWake {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			pass := b.clock()
			from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
			b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
			pass(time.Second)
			waiting := b.wakeHook(false)
			eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
			sent := from.mustSend(api.SendArgs{To: "app", Body: "wake up"})
			woken := (<-waiting).Text
			eventually(t, "it is handed over", func() bool { return b.stage(sent.ID) == bridge.StageHanded })
			for i, sign := range tt.signs {
				pass(sign.after + time.Millisecond)
				call := session.HookCall{Event: sign.event, SessionID: "s1", Prompt: "a person's words"}
				if sign.event == session.EventStart {
					call.Source = "compact"
				}
				if sign.wakes {
					call.Prompt = "<task-notification>\nStop hook blocking error: " + woken + "\n</task-notification>"
				}
				reply := b.hook(call, true)
				if got := strings.Contains(reply.Text, "wake up"); got != sign.shows {
					t.Errorf("sign %d, %s: it is shown: %v", i, sign.event, got)
				}
				if got := b.stage(sent.ID); got != sign.stage {
					t.Errorf("sign %d, %s: it is %s, want %s", i, sign.event, got, sign.stage)
				}
			}
		})
	}
}

// What a wake became is judged by the next broker, too.
func TestMSG_06_AWakeOutlivesItsBroker(t *testing.T) {
	for _, tt := range []struct {
		name string
		call session.HookCall
		want bridge.Stage
	}{
		{"its prompt", session.HookCall{Event: session.EventPrompt, Prompt: "wake"}, bridge.StageConsumed},
		{"a person's prompt", session.HookCall{Event: session.EventPrompt, Prompt: "a person's words"}, bridge.StageHanded},
		{"a step, for the prompt was lost with the broker", session.HookCall{Event: session.EventTool}, bridge.StageConsumed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			pass := b.clock()
			from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
			b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
			waiting := b.wakeHook(false)
			eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
			sent := from.mustSend(api.SendArgs{To: "app", Body: "wake up"})
			woken := (<-waiting).Text
			eventually(t, "it is handed over", func() bool { return b.stage(sent.ID) == bridge.StageHanded })
			b.restart()
			pass(time.Second)
			b.join(api.Register{Name: "app", SessionID: "s1"})
			if tt.call.Prompt == "wake" {
				tt.call.Prompt = woken
			}
			tt.call.SessionID = "s1"
			if reply := b.hook(tt.call, true); reply.Text != "" {
				t.Errorf("it is shown again: %q", reply.Text)
			}
			if got := b.stage(sent.ID); got != tt.want {
				t.Errorf("it is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCHT_03_AWakeWithoutEffectIsTriedOnceMoreByTheStandby(t *testing.T) {
	b := newBench(t)
	b.quick()
	from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	first, standby := b.wakeHook(false), b.wakeHook(true)
	eventually(t, "both hooks wait", func() bool { return b.waits(app.ID, false) && b.waits(app.ID, true) })
	sent := from.mustSend(api.SendArgs{To: "app", Body: "wake up"})
	if reply := <-first; !strings.Contains(reply.Text, "wake up") {
		t.Fatalf("the first hook got %+v", reply)
	}
	if reply := <-standby; !strings.Contains(reply.Text, "wake up") {
		t.Fatalf("the standby got %+v", reply)
	}
	nextHook := b.wakeHook(false)
	eventually(t, "after two wakes without effect it is unread again", func() bool { return b.stage(sent.ID) == bridge.StageWoken })
	if reply := b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true); strings.Count(reply.Text, "wake up") != 1 {
		t.Errorf("the next turn shows %q, want it once", reply.Text)
	}
	select {
	case reply := <-nextHook:
		t.Errorf("a third wake was tried: %+v", reply)
	default:
	}
}

func TestCHT_15_AWakeHookOfABusySessionWaits(t *testing.T) {
	b := newBench(t)
	from, app := b.join(api.Register{Name: "from"}), b.join(api.Register{Name: "app", SessionID: "s1"})
	b.hook(session.HookCall{Event: session.EventPrompt, SessionID: "s1"}, true)
	waiting := b.wakeHook(false)
	eventually(t, "the hook waits", func() bool { return b.waits(app.ID, false) })
	from.mustSend(api.SendArgs{To: "app", Body: "while busy"})
	if reply := b.hook(session.HookCall{Event: session.EventTool, SessionID: "s1"}, true); !strings.Contains(reply.Text, "while busy") {
		t.Errorf("the next step shows %q", reply.Text)
	}
	select {
	case reply := <-waiting:
		t.Errorf("the wake hook of a busy session got %+v", reply)
	default:
	}
	app.Close()
	if reply := <-waiting; !reply.Superseded {
		t.Errorf("after the session left the hook got %+v", reply)
	}
}

func TestMSG_09_ThePageIsToldOfAConversationThatAHookLearned(t *testing.T) {
	b := newBench(t)
	agentPID := os.Getppid()
	b.join(api.Register{Name: "app", SessionID: "s1", AgentPID: agentPID, HostKnown: true})
	b.hook(session.HookCall{Event: session.EventStop, SessionID: "s1"}, true)
	before := b.broker.feed.Current()
	// The person cleared the conversation: nothing else about the session changes.
	b.hook(session.HookCall{Event: session.EventStart, SessionID: "s2", Source: "clear", Ancestors: []int{agentPID}}, true)
	if b.broker.feed.Current() == before {
		t.Error("no change was announced")
	}
}

func TestCHT_05_WhatTheQueueNeverConfirmedDoesNotHideNewMail(t *testing.T) {
	b := newBench(t)
	b.codex("exit 0")
	web := b.join(api.Register{Name: "web", Kind: bridge.Codex, SessionID: "thread-1"})
	for range hookScan + inboxLimit { // taken, and no hook ever showed them
		b.chat(chat.Request{Session: web.ID, Body: "to the queue"})
	}
	b.codex(refuses)
	b.chat(chat.Request{Session: web.ID, Body: "by mail"})
	wantBodies(t, "the session", web.read(), "by mail")
}
