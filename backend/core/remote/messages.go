package remote

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// Messages between sessions of two PCs (RMT-21).
const (
	// MessagesCapability announces in a hello that a PC accepts messages for its sessions.
	MessagesCapability = "messages-v1"
	// MessagesFrame is the type of the frames with messages and their receipts.
	MessagesFrame = "messages"

	// MaxLetters and MaxLetterBytes limit the messages of one frame: a frame has at
	// least one, of any size.
	MaxLetters     = 100
	MaxLetterBytes = 400_000
	// MaxReceipts limits the receipts of one frame.
	MaxReceipts = 200

	maxEvidenceChars = 200
)

// Letter is a message in transit to a session of another PC.
type Letter struct {
	ID             string           `json:"id"`
	To             string           `json:"to"`   // the session's name at the other PC
	From           string           `json:"from"` // the session's name at the sender's PC; the link proves the host
	Agent          bridge.AgentKind `json:"agent,omitempty"`
	ConversationID string           `json:"conversationId"`
	ReplyTo        string           `json:"replyTo,omitempty"`
	Hop            int              `json:"hop"`
	Body           string           `json:"body"`
	CreatedAt      int64            `json:"createdAt"` // Unix milliseconds by the sender's clock
}

// Arrival answers a letter: it is stored, or the reason why not. Later reports that the
// reason is temporary: the letter must be resent.
type Arrival struct {
	ID    string        `json:"id"`
	Error *bridge.Error `json:"error,omitempty"`
	Later bool          `json:"later,omitempty"`
}

// Receipt reports the stages of a letter. News is a counter: the acknowledgement of one
// News covers all before.
type Receipt struct {
	ID     string        `json:"id"`
	News   int64         `json:"news"` // a count
	Stages []ReceiptStep `json:"stages,omitempty"`
}

// ReceiptStep is one stage that a letter reached.
type ReceiptStep struct {
	Stage    bridge.Stage `json:"stage"`
	At       int64        `json:"at"` // Unix milliseconds by the receiver's clock
	Evidence string       `json:"evidence,omitempty"`
}

// Mail is a frame of messages, with one of four contents. Now is the sender's clock:
// the clocks of a pair may differ by minutes.
type Mail struct {
	Now      bridge.UnixMillis `json:"now"`
	Letters  []Letter          `json:"letters,omitempty"`
	Arrivals []Arrival         `json:"arrivals,omitempty"`
	Receipts []Receipt         `json:"receipts,omitempty"`
	Noted    []Receipt         `json:"noted,omitempty"` // without stages
}

// ParseMail decodes a frame of messages. A letter in it may still be invalid: Check
// validates each. It fails with Invalid unless the frame has a time and exactly one
// content, and with TooLarge beyond the limits.
func ParseMail(data []byte) (m Mail, err error) {
	if err := bridge.DecodeStrict(data, maxPayloadBytes, &m); err != nil {
		return m, err
	}
	size := 0
	for _, n := range []int{len(m.Letters), len(m.Arrivals), len(m.Receipts), len(m.Noted)} {
		size += min(n, 1)
	}
	if size != 1 || m.Now <= 0 {
		return m, bridge.Errorf(bridge.Invalid, "a frame of messages says one thing and when")
	}
	if len(m.Letters) > MaxLetters || max(len(m.Arrivals), len(m.Receipts), len(m.Noted)) > MaxReceipts {
		return m, bridge.Errorf(bridge.TooLarge, "a frame of messages has at most %d of them and %d receipts", MaxLetters, MaxReceipts)
	}
	for i := range m.Arrivals {
		if e := m.Arrivals[i].Error; e != nil {
			m.Arrivals[i].Error = &bridge.Error{Code: e.Code, Message: cut(e.Message)}
		}
	}
	for _, receipt := range m.Receipts {
		for i, step := range receipt.Stages {
			if !slices.Contains(receiptStages, step.Stage) || step.At <= 0 {
				return m, bridge.Errorf(bridge.Invalid, "a receipt tells of %v with their times, not of %q", receiptStages, step.Stage)
			}
			receipt.Stages[i].Evidence = cutTo(step.Evidence, maxEvidenceChars)
		}
	}
	return m, nil
}

