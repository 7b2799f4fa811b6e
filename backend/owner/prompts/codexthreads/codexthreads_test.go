package codexthreads

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"bridge/backend/agent/appserver"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/session"
	"bridge/backend/owner/prompts"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

const (
	threadID = "01a20692-aa55-7930-b394-41bd147db790"
	stranger = "01a20692-bbdf-7161-912d-63decf2674bb"
)

// owner is a broker with one session of codex, its owner's settings, and his cards.
type owner struct {
	folder  string
	mode    atomic.Value // a prompt.Mode
	page    atomic.Bool
	live    atomic.Bool
	looks   atomic.Int64 // how often was asked whether a page is open
	changes chan struct{}
	desk    *prompts.Prompts
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	folder, err := os.MkdirTemp("", "cx") // short: a socket is in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	o := &owner{folder: folder, changes: make(chan struct{}, 1)}
	o.mode.Store(prompt.Always)
	o.page.Store(true)
	o.live.Store(true)
	o.desk = prompts.New(prompts.Options{
		Broker: o, Settings: func() (config.Settings, error) {
			mode, _ := o.mode.Load().(prompt.Mode)
			return config.Settings{Config: config.Config{AnswerPrompts: mode}}, nil
		},
		SetAway: func(bool) error { return nil }, Watched: func() bool {
			o.looks.Add(1)
			return o.page.Load()
		}, Answers: filepath.Join(folder, "approvals"),
		Waits: func(string, int, string) (bool, bool) { return false, false }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	return o
}

func (o *owner) Asker(context.Context, *ipc.Conn, api.Caller) (broker.Asker, error) {
	return broker.Asker{}, bridge.Errorf(bridge.Denied, "nobody asks here")
}

func (o *owner) Prompter(_ context.Context, call session.HookCall) (broker.Prompter, bool, error) {
	return broker.Prompter{Name: "codex-shop", Cwd: "/src/shop", Threads: true}, o.IsLive(call.Kind, call.SessionID), nil
}

func (o *owner) IsLive(kind bridge.AgentKind, hostID string) bool {
	return o.live.Load() && kind == bridge.Codex && (hostID == threadID || hostID == stranger)
}

func (o *owner) Threads() []broker.Thread { return []broker.Thread{{ID: threadID, Folder: o.folder}} }

func (o *owner) Watch() (<-chan struct{}, func()) { return o.changes, func() {} }

func (o *owner) Changed() {
	select {
	case o.changes <- struct{}{}:
	default:
	}
}

// codexStand speaks as codex's background server does.
type codexStand struct {
	*testing.T
	*owner
	ctx  context.Context
	stop func() // ends the watcher

	mu       sync.Mutex // guards what follows
	refuses  map[string]bool
	before   map[string]string // what is said before such a request is answered
	stands   string            // how the thread stands when somebody looks
	conn     *websocket.Conn
	pending  []string // requests of ours that nobody has answered; they come again with a resume
	received []appserver.Line
	dials    int
	changed  chan struct{} // closed and replaced with each line
}

// newCodexStand serves a socket, and a watcher that looks at it.
func newCodexStand(t *testing.T, o *owner) *codexStand {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	c := &codexStand{T: t, owner: o, ctx: ctx, refuses: map[string]bool{}, before: map[string]string{}, stands: `{"type":"idle"}`, changed: make(chan struct{})}
	socket := appserver.Socket(o.folder)
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(c.serve), ReadHeaderTimeout: time.Minute}
	go server.Serve(listener) //nolint:errcheck // ends with the test
	watcher := New(Options{
		Broker: o, Desk: o.desk, Log: slog.New(slog.DiscardHandler),
		Timing: Timing{Throttle: time.Millisecond, PollInterval: 5 * time.Millisecond, Again: 5 * time.Millisecond},
	})
	life, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watcher.Run(life)
	}()
	c.stop = func() {
		stop()
		<-ended
	}
	t.Cleanup(func() {
		c.stop()
		_ = server.Close()
	})
	return c
}

func (c *codexStand) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	c.mu.Lock()
	c.conn = conn
	c.dials++
	c.mu.Unlock()
	for {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			return
		}
		var line appserver.Line
		if json.Unmarshal(frame, &line) != nil {
			c.Errorf("codex was sent %s", frame)
		}
		c.take(line)
	}
}

