package dto

import "bridge/backend/core/bridge"

// Tasks is the answer of GET /api/storage/work.
type Tasks struct {
	Running *Task             `json:"running"`
	Ended   []Task            `json:"ended"` // since this broker's start, newest first
	Offers  []Offer           `json:"offers"`
	Hints   map[string]string `json:"hints"` // advice for a finding
}

// Task is one task, running or ended.
type Task struct {
	Action string             `json:"action"`
	State  string             `json:"state"` // running, done or failed
	Began  bridge.UnixMillis  `json:"began"`
	Ended  *bridge.UnixMillis `json:"ended"`
	// Step, Done and All are a running task's progress: All is its bytes or rows,
	// or 0 if unknown.
	Step string `json:"step"`
	Done int64  `json:"done"` // bytes or rows
	All  int64  `json:"all"`  // bytes or rows
	// Result is the task's result as a sentence.
	Result string `json:"result"`
}

// Offer describes a task and whether it can run from here.
type Offer struct {
	Action   string `json:"action"`
	Explains string `json:"explains"`
	Consent  bool   `json:"consent"` // it requires consent
	// Refused is why it cannot run from here, or "".
	Refused string `json:"refused"`
	Command string `json:"command"` // runs it from a terminal
}

// Progress is the event stream's text about maintenance.
type Progress struct {
	Running *Task `json:"running"`
}
