package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// Plugin serves an agent's plugin while the plugin runs. It reads events and
// acknowledgements as JSON lines, and writes answers and mail signals
// (hooks.PluginRequest). It keeps a broker connection and registers each root
// session that the plugin reports.
type Plugin struct {
	opts        Options
	kind        bridge.AgentKind
	reconnector *ipc.Reconnector
	adapter     *hooks.Adapter
	host        proc.Process // the agent's process

	outMu sync.Mutex
	out   *json.Encoder

	mu       sync.Mutex
	sessions map[string]registered    // by host session id
	tails    map[string]chan struct{} // the end of each session's newest line
	leases   map[string]leased        // by lease id: given to the plugin, unacknowledged
	prompts  map[string]*heldPrompt   // by opencode's id: open, according to the plugin
}

// leased is a lease that the plugin holds for a session.
type leased struct {
	session.Lease
	sessionID string
}

// registered is a session that the broker knows.
type registered struct {
	id  string // peer id
	cwd string
	off bool // no terminal shows it: only a prompt registers it again

	since bridge.UnixMillis // when this plugin first registered it
	busy  bool              // a turn is in progress in it
}

// RunPlugin serves until input ends. start starts a background broker.
func RunPlugin(ctx context.Context, opts Options, kind bridge.AgentKind, target ipc.Target, start ipc.Starter, input io.Reader, output io.Writer) error {
	p := &Plugin{
		opts: opts, kind: kind, adapter: hooks.For(kind), out: json.NewEncoder(output), sessions: map[string]registered{}, leases: map[string]leased{}, prompts: map[string]*heldPrompt{}, tails: map[string]chan struct{}{},
	}
	if above := proc.Ancestors(os.Getpid(), 1); len(above) == 1 {
		p.host = above[0]
	}
	p.reconnector = &ipc.Reconnector{
		Target: target,
		Hello:  ipc.Hello{Role: api.RolePlugin, PID: os.Getpid(), Version: opts.Version},
		Start:  start,
		Joined: p.join,
		Event:  p.event,
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.reconnector.Run(ctx) })
	err := p.serve(ctx, &running, input)
	cancel()
	running.Wait()
	return err
}