func (c *codexStand) take(line appserver.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, line)
	close(c.changed)
	c.changed = make(chan struct{})
	if line.Method == "" || line.ID == nil {
		return
	}
	result := `{}`
	if notice := c.before[line.Method]; notice != "" {
		c.writeLocked(notice)
	}
	switch {
	case c.refuses[line.Method]:
		c.writeLocked(fmt.Sprintf(`{"id":%s,"error":{"code":-32600,"message":"no"}}`, line.ID))
		return
	case line.Method == "thread/read":
		result = `{"thread":{"id":"` + threadID + `","status":` + c.stands + `}}`
	case line.Method == "thread/resume":
		result = `{"thread":{"id":"` + threadID + `","status":{"type":"active","activeFlags":["waitingOnApproval"]}}}`
	}
	c.writeLocked(fmt.Sprintf(`{"id":%s,"result":%s}`, line.ID, result))
	if line.Method == "thread/resume" {
		for _, request := range c.pending {
			c.writeLocked(request)
		}
	}
}

func (c *codexStand) writeLocked(text string) {
	if c.conn == nil {
		c.Error("nobody is there")
		return
	}
	_ = c.conn.WriteMessage(websocket.TextMessage, []byte(text)) // a client that has gone shows elsewhere
}

// says is a notification, or a request as it is.
func (c *codexStand) says(texts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range texts {
		c.writeLocked(text)
	}
}

func waiting(flags string) string {
	return `{"method":"thread/status/changed","params":{"threadId":"` + threadID + `","status":{"type":"active","activeFlags":[` + flags + `]}}}`
}

func command(id int, more string) string {
	return fmt.Sprintf(`{"method":"item/commandExecution/requestApproval","id":%d,"params":{"kind":"command","threadId":%q,"turnId":"turn-1","itemId":"call-%d","reason":"May I?",`+
		`"command":"/bin/bash -lc 'touch made'","cwd":"/src/shop/sub","availableDecisions":["accept",{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["touch"]}},"cancel"]%s}}`, id, threadID, id, more)
}

func resolved(id int) string {
	return fmt.Sprintf(`{"method":"serverRequest/resolved","params":{"threadId":%q,"requestId":%d}}`, threadID, id)
}

func completed(id int, status, more string) string {
	return fmt.Sprintf(`{"method":"item/completed","params":{"threadId":%q,"turnId":"turn-1","item":{"type":"commandExecution","id":"call-%d","status":%q%s}}}`, threadID, id, status, more)
}

func turn(status string) string {
	return fmt.Sprintf(`{"method":"turn/completed","params":{"threadId":%q,"turn":{"id":"turn-1","status":%q}}}`, threadID, status)
}

// connected waits until somebody is there who has looked at the thread.
func (c *codexStand) connected() {
	c.Helper()
	c.until("thread/read", func(line appserver.Line) bool { return line.Method == "thread/read" })
}

// refuse has codex refuse these methods.
func (c *codexStand) refuse(methods ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, method := range methods {
		c.refuses[method] = true
	}
}

// waits is a thread that waits for these requests, whoever looks.
func (c *codexStand) waits(requests ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands, c.pending = `{"type":"active","activeFlags":["waitingOnApproval"]}`, requests
}

// asks is a thread that begins to wait for these requests.
func (c *codexStand) asks(requests ...string) {
	c.Helper()
	c.connected()
	c.mu.Lock()
	c.pending = requests
	c.mu.Unlock()
	c.says(waiting(`"waitingOnApproval"`))
}

// until waits for a line that codex is sent.
func (c *codexStand) until(what string, matches func(appserver.Line) bool) appserver.Line {
	c.Helper()
	for {
		c.mu.Lock()
		at, changed := slices.IndexFunc(c.received, matches), c.changed
		var found appserver.Line
		if at >= 0 {
			found = c.received[at]
		}
		c.mu.Unlock()
		if at >= 0 {
			return found
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			c.Fatalf("codex is not sent %s", what)
		}
	}
}

// answers are what codex was told in answer to its own requests.
func (c *codexStand) answers() (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.received {
		if line.Method == "" {
			lines = append(lines, fmt.Sprintf("%s: %s %v", line.ID, line.Result, line.Error))
		}
	}
	return lines
}

