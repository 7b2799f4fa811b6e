package broker

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Delegated serves the operations of delegated jobs in the broker's process.
type Delegated interface {
	mux.Part
	// Approve answers a job's request by the owner's command.
	Approve(ctx context.Context, conn *ipc.Conn, args api.ApproveArgs) (job.Approval, error)
	// JobOf returns the name of the running job that a process is part of, "" for none.
	// It fails with Denied if this cannot be determined.
	JobOf(process job.Process) (string, error)
	// Prove fails unless token proves that the caller is that job while the job runs.
	Prove(job, token string) error
	// MaySend refuses a job's message to a recipient that the job was not given (JOB-12).
	MaySend(job, recipient string) error
	// Disconnected is called after the last operation of a connection.
	Disconnected(conn *ipc.Conn)
}

// Delegate registers the operations of delegated jobs, before the first connection.
// Without jobs they are refused, and a runner keeps its result for a later broker.
func (b *Broker) Delegate(jobs Delegated) {
	b.jobs = jobs
	jobs.Register(b.mux)
}

// insideOf returns the job that a new connection comes from inside of, "" for none. A job
// may use Bridge only by its own session. It fails with Denied for any other role of a
// job's process. Thus a job cannot pose as another session's hook or as the owner
// (JOB-11).
func (b *Broker) insideOf(conn *ipc.Conn) (string, error) {
	if b.jobs == nil {
		return "", nil
	}
	name, err := b.jobs.JobOf(conn.Peer())
	if err == nil && name != "" && conn.Hello().Role != api.RoleSession {
		err = bridge.Errorf(bridge.Denied, "this process is part of %s, a delegated job: it has Bridge's tools for jobs, and nothing else", name)
	}
	return name, err
}

// Vouches reports whether a caller without a token is part of a delegated job. A job of a
// paired PC cannot read the token, and proves itself by another secret.
func (b *Broker) Vouches(conn *ipc.Conn) bool {
	if b.jobs == nil {
		return false
	}
	name, err := b.jobs.JobOf(conn.Peer())
	return err == nil && name != ""
}

// checkJob fails with Denied if a process of a job registers as anything but that job. It
// also fails if any other process registers as a job.
func (p *sessions) checkJob(l *link, args api.Register) error {
	inside, name := p.JobBehind(l), args.Name
	if inside == "" && !args.Runner && !job.IsName(name) {
		return nil
	}
	switch {
	case inside != "" && (!args.Runner || name != inside):
		return bridge.Errorf(bridge.Denied, "this process is part of %s, a delegated job, and can be no other session", inside)
	case !args.Runner || !job.IsName(name) || l.Conn.Hello().Role != api.RoleSession:
		return bridge.Errorf(bridge.Denied, "%q is for the delegated job of that name alone", name)
	case p.jobs == nil:
		return errNoJobs
	}
	return p.jobs.Prove(name, args.JobToken)
}

var errNoJobs = bridge.Errorf(bridge.Unsupported, "delegated jobs are not enabled: set jobs.enabled in config.json and restart Bridge")

// JobOf returns the name of the job that a connection speaks for, "" for none.
func (b *Broker) JobOf(conn *ipc.Conn) string {
	if l := b.Link(conn); l != nil {
		return b.JobBehind(l)
	}
	return ""
}

// Asker identifies the caller of a request on a connection.
type Asker = presence.Asker

