package mailbox

import (
	"sync"

	"bridge/backend/core/bridge"
)

// MostUnread limits the unread bytes from one sender for a session that is away (SEC-11).
const MostUnread = 64 << 20

// Unread limits what waits unread from each sender for each recipient. It has its own
// lock, because counting is slow.
type Unread struct {
	Most int64 // 0 means MostUnread

	mu         sync.Mutex        // guards allowances
	allowances map[between]int64 // bytes that may be sent before the next count
}

type between struct{ from, to string }

// mostKnown limits the remembered pairs: a forgotten pair is counted again.
const mostKnown = 4096

// Take reserves room for a message, or fails with Busy. count returns the unread bytes.
// Reading only frees room, so Take does not count for each message. The owner's messages
// and those to a live session always have room.
func (u *Unread) Take(m bridge.Message, name string, live bool, count func() (int, error)) error {
	key, size, most := between{m.From.ID, m.Recipient}, int64(len(m.Body)), u.Most
	if live || m.From.ID == bridge.OwnerID {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.allowances, key) // unread mail of a live session is counted once it is away
		return nil
	}
	if most == 0 {
		most = MostUnread
	}
	u.mu.Lock()
	isKnown := u.allowances[key] >= size
	if isKnown {
		u.allowances[key] -= size
	}
	u.mu.Unlock()
	if isKnown {
		return nil
	}
	waiting, err := count()
	if err != nil {
		return err
	}
	remaining := most - int64(waiting) - size
	if remaining < 0 {
		return bridge.Errorf(bridge.Busy, "%s is away and has %s of yours unread, and %s may wait: the message was not sent, so send it when %s has read",
			name, bridge.Size(int64(waiting)), bridge.Size(most), name)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.allowances == nil || len(u.allowances) >= mostKnown {
		u.allowances = map[between]int64{}
	}
	u.allowances[key] = remaining
	return nil
}