func (c *codexStand) answered(want ...string) {
	c.Helper()
	if got := c.answers(); !slices.Equal(got, want) {
		c.Errorf("codex was answered %q, want %q", got, want)
	}
}

func (c *codexStand) count(method string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.received {
		if line.Method == method {
			n++
		}
	}
	return n
}

// card waits until the newest card is as it should be.
func (c *codexStand) card(what string, matches func(job.Approval) bool) job.Approval {
	c.Helper()
	for {
		list := c.desk.Approvals()
		if len(list) > 0 && matches(list[len(list)-1]) {
			return list[len(list)-1]
		}
		if !ipc.Pause(c.ctx, time.Millisecond) {
			c.Fatalf("no card comes that is %s: %+v", what, list)
		}
	}
}

func (c *codexStand) state(state job.ApprovalState, how job.Elsewhere) job.Approval {
	c.Helper()
	return c.card(fmt.Sprint(state, " ", how), func(card job.Approval) bool { return card.State == state && card.Elsewhere == how })
}

func (c *codexStand) gives(card job.Approval, decision job.Decision, reason string) {
	c.Helper()
	if _, err := c.desk.Answer(card.ID, decision, reason); err != nil {
		c.Fatal(err)
	}
}

func isAnswer(line appserver.Line) bool { return line.Method == "" }

func TestNED_02_TheOwnersYesReachesCodexAndIsAppliedWhenTheCallRan(t *testing.T) {
	c := newCodexStand(t, newOwner(t))
	c.asks(command(7, ""))
	card := c.state(job.ApprovalAsked, "")
	want := job.Approval{
		ID: card.ID, Session: "codex-shop", Agent: "codex", Kind: "command", What: "shell", Detail: "/bin/bash -lc 'touch made'", Chars: 26,
		Cwd: "/src/shop/sub", Why: "May I?", State: job.ApprovalAsked, AskedAt: card.AskedAt,
	}
	if fmt.Sprintf("%+v", card) != fmt.Sprintf("%+v", want) {
		t.Errorf("the card is %+v, want %+v", card, want)
	}
	c.answered()
	c.gives(card, job.Allow, "fine")
	c.until("the answer", isAnswer)
	c.answered(`7: {"decision":"accept"} <nil>`)
	c.state(job.ApprovalDelivered, "")
	c.says(resolved(7), completed(8, "completed", `,"exitCode":0`)) // another call
	c.says(completed(7, "failed", `,"exitCode":1`))                 // it ran all the same
	c.state(job.ApprovalApplied, "")
	c.says(turn("completed"))
	c.until("an end to the listening", func(line appserver.Line) bool { return line.Method == "thread/unsubscribe" })
	c.answered(`7: {"decision":"accept"} <nil>`)
	if c.count("turn/steer") != 0 {
		t.Error("codex was told more than the answer")
	}
}

func TestNED_02_TheOwnersNoReachesCodexBehindItsReason(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		refuses bool // codex takes no words now
		steers  int
	}{{"not <this> \"folder\"", false, 1}, {"", false, 0}, {"too late", true, 1}} {
		t.Run(fmt.Sprintf("%q, refused: %t", tt.reason, tt.refuses), func(t *testing.T) {
			c := newCodexStand(t, newOwner(t))
			if tt.refuses {
				c.refuse("turn/steer")
			}
			c.asks(command(7, ""))
			c.gives(c.state(job.ApprovalAsked, ""), job.Deny, tt.reason)
			c.until("the answer", isAnswer)
			c.answered(`7: {"decision":"decline"} <nil>`)
			if got := c.count("turn/steer"); got != tt.steers {
				t.Errorf("codex was told %d reasons, want %d", got, tt.steers)
			}
			if tt.steers > 0 {
				c.mu.Lock()
				at := slices.IndexFunc(c.received, func(line appserver.Line) bool { return line.Method == "turn/steer" })
				steering, answer := string(c.received[at].Params), slices.IndexFunc(c.received, isAnswer)
				c.mu.Unlock()
				text, _ := json.Marshal("Refused: " + tt.reason)
				if !strings.Contains(steering, `"text":`+string(text)) || !strings.Contains(steering, `"expectedTurnId":"turn-1"`) || at > answer {
					t.Errorf("codex was told %s, as line %d; the answer is line %d", steering, at, answer)
				}
			}
			c.state(job.ApprovalDelivered, "")
			c.desk.HandleHook(session.HookCall{Kind: bridge.Codex, Event: session.EventPrompt, SessionID: threadID}) // the reason is a prompt of the user's to codex
			c.says(resolved(7))
			c.state(job.ApprovalDelivered, "")
			c.says(turn("completed"))
			c.state(job.ApprovalApplied, "")
		})
	}
}