var receiptStages = []bridge.Stage{bridge.StageWoken, bridge.StageHanded, bridge.StageConsumed, bridge.StageAnswered, bridge.StageExpired}

// EncodeMail returns a frame's payload. It fails with TooLarge beyond the frame limit.
func EncodeMail(m Mail) ([]byte, error) {
	data, err := json.Marshal(m)
	if err == nil && len(data) > maxPayloadBytes {
		err = bridge.Errorf(bridge.TooLarge, "these messages need %s on the link: at most %d fit", bridge.Counted(len(data), "byte"), maxPayloadBytes)
	}
	return data, err
}

// Shift returns how far the other PC's clock is behind this one's, in milliseconds.
func (m Mail) Shift(now int64) int64 { return now - m.Now }

// Check fails if no Bridge would send the letter.
func (l Letter) Check() error {
	if err := bridge.CheckID("the message's id", l.ID); err != nil {
		return err
	}
	for what, id := range map[string]string{"the session's name": l.To, "the conversation's id": l.ConversationID} {
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	if l.ReplyTo != "" {
		if err := bridge.CheckID("reply_to", l.ReplyTo); err != nil {
			return err
		}
	}
	if l.Hop < 0 || l.Hop > bridge.HighestMaxHops {
		return bridge.Errorf(bridge.Invalid, "a hop is 0 to %d", bridge.HighestMaxHops)
	}
	if err := bridge.CheckName(l.From); err != nil {
		return err
	}
	return bridge.CheckText("the message", l.Body, bridge.MaxBodyChars)
}

// Sender returns the sender of the letter, at the host that the link has proved. No
// letter has the owner's authority, whatever it claims (MSG-08).
func (l Letter) Sender(host string) bridge.Address {
	name := host + "/" + l.From
	agent, err := bridge.ParseKind(string(l.Agent))
	if err != nil {
		agent = ""
	}
	return bridge.Address{ID: name, Name: name, Agent: agent}
}

// Message returns the letter as it is stored here, by a clock that is shift
// milliseconds ahead of the sender's; hop is its minimum here.
func (l Letter) Message(host string, now, shift int64, hop int) bridge.Message {
	conversation := l.ConversationID
	if l.ReplyTo == "" && strings.HasPrefix(conversation, bridge.DecisionConversation) {
		conversation = l.ID // only the broker of this PC announces decisions
	}
	return bridge.Message{
		ID: l.ID, From: l.Sender(host), To: l.To, ConversationID: conversation, ReplyTo: l.ReplyTo, Hop: min(max(l.Hop, hop), bridge.HighestMaxHops),
		Body: l.Body, CreatedAt: max(min(l.CreatedAt+shift, now), 1),
	}
}

// LetterOf returns a stored message to a session of another PC in its transit form.
func LetterOf(m bridge.Message) Letter {
	_, recipient := SplitName(m.To)
	from, agent := m.From.Name, m.From.Agent
	if agent == bridge.Owner {
		from, agent = "owner", ""
	}
	return Letter{ID: m.ID, To: recipient, From: from, Agent: agent, ConversationID: m.ConversationID, ReplyTo: m.ReplyTo, Hop: m.Hop, Body: m.Body, CreatedAt: m.CreatedAt}
}

// Answered returns the arrival of a letter: stored, or not because of err.
func Answered(id string, err error) Arrival {
	if err == nil {
		return Arrival{ID: id}
	}
	code := bridge.CodeOf(err)
	passing := []bridge.Code{bridge.Storage, bridge.Unavailable, bridge.Busy, bridge.Internal}
	return Arrival{ID: id, Error: &bridge.Error{Code: code, Message: cut(sentenceOf(err))}, Later: slices.Contains(passing, code)}
}

func cutTo(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
