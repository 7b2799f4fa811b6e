package dto

import (
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/needs"
)

// State is the answer of GET /api/state.
type State struct {
	Revision int64 `json:"revision"` // 0 without a broker
	// Tag identifies this state in ?since=; "" if its changes cannot be asked for.
	Tag       string         `json:"tag"`
	Instance  Instance       `json:"instance"`
	Broker    Broker         `json:"broker"`
	Peers     []Peer         `json:"peers"`
	Messages  []Message      `json:"messages"` // newest first
	LastHour  LastHour       `json:"lastHour"`
	Runs      []Run          `json:"runs"`      // running ones, then ended ones, newest first
	Jobs      map[string]Job `json:"jobs"`      // by name, those of Runs
	Worktrees Worktrees      `json:"worktrees"` // of jobs
	Approvals []Approval     `json:"approvals"`
	Needs     []needs.Item   `json:"needs"` // the owner's needs, oldest first
	Prompting Prompting      `json:"prompting"`
	// NoticesFrom is when a page in the background may show notices: now, or after the
	// quiet hours; 0 if they are off (PGE-14).
	NoticesFrom bridge.UnixMillis `json:"noticesFrom"`
	Storage     StorageSum        `json:"storage"`
	// Unreadable lists what could not be read for this state, as sentences.
	Unreadable []string `json:"unreadable,omitempty"`
}

// StateChanges is the answer of GET /api/state?since=TAG if the state with that tag is still
// known: messages and sessions that have not changed since then are only their ids.
type StateChanges struct {
	State
	Since    string          `json:"since"` // the tag
	Messages []Item[Message] `json:"messages"`
	Peers    []Item[Peer]    `json:"peers"`
}

// Item is an item of a list, or the id of one that has not changed.
type Item[T any] struct {
	Unchanged string // the id; "" for one that has
	Value     T
}

// MarshalJSON returns the id as a string, or the whole item.
func (i Item[T]) MarshalJSON() ([]byte, error) {
	if i.Unchanged != "" {
		return json.Marshal(i.Unchanged)
	}
	return json.Marshal(i.Value)
}

// Prompting is the handling of sessions' permission prompts, and the answer of POST
// /api/away.
type Prompting struct {
	AnswerPrompts string `json:"answerPrompts"` // off, away or always
	Away          bool   `json:"away"`
}

type Instance struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Home    string `json:"home"` // the data folder; "" if hidden
}

// Broker reports whether a broker runs. Host is "" and PID null without one.
type Broker struct {
	State string `json:"state"` // live or offline
	Host  string `json:"host"`  // serve, background, desktop or service
	PID   *int   `json:"pid"`
}

// StorageSum sums the last doctor report up; OK is null before the first.
type StorageSum struct {
	OK         *bool              `json:"ok"`
	Errors     int                `json:"errors"`
	Warnings   int                `json:"warnings"`
	LastBackup *bridge.UnixMillis `json:"lastBackup"`
}

// LastHour counts the messages of the hour before At, also those that the list
// of the newest does not hold.
type LastHour struct {
	Messages bridge.Count      `json:"messages"` // null if they cannot be read
	At       bridge.UnixMillis `json:"at"`
}

// Peer is a live session.
type Peer struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Agent     bridge.AgentKind  `json:"agent"`
	Cwd       string            `json:"cwd"`
	State     string            `json:"state"` // busy or idle
	SessionID *string           `json:"sessionId"`
	Since     bridge.UnixMillis `json:"since"`
	Children  []Child           `json:"children"`
	// UnknownSince is the time since which State is unknown; 0 if it is known.
	UnknownSince bridge.UnixMillis `json:"unknownSince"`

	AutoWake     bool           `json:"autoWake"`
	WakeOnDirect bool           `json:"wakeOnDirect"`
	Unread       bridge.Count   `json:"unread"`    // null if it cannot be read
	Transport    delivery.Way   `json:"transport"` // how mail reaches it, in a word
	Wake         delivery.Wake  `json:"wake"`      // what mail can do while it is idle
	Detail       string         `json:"detail"`    // both in a sentence, and the problem
	CLI          string         `json:"cli"`       // the version of its agent CLI on this PC and those that Bridge was tried with, in words
	Problem      string         `json:"problem"`   // what is wrong with its agent CLI, in sentences; "" when nothing is
	Reach        delivery.Words `json:"reach"`     // what the page says of it
}

// Child is a native child of a session.
type Child struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	State string `json:"state"`
}
