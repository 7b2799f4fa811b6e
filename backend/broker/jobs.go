package broker

import (
	"context"
	"encoding/json"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
)

// Delegated serves the operations of delegated jobs in the broker's process.
type Delegated interface {
	Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error)
	// MaySend refuses a message of a job to whom it was not given (JOB-12).
	MaySend(job, to string) error
	// Disconnected is called after the last Handle of a connection.
	Disconnected(conn *ipc.Conn)
}

// Delegate has jobs serve what belongs to them, before anybody connects.
func (b *Broker) Delegate(jobs Delegated) { b.jobs = jobs }

// delegated is an operation that the jobs serve. Where there are none, a runner keeps
// its result until a broker comes that has.
func (b *Broker) delegated(row api.Row) operation {
	return operation{Row: row, serve: func(ctx context.Context, l *link, args json.RawMessage) (any, error) {
		if b.jobs == nil {
			return nil, bridge.Errorf(bridge.Unsupported, "delegated jobs are not enabled: set jobs.enabled in config.json and restart Bridge")
		}
		return b.jobs.Handle(ctx, l.conn, row.Name, args)
	}}
}

// Asker is who asks for something on a connection.
type Asker struct {
	Address bridge.Address
	Cwd     string
	Owner   bool // the owner's command line
	InJob   bool // a job's own session, or a native child
	// Same reports whether a peer id is the asker's, or was.
	Same func(peerID string) bool
}

// Asker finds out who asks on a connection, as for a message that is sent.
func (b *Broker) Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (Asker, error) {
	b.mu.Lock()
	l := b.conns[conn]
	b.mu.Unlock()
	if l == nil {
		return Asker{}, bridge.Errorf(bridge.Unavailable, "the connection has ended")
	}
	var s *session.Session
	var err error
	if conn.Hello().Role == api.RoleOwner {
		if s = b.messages.agentAbove(conn.PeerPID()); s == nil {
			return Asker{Address: bridge.OwnerAddress(), Owner: true}, nil
		}
	} else if s, err = b.sessions.callerOf(ctx, l, caller); err != nil {
		return Asker{}, err
	}
	if err := b.activity.noteActivity(ctx, s, "tool of jobs"); err != nil {
		return Asker{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Asker{
		Address: s.Address(), Cwd: s.Cwd, InJob: s.Host == session.HostRunner || b.children.isChild(caller),
		Same: func(peerID string) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			id, _ := b.boxes.Of(peerID)
			return id == s.ID || b.roster.SameSession(s, peerID)
		},
	}, nil
}

// Deliver stores a message durably for the session with that peer id, once however
// often it is asked.
func (b *Broker) Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error {
	args.Again = true
	_, err := b.messages.store(ctx, from, args, func() ([]session.Recipient, error) {
		if id, box := b.boxes.Of(peerID); box != nil {
			peerID = id
		}
		to, err := b.roster.ByID(peerID)
		if err != nil { // nobody has that id any more: it waits under it
			to = session.Recipient{ID: peerID, Name: args.To, Direct: true}
		}
		return []session.Recipient{to}, nil
	})
	return err
}

// Changed tells everyone who watches that jobs changed.
func (b *Broker) Changed() { b.changed() }
