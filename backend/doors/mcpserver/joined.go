package mcpserver

import (
	"os"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

func ownPID() int { return os.Getpid() }

// joined is the broker's latest answer about this session.
type joined struct {
	mu     sync.Mutex
	answer api.Registered
}

func (j *joined) set(answer api.Registered) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if answer.ID == "" {
		answer.ID = j.answer.ID
	}
	answer.Hooks = answer.Hooks || j.answer.Hooks
	j.answer = answer
}

// became stores the session that this process belongs to, and whether its hooks
// report.
func (j *joined) became(session api.Registered) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answer.ID, j.answer.Hooks = session.ID, j.answer.Hooks || session.Hooks
}

// left removes the session of this process, if it has that id.
func (j *joined) left(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.answer.ID == id {
		j.answer.ID = ""
	}
}

// hooks reports whether hooks ever reported from the session. They belong to the
// host, so this survives a broker restart.
func (j *joined) hooks() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer.Hooks
}

func (j *joined) id() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer.ID
}

// kinds returns the agents of this PC, or nil if unknown.
func (j *joined) kinds() []bridge.AgentKind {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer.Kinds
}

func (j *joined) note() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer.Note
}
