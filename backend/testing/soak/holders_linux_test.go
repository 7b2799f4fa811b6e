package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/question"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/soak/history"
)

// A holder is a connection of a session that acknowledges by itself what it was given: at
// once, later, or never. Of each of its sessions there are two, which share its mail. The
// history has each of its leases, acks and nacks, which a server of Bridge's own keeps
// to itself.
type holder struct {
	w             *world
	session, name string
	client        *ipc.Client // nil while it is not connected
	conn          string      // names the present connection in the history
	conns         int
	held          []holding
	sent          []history.Send
	count         int
}

// holding is a lease that was not acknowledged yet.
type holding struct {
	session.Lease
	tokens []string
}

const (
	heldSessions = 2
	holdEvery    = 25 * time.Millisecond
)

// addHolders makes the holders, of which none is connected yet.
func (w *world) addHolders() {
	for i := range heldSessions {
		for _, part := range []string{"a", "b"} {
			name := fmt.Sprintf("held%d", i)
			w.holders = append(w.holders, &holder{w: w, session: name, name: name + part})
		}
	}
}

// step does one thing of those that clients do.
func (h *holder) step() {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	if h.client == nil && !h.connect(ctx) {
		return
	}
	switch n := rand.IntN(40); {
	case n == 0:
		h.asks(ctx)
	case n < 3:
		h.drop()
	case n < 8:
		h.asksStatus(ctx)
	case n < 12 && len(h.held) > 0:
		h.settle(ctx, h.held[0])
	case n < 24:
		h.sends(ctx)
	default:
		h.looks(ctx)
	}
}

// connect joins the holder's session, with what it has on lease. It reports whether a
// broker was there.
func (h *holder) connect(ctx context.Context) bool {
	client, err := h.w.dialSession(ctx)
	if err != nil {
		return false // the broker is being replaced
	}
	h.conns++
	h.client, h.conn = client, fmt.Sprintf("%s#%d", h.name, h.conns)
	register := api.Register{Kind: bridge.Claude, Name: h.session, Cwd: h.w.dir, AgentPID: os.Getpid(), SessionID: "host-" + h.session}
	for _, lease := range h.held {
		register.Leases = append(register.Leases, lease.Lease)
	}
	call := h.w.history.Begin(h.name)
	_, err = client.Register(ctx, register)
	for _, lease := range h.held {
		call.Finish(history.Keep{To: h.session, Conn: h.conn, Lease: lease.ID, IDs: lease.tokens}, err == nil)
	}
	if err != nil {
		h.failed("register", err)
		return false
	}
	return true
}

// drop ends the connection. What was on lease is forgotten, or told to the next broker.
func (h *holder) drop() {
	call := h.w.history.Begin(h.name)
	_ = h.client.Close() // it may have ended
	call.Cut(history.Dropped{To: h.session, Conn: h.conn})
	if h.client = nil; rand.IntN(2) == 0 {
		h.held = nil
	}
}

// failed drops a connection that a call failed on. Any reason but the end of the broker is
// an error of the test.
func (h *holder) failed(what string, err error) {
	if bridge.CodeOf(err) != bridge.Unavailable {
		h.w.Errorf("%s: %s: %v", h.name, what, err)
	}
	h.drop()
}

// sends writes to another session, or repeats a send that was not answered.
func (h *holder) sends(ctx context.Context) {
	h.count++
	other := h.w.holders[rand.IntN(len(h.w.holders))].session
	if rand.IntN(4) == 0 {
		other = h.w.actors[rand.IntN(len(h.w.actors))].name
	}
	if other == h.session {
		return
	}
	send := history.Send{To: other, ID: fmt.Sprintf("tok-%s-%d", h.name, h.count)}
	args := api.SendArgs{To: send.To, Body: "body [" + send.ID + "]", MessageID: send.ID}
	for again := false; ; again = true {
		args.Again = again
		call := h.w.history.Begin(h.name)
		_, err := h.client.Send(ctx, args)
		call.Finish(send, err == nil)
		if err == nil {
			break
		}
		if bridge.CodeOf(err) == bridge.NotFound {
			return // that holder never came
		}
		if h.failed("send", err); rand.IntN(2) == 0 || !h.connect(ctx) {
			return
		}
	}
	h.sent = append(h.sent, send)
	if !strings.HasPrefix(send.To, "held") {
		h.w.mu.Lock()
		h.w.sent[send.ID] = send.To
		h.w.mu.Unlock()
	}
}

// asksStatus asks what became of one of the last messages.
func (h *holder) asksStatus(ctx context.Context) {
	if len(h.sent) == 0 {
		return
	}
	send := oneOf(h.sent[max(0, len(h.sent)-20):])
	call := h.w.history.Begin(h.name)
	found, err := h.client.SendStatus(ctx, api.SentArgs{MessageID: send.ID})
	switch {
	case bridge.CodeOf(err) == bridge.NotFound:
		call.End(history.Status{To: send.To, ID: send.ID})
	case err != nil:
		h.failed("send_status", err)
	case len(found.Recipients) != 1:
		h.w.Errorf("%s: %s has %d recipients", h.name, send.ID, len(found.Recipients))
	default:
		call.End(history.Status{To: send.To, ID: send.ID, Stage: found.Recipients[0].Stage})
	}
}

