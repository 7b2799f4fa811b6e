package broker

import (
	"context"
	"strings"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker/mailbox"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// status is the part of the broker that reports the sessions and how each can be reached.
type status struct {
	*core
	started  time.Time
	versions agent.Versions
}

// peers returns the live sessions for a tool call (MSG-09).
func (p *status) peers(ctx context.Context, l *link, caller api.Caller) (api.PeersResult, error) {
	result := api.PeersResult{}
	if l.Identity != nil {
		s, err := p.sessions.callerOf(ctx, l, caller)
		if err != nil {
			return api.PeersResult{}, err
		}
		if err := p.activity.noteActivity(ctx, s, "tool peers"); err != nil && bridge.CodeOf(err) != bridge.Storage {
			return api.PeersResult{}, err // the list does not need what the store lacks
		}
		p.Lock()
		result.Self = s.Name
		p.Unlock()
	}
	p.idleness.CheckAll()
	if p.pairs != nil && l.Job == "" {
		result.Remote = p.pairs.Sessions(ctx)
	}
	var err error
	result.Peers, _, err = p.all(ctx)
	return result, err
}

// all returns the live sessions, sorted by name, and the counts of their unread mail.
func (p *status) all(ctx context.Context) ([]api.Peer, mailbox.Counts, error) {
	counts, err := mailbox.CountUnread(ctx, p.opts.DB.UnreadCounts)
	if err != nil {
		return nil, counts, err
	}
	p.Lock()
	defer p.Unlock()
	peers := []api.Peer{}
	for _, s := range p.Roster.Live() {
		peers = append(peers, p.peerLocked(s, counts.Of(s.ID)))
	}
	return peers, counts, nil
}

func (p *status) peerLocked(s *session.Session, unread bridge.Count) api.Peer {
	peer := api.Peer{
		ID: s.ID, Name: s.Name, Agent: s.Kind, Cwd: s.Cwd, State: "idle", Since: s.Since, UnknownSince: s.UnknownSince, Children: []api.Child{},
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
		peer.Children = append(peer.Children, api.Child{ID: c.ID, Title: c.Title, State: c.State()})
	}
	now := p.nowMillis()
	if rate := &p.Boxes[s.ID].Rate; rate.Next(s.Wake, now) > now {
		peer.WokenAt, peer.NextWake = rate.Last(), rate.Next(s.Wake, now)
	}
	facts := p.Boxes.Facts(s)
	peer.Transport, peer.Wake, peer.Detail = delivery.Mail(facts)
	var problems []string
	if s.Serverless {
		problems = append(problems, delivery.ServerEnded(s.Kind))
	}
	if problem := p.Boxes[s.ID].Queue.Problem(); problem != "" {
		problems = append(problems, problem)
	}
	version := p.versions.Of(s.Kind)
	if problem := agent.VersionProblem(s.Kind, version); problem != "" {
		problems = append(problems, problem)
	}
	peer.CLI = agent.VersionWords(s.Kind, version)
	if len(problems) > 0 {
		peer.Problem = strings.Join(problems, " ")
		peer.Detail += " " + peer.Problem
	}
	facts.Problem = len(problems) > 0
	peer.Reach = delivery.WordsOf(facts)
	if s.ChildrenNote != "" {
		peer.Detail += " Its native children are known from its events only: " + s.ChildrenNote + "."
	}
	return peer
}

// status returns the broker's status for the command line and the page.
func (p *status) status(ctx context.Context, _ *link, _ api.Empty) (api.Status, error) {
	return p.now(ctx)
}

// now returns the broker's present status.
func (p *status) now(ctx context.Context) (api.Status, error) {
	revision := p.feed.Current() // first: the answer may be newer than its revision, never older
	peers, counts, err := p.all(ctx)
	if err != nil {
		return api.Status{}, err
	}
	status := api.Status{
		Version: p.opts.Version, PID: ownPID(), Host: p.opts.Host, Since: p.started.UnixMilli(), URL: p.opts.URL(),
		Schema: p.opts.DB.Version(), Revision: revision, Peers: peers,
		Proofs: p.opts.Proofs.Summaries(), Unread: counts.Of(""), Unreadable: counts.Unreadable(),
	}
	status.Goroutines, status.HeapBytes = proc.Size()
	for _, p := range peers {
		status.Unread = status.Unread.Plus(p.Unread)
	}
	return status, nil
}
