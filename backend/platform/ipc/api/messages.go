package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// SendArgs is one message from a session, or from the owner.
type SendArgs struct {
	Caller
	To             string `json:"to"`
	Body           string `json:"body"`
	ReplyTo        string `json:"replyTo,omitempty"`
	ConversationID string `json:"conversationId,omitempty"`
	MessageID      string `json:"messageId,omitempty"`
	// Again says that MessageID is not new: whoever chose it may have sent the
	// message long ago, so that the archive is asked too.
	Again bool `json:"again,omitempty"`
}

// SendResult answers a send: the message is durable for every recipient named.
type SendResult struct {
	ID             string      `json:"id"`
	ConversationID string      `json:"conversationId"`
	Recipients     []Recipient `json:"recipients"`
}

// Recipient is one session that a message was stored for.
type Recipient struct {
	Name   string `json:"name"`
	Online bool   `json:"online"`
	Wake   bool   `json:"wake"` // whether a wake was asked for
	// Note says how far a message to a session of a paired PC is on its way.
	Note string `json:"note,omitempty"`
}

// SentArgs asks what became of a message that the caller sent.
type SentArgs struct {
	Caller
	MessageID string `json:"messageId"`
}

// Sent is the answer of the tool `send_status`: of each recipient the furthest
// stage that the message reached, when, and how we know (MSG-12).
type Sent struct {
	ID         string      `json:"id"`
	Recipients []SentStage `json:"recipients"`
}

// SentStage is what became of a message to one recipient.
type SentStage struct {
	Name     string       `json:"name"`
	Stage    bridge.Stage `json:"stage"`
	At       int64        `json:"at"` // Unix epoch milliseconds
	Evidence string       `json:"evidence"`
}

// InboxArgs asks for unread mail.
type InboxArgs struct {
	Caller
	Limit    int  `json:"limit"`
	MarkRead bool `json:"markRead"`
}

// Inbox is unread mail, oldest first. Lease is nil when nothing is to be
// confirmed.
type Inbox struct {
	Messages  []InboxMessage `json:"messages"`
	Remaining int            `json:"remaining"`
	Lease     *session.Lease `json:"loan,omitempty"`
}

// InboxMessage is a message as the MCP tools show it (contract).
type InboxMessage struct {
	ID             string            `json:"id"`
	From           bridge.Address    `json:"from"`
	To             string            `json:"to"`
	ConversationID string            `json:"conversationId"`
	ReplyTo        *string           `json:"replyTo"`
	Hop            int               `json:"hop"`
	Body           string            `json:"body"`
	CreatedAt      bridge.UnixMillis `json:"createdAt"`
}

// WaitArgs waits for one unread message that fits the filters.
type WaitArgs struct {
	Caller
	TimeoutMillis  int64  `json:"timeoutMillis"`
	From           string `json:"from,omitempty"`
	ReplyTo        string `json:"replyTo,omitempty"`
	ConversationID string `json:"conversationId,omitempty"`
}

// WaitResult is the message, or TimedOut.
type WaitResult struct {
	Message  *InboxMessage  `json:"message,omitempty"`
	TimedOut bool           `json:"timedOut,omitempty"`
	Lease    *session.Lease `json:"loan,omitempty"`
}

// MaxChannelBodyBytes bounds what a channel is given: hosts refuse content over
// 64 KiB, and an introduction comes before the body. Longer mail waits for the
// tool inbox.
const MaxChannelBodyBytes = 60 << 10

// Ack tells the broker what became of a lease. Via is the way that it went, one
// that the role may speak of; Detail is one word more about it, the host's event
// or the tool. What people read of it, the broker writes.
type Ack struct {
	Lease  session.Lease `json:"loan"`
	Stage  bridge.Stage  `json:"stage"` // handed or consumed
	Via    mail.Via      `json:"via,omitempty"`
	Detail string        `json:"detail,omitempty"`
	// Evidence is for a broker that knows no Via yet: the caller fills it in.
	Evidence string `json:"evidence"`
}

// Words are what an older broker keeps of the ack.
func (c Ack) Words() string {
	if c.Via == "" {
		return c.Evidence
	}
	return c.Via.Evidence(c.Detail)
}

// Nack gives a lease back that reached nobody: its mail is offered again.
type Nack struct {
	Lease string `json:"loan"` // its id
}

// MessageCalls are the operations about messages.
type MessageCalls struct{ link Link }

// Send stores a message durably before it returns (MSG-04).
func (c MessageCalls) Send(ctx context.Context, args SendArgs) (SendResult, error) {
	return OpSend.Call(ctx, c.link, args)
}

// SendStatus tells what became of a message that the caller sent.
func (c MessageCalls) SendStatus(ctx context.Context, args SentArgs) (Sent, error) {
	return OpSent.Call(ctx, c.link, args)
}

// Inbox takes unread mail.
func (c MessageCalls) Inbox(ctx context.Context, args InboxArgs) (Inbox, error) {
	return OpInbox.Call(ctx, c.link, args)
}

// Wait waits for a message.
func (c MessageCalls) Wait(ctx context.Context, args WaitArgs) (WaitResult, error) {
	return OpWait.Call(ctx, c.link, args)
}

// Take takes mail for the channel of the connection's session, oldest first:
// nothing unless some of it may wake the session. It is no sign of activity.
func (c MessageCalls) Take(ctx context.Context, args Caller) (Inbox, error) {
	return OpTake.Call(ctx, c.link, args)
}

// Ack tells what became of a lease; it is durable when it returns nil.
func (c MessageCalls) Ack(ctx context.Context, args Ack) error {
	args.Evidence = args.Words()
	_, err := OpAck.Call(ctx, c.link, args)
	return err
}

// Nack gives a lease back that reached nobody.
func (c MessageCalls) Nack(ctx context.Context, leaseID string) error {
	_, err := OpNack.Call(ctx, c.link, Nack{Lease: leaseID})
	return err
}
