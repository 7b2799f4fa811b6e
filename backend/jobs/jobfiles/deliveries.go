package jobfiles

import (
	"sync"

	"bridge/backend/core/chat"
)

// maxHeard limits how many delivery states are remembered; the oldest are dropped.
const maxHeard = 1_000

// Deliveries keeps the delivery states of messages to running jobs in memory. The zero value
// is empty.
type Deliveries struct {
	mu   sync.Mutex // guards below
	ways map[string]Way
	ids  []string // the oldest first
}

// Way is the delivery state of a message, and since when.
type Way struct {
	State chat.State
	At    int64 // epoch milliseconds
}

// Of returns the state of the message with that id, or unconfirmed if it is unknown.
func (h *Deliveries) Of(id string) Way {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, has := h.ways[id]; has {
		return known
	}
	return Way{State: chat.Unconfirmed}
}

// Note records the state of a message.
func (h *Deliveries) Note(id string, now Way) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ways == nil {
		h.ways = map[string]Way{}
	}
	if _, has := h.ways[id]; !has {
		if len(h.ids) == maxHeard {
			delete(h.ways, h.ids[0])
			h.ids = h.ids[1:]
		}
		h.ids = append(h.ids, id)
	}
	h.ways[id] = now
}
