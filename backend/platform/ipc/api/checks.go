package api

import (
	"path/filepath"
	"slices"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/mail"
)

// The checks of arguments that do not depend on the caller.

// Check fails with Invalid if the kind, name, folder or an id is not valid.
func (r Register) Check() error {
	if _, err := bridge.ParseKind(string(r.Kind)); err != nil && (!r.Runner || r.Kind != job.ACP) {
		return err
	}
	if r.Name != "" {
		if err := bridge.CheckName(r.Name); err != nil {
			return err
		}
	}
	if r.Cwd != "" && !filepath.IsAbs(r.Cwd) {
		return bridge.Errorf(bridge.Invalid, "the working folder %q is not absolute", r.Cwd)
	}
	for what, id := range map[string]string{"the host session id": r.SessionID, "the previous id": r.Previous} {
		if id == "" {
			continue
		}
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}

// Check fails with Invalid for an empty or too long text, an empty target, or a bad id.
func (a SendArgs) Check() error {
	if err := bridge.CheckText("the message", a.Body, bridge.MaxBodyChars); err != nil {
		return err
	}
	if a.To == "" {
		return bridge.Errorf(bridge.Invalid, "the target must not be empty: name a session, or * for all")
	}
	if err := a.Reply.Check(); err != nil {
		return err
	}
	for what, id := range map[string]string{
		"reply_to": a.ReplyTo, "conversation_id": a.ConversationID, "message_id": a.MessageID,
	} {
		if id == "" {
			continue
		}
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}

// Timeout returns the timeout of the wait. It fails with Invalid outside 1 ms to bridge.MaxWait.
func (a WaitArgs) Timeout() (time.Duration, error) {
	timeout := time.Duration(a.TimeoutMillis) * time.Millisecond
	if timeout < time.Millisecond || timeout > bridge.MaxWait {
		return 0, bridge.Errorf(bridge.Invalid, "the time-out must be above 0 and at most %d s", int(bridge.MaxWait.Seconds()))
	}
	return timeout, nil
}

// Wants reports whether the message fits the wait's filters. A message that asks for no
// answer ends no wait for its conversation.
func (a WaitArgs) Wants(d mail.Delivery) bool {
	return (a.From == "" || bridge.NormalizeName(a.From) == d.From.Name || a.From == d.From.ID) &&
		(a.ReplyTo == "" || a.ReplyTo == d.ReplyTo) &&
		(a.ConversationID == "" || a.ConversationID == d.ConversationID || mail.ReplyWanted.Mark(a.ConversationID) == d.ConversationID)
}

// First returns the oldest message that fits the wait's filters, or no message.
func (a WaitArgs) First(free []mail.Delivery) mail.Presentation {
	at := slices.IndexFunc(free, a.Wants)
	if at < 0 {
		return mail.Presentation{}
	}
	return mail.Presentation{Shown: free[at : at+1]}
}

// The default and the maximum number of search hits.
const (
	usualHits = 10
	mostHits  = 50
)

// Hits returns the requested number of hits. It fails with Invalid outside 1 to mostHits.
func (a SearchArgs) Hits() (int, error) {
	limit := a.Limit
	if limit == 0 {
		limit = usualHits
	}
	if limit < 1 || limit > mostHits {
		return 0, bridge.Errorf(bridge.Invalid, "limit must be 1 to %d", mostHits)
	}
	return limit, nil
}

// InboxMessageOf returns m in the form of the MCP tools.
func InboxMessageOf(m bridge.Message) InboxMessage {
	view := InboxMessage{
		ID: m.ID, From: m.From, To: m.To, ConversationID: mail.Thread(m.ConversationID), Hop: m.Hop, Body: m.Body, CreatedAt: m.CreatedAt,
	}
	if m.ReplyTo != "" {
		view.ReplyTo = &m.ReplyTo
	}
	if reply := mail.ReplyOf(m.ConversationID); reply != mail.ReplyOptional {
		view.Reply = reply
	}
	return view
}
