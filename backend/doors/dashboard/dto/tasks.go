package dto

import "bridge/backend/core/bridge"

// Tasks is the answer of GET /api/storage/work.
type Tasks struct {
	Running *Task             `json:"running"`
	Ended   []Task            `json:"ended"` // since this broker started, the newest first
	Offers  []Offer           `json:"offers"`
	Hints   map[string]string `json:"hints"` // what to do about a finding
}

// Task is one task, running or ended.
type Task struct {
	Action string             `json:"action"`
	State  string             `json:"state"` // running, done or failed
	Began  bridge.UnixMillis  `json:"began"`
	Ended  *bridge.UnixMillis `json:"ended"`
	// Step, Done and All say how far a running task is: of All bytes or rows, where
	// that is known, else of 0.
	Step string `json:"step"`
	Done int64  `json:"done"` // bytes or rows
	All  int64  `json:"all"`  // bytes or rows
	// Result says in a sentence what came of it.
	Result string `json:"result"`
}

// Offer says what a task would do, and whether it can be done from here.
type Offer struct {
	Action   string `json:"action"`
	Explains string `json:"explains"`
	Consent  bool   `json:"consent"` // it is done only with consent
	// Refused says why it cannot be done from here, "" where it can.
	Refused string `json:"refused"`
	Command string `json:"command"` // does it from a terminal
}

// Progress is what the event stream says of maintenance.
type Progress struct {
	Running *Task `json:"running"`
}
