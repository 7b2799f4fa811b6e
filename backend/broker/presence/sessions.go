package presence

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// Register makes a connection part of the session that args describe. provisional is set
// if there is none yet: the first call with an identity decides.
func (p *Presence) Register(l *Link, args api.Register) (s *session.Session, provisional bool) {
	chain := above(l.Conn)
	args, host := p.withHost(l, args, chain)
	seen := terminals{p}.look(args)
	var server, agent proc.Named
	if len(chain) > 0 {
		server = proc.Name(chain[0].PID)
	}
	if args.HostKnown && len(chain) > 0 {
		agent = proc.Name(args.AgentPID)
	}
	p.Lock()
	defer p.Unlock()
	l.Host, l.above, l.server, l.agent = host, chain, server, agent
	if args.Runner {
		return p.placeJobLocked(l, args), false
	}
	l.Leases.Keep(args.Leases)
	if l.Identity == nil || l.Conn.Hello().Role != api.RolePlugin {
		l.Identity = &args
	}
	return p.placeLocked(l, args, terminals{p}.beginLocked(l, args, seen))
}

// placeJobLocked makes a connection part of the session of a delegated job, which only
// its name identifies. It ignores what the job's process states of other sessions and of
// earlier ids (JOB-11).
func (p *Presence) placeJobLocked(l *Link, args api.Register) *session.Session {
	l.Job, l.Identity = args.Name, &args
	id, known := p.Roster.IDOf(args.Name)
	s, live := p.Roster.Get(id)
	if live && s.Host != session.HostRunner {
		known, live = false, false // a session had that name before the job existed
	}
	if !known {
		id = uuid.NewString()
	}
	if !live {
		s = p.newSession(args, id)
		p.joinLocked(s, args.Name)
	}
	l.Leases.Keep(args.Leases)
	p.attachLocked(l, s)
	return s
}

func (p *Presence) newSession(args api.Register, id string) *session.Session {
	now := p.opts.Now().UnixMilli()
	since, activity := now, session.Activity{Busy: args.Busy}
	if args.Since > 0 && args.Since < now {
		since = args.Since
	}
	if args.Hooks && args.Previous != "" {
		activity.UnknownSince = now
	}
	return &session.Session{
		ID: id, Kind: args.Kind, Cwd: args.Cwd, AgentPID: args.AgentPID, Since: since, Activity: activity,
		Host: args.Host(), Channel: args.Channel, HooksSeen: args.Hooks, Wake: p.opts.wakePolicy(args),
	}
}

// withHost returns a client's registration with its agent's process as this process sees
// it. host is the process that the connection belongs to: the recognised agent, else the
// client itself. A server may stay connected a moment longer than its agent runs, and
// reconnect to the next broker. Then host is an agent that has ended.
func (p *Presence) withHost(l *Link, stated api.Register, chain []proc.Process) (args api.Register, host proc.Named) {
	args, statedPID := stated, l.Conn.Hello().PID
	if stated.HostKnown {
		statedPID = stated.AgentPID
	}
	if !stated.Runner {
		args = withAgent(chain, stated)
	}
	known := proc.Known(stated.Process, statedPID)
	switch {
	case sharesNumbers(l.Conn) && (len(chain) == 0 || stated.HostKnown && args.AgentPID != stated.AgentPID && known.Ended()):
		args.AgentPID, args.HostKnown = 0, false
		return args, known
	case len(chain) == 0: // no other connection can refer to this process
		return args, proc.Named{Name: fmt.Sprintf("unseen:%d", l.Mod.Number), Since: p.opts.Now().UnixMilli()}
	case args.HostKnown:
		return args, proc.Known(args.Process, args.AgentPID)
	default:
		return args, proc.Known(args.Process, chain[0].PID)
	}
}

// wakePolicy returns the policy that the session advertises, else the owner's settings.
// Only the owner sets how often agents may wake it.
func (o Options) wakePolicy(args api.Register) session.Policy {
	policy := session.Policy{
		WakeOnDirect: true, MaxHops: bridge.DefaultMaxHops, WakesPerHour: bridge.DefaultWakesPerHour, BetweenWakes: bridge.DefaultBetweenWakes,
	}
	settings, err := o.Settings()
	if err != nil {
		o.Log.Warn("config.json is not used", "err", err)
	} else {
		policy = session.Policy{
			AutoWake: settings.AutoWake, WakeOnDirect: settings.WakeOnDirect, MaxHops: settings.MaxHops,
			WakesPerHour: settings.Mail.WakesPerHour, BetweenWakes: time.Duration(settings.Mail.SecondsBetweenWakes) * time.Second,
		}
	}
	if p := args.WakePrefs; p != nil {
		policy.AutoWake, policy.WakeOnDirect, policy.MaxHops = p.AutoWake, p.WakeOnDirect, p.MaxHops
	}
	return policy
}

// applyPrefsLocked gives the session the auto-wake preference that it chose earlier.
func (p *Presence) applyPrefsLocked(s *session.Session) {
	if enabled, chosen := p.opts.Prefs.Get(s.ID); chosen {
		s.Wake.AutoWake = enabled
	}
}

// SessionOfHook finds the live session of a hook: by its host session id, else by the
// agent process above the hook. A session found by its process learns its host session id
// here. learned is also set if a known session began again in another folder.
func (p *Presence) SessionOfHook(call session.HookCall) (s *session.Session, learned bool) {
	clients := terminals{p}.terminalsOf(call)
	s, learned, off := terminals{p}.sessionOfHook(call, clients)
	if s != nil || off {
		return s, learned
	}
	agent := servers{p}.agentWithoutServer(call)
	p.Lock()
	defer p.Unlock()
	if s, ok := p.Roster.ByHost(call.Kind, call.SessionID); ok {
		return s, false // another hook added it to the roster meanwhile
	}
	s = servers{p}.reviveLocked(call, agent)
	return s, s != nil
}

// sessionOfHook is [Presence.SessionOfHook] without the sessions that have no server. off
// is set if no terminal shows the hook's conversation.
func (p terminals) sessionOfHook(call session.HookCall, clients agent.Terminals) (s *session.Session, learned, off bool) {
	p.Lock()
	defer p.Unlock()
	changed, off := p.hookedLocked(call, clients)
	if off {
		return nil, false, true
	}
	if s, ok := p.Roster.ByHost(call.Kind, call.SessionID); ok {
		return s, s.Relocate(call) || changed, false
	}
	if call.SessionID == "" || call.ChildID != "" {
		return p.onlyOfProcessLocked(call), false, false
	}
	if s := p.onlyOfProcessLocked(call); s != nil && (s.SessionID == "" && call.Event != session.EventEnd || call.Event == session.EventStart && s.Host != session.HostServer) {
		// It was unidentified until now, or the host began another session in this process.
		p.bindLocked(s, call.SessionID)
		s.Relocate(call)
		return s, true, false
	}
	if call.Event == session.EventEnd {
		return nil, false, false
	}
	s, learned = p.promoteLocked(call)
	return s, learned, false
}

// onlyOfProcessLocked returns the session of the agent process above a hook, nil if there
// is none or more than one.
func (p *Presence) onlyOfProcessLocked(call session.HookCall) *session.Session {
	found := p.Roster.ByProcess(call.Kind, call.Ancestors)
	if len(found) != 1 {
		return nil
	}
	return found[0]
}
