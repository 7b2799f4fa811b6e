package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// SendArgs is one message from a session or from the owner.
type SendArgs struct {
	Caller
	To             string `json:"to"`
	Body           string `json:"body"`
	ReplyTo        string `json:"replyTo,omitempty"`
	ConversationID string `json:"conversationId,omitempty"`
	MessageID      string `json:"messageId,omitempty"`
	// Reply is whether the sender asks for an answer; "" for optional (QUI-01).
	Reply mail.Reply `json:"reply,omitempty"`
	// Again means that MessageID is not new: the message may have been sent long
	// ago, so the broker also searches the archive.
	Again bool `json:"again,omitempty"`
}

// SendResult is the answer to a send: the message is durable for each listed recipient.
type SendResult struct {
	ID             string      `json:"id"`
	ConversationID string      `json:"conversationId"`
	Recipients     []Recipient `json:"recipients"`
}

// Recipient is one session for which a message was stored.
type Recipient struct {
	Name   string `json:"name"`
	Online bool   `json:"online"`
	Wake   bool   `json:"wake"` // whether a wake was requested
	// Note describes the progress of a message to a paired PC's session, or why the
	// message does not wake its recipient yet (QUI-03).
	Note string `json:"note,omitempty"`
}

// SentArgs queries the progress of a message that the caller sent.
type SentArgs struct {
	Caller
	MessageID string `json:"messageId"`
}

// Sent is the result of the tool `send_status`: for each recipient, the message's
// furthest stage, its time and its evidence (MSG-12).
type Sent struct {
	ID         string      `json:"id"`
	Recipients []SentStage `json:"recipients"`
}

// SentStage is the progress of a message to one recipient.
type SentStage struct {
	Name     string       `json:"name"`
	Stage    bridge.Stage `json:"stage"`
	At       int64        `json:"at"` // Unix epoch milliseconds
	Evidence string       `json:"evidence"`
}

// InboxArgs requests unread mail.
type InboxArgs struct {
	Caller
	Limit    int  `json:"limit"`
	MarkRead bool `json:"markRead"`
}

// Inbox is unread mail, oldest first. Lease is nil if no message needs an
// acknowledgement.
type Inbox struct {
	Messages  []InboxMessage `json:"messages"`
	Remaining int            `json:"remaining"`
	Lease     *session.Lease `json:"loan,omitempty"`
}

// InboxMessage is a message in the form of the MCP tools (contract).
type InboxMessage struct {
	ID             string            `json:"id"`
	From           bridge.Address    `json:"from"`
	To             string            `json:"to"`
	ConversationID string            `json:"conversationId"`
	ReplyTo        *string           `json:"replyTo"`
	Reply          mail.Reply        `json:"reply,omitempty"` // wanted or none, "" for optional
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

// MaxChannelBodyBytes bounds a message for a channel. Hosts refuse content over 64
// KiB, and an introduction precedes the body. Longer mail waits for the tool inbox.
const MaxChannelBodyBytes = 60 << 10

// Ack acknowledges a lease. Via is the delivery way, one that the role may report.
// Detail is one more word about it: the host's event or the tool. The broker writes
// the readable text.
type Ack struct {
	Lease  session.Lease `json:"loan"`
	Stage  bridge.Stage  `json:"stage"` // handed or consumed
	Via    mail.Via      `json:"via,omitempty"`
	Detail string        `json:"detail,omitempty"`
	// Evidence is for a broker without Via; the caller fills it in.
	Evidence string `json:"evidence"`
}

// Words returns the text that an older broker stores for the ack.
func (c Ack) Words() string {
	if c.Via == "" {
		return c.Evidence
	}
	return c.Via.Evidence(c.Detail)
}

// Nack returns a lease that was not delivered: its mail is offered again.
type Nack struct {
	Lease string `json:"loan"` // its id
}

// MessageCalls holds the operations on messages.
type MessageCalls struct{ link Link }

// Send stores a message durably before it returns (MSG-04). It fails with Invalid for a bad id
// or an empty text, with TooLarge for a long one, and with NotFound for an unknown target or
// reply_to. It fails with Ambiguous if the target names several sessions, and with Denied if a
// job may not write to it. It fails with Busy if an absent recipient has too much unread mail
// from the sender.
func (c MessageCalls) Send(ctx context.Context, args SendArgs) (SendResult, error) {
	return OpSend.Call(ctx, c.link, args)
}

// SendStatus returns the delivery stages of a message. It fails with NotFound if this session
// sent no message with that id, and with Denied before Register.
func (c MessageCalls) SendStatus(ctx context.Context, args SentArgs) (Sent, error) {
	return OpSent.Call(ctx, c.link, args)
}

// Inbox returns unread mail. It fails with Denied before Register and for a native child, and
// with Invalid for a bad limit.
func (c MessageCalls) Inbox(ctx context.Context, args InboxArgs) (Inbox, error) {
	return OpInbox.Call(ctx, c.link, args)
}

// Wait waits for a message that fits the filters. It fails with Denied before Register and for
// a native child, and with Invalid for a bad time-out. It fails with Unavailable if the session
// leaves.
func (c MessageCalls) Wait(ctx context.Context, args WaitArgs) (WaitResult, error) {
	return OpWait.Call(ctx, c.link, args)
}

// Take returns mail for the channel of the connection's session, oldest first. It returns none
// unless some of the mail may wake the session. It does not count as activity. It fails with
// Denied before Register, and with Unavailable if the session has left.
func (c MessageCalls) Take(ctx context.Context, args Caller) (Inbox, error) {
	return OpTake.Call(ctx, c.link, args)
}

// Ack acknowledges a lease; the acknowledgement is durable when it returns nil. It fails as
// Ack.Of does, with Denied if a job acknowledges another session's mail, and if the store
// cannot be written.
func (c MessageCalls) Ack(ctx context.Context, args Ack) error {
	args.Evidence = args.Words()
	_, err := OpAck.Call(ctx, c.link, args)
	return err
}

// Nack returns a lease that was not delivered. It fails with Unavailable if the connection ends
// first. An unknown lease is no error.
func (c MessageCalls) Nack(ctx context.Context, leaseID string) error {
	_, err := OpNack.Call(ctx, c.link, Nack{Lease: leaseID})
	return err
}
