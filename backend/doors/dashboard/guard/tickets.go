package guard

import (
	"crypto/rand"
	"crypto/sha256"
	"net/url"
	"sync"
	"time"
)

// ticketLife is the lifetime of a one-time ticket (AUT-04), long enough for a
// browser to start.
const ticketLife = 30 * time.Second

// maxTickets bounds the unused tickets: a new one replaces the oldest.
const maxTickets = 64

// Tickets holds the dashboard's keys. They are only in memory and end with the
// process, never on the disk (SEC-01). A ticket opens the dashboard once within 30
// seconds (AUT-04); the link's key works any number of times.
type Tickets struct {
	now func() time.Time

	mu       sync.Mutex // guards below
	live     []ticket   // oldest first
	link     string
	expected time.Time // until then one browser without a key is admitted
}

// ticket holds only a key's hash: comparing hashes reveals nothing of the key.
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

// Renew replaces the link's key and revokes all tickets.
func (t *Tickets) Renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.link, t.expected = nil, rand.Text(), time.Time{}
}

// Expect admits one browser without a key within 30 seconds, if the system reports
// that it is this user's. So the command line that starts the browser has no key.
func (t *Tickets) Expect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = t.now().Add(ticketLife)
}

// redeemExpected reports whether a browser is expected, and resets that.
func (t *Tickets) redeemExpected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	isExpected := t.now().Before(t.expected)
	t.expected = time.Time{}
	return isExpected
}

// Issue returns a new ticket.
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

// redeem reports whether a key is valid. It uses up a ticket.
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

// EntryPath is the path at which the dashboard admits a browser.
const EntryPath = "/launch"

// LaunchPath returns the path and query with which a key opens the dashboard.
func LaunchPath(key string) string { return EntryPath + "?key=" + url.QueryEscape(key) }
