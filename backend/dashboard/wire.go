package dashboard

import (
	"bridge/backend/bridge"
	"bridge/backend/chat"
	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/search"
)

// The JSON shapes of the dashboard's answers. testdata holds one golden file of
// each, which the page's tests read too. Every list is made with at least
// []T{}: none is ever null. Times are Unix epoch milliseconds.

// errorWire is every refusal.
type errorWire struct {
	Error string `json:"error"`
}

// stateWire is the answer of GET /api/state.
type stateWire struct {
	Revision  int64               `json:"revision"` // 0 without a broker
	Instance  instanceWire        `json:"instance"`
	Broker    brokerWire          `json:"broker"`
	Peers     []api.Peer          `json:"peers"`
	Messages  []messageWire       `json:"messages"` // newest first
	Overdue   []overdueWire       `json:"overdue"`  // who waits longest first
	LastHour  lastHourWire        `json:"lastHour"`
	Runs      []struct{}          `json:"runs"`
	Jobs      map[string]struct{} `json:"jobs"`
	Approvals []struct{}          `json:"approvals"`
	Storage   storageWire         `json:"storage"`
}

// overdueWire is what one session has left unread for too long (mail.FindOverdue).
type overdueWire struct {
	ID       string `json:"id"` // peer id
	Name     string `json:"name"`
	Messages int    `json:"messages"`
	Oldest   string `json:"oldest"` // the id of the message that waits longest
	Since    int64  `json:"since"`  // when that one came
}

// lastHourWire counts the messages of the hour before At, also those that the list
// of the newest does not hold.
type lastHourWire struct {
	Messages int   `json:"messages"`
	At       int64 `json:"at"`
}

type instanceWire struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Home    string `json:"home"` // the data's folder, "" where it is not told
}

// brokerWire tells whether a broker runs. Host is "" and PID null without one.
type brokerWire struct {
	State string `json:"state"` // live or offline
	Host  string `json:"host"`  // serve, background, desktop or service
	PID   *int   `json:"pid"`
}

// storageWire sums the last doctor report up; OK is null before the first.
type storageWire struct {
	OK         *bool  `json:"ok"`
	Errors     int    `json:"errors"`
	Warnings   int    `json:"warnings"`
	LastBackup *int64 `json:"lastBackup"`
}

// archiveWire is the specification's MessageHistoryRow (seed 2.7).
type archiveWire struct {
	ID         string           `json:"id"`
	FromName   string           `json:"from_name"`
	FromAgent  bridge.AgentKind `json:"from_agent"`
	ToTarget   string           `json:"to_target"`
	Recipients string           `json:"recipients"` // names, joined by ", "
	Body       string           `json:"body"`
	CreatedAt  int64            `json:"created_at"`
	Hop        int              `json:"hop"`
	ReplyTo    *string          `json:"reply_to"`
}

// messageWire is a message with its way to each recipient.
type messageWire struct {
	archiveWire
	ConversationID string         `json:"conversation_id"`
	Kind           string         `json:"kind"`  // message, decision or owner
	State          bridge.Stage   `json:"state"` // the least advanced of its deliveries
	Deliveries     []deliveryWire `json:"deliveries"`
}

// deliveryWire is a message's way to one recipient.
type deliveryWire struct {
	ID     string           `json:"id"` // peer id
	Name   string           `json:"name"`
	Agent  bridge.AgentKind `json:"agent"`
	Stage  bridge.Stage     `json:"stage"`
	Note   string           `json:"note"`   // the present truth in plain words
	Stages []stepWire       `json:"stages"` // always the six, in order
}

// stepWire is one mark of the delivery strip.
type stepWire struct {
	Stage    bridge.Stage `json:"stage"`
	At       *int64       `json:"at"`
	Via      mail.Via     `json:"via"` // "" where it is not known
	Evidence string       `json:"evidence"`
	Possible bool         `json:"possible"` // false: it did not and will not happen
}

// messagesWire is the answer of GET /api/messages.
type messagesWire struct {
	Messages []messageWire `json:"messages"`
}

// archivesWire is the answer of GET /api/archive/messages.
type archivesWire struct {
	Messages []archiveWire `json:"messages"`
}

// searchWire is the answer of GET /api/search, the best hit first.
type searchWire struct {
	Results []hitWire `json:"results"`
	Behind  int64     `json:"behind"` // rows that the index does not reach yet
	Next    string    `json:"next"`   // the cursor of the next page, "" after the last
}

// hitWire is one hit. Author is who wrote the message or decided; Target and
// Recipients are a message's, Topic and Current a decision's.
type hitWire struct {
	Kind        search.Kind      `json:"kind"` // message or decision
	ID          string           `json:"id"`
	At          int64            `json:"at"`
	AuthorName  string           `json:"author_name"`
	AuthorAgent bridge.AgentKind `json:"author_agent"`
	Target      string           `json:"to_target"`
	Recipients  string           `json:"recipients"` // names, joined by ", "
	Topic       string           `json:"topic"`
	Current     bool             `json:"current"`
	Snippet     []search.Part    `json:"snippet"` // plain text in pieces
	Link        string           `json:"link"`    // within the page, as "#/decisions/release"
}

// decisionsWire is the answer of GET /api/decisions.
type decisionsWire struct {
	Decisions []decision.Revision `json:"decisions"`
	// Unreadable are stored decisions that nobody is told of; left out where there
	// are none.
	Unreadable []unreadableWire `json:"unreadable,omitempty"`
}

// unreadableWire is a decision that cannot be read; Why continues a sentence
// about it. Newer says that a newer release may have written it.
type unreadableWire struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Why   string `json:"why"`
	Newer bool   `json:"newer"`
}

// historyWire is the answer of GET /api/decisions/<topic>/history.
type historyWire struct {
	Topic string `json:"topic"`
	decisionsWire
}

// chatWire is the answer to the owner's message (CHT-02).
type chatWire struct {
	State     chat.State     `json:"state"`
	Transport chat.Transport `json:"transport"`
	Receipt   *string        `json:"receipt"`
	Detail    string         `json:"detail"`
}

// receiptWire is the answer of GET /api/chat-delivery/<id> (CHT-09).
type receiptWire struct {
	ID        string         `json:"id"`
	State     chat.State     `json:"state"`
	Transport chat.Transport `json:"transport"`
	UpdatedAt int64          `json:"updatedAt"`
}

// sentWire is the answer of POST /api/messages.
type sentWire struct {
	ID             string          `json:"id"`
	ConversationID string          `json:"conversationId"`
	Recipients     []api.Recipient `json:"recipients"`
}

// list returns items, never nil.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