// looks takes the session's mail and acknowledges it, or does not.
func (h *holder) looks(ctx context.Context) {
	lease, ok := h.take(ctx)
	if !ok || lease.ID == "" {
		return
	}
	h.held = append(h.held, lease)
	switch rand.IntN(10) {
	case 0: // later
	case 1:
		h.drop()
	case 2:
		h.nack(ctx, lease)
	default:
		h.settle(ctx, lease)
	}
}

// take looks into the inbox. The lease is empty where nothing was there.
func (h *holder) take(ctx context.Context) (lease holding, ok bool) {
	call := h.w.history.Begin(h.name)
	box, err := h.client.Inbox(ctx, api.InboxArgs{Limit: inboxMost, MarkRead: true})
	if err != nil {
		call.Cut(history.Inbox{To: h.session, Conn: h.conn})
		h.failed("inbox", err)
		return lease, false
	}
	if box.Lease != nil {
		lease.Lease = *box.Lease
	}
	for _, m := range box.Messages {
		lease.tokens = append(lease.tokens, tokensOf(m.Body)...)
	}
	call.End(history.Inbox{To: h.session, Conn: h.conn, Lease: lease.ID, Shown: lease.tokens, Whole: len(box.Messages) < inboxMost})
	for _, shown := range lease.tokens {
		if id, isAnswer := strings.CutPrefix(shown, answerMark); isAnswer {
			call.End(history.Answered{ID: id[:strings.LastIndex(id, "-")], Text: shown})
		}
	}
	return lease, true
}

// settle says that a lease was consumed, or first that it was handed over.
func (h *holder) settle(ctx context.Context, lease holding) {
	stages := []bridge.Stage{bridge.StageConsumed}
	if rand.IntN(4) == 0 {
		stages = []bridge.Stage{bridge.StageHanded, bridge.StageConsumed}
	}
	for _, stage := range stages {
		call := h.w.history.Begin(h.name)
		err := h.client.Ack(ctx, api.Ack{Lease: lease.Lease, Stage: stage, Via: mail.ViaTool, Detail: "inbox"})
		call.Finish(history.Ack{To: h.session, Conn: h.conn, Lease: lease.ID, IDs: lease.tokens, Stage: stage}, err == nil)
		if err != nil {
			h.failed("ack", err)
			return
		}
	}
	h.forget(lease)
}

func (h *holder) nack(ctx context.Context, lease holding) {
	h.forget(lease)
	call := h.w.history.Begin(h.name)
	err := h.client.Nack(ctx, lease.ID)
	call.Finish(history.Nack{To: h.session, Conn: h.conn, Lease: lease.ID, IDs: lease.tokens}, err == nil)
	if err != nil {
		h.failed("nack", err)
	}
}

func (h *holder) forget(lease holding) {
	h.held = slices.DeleteFunc(h.held, func(other holding) bool { return other.ID == lease.ID })
}

// answerMark begins the tokens of answers to questions.
const answerMark = "tok-answer-"

// asks puts a question to the owner, who answers it twice at the same moment.
func (h *holder) asks(ctx context.Context) {
	h.count++
	id := fmt.Sprintf("%s-%d", h.name, h.count)
	call := h.w.history.Begin(h.name)
	_, err := h.client.AskOwner(ctx, api.AskOwnerArgs{ID: id, Question: question.Args{Title: "Which?", Blocking: true}})
	call.Finish(history.Ask{ID: id}, err == nil)
	if err != nil {
		h.failed("ask_owner", err)
		return
	}
	var answering sync.WaitGroup
	for n := range 2 {
		answering.Go(func() { h.w.answers(ctx, h.session, id, fmt.Sprintf("%s%s-%d", answerMark, id, n)) })
	}
	answering.Wait()
}

// answers is the owner's answer to a question of a session.
func (w *world) answers(ctx context.Context, to, id, text string) {
	client, err := w.owner(ctx)
	if err != nil {
		return // the broker is being replaced
	}
	defer client.Close()
	call := w.history.Begin("owner")
	_, err = client.AnswerQuestion(ctx, api.AnswerQuestionArgs{ID: id, Answer: question.Answer{Text: "[" + text + "]"}})
	refused := bridge.CodeOf(err) == bridge.Conflict
	call.Finish(history.Answer{ID: id, Text: text, Refused: refused}, err == nil || refused)
	if !refused {
		call.Cut(history.Send{To: to, ID: text}) // it is on its way
	}
}

// drainHolders has each holder take and acknowledge all that is there.
func (w *world) drainHolders() {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	for _, h := range w.holders {
		for more := h.client != nil || h.connect(ctx); more && h.client != nil; {
			if len(h.held) > 0 {
				h.settle(ctx, h.held[0])
				continue
			}
			lease, ok := h.take(ctx)
			if more = ok && lease.ID != ""; more {
				h.held = append(h.held, lease)
			}
		}
	}
}
