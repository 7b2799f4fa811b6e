package mailbox

import (
	"sync"

	"bridge/backend/core/bridge"
)

// MostUnread is how many bytes of one sender may wait unread for a session that is away
// (SEC-11).
const MostUnread = 64 << 20

// Unread bounds what waits unread from each sender for each recipient. It has a lock of
// its own, because counting takes its time.
type Unread struct {
	Most int64 // 0 is MostUnread

	mu   sync.Mutex        // guards left
	left map[between]int64 // bytes that may be sent before they are counted again
}

type between struct{ from, to string }

// mostKnown bounds the pairs that are remembered: what is forgotten is counted again.
const mostKnown = 4096

// Take takes room for a message, or refuses it with Busy. count tells how many bytes wait
// unread; reading them only makes room, so they are not counted for each message. What the
// owner writes always has room, as has what a live session gets.
func (u *Unread) Take(m bridge.Message, name string, live bool, count func() (int, error)) error {
	key, size, most := between{m.From.ID, m.Recipient}, int64(len(m.Body)), u.Most
	if live || m.From.ID == bridge.OwnerID {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.left, key) // what a live session does not read is counted once it is away
		return nil
	}
	if most == 0 {
		most = MostUnread
	}
	u.mu.Lock()
	isKnown := u.left[key] >= size
	if isKnown {
		u.left[key] -= size
	}
	u.mu.Unlock()
	if isKnown {
		return nil
	}
	waiting, err := count()
	if err != nil {
		return err
	}
	left := most - int64(waiting) - size
	if left < 0 {
		return bridge.Errorf(bridge.Busy, "%s is away and has %s of yours unread, and %s may wait: the message was not sent, so send it when %s has read",
			name, bridge.Size(int64(waiting)), bridge.Size(most), name)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left == nil || len(u.left) >= mostKnown {
		u.left = map[between]int64{}
	}
	u.left[key] = left
	return nil
}
