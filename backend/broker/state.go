package broker

import (
	"context"
	"strings"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/reach"
	"bridge/backend/session"
)

// peers lists the live sessions for a tool call (MSG-09).
func (b *Broker) peers(ctx context.Context, l *link, caller api.Caller) (api.PeersResult, error) {
	result := api.PeersResult{}
	if l.identity != nil {
		s, err := b.callerOf(ctx, l, caller)
		if err != nil {
			return api.PeersResult{}, err
		}
		if err := b.active(ctx, s, "tool peers"); err != nil {
			return api.PeersResult{}, err
		}
		b.mu.Lock()
		result.Self = s.Name
		b.mu.Unlock()
	}
	b.lookIdleEverywhere()
	var err error
	result.Peers, err = b.Peers(ctx)
	return result, err
}

// Peers lists the live sessions by name.
func (b *Broker) Peers(ctx context.Context) ([]api.Peer, error) {
	unread, err := b.opts.DB.UnreadCounts(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	peers := []api.Peer{}
	for _, s := range b.roster.Live() {
		peers = append(peers, b.peerLocked(s, unread[s.ID]))
	}
	return peers, nil
}

func (b *Broker) peerLocked(s *session.Session, unread int) api.Peer {
	peer := api.Peer{
		ID: s.ID, Name: s.Name, Agent: s.Kind, Cwd: s.Cwd, State: "idle", Since: s.Since, Children: []api.Child{},
		AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect, Unread: unread,
	}
	if s.Busy {
		peer.State = "busy"
	}
	if s.SessionID != "" {
		id := s.SessionID
		peer.SessionID = &id
	}
	for _, c := range s.Children {
		state := "busy"
		if c.Done {
			state = "done"
		}
		peer.Children = append(peer.Children, api.Child{ID: c.ID, Title: c.Title, State: state})
	}
	facts := b.factsLocked(s)
	peer.Transport, peer.Wake, peer.Detail = reach.Mail(facts)
	var problems []string
	if problem := b.boxes[s.ID].Queue.Problem(); problem != "" {
		problems = append(problems, problem)
	}
	version := b.versions[s.Kind]
	if problem := agent.VersionProblem(s.Kind, version); problem != "" {
		problems = append(problems, problem)
	}
	peer.CLI = agent.VersionWords(s.Kind, version)
	if len(problems) > 0 {
		peer.Problem = strings.Join(problems, " ")
		peer.Detail += " " + peer.Problem
	}
	facts.Problem = len(problems) > 0
	peer.Reach = reach.WordsOf(facts)
	if s.ChildrenNote != "" {
		peer.Detail += " Its native children are known from its events only: " + s.ChildrenNote + "."
	}
	return peer
}

// factsLocked is what the table of transports asks of a session.
func (b *Broker) factsLocked(s *session.Session) reach.Facts {
	facts := reach.Facts{
		Kind: s.Kind, Name: s.Name, SessionID: s.SessionID, Busy: s.Busy, Channel: s.Channel, Plugin: s.Plugin, Hooks: s.HooksSeen,
		Threads: s.Threads, Mod: b.hasModLocked(s), AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect,
	}
	if box := b.boxes[s.ID]; box != nil {
		facts.Waiting, facts.Failed = box.Hooks.Waits(), box.Queue.Problem() != ""
	}
	return facts
}

// status is what the command line and the page show of the broker.
func (b *Broker) status(ctx context.Context, _ *link, _ api.Empty) (api.Status, error) {
	return b.Status(ctx)
}

// Status is what the broker says of itself at this moment.
func (b *Broker) Status(ctx context.Context) (api.Status, error) {
	revision := b.revision.Load() // first: the answer may be newer than it says, never older
	peers, err := b.Peers(ctx)
	if err != nil {
		return api.Status{}, err
	}
	status := api.Status{
		Version: b.opts.Version, PID: ownPID(), Host: b.opts.Host, Since: b.started.UnixMilli(), URL: b.opts.URL(),
		Schema: b.opts.DB.Version(), Revision: revision, Peers: peers,
	}
	for _, p := range peers {
		status.Unread += p.Unread
	}
	return status, nil
}

// autoWake sets the calling session's own preference.
func (b *Broker) autoWake(ctx context.Context, l *link, args api.AutoWakeArgs) (api.Empty, error) {
	s, err := b.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.Empty{}, err
	}
	if b.isChild(args.Caller) {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "a native child cannot change its parent's wake policy")
	}
	if err := b.prefs.Set(b.targetOf(s).ID, args.Enabled); err != nil {
		return api.Empty{}, err
	}
	b.mu.Lock()
	s.Wake.AutoWake = args.Enabled
	b.mu.Unlock()
	b.changed()
	return api.Empty{}, b.active(ctx, s, "tool auto_wake")
}
