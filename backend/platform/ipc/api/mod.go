package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// ModWait waits for the next task of a conversation's mod. The first one of a
// connection announces the mod.
type ModWait struct {
	SessionID string `json:"sessionId"` // the conversation's own id
	// Busy reports that the mod saw a turn begin and not end.
	Busy bool `json:"busy,omitempty"`
	// Line is the line that the mod now shows above the composer.
	Line string `json:"line,omitempty"`
}

// ModReply is a prompt to enter, a new line to show, or both.
type ModReply struct {
	Prompt *ModPrompt `json:"prompt,omitempty"`
	Line   *string    `json:"line,omitempty"`
}

// ModPrompt is one message of the owner that the mod enters as a prompt of its
// user. It is only for that conversation. The mod must not enter it after Until, in
// Unix epoch milliseconds, because the broker then checks the outcome.
type ModPrompt struct {
	ID        string            `json:"id"`        // of the message
	Recipient string            `json:"recipient"` // peer id
	SessionID string            `json:"session"`
	Text      string            `json:"text"`
	Until     bridge.UnixMillis `json:"until"`
}

// ModEvent is an event that a mod reports.
type ModEvent string

// The events: a prompt was entered and its turn began; Claude Code refused it or
// removed it from its queue; a turn of the user is running; the conversation
// changed; the main turn has ended, or has begun.
const (
	ModEntered   ModEvent = "entered"
	ModDropped   ModEvent = "dropped"
	ModBusy      ModEvent = "busy"
	ModMoved     ModEvent = "moved"
	ModTurnEnded ModEvent = "turn-ended"

	ModTurnStarted ModEvent = "turn-started"
)

// ModReport reports the outcome of a prompt. It also reports the start or end of a
// turn, and then names no message.
type ModReport struct {
	Event     ModEvent `json:"event"`
	ID        string   `json:"id,omitempty"`
	Recipient string   `json:"recipient,omitempty"`
	SessionID string   `json:"session"`
	Detail    string   `json:"detail,omitempty"` // the prompt's id in the transcript, or the reason
	// At is when the turn ended or began, Unix epoch milliseconds. Another turn may
	// begin before the report arrives.
	At int64 `json:"at,omitempty"`
}

// Check fails with Invalid for an unknown event or a bad id.
func (r ModReport) Check() error {
	switch r.Event {
	case ModTurnEnded, ModTurnStarted:
		return bridge.CheckID("the host session id", r.SessionID)
	case ModEntered, ModDropped, ModBusy, ModMoved:
	default:
		return bridge.Errorf(bridge.Invalid, "%q is no event of a mod", r.Event)
	}
	for what, id := range map[string]string{"the host session id": r.SessionID, "the message's id": r.ID, "the recipient": r.Recipient} {
		if err := bridge.CheckID(what, id); err != nil {
			return err
		}
	}
	return nil
}

// ModCalls holds the operations of Claude Code's mod. It runs inside a Claude Code
// that a person uses. Its child process waits and streams the answers to it, and
// short calls report the outcomes.
type ModCalls struct{ link Link }

// Mod waits for the next task of the mod. It fails with Invalid for a bad session id, and if
// the store fails.
func (c ModCalls) Mod(ctx context.Context, args ModWait) (ModReply, error) {
	return OpMod.Call(ctx, c.link, args)
}

// ModReport reports an event; the report is durable when it returns nil. It fails with Invalid
// for an unknown event or a bad id, and if the store fails.
func (c ModCalls) ModReport(ctx context.Context, args ModReport) error {
	_, err := OpModReport.Call(ctx, c.link, args)
	return err
}