// Whatever ends a prompt at its terminal ends the card, and codex is told nothing.
func TestNED_02_WhatIsAnsweredInCodexEndsTheCardWithoutAWord(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(c *codexStand)
		how  job.Elsewhere
	}{
		{"answered there", func(c *codexStand) { c.says(resolved(7)) }, prompt.WasAnswered},
		{"allowed there", func(c *codexStand) { c.says(resolved(7), completed(7, "completed", `,"exitCode":0`)) }, prompt.WasAllowed},
		{"allowed there, and it failed", func(c *codexStand) { c.says(resolved(7), completed(7, "failed", `,"exitCode":2`)) }, prompt.WasAllowed},
		{"refused there", func(c *codexStand) { c.says(resolved(7), completed(7, "declined", "")) }, prompt.WasRefused},
		{"ended without having run", func(c *codexStand) { c.says(completed(7, "failed", "")) }, prompt.WasAnswered},
		{"answered there, then broken off", func(c *codexStand) { c.says(resolved(7), turn("interrupted")) }, prompt.WasAnswered},
		{"the turn was broken off", func(c *codexStand) { c.says(turn("interrupted")) }, prompt.WasStopped},
		{"the turn ended", func(c *codexStand) { c.says(turn("completed")) }, prompt.WasAnswered},
		{"the thread was closed", func(c *codexStand) {
			c.says(`{"method":"thread/closed","params":{"threadId":"` + threadID + `"}}`)
		}, prompt.WasGone},
		{"the server died", func(c *codexStand) {
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.conn.Close()
		}, prompt.WasUnheld},
		{"this broker ends", func(c *codexStand) { c.stop() }, prompt.WasUnheld},
		{"the session ended", func(c *codexStand) { c.live.Store(false) }, prompt.WasGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCodexStand(t, newOwner(t))
			c.asks(command(7, ""))
			card := c.state(job.ApprovalAsked, "")
			tt.end(c)
			first := func(card job.Approval) bool { return card.State == job.ApprovalWithdrawn && card.Elsewhere == tt.how }
			until := time.Now().Add(testkit.Patience)
			for !slices.ContainsFunc(c.desk.Approvals(), first) {
				if time.Now().After(until) || !ipc.Pause(t.Context(), time.Millisecond) {
					t.Fatalf("the cards are %+v, want one %s", c.desk.Approvals(), tt.how)
				}
			}
			if _, err := c.desk.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict {
				t.Errorf("a late answer gives %v", err)
			}
			c.stop()
			c.answered()
		})
	}
}

// looked waits until it was looked again whether the owner watches.
func (c *codexStand) looked() {
	c.Helper()
	for more := c.looks.Load() + 3; c.looks.Load() < more; { // one of them began and ended after this
		if !ipc.Pause(c.ctx, time.Millisecond) {
			c.Fatal("nobody looks whether a page is open")
		}
	}
}

// An answer of the owner's is not sent once codex has the terminal's.
func TestNED_02_AnAnswerBehindTheTerminalsIsNotSentToCodex(t *testing.T) {
	c := newCodexStand(t, newOwner(t))
	c.mu.Lock()
	c.before["turn/steer"] = resolved(7)
	c.mu.Unlock()
	c.asks(command(7, ""))
	c.card("the first", func(job.Approval) bool { return len(c.desk.Approvals()) == 1 })
	c.says(command(8, ""))
	c.card("the second", func(job.Approval) bool { return len(c.desk.Approvals()) == 2 })
	for _, card := range c.desk.Approvals() { // with the first, codex is told something
		c.gives(card, job.Deny, "no")
	}
	c.until("the other's answer", isAnswer)
	c.card("over", func(job.Approval) bool {
		return slices.ContainsFunc(c.desk.Approvals(), func(card job.Approval) bool {
			return card.State == job.ApprovalWithdrawn && card.Elsewhere == prompt.WasUnclear
		})
	})
	c.stop()
	c.answered(`8: {"decision":"decline"} <nil>`)
}

