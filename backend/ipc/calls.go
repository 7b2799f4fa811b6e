package ipc

import (
	"context"

	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
)

// Register makes the connection part of a session.
func (c *Client) Register(ctx context.Context, args api.Register) (api.Registered, error) {
	return call[api.Registered](ctx, c, api.OpRegister, args)
}

// Leave ends one session of a plugin's connection.
func (c *Client) Leave(ctx context.Context, args api.Leave) error {
	_, err := call[api.Empty](ctx, c, api.OpLeave, args)
	return err
}

// Hook reports a hook call and brings back what the model shall read.
func (c *Client) Hook(ctx context.Context, args session.HookCall) (session.HookReply, error) {
	return call[session.HookReply](ctx, c, api.OpHook, args)
}

// Confirm tells what became of a loan; it is durable when it returns nil.
func (c *Client) Confirm(ctx context.Context, args api.Confirm) error {
	args.Evidence = args.Words()
	_, err := call[api.Empty](ctx, c, api.OpConfirm, args)
	return err
}

// Return gives a loan back that reached nobody.
func (c *Client) Return(ctx context.Context, loanID string) error {
	_, err := call[api.Empty](ctx, c, api.OpReturn, api.Return{Loan: loanID})
	return err
}

// Peers lists the live sessions.
func (c *Client) Peers(ctx context.Context, args api.Caller) (api.PeersResult, error) {
	return call[api.PeersResult](ctx, c, api.OpPeers, args)
}

// Send stores a message durably before it returns (MSG-04).
func (c *Client) Send(ctx context.Context, args api.SendArgs) (api.SendResult, error) {
	return call[api.SendResult](ctx, c, api.OpSend, args)
}

// SendStatus tells what became of a message that the caller sent.
func (c *Client) SendStatus(ctx context.Context, args api.SentArgs) (api.Sent, error) {
	return call[api.Sent](ctx, c, api.OpSent, args)
}

// Inbox takes unread mail.
func (c *Client) Inbox(ctx context.Context, args api.InboxArgs) (api.Inbox, error) {
	return call[api.Inbox](ctx, c, api.OpInbox, args)
}

// Wait waits for a message.
func (c *Client) Wait(ctx context.Context, args api.WaitArgs) (api.WaitResult, error) {
	return call[api.WaitResult](ctx, c, api.OpWait, args)
}

// Decide records a decision.
func (c *Client) Decide(ctx context.Context, args api.DecideArgs) (api.DecideResult, error) {
	return call[api.DecideResult](ctx, c, api.OpDecide, args)
}

// Decisions looks decisions up.
func (c *Client) Decisions(ctx context.Context, args api.DecisionsArgs) ([]decision.Revision, error) {
	return call[[]decision.Revision](ctx, c, api.OpDecisions, args)
}

// SearchHistory looks messages and decisions up by their words.
func (c *Client) SearchHistory(ctx context.Context, args api.SearchArgs) (api.SearchResult, error) {
	return call[api.SearchResult](ctx, c, api.OpSearch, args)
}

// AutoWake sets the session's preference.
func (c *Client) AutoWake(ctx context.Context, args api.AutoWakeArgs) error {
	_, err := call[api.Empty](ctx, c, api.OpAutoWake, args)
	return err
}

// Status asks the broker about itself.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return call[api.Status](ctx, c, api.OpStatus, api.Empty{})
}

// Subscribe asks for RevisionEvents on this connection.
func (c *Client) Subscribe(ctx context.Context) error {
	_, err := call[api.Empty](ctx, c, api.OpSubscribe, api.Empty{})
	return err
}

// Ticket brings a one-time launch address of the dashboard (AUT-04).
func (c *Client) Ticket(ctx context.Context) (string, error) {
	return call[string](ctx, c, api.OpTicket, api.Empty{})
}

// Retire asks a background broker to make room for the caller's.
func (c *Client) Retire(ctx context.Context) error {
	_, err := call[api.Empty](ctx, c, api.OpRetire, api.Empty{})
	return err
}

// Mod waits for something to do.
func (c *Client) Mod(ctx context.Context, args api.ModWait) (api.ModReply, error) {
	return call[api.ModReply](ctx, c, api.OpMod, args)
}

// ModReport says what became of it; that is durable when it returns nil.
func (c *Client) ModReport(ctx context.Context, args api.ModReport) error {
	_, err := call[api.Empty](ctx, c, api.OpModReport, args)
	return err
}

// WakeWait waits until the session shall be woken.
func (c *Client) WakeWait(ctx context.Context, args api.WakeWait) (api.WakeReply, error) {
	return call[api.WakeReply](ctx, c, api.OpWakeWait, args)
}

// Take takes mail for the channel of the connection's session, oldest first:
// nothing unless some of it may wake the session. It is no sign of activity.
func (c *Client) Take(ctx context.Context, args api.Caller) (api.Inbox, error) {
	return call[api.Inbox](ctx, c, api.OpTake, args)
}

// Show asks the desktop app at the other end to show its window (DSK-02).
func (c *Client) Show(ctx context.Context) error {
	_, err := call[api.Empty](ctx, c, api.OpShow, api.Empty{})
	return err
}