// serve answers lines until input ends. Lines of one session run in order, so that
// no event overtakes an earlier ack. Different sessions run in parallel.
func (p *Plugin) serve(ctx context.Context, running *sync.WaitGroup, input io.Reader) error {
	lines := bufio.NewReaderSize(input, 64<<10)
	for {
		line, err := readLine(lines, bridge.MaxFrameBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var request hooks.PluginRequest
		if err := json.Unmarshal(line, &request); err != nil {
			p.opts.Log.Warn("a plugin's line is not understood", "err", err)
			continue
		}
		if request.Prompt != nil || request.Settled != nil {
			p.prompted(ctx, running, request)
			continue
		}
		p.inOrder(running, p.keyOf(request), func(before <-chan struct{}) {
			ctx, cancel := context.WithTimeout(ctx, budget) // the plugin waits no longer
			defer cancel()
			select {
			case <-before:
				p.write(p.answer(ctx, request))
			case <-ctx.Done():
				p.opts.Log.Warn("a plugin's event waited too long and is dropped", "event", request.Event)
				<-before
			}
		})
	}
}

// keyOf returns the session that a line belongs to.
func (p *Plugin) keyOf(request hooks.PluginRequest) string {
	if request.Back != "" {
		return p.leaseOf(request.Back).sessionID
	}
	if request.Ack == nil {
		call, err := p.adapter.ParseHook(request.Event, request.Call)
		if err != nil {
			return ""
		}
		return call.SessionID
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for sessionID, known := range p.sessions {
		if known.id == request.Ack.Lease.Recipient {
			return sessionID
		}
	}
	return ""
}

// inOrder runs work on a new goroutine. before closes when all earlier work for the
// same key has ended.
func (p *Plugin) inOrder(running *sync.WaitGroup, key string, work func(before <-chan struct{})) {
	done := make(chan struct{})
	p.mu.Lock()
	before := p.tails[key]
	p.tails[key] = done
	p.mu.Unlock()
	if before == nil {
		ended := make(chan struct{})
		close(ended)
		before = ended
	}
	running.Go(func() {
		defer close(done)
		work(before)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.tails[key] == done {
			delete(p.tails, key)
		}
	})
}

// readLine returns one line without its line break. It fails with TooLarge over
// limitBytes: the rest of the line cannot be trusted to start a line.
func readLine(lines *bufio.Reader, limitBytes int) ([]byte, error) {
	var line []byte
	for {
		part, more, err := lines.ReadLine()
		if err != nil {
			return nil, err
		}
		if line = append(line, part...); len(line) > limitBytes {
			return nil, bridge.Errorf(bridge.TooLarge, "a plugin's line is longer than %s", bridge.Counted(limitBytes, "byte"))
		}
		if !more {
			return line, nil
		}
	}
}

func (p *Plugin) answer(ctx context.Context, request hooks.PluginRequest) hooks.PluginReply {
	switch {
	case request.Ack != nil:
		return hooks.PluginReply{ID: request.ID, Error: words(p.ack(ctx, *request.Ack))}
	case request.Back != "":
		return hooks.PluginReply{ID: request.ID, Error: words(p.nack(ctx, request.Back))}
	}
	call, err := p.adapter.ParseHook(request.Event, request.Call)
	if err != nil {
		return hooks.PluginReply{ID: request.ID, Error: words(err)}
	}
	reply, err := p.report(ctx, call)
	if err != nil {
		p.opts.Log.Warn("a plugin's event was not reported", "event", request.Event, "err", err)
	}
	return hooks.PluginReply{ID: request.ID, Text: reply.Text, Lease: reply.Lease, Error: words(err)}
}

// report registers the session if necessary and passes the event on.
func (p *Plugin) report(ctx context.Context, call session.HookCall) (session.HookReply, error) {
	client, err := p.reconnector.Client(ctx)
	if err != nil {
		return session.HookReply{}, err
	}
	if call.Event == session.EventEnd && call.ChildID == "" {
		return session.HookReply{}, p.leave(ctx, client, call)
	}
	if err := p.ensure(ctx, client, call); err != nil {
		return session.HookReply{}, err
	}
	p.noteTurn(call)
	reply, err := client.Hook(ctx, call)
	if reply.Lease != nil {
		p.mu.Lock()
		p.leases[reply.Lease.ID] = leased{*reply.Lease, call.SessionID}
		p.mu.Unlock()
	}
	return reply, err
}

// noteTurn records whether a turn is in progress, for the next broker.
func (p *Plugin) noteTurn(call session.HookCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.sessions[call.SessionID]
	if !known || call.ChildID != "" {
		return
	}
	r.busy = call.Event.BusyAfter(r.busy)
	p.sessions[call.SessionID] = r
}

// leasesOf returns the leases that the plugin holds for a session. A new broker
// must not lease that mail again.
func (p *Plugin) leasesOf(sessionID string) []session.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	var held []session.Lease
	for _, l := range p.leases {
		if l.sessionID == sessionID {
			held = append(held, l.Lease)
		}
	}
	return held
}

func (p *Plugin) ensure(ctx context.Context, client *ipc.Client, call session.HookCall) error {
	p.mu.Lock()
	r, known := p.sessions[call.SessionID]
	p.mu.Unlock()
	isReturning := r.off && call.Event == session.EventPrompt && call.Prompt != ""
	if call.SessionID == "" || known && !isReturning {
		return nil
	}
	return p.register(ctx, client, call.SessionID, registered{cwd: call.Cwd, since: p.opts.Now().UnixMilli()})
}

func (p *Plugin) register(ctx context.Context, client *ipc.Client, sessionID string, r registered) error {
	answer, err := client.Register(ctx, api.Register{
		Kind: p.kind, Cwd: r.cwd, AgentPID: p.host.PID, HostKnown: true, SessionID: sessionID, Previous: r.id,
		CLIDataDir: p.opts.CLIDataDir, Leases: p.leasesOf(sessionID), Since: r.since, Busy: r.busy,
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[sessionID] = registered{id: answer.ID, cwd: r.cwd, since: r.since, busy: p.sessions[sessionID].busy}
	return nil
}

func (p *Plugin) leave(ctx context.Context, client *ipc.Client, call session.HookCall) error {
	p.mu.Lock()
	known, ok := p.sessions[call.SessionID]
	delete(p.sessions, call.SessionID)
	p.mu.Unlock()
	if !ok {
		return nil
	}
	return client.Leave(ctx, api.Leave{ID: known.id})
}

// join registers every known session with a new broker.
func (p *Plugin) join(ctx context.Context, client *ipc.Client) error {
	p.mu.Lock()
	known := make(map[string]registered, len(p.sessions))
	for id, r := range p.sessions {
		if !r.off {
			known[id] = r
		}
	}
	p.mu.Unlock()
	for id, r := range known {
		if err := p.register(ctx, client, id, r); err != nil {
			return err
		}
	}
	return nil
}

// ack sends an acknowledgement to the broker, or keeps it for the next broker.
func (p *Plugin) ack(ctx context.Context, c hooks.PluginAck) error {
	defer p.forgetLease(c.Lease.ID)
	ack := api.Ack{Lease: c.Lease, Stage: c.Stage, Via: mail.ViaPlugin, Detail: c.Detail}
	err := p.reconnector.Do(ctx, func(client *ipc.Client) error { return client.Ack(ctx, ack) })
	if err == nil {
		return nil
	}
	return (ipc.Journal{Dir: p.opts.Home.ReadJournal()}).Keep(ack, p.opts.Now().UnixMilli())
}

// nack returns undelivered mail: it is offered again.
func (p *Plugin) nack(ctx context.Context, leaseID string) error {
	p.forgetLease(leaseID)
	return p.reconnector.Do(ctx, func(client *ipc.Client) error { return client.Nack(ctx, leaseID) })
}

func (p *Plugin) leaseOf(id string) leased {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases[id]
}

func (p *Plugin) forgetLease(leaseID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, leaseID)
}

// leaves records that no terminal shows a session any more.
func (p *Plugin) leaves(peerID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for sessionID, r := range p.sessions {
		if r.id == peerID {
			r.off = true
			p.sessions[sessionID] = r
		}
	}
}

// event passes a mail signal on to the plugin.
func (p *Plugin) event(event ipc.Event) {
	var leave api.Leave
	if event.Name == api.EventLeft && json.Unmarshal(event.Data, &leave) == nil {
		p.leaves(leave.ID)
		return
	}
	if event.Name == ipc.EventLagged {
		p.signalAll()
		return
	}
	var arrived api.MailEvent
	if event.Name != api.EventMail || json.Unmarshal(event.Data, &arrived) != nil {
		return
	}
	p.write(hooks.PluginPush{Mail: arrived.SessionID, Wake: arrived.Wake})
}

// signalAll replaces dropped signals: each session may have mail that wakes it, and
// the broker decides that on the next request.
func (p *Plugin) signalAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.sessions {
		p.write(hooks.PluginPush{Mail: id, Wake: true})
	}
}

func (p *Plugin) write(line any) {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	if err := p.out.Encode(line); err != nil {
		p.opts.Log.Debug("the plugin does not listen any more", "err", err)
	}
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