// What nobody saw the end of is not shown as done.
func TestNED_02_AnAnswerWithoutAProofIsNotShownAsDone(t *testing.T) {
	for name, end := range map[string]func(c *codexStand){
		"the turn was broken off": func(c *codexStand) { c.says(resolved(7), turn("interrupted")) },
		"the turn ended":          func(c *codexStand) { c.says(resolved(7), turn("completed")) },
		"it never ran":            func(c *codexStand) { c.says(resolved(7), completed(7, "failed", "")) },
		"the server died": func(c *codexStand) {
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCodexStand(t, newOwner(t))
			c.asks(command(7, ""))
			c.gives(c.state(job.ApprovalAsked, ""), job.Allow, "")
			c.state(job.ApprovalDelivered, "")
			c.mu.Lock()
			c.stands, c.pending = `{"type":"idle"}`, nil
			c.mu.Unlock()
			end(c)
			c.state(job.ApprovalWithdrawn, prompt.WasUnclear)
		})
	}
}

// A server's other requests are for other clients: an error for an answer would decide
// them.
func TestNED_02_WhatIsNotDecidedHereIsNeverAnswered(t *testing.T) {
	c := newCodexStand(t, newOwner(t))
	c.asks(command(7, ""))
	card := c.state(job.ApprovalAsked, "")
	for i, method := range []string{
		"item/permissions/requestApproval", "item/tool/call", "account/chatgptAuthTokens/refresh", "attestation/generate", "currentTime/read",
		"applyPatchApproval", "execCommandApproval", "something/new",
	} {
		c.says(fmt.Sprintf(`{"method":%q,"id":%d,"params":{"threadId":%q,"turnId":"turn-1","itemId":"call-1","command":"touch made"}}`, method, 100+i, threadID))
	}
	c.says(
		strings.ReplaceAll(command(200, ""), threadID, stranger), // of another server's session
		`{"method":"item/commandExecution/requestApproval","id":201,"params":[]}`,
		`{"method":"item/commandExecution/requestApproval","id":202}`,
		`{"id":`, `null`, `[]`, `{"id":203,"result":{}}`,
		command(7, ""), // again
	)
	c.gives(card, job.Allow, "")
	c.until("the answer", isAnswer)
	c.says(completed(7, "completed", ""))
	c.state(job.ApprovalApplied, "")
	c.stop()
	c.answered(`7: {"decision":"accept"} <nil>`)
	if cards := c.desk.Approvals(); len(cards) != 1 {
		t.Errorf("there are cards: %+v", cards)
	}
}

// Two prompts at once are two cards, each with its own answer.
func TestNED_02_TwoPromptsOfAThreadAreAnsweredEachByItself(t *testing.T) {
	c := newCodexStand(t, newOwner(t))
	c.asks(command(7, ""), command(8, ""))
	c.card("the second", func(job.Approval) bool { return len(c.desk.Approvals()) == 2 })
	for _, card := range c.desk.Approvals() {
		c.gives(card, job.Allow, "")
	}
	c.says(waiting(`"waitingOnApproval"`))
	if got := c.count("thread/resume"); got != 1 {
		t.Errorf("the thread is listened to %d times", got)
	}
	for _, id := range []string{"7", "8"} {
		line := c.until("both answers", func(line appserver.Line) bool { return isAnswer(line) && string(line.ID) == id })
		if string(line.Result) != `{"decision":"accept"}` {
			t.Errorf("%s is answered %s", id, line.Result)
		}
	}
	c.says(completed(8, "completed", ""), completed(7, "declined", ""))
	c.card("over, both", func(job.Approval) bool {
		var ends []string
		for _, approval := range c.desk.Approvals() {
			ends = append(ends, fmt.Sprint(approval.State, approval.Elsewhere))
		}
		slices.Sort(ends)
		return slices.Equal(ends, []string{"applied", "withdrawnrefused"})
	})
}

