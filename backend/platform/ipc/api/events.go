package api

// MailEvent is pushed when a message is durably stored for a session of the connection.
type MailEvent struct {
	Session   string `json:"session"`   // peer id
	SessionID string `json:"sessionId"` // host session id, may be ""
	Wake      bool   `json:"wake"`      // the wake policy allows it to start a turn
}

// RevisionEvent is pushed to dashboards after every change.
type RevisionEvent struct {
	Revision int64 `json:"revision"`
}

// The event names. EventJoined carries Registered without a note: the connection
// joined that session, or the session's first hook reported. EventLeft carries
// Leave: no terminal shows that session of the connection any more.
const (
	EventMail     = "mail"
	EventJoined   = "joined"
	EventLeft     = "left"
	EventRevision = "revision"
)
