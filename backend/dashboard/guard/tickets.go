package guard

import (
	"crypto/rand"
	"crypto/sha256"
	"net/url"
	"sync"
	"time"
)

// ticketLife is how long a one-time ticket opens the dashboard (AUT-04): long
// enough for a browser to start.
const ticketLife = 30 * time.Second

// maxTickets bounds the tickets that wait: the oldest gives way.
const maxTickets = 64

// Tickets are one-time keys of the dashboard: each opens it once within 30
// seconds (AUT-04). They live in memory and end with the process.
type Tickets struct {
	now func() time.Time

	mu   sync.Mutex // guards below
	live []ticket   // oldest first
}

// ticket keeps a key's hash only: comparing hashes tells nothing of the key.
type ticket struct {
	hash    [sha256.Size]byte
	expires time.Time
}

// NewTickets returns an empty set.
func NewTickets(now func() time.Time) *Tickets { return &Tickets{now: now} }

// Issue makes a ticket.
func (t *Tickets) Issue() string {
	key := rand.Text() // 130 random bits
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.live) == maxTickets {
		t.live = t.live[1:]
	}
	t.live = append(t.live, ticket{sha256.Sum256([]byte(key)), t.now().Add(ticketLife)})
	return key
}

// redeem uses a ticket up and reports whether it was good.
func (t *Tickets) redeem(key string) bool {
	hash := sha256.Sum256([]byte(key))
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, issued := range t.live {
		if issued.hash == hash {
			t.live = append(t.live[:i], t.live[i+1:]...)
			return t.now().Before(issued.expires)
		}
	}
	return false
}

// LaunchPath is the path and query under which a key, ticket or secret, opens
// the dashboard.
func LaunchPath(key string) string { return "/launch?key=" + url.QueryEscape(key) }
