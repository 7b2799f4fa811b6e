package jobfiles

import (
	"sync"

	"bridge/backend/core/chat"
)

// maxHeard bounds the words whose way is remembered; the oldest are forgotten.
const maxHeard = 1_000

// Heard remembers how far words to running jobs came, while this process lives. The
// zero value knows of none.
type Heard struct {
	mu  sync.Mutex // guards below
	by  map[string]Way
	ids []string // the oldest first
}

// Way is how far words came, and since when.
type Way struct {
	State chat.State
	At    int64 // epoch milliseconds
}

// Of tells how far the words of that id came; unconfirmed where nobody remembers.
func (h *Heard) Of(id string) Way {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, has := h.by[id]; has {
		return known
	}
	return Way{State: chat.Unconfirmed}
}

// Note remembers it.
func (h *Heard) Note(id string, now Way) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = map[string]Way{}
	}
	if _, has := h.by[id]; !has {
		if len(h.ids) == maxHeard {
			delete(h.by, h.ids[0])
			h.ids = h.ids[1:]
		}
		h.ids = append(h.ids, id)
	}
	h.by[id] = now
}
