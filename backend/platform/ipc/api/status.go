package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
)

// Status is the broker's own state.
type Status struct {
	Version  string            `json:"version"`
	PID      int               `json:"pid"`
	Host     string            `json:"host"` // serve, background, desktop, service
	Since    bridge.UnixMillis `json:"since"`
	URL      string            `json:"url"`
	Schema   int               `json:"schema"`
	Revision int64             `json:"revision"`
	Peers    []Peer            `json:"peers"`
	Unread   bridge.Count      `json:"unread"` // null if the broker cannot read it
	// Unreadable lists what the broker cannot read for this answer, as sentences.
	Unreadable []string `json:"unreadable,omitempty"`

	// Proofs is what is known of the routes into the agents of this PC.
	Proofs []proof.Summary `json:"proofs"`

	// Goroutines is the number of goroutines in the broker's process.
	Goroutines int `json:"goroutines"`
	// HeapBytes is the size of live objects after the last garbage collection, in bytes.
	HeapBytes uint64 `json:"heapBytes"`
}

// Span is a time span in Unix milliseconds; To is 0 while it continues.
type Span struct{ From, To int64 }

// WorkTimes lists the spans in which a session worked, oldest first. Before Whole
// the list may be incomplete.
type WorkTimes struct {
	Spans []Span
	Whole int64
}

// Work holds the sessions' working times by peer id. The broker has observed them
// since Began.
type Work struct {
	Began    int64
	Sessions map[string]WorkTimes
}

// OwnerCalls holds the operations of the owner's programs.
type OwnerCalls struct{ link Link }

// Status returns the broker's own state. It fails if the unread messages cannot be counted in
// the store.
func (c OwnerCalls) Status(ctx context.Context) (Status, error) {
	return OpStatus.Call(ctx, c.link, Empty{})
}

// Subscribe starts RevisionEvents on this connection. It fails with Denied for any role except
// RoleDashboard.
func (c OwnerCalls) Subscribe(ctx context.Context) error {
	_, err := OpSubscribe.Call(ctx, c.link, Empty{})
	return err
}

// Ticket returns a one-time launch address of the dashboard (AUT-04). It fails with Unavailable
// if the broker serves no dashboard.
func (c OwnerCalls) Ticket(ctx context.Context) (string, error) {
	return OpTicket.Call(ctx, c.link, Empty{})
}

// Entry returns an address or a file to open in the owner's browser. It opens the dashboard
// once, within 30 seconds, and holds no key (SEC-01). It fails with Denied inside an agent's
// session, and with Unavailable if the broker serves no dashboard.
func (c OwnerCalls) Entry(ctx context.Context) (string, error) {
	return OpEntry.Call(ctx, c.link, Empty{})
}

// LaunchArgs holds the arguments of a launch link.
type LaunchArgs struct {
	// New revokes the earlier links, tickets and cookies.
	New bool `json:"new,omitempty"`
}

// LaunchLink returns an address that opens the dashboard any number of times, until
// the broker ends or another call requests a new one. It fails with Denied inside
// an agent's session, and with Unavailable if the broker serves no dashboard.
func (c OwnerCalls) LaunchLink(ctx context.Context, args LaunchArgs) (string, error) {
	return OpLaunch.Call(ctx, c.link, args)
}

// Retire asks a background broker to end in favor of the caller's broker. It fails with
// Conflict if that broker does not run in the background.
func (c OwnerCalls) Retire(ctx context.Context) error {
	_, err := OpRetire.Call(ctx, c.link, Empty{})
	return err
}

// Show asks the desktop app at the other end to show its window (DSK-02). It fails with Denied
// at a broker, which does not serve this operation.
func (c OwnerCalls) Show(ctx context.Context) error {
	_, err := OpShow.Call(ctx, c.link, Empty{})
	return err
}
