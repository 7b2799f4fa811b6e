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

// Tickets are the keys of the dashboard. They live in memory and end with the process:
// nobody finds one on the disk (SEC-01). A ticket opens the dashboard once within 30
// seconds (AUT-04), the link's key as often as somebody has it.
type Tickets struct {
	now func() time.Time

	mu       sync.Mutex // guards below
	live     []ticket   // oldest first
	link     string
	expected time.Time // until then a browser without a key is let in once
}

// ticket keeps a key's hash only: comparing hashes tells nothing of the key.
type ticket struct {
	hash    [sha256.Size]byte
	expires time.Time
}

// NewTickets returns a set with a link key and no ticket.
func NewTickets(now func() time.Time) *Tickets { return &Tickets{now: now, link: rand.Text()} }

// Link returns the key that opens the dashboard any number of times.
func (t *Tickets) Link() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.link
}

// Renew replaces the link's key and ends all tickets.
func (t *Tickets) Renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.link, t.expected = nil, rand.Text(), time.Time{}
}

// Expect lets one browser in without a key within 30 seconds, if the system says that
// it is this user's: so no key stands on the command line that starts the browser.
func (t *Tickets) Expect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = t.now().Add(ticketLife)
}

// redeemExpected reports whether a browser is expected, and expects none after it.
func (t *Tickets) redeemExpected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	isExpected := t.now().Before(t.expected)
	t.expected = time.Time{}
	return isExpected
}

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

// redeem reports whether a key is good. It uses a ticket up.
func (t *Tickets) redeem(key string) bool {
	hash := sha256.Sum256([]byte(key))
	t.mu.Lock()
	defer t.mu.Unlock()
	if hash == sha256.Sum256([]byte(t.link)) {
		return true
	}
	for i, issued := range t.live {
		if issued.hash == hash {
			t.live = append(t.live[:i], t.live[i+1:]...)
			return t.now().Before(issued.expires)
		}
	}
	return false
}

// EntryPath is the path at which the dashboard lets a browser in.
const EntryPath = "/launch"

// LaunchPath returns the path and query under which a key opens the dashboard.
func LaunchPath(key string) string { return EntryPath + "?key=" + url.QueryEscape(key) }
