package ipc

import (
	"context"

	"bridge/backend/bridge"
	"bridge/backend/decision"
	"bridge/backend/mail"
	"bridge/backend/reach"
	"bridge/backend/search"
	"bridge/backend/session"
)

// Protocol is the version of the local link. A broker refuses another one.
const Protocol = 1

// Hello opens every connection.
type Hello struct {
	Protocol int    `json:"protocol"`
	Token    string `json:"token"`
	Role     Role   `json:"role"`
	PID      int    `json:"pid"`
	Version  string `json:"version"`
}

// with is the hello as it goes out: it proves the token.
func (h Hello) with(token string) Hello {
	h.Protocol, h.Token = Protocol, token
	return h
}

// Welcome answers Hello.
type Welcome struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	URL     string `json:"url"` // dashboard address without its key, "" when none is served
}

// Caller names the session on whose behalf a request is made, when the
// connection alone does not say it (codex and opencode tell it per call).
type Caller struct {
	// Session is a peer id given by Register, "" for the connection's only one.
	Session string `json:"session,omitempty"`
	// SessionID is the host session id that this very call came with.
	SessionID string `json:"sessionId,omitempty"`
	// ChildID is set when the call came from inside a native child.
	ChildID string `json:"childId,omitempty"`
	// ToolUseID lets the broker match the call to a hook that saw it.
	ToolUseID string `json:"toolUseId,omitempty"`
}

// Register makes the connection part of a session (MSG-03).
type Register struct {
	Kind     bridge.AgentKind `json:"kind"`
	Name     string           `json:"name,omitempty"` // "" for the default name
	Cwd      string           `json:"cwd"`
	AgentPID int              `json:"agentPid"` // the host's process
	// HostKnown says that AgentPID was seen to be the agent CLI itself, so that
	// two servers below it belong together.
	HostKnown bool `json:"hostKnown,omitempty"`
	// Process names the host's process for good, so that one that comes after it is
	// told apart (ProcessOf). "" lets the broker find out.
	Process   string `json:"process,omitempty"`
	SessionID string `json:"sessionId,omitempty"` // host session id, "" until known
	// Store is the folder of the CLI's own store, as far as the environment of
	// the registering process tells (host.StoreFolder).
	Store string `json:"store,omitempty"`
	// Previous is the peer id of an earlier registration of the same process:
	// after a broker restart it keeps its identity.
	Previous  string      `json:"previous,omitempty"`
	Channel   bool        `json:"channel,omitempty"`    // the host shows channel notifications
	Runner    bool        `json:"runner,omitempty"`     // a job runner, not a person's session
	Shared    bool        `json:"shared,omitempty"`     // one process for many sessions: it is none itself
	Threads   bool        `json:"threads,omitempty"`    // the host serves many sessions, with a registering process for each
	WakePrefs *WakePolicy `json:"wakePolicy,omitempty"` // nil: as configured
	// Hooks says that an earlier broker heard hooks of the session: the next one
	// need not wait for another to know that there are some.
	Hooks bool `json:"hooks,omitempty"`
	// Loans is mail that an earlier broker lent to this process and that it did
	// not confirm yet: it stays lent, so that nobody shows it a second time.
	Loans []session.Loan `json:"loans,omitempty"`
}

// WakePolicy is what a session advertises about being woken (seed 4.4).
type WakePolicy struct {
	AutoWake     bool `json:"autoWake"`
	WakeOnDirect bool `json:"wakeOnDirect"`
	MaxHops      int  `json:"maxHops"`
}

// Registered answers Register. ID is "" while the process is provisional: it
// will be told at the first call that carries an identity.
type Registered struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Note string `json:"note"` // decisions in force, for the MCP instructions
	// Hooks says that hooks reported from the session.
	Hooks bool `json:"hooks,omitempty"`
}

// Leave ends one session of a plugin's connection.
type Leave struct {
	ID string `json:"id"`
}

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

// Inbox is unread mail, oldest first. Loan is nil when nothing is to be
// confirmed.
type Inbox struct {
	Messages  []InboxMessage `json:"messages"`
	Remaining int            `json:"remaining"`
	Loan      *session.Loan  `json:"loan,omitempty"`
}

// InboxMessage is a message as the MCP tools show it (contract).
type InboxMessage struct {
	ID             string         `json:"id"`
	From           bridge.Address `json:"from"`
	To             string         `json:"to"`
	ConversationID string         `json:"conversationId"`
	ReplyTo        *string        `json:"replyTo"`
	Hop            int            `json:"hop"`
	Body           string         `json:"body"`
	CreatedAt      int64          `json:"createdAt"`
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
	Message  *InboxMessage `json:"message,omitempty"`
	TimedOut bool          `json:"timedOut,omitempty"`
	Loan     *session.Loan `json:"loan,omitempty"`
}