// Asker identifies the caller on a connection, as for a message that is sent.
func (b *Broker) Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (Asker, error) {
	l := b.Link(conn)
	if l == nil {
		return Asker{}, bridge.Errorf(bridge.Unavailable, "the connection has ended")
	}
	var s *session.Session
	var err error
	if role := conn.Hello().Role; role == api.RoleOwner || role == api.RoleDashboard {
		s = b.AgentAbove(conn.PeerPID())
		if s == nil && role == api.RoleOwner { // any program may have started the desktop app
			_, err = b.Owner(conn)
		}
		if err != nil {
			return Asker{}, err
		}
		if s == nil {
			return Asker{Address: bridge.OwnerAddress(), Owner: true}, nil
		}
	} else if s, err = b.sessions.callerOf(ctx, l, caller); err != nil {
		return Asker{}, err
	}
	if err := b.activity.noteActivity(ctx, s, "tool of jobs"); err != nil {
		return Asker{}, err
	}
	b.Lock()
	defer b.Unlock()
	isChild, job := b.children.isChild(caller), ""
	if !isChild {
		job = l.Job
	}
	return Asker{
		Address: s.Address(), Cwd: s.Cwd, InJob: s.Host == session.HostRunner || isChild, Job: job,
		Same: func(peerID string) bool {
			b.Lock()
			defer b.Unlock()
			id, _ := b.Boxes.Of(peerID)
			return id == s.ID || b.Roster.SameSession(s, peerID)
		},
	}, nil
}

// Live returns the address of the connected session with exactly that name or id. It
// fails with NotFound, Unavailable, or Denied for a job's own session.
func (b *Broker) Live(name string) (bridge.Address, error) {
	b.Lock()
	defer b.Unlock()
	found, err := b.Roster.Resolve(name, "")
	if err != nil {
		return bridge.Address{}, err
	}
	s, live := b.Roster.Get(found[0].ID)
	switch {
	case len(found) > 1 || found[0].Name != name && found[0].ID != name:
		return bridge.Address{}, bridge.Errorf(bridge.NotFound, "%q is no session's own name", name)
	case !live:
		return bridge.Address{}, bridge.Errorf(bridge.Unavailable, "%s is not connected", name)
	case s.Host == session.HostRunner:
		return bridge.Address{}, bridge.Errorf(bridge.Denied, "%s is a delegated job", name)
	}
	return s.Address(), nil
}

// Deliver stores a message durably for the session with that peer id, only once for
// repeated calls. If another session has the message and has not read it, Deliver
// reassigns it to this session.
func (b *Broker) Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error {
	known, err := b.GiveOn(ctx, args.MessageID, peerID)
	if known || err != nil {
		return err
	}
	args.Again = true
	_, err = b.messages.store(ctx, from, args, func() ([]session.Recipient, error) {
		if id, box := b.Boxes.Of(peerID); box != nil {
			peerID = id
		}
		recipient, err := b.Roster.ByID(peerID)
		if err != nil { // no session has that id any more: the message waits under it
			recipient = session.Recipient{ID: peerID, Name: args.To, Direct: true}
		}
		return []session.Recipient{recipient}, nil
	})
	return err
}

// GiveOn reassigns a job's unread message to the session with that peer id. It reports
// whether a message with that id exists.
func (b *Broker) GiveOn(ctx context.Context, messageID, peerID string) (known bool, err error) {
	sent, err := b.opts.DB.Sent(ctx, messageID)
	if bridge.CodeOf(err) == bridge.NotFound {
		return false, nil
	}
	if err != nil || len(sent.Deliveries) == 0 {
		return err == nil, err
	}
	delivery := sent.Deliveries[0]
	message, isRead := delivery.Message, delivery.ReadAt != 0 || delivery.Consumed.Happened() || delivery.Answered.Happened()
	before := message.Recipient
	b.Lock()
	for _, id := range []*string{&before, &peerID} {
		if now, box := b.Boxes.Of(*id); box != nil {
			*id = now
		}
	}
	b.Unlock()
	if before == peerID || isRead {
		return true, nil
	}
	if err := b.opts.DB.ReassignMessage(ctx, messageID, message.Recipient, peerID); err != nil {
		return true, err
	}
	message.Recipient = peerID
	b.messages.arrived(ctx, []bridge.Message{message})
	return true, nil
}

// Changed notifies all watchers that jobs changed.
func (b *Broker) Changed() { b.changed() }
