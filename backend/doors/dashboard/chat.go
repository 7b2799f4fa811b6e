package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/guard"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/platform/ipc/api"
)

// maxOwnerSends bounds the owner's messages per minute. Bridge's own choice is far
// above a person's typing, but low enough that a faulty page floods no session.
const maxOwnerSends = 120

// chatRequest is the body of POST /api/sessions/<name>/message (CHT-01).
type chatRequest struct {
	Body    string  `json:"body"`
	Child   *string `json:"child"`
	Target  *string `json:"target"`
	ReplyTo string  `json:"reply_to"` // the message that it answers, "" for none
}

// readChat decodes and checks the body of an owner's message.
func readChat(w http.ResponseWriter, r *http.Request) (chatRequest, error) {
	var request chatRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return chatRequest{}, err
	}
	if err := httpjson.CheckOwnerBody(request.Body); err != nil {
		return chatRequest{}, err
	}
	if request.Target != nil && *request.Target != "parent" {
		return chatRequest{}, bridge.Errorf(bridge.Invalid, `the target must be "parent"`)
	}
	if request.Target != nil && request.Child == nil {
		return chatRequest{}, bridge.Errorf(bridge.Conflict, "a note to the parent must name the child it is about")
	}
	if request.ReplyTo != "" {
		if err := bridge.CheckID("reply_to", request.ReplyTo); err != nil {
			return chatRequest{}, malformed(err)
		}
	}
	if request.Child != nil && *request.Child == "" {
		return chatRequest{}, bridge.Errorf(bridge.Conflict, "no native child has an empty id")
	}
	return request, nil
}

// chats delivers the owner's messages and reports their progress.
type chats struct {
	*sources
	handles *handles
	runs    *runs.Runs
	sends   *guard.Window
}

// messageSession answers POST /api/sessions/<name>/message (CHT-01, CHT-02,
// CHT-10, CHT-11, CHT-13).
func (c *chats) messageSession(w http.ResponseWriter, r *http.Request) error {
	request, err := readChat(w, r)
	if err != nil {
		return err
	}
	addressee, err := c.findAddressee(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	message := chat.Request{Session: addressee, Body: request.Body, ToParent: request.Target != nil, ReplyTo: request.ReplyTo}
	if request.Child != nil {
		message.Child = *request.Child
	}
	return c.deliver(w, r, message)
}

// messageJob answers POST /api/jobs/<job>/message (CHT-12): a note to a job about
// its native child. It checks the body first, to distinguish a malformed one from
// an unknown job.
func (c *chats) messageJob(w http.ResponseWriter, r *http.Request) error {
	request, err := readChat(w, r)
	if err != nil {
		return err
	}
	view, err := c.runs.Find(r.PathValue("job"))
	if err != nil {
		return err
	}
	if request.Child == nil {
		return bridge.Errorf(bridge.Conflict, "a note must name the native child that it is about; words to the job itself go to /api/subagents/message")
	}
	now, err := c.askBroker(r.Context())
	if err != nil {
		return err
	}
	if err := c.bound(); err != nil {
		return err
	}
	outcome, err := c.runs.Note(view, *request.Child, request.Body, now.status.Peers)
	if err != nil {
		return err
	}
	return c.answer(w, outcome, handle{note: true})
}

// findAddressee returns the peer id of a local session by its exact name: a live
// one, or else the last one with the name, whose mail waits.
func (c *chats) findAddressee(ctx context.Context, name string) (peerID string, err error) {
	if strings.Contains(name, "/") {
		return "", bridge.Errorf(bridge.NotFound, "sessions of a paired PC take no input from here")
	}
	if c.broker == nil {
		return "", noBroker()
	}
	now, err := c.askBroker(ctx)
	if err != nil {
		return "", err
	}
	if !now.on {
		return "", noBroker()
	}
	reader, err := c.reader(ctx)
	if err != nil {
		return "", err
	}
	people, err := c.directory(ctx, reader, now)
	if err != nil {
		return "", err
	}
	id, ok := people.idOf(name)
	if !ok {
		return "", bridge.Errorf(bridge.NotFound, "no local session is called %q", name)
	}
	return id, nil
}

func noBroker() error {
	return bridge.Errorf(bridge.Unavailable, "no broker runs, so nothing can be sent: `bridge serve` starts one")
}

// deliver sends the owner's message through the broker. It answers with its
// progress, and with a receipt handle if there is more to query. The dashboard
// chooses the message's id, so that even an unclear outcome can be queried; it
// never sends a message twice.
func (c *chats) deliver(w http.ResponseWriter, r *http.Request, request chat.Request) error {
	if err := c.bound(); err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a message id: %w", err)
	}
	request.MessageID = id.String()
	outcome, err := c.broker.Chat(r.Context(), request)
	if unclear(err) {
		outcome = chat.Outcome{
			State: chat.Unconfirmed, Transport: chat.Bridge, Message: request.MessageID,
			Detail: "The broker did not answer in time. It is not sent again by itself: look in the history first.",
		}
	} else if err != nil {
		return fmt.Errorf("carry the owner's words: %w", err)
	}
	return c.answer(w, outcome, handle{})
}

