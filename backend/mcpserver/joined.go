package mcpserver

import (
	"os"
	"sync"

	"bridge/backend/ipc"
)

func ownPID() int { return os.Getpid() }

// joined is what the broker last said about this session.
type joined struct {
	mu     sync.Mutex
	answer ipc.Registered
}

func (j *joined) set(answer ipc.Registered) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if answer.ID == "" {
		answer.ID = j.answer.ID
	}
	j.answer = answer
}

// became notes which session this process turned out to be part of.
func (j *joined) became(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answer.ID = id
}

func (j *joined) id() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer.ID
}

func (j *joined) note() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answer.Note
}
