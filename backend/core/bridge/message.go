package bridge

// Address is an author: ID is a peer id, Name a session name.
type Address struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Agent AgentKind `json:"agent"`
}

// OwnerAddress returns the sender address of the owner's messages.
func OwnerAddress() Address { return Address{ID: OwnerID, Name: OwnerName, Agent: Owner} }

// Message is one stored message to one recipient. A message to several sessions is
// several of these with one ID (the known layout of `messages`).
type Message struct {
	ID             string
	Recipient      string // peer id of the receiving session
	From           Address
	To             string // the target in the sender's words
	ConversationID string
	ReplyTo        string // "" if it is no reply
	Hop            int
	Body           string
	CreatedAt      int64 // Unix epoch milliseconds
	ReadAt         int64 // 0 while unread
}

// DecisionConversation is the prefix of the conversation id of decision notifications,
// followed by the decision's id.
const DecisionConversation = "decision-"

// Stage is a step in a message's life, in order. Each is a stored fact with a time and
// its evidence, never a guess.
type Stage string

// The stages of a delivery, and the two ends outside the sequence.
const (
	StageAccepted Stage = "accepted" // the broker received it
	StageDurable  Stage = "durable"  // committed and synced
	StageWoken    Stage = "woken"    // the host was asked to wake
	StageHanded   Stage = "handed"   // given to the host, unconfirmed
	StageConsumed Stage = "consumed" // the session was active after it
	StageAnswered Stage = "answered" // a reply refers to it
	StageExpired  Stage = "expired"  // too old: moved to the archive

	// Only for a message to a session of another PC.
	StageAtHub   Stage = "at-hub"  // the team's hub has stored it, the other PC has not
	StageArrived Stage = "arrived" // the other PC has stored it
	StageRefused Stage = "refused" // the other PC refuses it
)

// Stages lists the six steps of the delivery strip in order.
func Stages() []Stage {
	return []Stage{StageAccepted, StageDurable, StageWoken, StageHanded, StageConsumed, StageAnswered}
}
