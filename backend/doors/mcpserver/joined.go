package mcpserver

import (
	"os"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

func ownPID() int { return os.Getpid() }

// joined is what the broker last said about this session.
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

// became notes which session this process turned out to be part of, and whether
// hooks report from it.
func (j *joined) became(session api.Registered) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answer.ID, j.answer.Hooks = session.ID, j.answer.Hooks || session.Hooks
}

// left notes that this process is no longer part of the session, if it was.
func (j *joined) left(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.answer.ID == id {
		j.answer.ID = ""
	}
}

// hooks reports whether hooks ever reported from the session: they are the
// host's, and stay over a broker restart.
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

// kinds returns the agents that this PC has, nil where that is not known.
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