// answer returns the progress of the owner's message, with a receipt if there is
// more to query.
func (c *chats) answer(w http.ResponseWriter, outcome chat.Outcome, issued handle) error {
	answer := dto.Chat{State: outcome.State, Transport: outcome.Transport, Detail: outcome.Detail}
	if outcome.Message != "" {
		issued.message, issued.transport, issued.at = outcome.Message, outcome.Transport, c.now().UnixMilli()
		receipt := c.handles.issue(issued)
		answer.Receipt = &receipt
	}
	return httpjson.WriteJSON(w, answer)
}

// bound fails if messages come faster than a person types.
func (c *chats) bound() error {
	if !c.sends.Take() {
		return bridge.Errorf(bridge.Busy, "that were too many messages in one minute: wait a little")
	}
	return nil
}

// unclear reports an error after which the message may or may not be stored.
func unclear(err error) bool {
	return bridge.CodeOf(err) == bridge.Unavailable || errors.Is(err, context.DeadlineExceeded)
}

// ownerSend is the body of POST /api/messages.
type ownerSend struct {
	To   string `json:"to"`
	Body string `json:"body"`
}

// messageAny answers POST /api/messages: the owner to one session or to all.
func (c *chats) messageAny(w http.ResponseWriter, r *http.Request) error {
	var request ownerSend
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if err := httpjson.CheckOwnerBody(request.Body); err != nil {
		return err
	}
	if request.To == "" {
		return bridge.Errorf(bridge.Invalid, "the member to must name a session, or * for all")
	}
	peerID := ""
	if request.To != session.Everyone {
		var err error
		if peerID, err = c.findAddressee(r.Context(), request.To); err != nil {
			return err
		}
	}
	if c.broker == nil {
		return noBroker()
	}
	if err := c.bound(); err != nil {
		return err
	}
	sent, err := c.broker.SendOwner(r.Context(), peerID, api.SendArgs{To: request.To, Body: request.Body})
	if err != nil {
		return fmt.Errorf("send the owner's message: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Sent{ID: sent.ID, ConversationID: sent.ConversationID, Recipients: dto.Each(sent.Recipients, recipientShape)})
}

func recipientShape(r api.Recipient) dto.Recipient {
	return dto.Recipient{Name: r.Name, Online: r.Online, Wake: r.Wake}
}

// delivery answers GET /api/chat-delivery/<id> (CHT-09) for this instance's
// handles.
func (c *chats) delivery(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	issued, ok := c.handles.find(id)
	if !ok {
		return bridge.Errorf(bridge.NotFound, "this dashboard gave no such receipt")
	}
	answer := dto.Receipt{ID: id, State: chat.Unconfirmed, Transport: issued.transport, UpdatedAt: issued.at}
	if issued.note {
		way := c.runs.NoteDelivery(issued.message)
		answer.State, answer.UpdatedAt = way.State, max(way.At, issued.at)
		return httpjson.WriteJSON(w, answer)
	}
	reader, err := c.reader(r.Context())
	if err != nil {
		return err
	}
	row, err := reader.Find(r.Context(), issued.message)
	if bridge.CodeOf(err) == bridge.NotFound {
		return httpjson.WriteJSON(w, answer) // unclear when sent, and not there
	}
	if err != nil {
		return fmt.Errorf("look a receipt up: %w", err)
	}
	for _, delivery := range row.Deliveries {
		answer.State, answer.UpdatedAt = receiptOf(deliveryView{Delivery: delivery})
	}
	return httpjson.WriteJSON(w, answer)
}

// receiptOf returns a delivery's receipt state: delivered means only a durable
// consumption (CHT-09). A message that expired unread is not queued and was not
// delivered.
func receiptOf(d deliveryView) (chat.State, int64) {
	read := d.Read()
	switch {
	case read.Happened():
		return chat.Delivered, read.At
	case d.Expired.Happened():
		return chat.Unconfirmed, d.Expired.At
	default:
		return chat.Queued, max(d.CreatedAt, d.Woken.At, d.Handed.At)
	}
}

// maxHandles bounds the stored receipts: a new one replaces the oldest, whose
// message stays in the history (CHT-16).
const maxHandles = 1_000

// handles stores this instance's receipts in memory.
type handles struct {
	mu     sync.Mutex // guards below
	byID   map[string]handle
	issued []string // oldest first
}

// handle is the data of a receipt.
type handle struct {
	message   string // message id
	note      bool   // to a job: its control knows the note, the store does not
	transport chat.Transport
	at        int64 // when it was issued, epoch milliseconds
}

func newHandles() *handles { return &handles{byID: map[string]handle{}} }

func (h *handles) issue(issued handle) string {
	id := rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.issued) == maxHandles {
		delete(h.byID, h.issued[0])
		h.issued = h.issued[1:]
	}
	h.byID[id] = issued
	h.issued = append(h.issued, id)
	return id
}

func (h *handles) find(id string) (handle, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	issued, ok := h.byID[id]
	return issued, ok
}