// With nobody watching nothing is connected, listened to or shown; what waits is shown
// to who looks later, and what is open stays when he looks away.
func TestNED_02_CodexIsLeftAloneWhileNobodyWatches(t *testing.T) {
	o := newOwner(t)
	o.page.Store(false)
	idle := New(Options{Broker: o, Desk: o.desk, Log: slog.New(slog.DiscardHandler)})
	c := newCodexStand(t, o)
	c.waits(command(7, ""))
	if idle.look(t.Context()); len(idle.servers) != 0 { // as the other's look
		t.Error("a server is connected")
	}
	o.mode.Store(prompt.Away)
	o.page.Store(true)
	if idle.look(t.Context()); len(idle.servers) != 0 {
		t.Error("a server is connected while away mode is off")
	}
	c.mu.Lock()
	dials := c.dials
	c.mu.Unlock()
	if dials != 0 || len(c.desk.Approvals()) != 0 {
		t.Errorf("codex was called %d times; the cards are %+v", dials, c.desk.Approvals())
	}
}

func TestNED_02_APageThatComesLaterShowsWhatWaits(t *testing.T) {
	o := newOwner(t)
	o.page.Store(false)
	c := newCodexStand(t, o)
	c.waits(command(7, ""))
	o.page.Store(true)
	card := c.state(job.ApprovalAsked, "")
	o.page.Store(false)
	c.looked()
	c.says(command(8, "")) // nobody looks any more
	c.says(waiting(`"waitingOnApproval"`))
	c.gives(card, job.Allow, "")
	c.until("the answer", isAnswer)
	c.says(completed(7, "completed", ""))
	c.state(job.ApprovalApplied, "")
	if cards := c.desk.Approvals(); len(cards) != 1 {
		t.Errorf("the cards are %+v", cards)
	}
	o.page.Store(true)
	c.card("the second, shown later", func(card job.Approval) bool { return card.State == job.ApprovalAsked })
	c.answered(`7: {"decision":"accept"} <nil>`)
}

// A thread that had no turn yet, or whose server takes no other client, is left alone.
func TestNED_02_AThreadThatCannotBeListenedToIsLeftToItsTerminal(t *testing.T) {
	c := newCodexStand(t, newOwner(t))
	c.refuse("thread/read", "thread/resume")
	c.asks(command(7, ""))
	c.until("a try", func(line appserver.Line) bool { return line.Method == "thread/resume" })
	c.stop()
	c.answered()
	if cards := c.desk.Approvals(); len(cards) != 0 {
		t.Errorf("the cards are %+v", cards)
	}
}

