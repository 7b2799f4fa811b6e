package decision

import "bridge/backend/core/bridge"

// Notification is the notice of a decision for one session: the receipt, which prevents
// a second notice, and the message.
type Notification struct {
	DecisionID string
	SessionKey string         // Target.SessionKey
	Message    bridge.Message // without a recipient only the receipt is stored
}

// Notifications returns the notification for each target: one message with one delivery
// for each session.
func Notifications(r Revision, messageID string, targets []Target) []Notification {
	list := make([]Notification, 0, len(targets))
	for _, target := range targets {
		list = append(list, Notification{DecisionID: r.ID, SessionKey: target.SessionKey(), Message: Notice(r, messageID, target)})
	}
	return list
}

// Notifications returns the notification of n for each target, with that time of
// sending in Unix milliseconds.
func (n News) Notifications(messageID string, at int64, targets []Target) []Notification {
	list := Notifications(n.Revision, messageID, targets)
	for i := range list {
		list[i].Message.CreatedAt, list[i].Message.Body = at, n.Body()
	}
	return list
}

// WithoutMessage returns the receipts of decisions without a message to the session.
func WithoutMessage(decided []Revision, sessionKey string, now int64) []Notification {
	list := make([]Notification, len(decided))
	for i, revision := range decided {
		list[i] = Notification{DecisionID: revision.ID, SessionKey: sessionKey, Message: bridge.Message{CreatedAt: now}}
	}
	return list
}
