package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// ModWait waits for something that the mod of a conversation shall do. The first
// one of a connection says that the mod is there.
type ModWait struct {
	SessionID string `json:"sessionId"` // the conversation's own id
	// Busy says that the mod saw a turn begin and not end.
	Busy bool `json:"busy,omitempty"`
	// Line is what the mod shows above the composer now.
	Line string `json:"line,omitempty"`
}

// ModReply is a prompt to enter, another line to show, or both.
type ModReply struct {
	Prompt *ModPrompt `json:"prompt,omitempty"`
	Line   *string    `json:"line,omitempty"`
}

// ModPrompt is one message of the owner that the mod shall enter as a prompt of
// its user. It is for that conversation only, and not to be entered after Until,
// Unix epoch milliseconds: by then the broker looks for what became of it.
type ModPrompt struct {
	ID        string            `json:"id"`        // of the message
	Recipient string            `json:"recipient"` // peer id
	SessionID string            `json:"session"`
	Text      string            `json:"text"`
	Until     bridge.UnixMillis `json:"until"`
}

// ModEvent is what a mod reports.
type ModEvent string

// The events: a prompt was entered and its turn began; claude did not take it, or
// took it out of its queue again; a turn of the user is under way; the
// conversation is another one; the main turn has ended, or has begun.
const (
	ModEntered   ModEvent = "entered"
	ModDropped   ModEvent = "dropped"
	ModBusy      ModEvent = "busy"
	ModMoved     ModEvent = "moved"
	ModTurnEnded ModEvent = "turn-ended"

	ModTurnStarted ModEvent = "turn-started"
)

// ModReport says what became of a prompt, or that a turn has ended or begun, which names
// no message.
type ModReport struct {
	Event     ModEvent `json:"event"`
	ID        string   `json:"id,omitempty"`
	Recipient string   `json:"recipient,omitempty"`
	SessionID string   `json:"session"`
	Detail    string   `json:"detail,omitempty"` // the transcript's id of the prompt, or why
	// At is when the turn ended or began, Unix epoch milliseconds: another may have begun
	// before the report comes.
	At int64 `json:"at,omitempty"`
}

// Check refuses a report that says nothing.
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

// ModCalls are the operations of claude's mod. It lives inside a claude that
// somebody sits at: its child process waits and streams the answers to it, and short
// calls report what became of them.
type ModCalls struct{ link Link }

// Mod waits for something to do.
func (c ModCalls) Mod(ctx context.Context, args ModWait) (ModReply, error) {
	return OpMod.Call(ctx, c.link, args)
}

// ModReport says what became of it; that is durable when it returns nil.
func (c ModCalls) ModReport(ctx context.Context, args ModReport) error {
	_, err := OpModReport.Call(ctx, c.link, args)
	return err
}
