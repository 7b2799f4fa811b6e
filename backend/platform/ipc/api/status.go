package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// Status is what the broker says of itself.
type Status struct {
	Version  string            `json:"version"`
	PID      int               `json:"pid"`
	Host     string            `json:"host"` // serve, background, desktop, service
	Since    bridge.UnixMillis `json:"since"`
	URL      string            `json:"url"`
	Schema   int               `json:"schema"`
	Revision int64             `json:"revision"`
	Peers    []Peer            `json:"peers"`
	Unread   int               `json:"unread"`

	// Goroutines is the number of goroutines in the broker's process.
	Goroutines int `json:"goroutines"`
	// HeapBytes is what live objects took at the end of the last garbage collection, in bytes.
	HeapBytes uint64 `json:"heapBytes"`
}

// Span is a time from a moment to another, Unix milliseconds; To is 0 while it goes on.
type Span struct{ From, To int64 }

// WorkTimes are the times at which a session was at work, the oldest first. Before
// Whole some may be missing.
type WorkTimes struct {
	Spans []Span
	Whole int64
}

// Work is when the sessions were at work, by peer id, as far as the broker saw it, which
// has looked since Began.
type Work struct {
	Began    int64
	Sessions map[string]WorkTimes
}

// OwnerCalls are the operations of the owner's programs.
type OwnerCalls struct{ link Link }

// Status asks the broker about itself.
func (c OwnerCalls) Status(ctx context.Context) (Status, error) {
	return OpStatus.Call(ctx, c.link, Empty{})
}

// Subscribe asks for RevisionEvents on this connection.
func (c OwnerCalls) Subscribe(ctx context.Context) error {
	_, err := OpSubscribe.Call(ctx, c.link, Empty{})
	return err
}

// Ticket brings a one-time launch address of the dashboard (AUT-04).
func (c OwnerCalls) Ticket(ctx context.Context) (string, error) {
	return OpTicket.Call(ctx, c.link, Empty{})
}

// Entry returns what to start the owner's browser with, an address or a file. It opens
// the dashboard once, within 30 seconds, and holds no key (SEC-01). It fails with
// Unavailable when the broker serves no dashboard.
func (c OwnerCalls) Entry(ctx context.Context) (string, error) {
	return OpEntry.Call(ctx, c.link, Empty{})
}

// LaunchArgs are the arguments of a launch link.
type LaunchArgs struct {
	// New ends the links, tickets and cookies that were given out before.
	New bool `json:"new,omitempty"`
}

// LaunchLink returns an address that opens the dashboard any number of times, until the
// broker ends or another call asks for a new one. It fails with Denied inside an agent's
// session, and with Unavailable when the broker serves no dashboard.
func (c OwnerCalls) LaunchLink(ctx context.Context, args LaunchArgs) (string, error) {
	return OpLaunch.Call(ctx, c.link, args)
}

// Retire asks a background broker to make room for the caller's.
func (c OwnerCalls) Retire(ctx context.Context) error {
	_, err := OpRetire.Call(ctx, c.link, Empty{})
	return err
}

// Show asks the desktop app at the other end to show its window (DSK-02).
func (c OwnerCalls) Show(ctx context.Context) error {
	_, err := OpShow.Call(ctx, c.link, Empty{})
	return err
}