// Confirm tells the broker what became of a loan. Via is the way that it went, one
// that the role may speak of; Detail is one word more about it, the host's event
// or the tool. What people read of it, the broker writes.
type Confirm struct {
	Loan   session.Loan `json:"loan"`
	Stage  bridge.Stage `json:"stage"` // handed or consumed
	Via    mail.Via     `json:"via,omitempty"`
	Detail string       `json:"detail,omitempty"`
	// Evidence is for a broker that knows no Via yet: Client.Confirm fills it in.
	Evidence string `json:"evidence"`
}

// Return gives a loan back that reached nobody: its mail is offered again.
type Return struct {
	Loan string `json:"loan"` // its id
}

// JournalLine is one receipt in the durable read journal: what Confirm says,
// one message a line, kept while no broker hears it.
type JournalLine struct {
	Stage     bridge.Stage `json:"stage"`
	MessageID string       `json:"id"`
	Recipient string       `json:"recipient"`
	At        int64        `json:"at"`
	Via       mail.Via     `json:"via,omitempty"` // none in a line of an older program
	Detail    string       `json:"detail,omitempty"`
	Evidence  string       `json:"evidence"`          // as Confirm.Evidence
	Process   string       `json:"process,omitempty"` // as session.Loan.Process
}

// DecideArgs records a decision. Scope nil means the session's project.
type DecideArgs struct {
	Caller
	// ID is chosen by the caller, so that a lost answer can be retried without
	// a second revision. "" lets the broker choose.
	ID              string          `json:"id,omitempty"`
	Topic           string          `json:"topic"`
	Text            string          `json:"text"`
	Scope           *decision.Scope `json:"scope,omitempty"`
	SourceMessageID string          `json:"sourceMessageId,omitempty"`
}

// DecideResult is the answer of the tool `decide` (DEC-01).
type DecideResult struct {
	Decision    decision.Revision `json:"decision"`
	DeliveredTo []string          `json:"deliveredTo"`
}

// DecisionsArgs looks decisions up. Scope nil means the session's project.
type DecisionsArgs struct {
	Caller
	Query   string          `json:"query,omitempty"`
	Scope   *decision.Scope `json:"scope,omitempty"`
	History bool            `json:"history,omitempty"`
}