func TestNED_02_WhatCodexAsksIsShownExactly(t *testing.T) {
	form := func(kind, mode string) string {
		return fmt.Sprintf(`{"method":"mcpServer/elicitation/request","id":7,"params":{"threadId":%q,"turnId":null,"serverName":"probe","mode":%q,`+
			`"_meta":{"codex_approval_kind":%q,"tool_name":"echo","tool_params":{"text":"hi"}},"message":"Allow the probe MCP server to run tool \"echo\"?"}}`, threadID, mode, kind)
	}
	change := func(more string) string {
		return fmt.Sprintf(`{"method":"item/fileChange/requestApproval","id":7,"params":{"threadId":%q,"turnId":"turn-1","itemId":"call-1","reason":"outside"%s}}`, threadID, more)
	}
	begins := `{"method":"item/started","params":{"threadId":"` + threadID + `","item":{"type":"fileChange","id":"call-1","status":"inProgress",` +
		`"changes":[{"path":"/src/shop/a.go","kind":{"type":"update"},"diff":"@@ -1 +1 @@\n-old\n+new\n"}]}}}`
	for _, tt := range []struct {
		name, request      string
		kind, what, detail string
		isReported         bool
		answer, proof      string
	}{
		{"a change that nobody heard of", change(""), "change", "apply_patch", "", true, "", ""},
		{"a change", begins + "\n" + change(""), "change", "apply_patch", "/src/shop/a.go\n@@ -1 +1 @@\n-old\n+new", false, `{"decision":"accept"}`, completed(1, "completed", "")},
		{"a change for longer", change(`,"grantRoot":"/src"`), "change", "apply_patch", "/src", true, "", ""},
		{
			"a tool", form("mcp_tool_call", "form"), "tool", "probe/echo", "Allow the probe MCP server to run tool \"echo\"?\n{\"text\":\"hi\"}", false, `{"action":"accept","content":{}}`,
			`{"method":"item/completed","params":{"threadId":"` + threadID + `","item":{"type":"mcpToolCall","id":"call-9","server":"probe","tool":"echo","arguments":{ "text": "hi" },"status":"completed"}}}`,
		},
		{
			"a tool that fails", form("mcp_tool_call", "form"), "tool", "probe/echo", "Allow the probe MCP server to run tool \"echo\"?\n{\"text\":\"hi\"}", false, `{"action":"accept","content":{}}`,
			`{"method":"item/completed","params":{"threadId":"` + threadID + `","item":{"type":"mcpToolCall","id":"call-9","server":"probe","tool":"echo","arguments":{"text":"hi"},"status":"failed","result":{"content":[]}}}}`,
		},
		{"a server's own question", form("other", "form"), "question", "probe", "Allow the probe MCP server to run tool \"echo\"?", true, "", ""},
		{"a server's page", form("mcp_tool_call", "url"), "question", "probe", "Allow the probe MCP server to run tool \"echo\"?", true, "", ""},
		{"a command over the network", command(7, `,"networkApprovalContext":{"host":"example.org"}`), "command", "shell", "/bin/bash -lc 'touch made'\nnetwork: {\"host\":\"example.org\"}", false, `{"decision":"accept"}`, completed(7, "completed", "")},
		{"a command that may do more", command(7, `,"additionalPermissions":{"x":1}`), "command", "shell", "/bin/bash -lc 'touch made'\nmore permissions: {\"x\":1}", false, `{"decision":"accept"}`, completed(7, "completed", "")},
		{"a part of a command", command(7, `,"approvalId":"cb-1"`), "command", "shell", "/bin/bash -lc 'touch made'", true, "", ""},
		{"input for a command", strings.Replace(command(7, ""), `"kind":"command"`, `"kind":"writeStdin"`, 1), "command", "shell", "/bin/bash -lc 'touch made'", true, "", ""},
		{"a command of an older server", strings.Replace(command(7, ""), `"kind":"command",`, ``, 1), "command", "shell", "/bin/bash -lc 'touch made'", false, `{"decision":"accept"}`, completed(7, "completed", "")},
		{"a command without a yes", strings.Replace(command(7, ""), `["accept",`, `["acceptForSession",`, 1), "command", "shell", "/bin/bash -lc 'touch made'", true, "", ""},
		{"a command that is not named", strings.Replace(command(7, ""), `"/bin/bash -lc 'touch made'"`, `null`, 1), "command", "shell", "", true, "", ""},
		{
			"a question of the model", fmt.Sprintf(`{"method":"item/tool/requestUserInput","id":7,"params":{"threadId":%q,"turnId":"turn-1","itemId":"call-1","questions":[{"id":"q","question":"Which color?"}],"isBlocking":true}}`, threadID),
			"question", "request_user_input", "Which color?", true, "", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCodexStand(t, newOwner(t))
			c.asks(strings.Split(tt.request, "\n")...)
			card := c.state(job.ApprovalAsked, "")
			if card.Kind != tt.kind || card.What != tt.what || card.Detail != tt.detail || (card.OnlyTold != "") != tt.isReported {
				t.Errorf("the card is %+v", card)
			}
			if !tt.isReported {
				c.gives(card, job.Allow, "")
				if line := c.until("the answer", isAnswer); string(line.Result) != tt.answer {
					t.Errorf("codex is answered %s, want %s", line.Result, tt.answer)
				}
				c.state(job.ApprovalDelivered, "")
				c.says(tt.proof)
				c.state(job.ApprovalApplied, "")
				return
			}
			if _, err := c.desk.Answer(card.ID, job.Allow, ""); bridge.CodeOf(err) != bridge.Conflict {
				t.Errorf("answering gives %v", err)
			}
			c.says(resolved(7))
			c.state(job.ApprovalWithdrawn, prompt.WasAnswered)
			c.stop()
			c.answered()
		})
	}
}
