package dto

import "bridge/backend/core/bridge"

// Agents is the answer of GET /api/agents.
type Agents struct {
	Agents  []Agent `json:"agents"`
	Command string  `json:"command"` // connects them from a terminal
	Refused string  `json:"refused"` // why none may be connected from here, or ""
	// Looked lists the folders of the PATH that were searched.
	Looked []string `json:"looked"`
}

// Agent is one agent CLI.
type Agent struct {
	Kind      bridge.AgentKind `json:"kind"`
	Found     bool             `json:"found"`
	Path      string           `json:"path"`
	Version   string           `json:"version"`
	Connected bool             `json:"connected"` // Bridge is registered with it
	Detail    string           `json:"detail"`    // a sentence for people, or ""
	Refused   string           `json:"refused"`   // why this version is not connected; "" if it may be
	// Missing lists the parts of a connected agent's setup that are missing.
	// Connecting it again repairs that.
	Missing []string `json:"missing"`
	// Jobs is set if its sessions may start agents on this PC without a question.
	Jobs bool `json:"jobs"`
	// Proof is what came of trying the routes into it, null if they were not tried.
	Proof *Proof `json:"proof"`
}

// Proof is what came of trying the routes into a version of an agent.
type Proof struct {
	Version string            `json:"version"`
	At      bridge.UnixMillis `json:"at"`
	Problem string            `json:"problem"` // why they could not be tried, or ""
	Broken  []string          `json:"broken"`  // a sentence for each broken route
}

// Connected is the answer of GET /api/agents/connected.
type Connected struct {
	Agents []Standing `json:"agents"`
}

// Standing is a connected agent CLI.
type Standing struct {
	Kind bridge.AgentKind `json:"kind"`
	// Jobs is set if its sessions may start agents on this PC without a question.
	Jobs bool `json:"jobs"`
}

// Change is the answer: the planned or the executed change.
type Change struct {
	Kind   bridge.AgentKind `json:"kind"`
	Done   bool             `json:"done"`
	Digest string           `json:"digest"`
	Edits  []Edit           `json:"edits"`
	Notes  []string         `json:"notes"`
}

// Edit is one file of a change.
type Edit struct {
	Path string   `json:"path"`
	Verb string   `json:"verb"` // makes, changes or removes
	Adds string   `json:"adds"`
	Diff []string `json:"diff"` // lines that begin with a space, + or -; "…" replaces omitted lines
}