// SearchArgs asks for what a session may know of by its words. Kind "" means all,
// Limit 0 the usual number.
type SearchArgs struct {
	Caller
	Query string `json:"query"`
	Kind  string `json:"kind,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// SearchResult is the answer of the tool `search_history`, the best hit first.
type SearchResult struct {
	Results []SearchHit `json:"results"`
	Behind  int64       `json:"behind"` // rows that were stored a moment ago and are not searched yet
}

// SearchHit is a message or a decision. To and ConversationID are a message's,
// Topic and Current a decision's.
type SearchHit struct {
	Kind           search.Kind    `json:"kind"`
	ID             string         `json:"id"`
	From           bridge.Address `json:"from"`
	To             string         `json:"to,omitempty"`
	ConversationID string         `json:"conversationId,omitempty"`
	Topic          string         `json:"topic,omitempty"`
	Current        bool           `json:"current,omitempty"`
	CreatedAt      int64          `json:"createdAt"`
	Snippet        string         `json:"snippet"`
}

// Peer is a live session as lists show it.
type Peer struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Agent     bridge.AgentKind `json:"agent"`
	Cwd       string           `json:"cwd"`
	State     string           `json:"state"` // busy or idle
	SessionID *string          `json:"sessionId"`
	Since     int64            `json:"since"`
	Children  []Child          `json:"children"`

	AutoWake     bool        `json:"autoWake"`
	WakeOnDirect bool        `json:"wakeOnDirect"`
	Unread       int         `json:"unread"`
	Transport    reach.Way   `json:"transport"` // how mail reaches it, in a word
	Wake         reach.Wake  `json:"wake"`      // what mail can do while it is idle
	Detail       string      `json:"detail"`    // both in a sentence, and the problem
	CLI          string      `json:"cli"`       // the version of its agent CLI on this PC and those that Bridge was tried with, in words
	Problem      string      `json:"problem"`   // what is wrong with its agent CLI, in sentences; "" when nothing is
	Reach        reach.Words `json:"reach"`     // what the page says of it
}

// Child is a native child of a session.
type Child struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	State string `json:"state"`
}

// PeersResult lists the live sessions; Self is the caller's name.
type PeersResult struct {
	Self  string `json:"self"`
	Peers []Peer `json:"peers"`
}

// AutoWakeArgs sets the calling session's own preference.
type AutoWakeArgs struct {
	Caller
	Enabled bool `json:"enabled"`
}

// Status is what the broker says of itself.
type Status struct {
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	Host     string `json:"host"` // serve, background, desktop, service
	Since    int64  `json:"since"`
	URL      string `json:"url"`
	Schema   int    `json:"schema"`
	Revision int64  `json:"revision"`
	Peers    []Peer `json:"peers"`
	Unread   int    `json:"unread"`
}

// MailEvent is pushed when mail became durable for a session of the connection.
type MailEvent struct {
	Session   string `json:"session"`   // peer id
	SessionID string `json:"sessionId"` // host session id, may be ""
	Wake      bool   `json:"wake"`      // the wake policy lets it start a turn
}

// RevisionEvent is pushed to dashboards whenever something changed.
type RevisionEvent struct {
	Revision int64 `json:"revision"`
}

// Event names. EventJoined carries Registered, without a note: the connection
// became part of that session, or the session's first hook reported.
const (
	EventMail     = "mail"
	EventJoined   = "joined"
	EventRevision = "revision"
)

// Empty is the arguments or the answer of an operation that has none.
type Empty struct{}

// The operations, each with its typed call. Who may call which stands in callers.
const (
	opHello     = "hello"
	opCancel    = "cancel" // names a request by its id; it has no answer of its own
	OpRegister  = "register"
	OpLeave     = "leave"
	OpHook      = "hook"
	OpConfirm   = "confirm"
	OpReturn    = "return"
	OpPeers     = "peers"
	OpSend      = "send"
	OpSent      = "send_status"
	OpInbox     = "inbox"
	OpWait      = "wait"
	OpDecide    = "decide"
	OpDecisions = "decisions"
	OpSearch    = "search_history"
	OpAutoWake  = "auto_wake"
	OpStatus    = "status"
	OpSubscribe = "subscribe"
	OpTicket    = "ticket"
	OpRetire    = "retire"
)

// Register makes the connection part of a session.
func (c *Client) Register(ctx context.Context, args Register) (Registered, error) {
	return call[Registered](ctx, c, OpRegister, args)
}

// Leave ends one session of a plugin's connection.
func (c *Client) Leave(ctx context.Context, args Leave) error {
	_, err := call[Empty](ctx, c, OpLeave, args)
	return err
}

// Hook reports a hook call and brings back what the model shall read.
func (c *Client) Hook(ctx context.Context, args session.HookCall) (session.HookReply, error) {
	return call[session.HookReply](ctx, c, OpHook, args)
}

// Confirm tells what became of a loan; it is durable when it returns nil.
func (c *Client) Confirm(ctx context.Context, args Confirm) error {
	args.Evidence = args.words()
	_, err := call[Empty](ctx, c, OpConfirm, args)
	return err
}

// words are what an older broker keeps of the confirmation.
func (c Confirm) words() string {
	if c.Via == "" {
		return c.Evidence
	}
	return c.Via.Evidence(c.Detail)
}

// Return gives a loan back that reached nobody.
func (c *Client) Return(ctx context.Context, loanID string) error {
	_, err := call[Empty](ctx, c, OpReturn, Return{Loan: loanID})
	return err
}

// Peers lists the live sessions.
func (c *Client) Peers(ctx context.Context, args Caller) (PeersResult, error) {
	return call[PeersResult](ctx, c, OpPeers, args)
}

// Send stores a message durably before it returns (MSG-04).
func (c *Client) Send(ctx context.Context, args SendArgs) (SendResult, error) {
	return call[SendResult](ctx, c, OpSend, args)
}

// SendStatus tells what became of a message that the caller sent.
func (c *Client) SendStatus(ctx context.Context, args SentArgs) (Sent, error) {
	return call[Sent](ctx, c, OpSent, args)
}

// Inbox takes unread mail.
func (c *Client) Inbox(ctx context.Context, args InboxArgs) (Inbox, error) {
	return call[Inbox](ctx, c, OpInbox, args)
}

// Wait waits for a message.
func (c *Client) Wait(ctx context.Context, args WaitArgs) (WaitResult, error) {
	return call[WaitResult](ctx, c, OpWait, args)
}

// Decide records a decision.
func (c *Client) Decide(ctx context.Context, args DecideArgs) (DecideResult, error) {
	return call[DecideResult](ctx, c, OpDecide, args)
}

// Decisions looks decisions up.
func (c *Client) Decisions(ctx context.Context, args DecisionsArgs) ([]decision.Revision, error) {
	return call[[]decision.Revision](ctx, c, OpDecisions, args)
}

// SearchHistory looks messages and decisions up by their words.
func (c *Client) SearchHistory(ctx context.Context, args SearchArgs) (SearchResult, error) {
	return call[SearchResult](ctx, c, OpSearch, args)
}

// AutoWake sets the session's preference.
func (c *Client) AutoWake(ctx context.Context, args AutoWakeArgs) error {
	_, err := call[Empty](ctx, c, OpAutoWake, args)
	return err
}

// Status asks the broker about itself.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, OpStatus, Empty{})
}

// Subscribe asks for RevisionEvents on this connection.
func (c *Client) Subscribe(ctx context.Context) error {
	_, err := call[Empty](ctx, c, OpSubscribe, Empty{})
	return err
}

// Ticket brings a one-time launch address of the dashboard (AUT-04).
func (c *Client) Ticket(ctx context.Context) (string, error) {
	return call[string](ctx, c, OpTicket, Empty{})
}

// Retire asks a background broker to make room for the caller's.
func (c *Client) Retire(ctx context.Context) error {
	_, err := call[Empty](ctx, c, OpRetire, Empty{})
	return err
}
