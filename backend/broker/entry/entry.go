// Package entry serves the operations that return the keys of the dashboard: tickets, the
// launch link, and the address to open in the owner's browser (AUT-04, SEC-01).
package entry

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// Keys creates the keys of a dashboard that is served.
type Keys interface {
	// Ticket returns an address that opens the dashboard once.
	Ticket() string
	// Entry returns an address or a file, without a key, that opens the dashboard once.
	Entry() (string, error)
	// LaunchLink returns an address that opens the dashboard any number of times. With
	// renew it first revokes every key that was issued.
	LaunchLink(renew bool) (string, error)
}

// Options configures the operations. All fields are required.
type Options struct {
	Keys     Keys
	URL      func() string // of the dashboard, "" if none is served
	Presence *presence.Presence
}

// Register serves api.OpTicket, api.OpEntry and api.OpLaunch. Each fails with Unavailable
// if no dashboard is served, and the latter two with Denied inside an agent's session.
func (o Options) Register(m *mux.Mux) {
	mux.HandleLink(m, api.OpTicket, o.ticket)
	mux.HandleLink(m, api.OpEntry, o.entry)
	mux.HandleLink(m, api.OpLaunch, o.launchLink)
}

func (o Options) ticket(context.Context, *presence.Link, api.Empty) (string, error) {
	if o.URL() == "" {
		return "", errNoDashboard
	}
	return o.Keys.Ticket(), nil
}

func (o Options) entry(_ context.Context, l *presence.Link, _ api.Empty) (string, error) {
	if err := o.check(l, "opens the dashboard in a browser"); err != nil {
		return "", err
	}
	return o.Keys.Entry()
}

func (o Options) launchLink(_ context.Context, l *presence.Link, args api.LaunchArgs) (string, error) {
	if err := o.check(l, "is given the dashboard's launch link"); err != nil {
		return "", err
	}
	return o.Keys.LaunchLink(args.New)
}

// check fails with Denied for an agent's session, because only the owner may do this. It
// fails with Unavailable if no dashboard is served.
func (o Options) check(l *presence.Link, does string) error {
	if s := (presence.Callers{Presence: o.Presence}).AgentAbove(l.Conn.PeerPID()); s != nil {
		return bridge.Errorf(bridge.Denied, "only the owner %s: this was asked for from within %s", does, s.Address().Name)
	}
	if o.URL() == "" {
		return errNoDashboard
	}
	return nil
}

var errNoDashboard = bridge.Errorf(bridge.Unavailable, "this broker serves no dashboard; its log says why")
