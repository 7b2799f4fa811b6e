package broker

import (
	"context"
	"strings"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/chat"
	"bridge/backend/ipc"
	"bridge/backend/session"
)

// peers lists the live sessions for a tool call (MSG-09).
func (b *Broker) peers(ctx context.Context, l *link, caller ipc.Caller) (ipc.PeersResult, error) {
	result := ipc.PeersResult{}
	if l.identity != nil {
		s, err := b.callerOf(ctx, l, caller)
		if err != nil {
			return ipc.PeersResult{}, err
		}
		if err := b.active(ctx, s, "tool peers"); err != nil {
			return ipc.PeersResult{}, err
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
func (b *Broker) Peers(ctx context.Context) ([]ipc.Peer, error) {
	unread, err := b.opts.DB.UnreadCounts(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	peers := []ipc.Peer{}
	for _, s := range b.roster.Live() {
		peers = append(peers, b.peerLocked(s, unread[s.ID]))
	}
	return peers, nil
}

func (b *Broker) peerLocked(s *session.Session, unread int) ipc.Peer {
	peer := ipc.Peer{
		ID: s.ID, Name: s.Name, Agent: s.Kind, Cwd: s.Cwd, State: "idle", Since: s.Since, Children: []ipc.Child{},
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
		peer.Children = append(peer.Children, ipc.Child{ID: c.ID, Title: c.Title, State: state})
	}
	peer.Transport, peer.Wake, peer.Detail = b.transportLocked(s)
	var problems []string
	if problem := b.boxes[s.ID].wake.problem; problem != "" {
		peer.Wake = ipc.WakeFailed
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
	if s.ChildrenNote != "" {
		peer.Detail += " Its native children are known from its events only: " + s.ChildrenNote + "."
	}
	return peer
}

// transportLocked says in a word and a sentence how mail reaches a session, what
// it can do while the session is idle, and why a better way is not open.
func (b *Broker) transportLocked(s *session.Session) (word string, wake ipc.Wake, detail string) {
	again := "run `bridge install " + string(s.Kind) + "` and start the session again."
	switch {
	case s.Channel:
		return "channel", ipc.WakeOpen, "While it is idle, mail is pushed into the session's channel as it arrives; at work, its hooks hand it over at the next step."
	case s.Plugin:
		return "plugin", ipc.WakeOpen, "Its plugin hands mail over at the next step, and starts a turn when it is idle and the wake policy allows it."
	case !s.HooksSeen && s.Kind == bridge.Codex:
		return "tools only", ipc.WakeNone, "No hook has reported from this session yet: mail waits until it calls inbox. If that stays so, codex may not trust the hooks: " + again
	case !s.HooksSeen:
		return "tools only", ipc.WakeNone, "No hook has reported from this session yet: mail waits until it calls inbox. If that stays so, " + again
	}
	const byHooks = "Its hooks hand mail over at the next tool call, prompt or end of a turn"
	switch {
	case s.Kind == bridge.Antigravity:
		return "hooks", ipc.WakeNone, byHooks + "; it cannot be woken while idle, so mail then waits for its next turn."
	case s.Kind == bridge.Codex && b.boxes[s.ID].wake.problem != "":
		return "hooks", ipc.WakeFailed, byHooks + "; it could not be woken while idle."
	case b.canWakeLocked(s) && s.Kind == bridge.Codex && s.Threads:
		return "hooks", ipc.WakeOpen, byHooks + "; while it is idle, codex's queue wakes it when the wake policy allows it."
	case b.canWakeLocked(s) && s.Kind == bridge.Codex:
		return "hooks", ipc.WakeSlow, byHooks + "; while it is idle, codex's queue wakes it within 10 seconds when the wake policy allows it: " + chat.SeldomQueue + "."
	case b.hasModLocked(s):
		return "mod", ipc.WakeOpen, "Its mod enters your words as prompts of yours when its turn has ended. Mail of other sessions comes by its hooks, at the next tool call, prompt or end of a turn" + b.wakeWordsLocked(s)
	case s.Kind == bridge.Claude && b.canWakeLocked(s):
		return "hooks", ipc.WakeOpen, byHooks + b.wakeWordsLocked(s) + " That holds for your words, too: no mod of Bridge is there to enter them as prompts of yours."
	case b.canWakeLocked(s):
		return "hooks", ipc.WakeOpen, byHooks + b.wakeWordsLocked(s)
	default:
		return "hooks", ipc.WakeNone, byHooks + "; while it is idle, mail waits for its next turn."
	}
}

// wakeWordsLocked ends a sentence on hooks with what they do while the session is
// idle.
func (b *Broker) wakeWordsLocked(s *session.Session) string {
	switch {
	case !b.canWakeLocked(s):
		return "; while it is idle, mail waits for its next turn."
	case s.Kind == bridge.Claude:
		return "; while it is idle, a waiting hook wakes it when the wake policy allows it. " + chat.WakeCaveat
	default:
		return "; while it is idle, a waiting hook wakes it when the wake policy allows it."
	}
}

// status is what the command line and the page show of the broker.
func (b *Broker) status(ctx context.Context, _ *link, _ ipc.Empty) (ipc.Status, error) {
	return b.Status(ctx)
}

// Status is what the broker says of itself at this moment.
func (b *Broker) Status(ctx context.Context) (ipc.Status, error) {
	revision := b.revision.Load() // first: the answer may be newer than it says, never older
	peers, err := b.Peers(ctx)
	if err != nil {
		return ipc.Status{}, err
	}
	status := ipc.Status{
		Version: b.opts.Version, PID: ownPID(), Host: b.opts.Host, Since: b.started.UnixMilli(), URL: b.opts.URL(),
		Schema: b.opts.DB.Version(), Revision: revision, Peers: peers,
	}
	for _, p := range peers {
		status.Unread += p.Unread
	}
	return status, nil
}

// autoWake sets the calling session's own preference.
func (b *Broker) autoWake(ctx context.Context, l *link, args ipc.AutoWakeArgs) (ipc.Empty, error) {
	s, err := b.callerOf(ctx, l, args.Caller)
	if err != nil {
		return ipc.Empty{}, err
	}
	if b.isChild(args.Caller) {
		return ipc.Empty{}, bridge.Errorf(bridge.Denied, "a native child cannot change its parent's wake policy")
	}
	if err := b.prefs.set(b.targetOf(s).ID, args.Enabled); err != nil {
		return ipc.Empty{}, err
	}
	b.mu.Lock()
	s.Wake.AutoWake = args.Enabled
	b.mu.Unlock()
	b.changed()
	return ipc.Empty{}, b.active(ctx, s, "tool auto_wake")
}
