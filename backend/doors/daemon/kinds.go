package daemon

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

const (
	// kindsPatience is how long the registration of a new session waits for the first
	// look: the login shell may have to be asked where the agents are.
	kindsPatience = time.Second
	// kindsAge is the age from which a registration starts a new search.
	kindsAge = time.Minute
)

// kindsHandler adds this PC's agents to the answer of a registration, so a session
// gets only the tools of their jobs (CTX-01).
type kindsHandler struct {
	ipc.Handler
	installed *installed
}

// Handle serves a request as the broker does, and fails as the broker does.
func (h kindsHandler) Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error) {
	answer, err := h.Handler.Handle(ctx, conn, op, args)
	registered, is := answer.(api.Registered)
	if err != nil || !is || op != api.OpRegister.Name {
		return answer, err
	}
	var request api.Register
	_ = json.Unmarshal(args, &request)                                // the broker has decoded it
	registered.Kinds = h.installed.kinds(ctx, request.Previous == "") // others already have their tools
	return registered, nil
}

// installed caches which agents this PC has.
type installed struct {
	find func() []bridge.AgentKind
	now  func() time.Time

	mu    sync.Mutex // guards below
	known []bridge.AgentKind
	at    time.Time
	look  chan struct{} // of the running search, or nil; closed at its end
}

// kinds returns the agents of this PC, or nil if they are unknown. With wait it
// waits a limited time for the first search.
func (i *installed) kinds(ctx context.Context, wait bool) []bridge.AgentKind {
	i.mu.Lock()
	if i.look == nil && (i.at.IsZero() || i.now().Sub(i.at) > kindsAge) {
		i.look = make(chan struct{})
		go i.refresh(i.look)
	}
	known, look := i.known, i.look
	i.mu.Unlock()
	if !wait || look == nil || known != nil {
		return known
	}
	timer := time.NewTimer(kindsPatience)
	defer timer.Stop()
	select {
	case <-look:
	case <-timer.C:
	case <-ctx.Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known
}

func (i *installed) refresh(look chan struct{}) {
	found := i.find()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known, i.at, i.look = found, i.now(), nil
	close(look)
}

// findKinds returns the agents whose programs are found, by the current settings.
func findKinds(d *Daemon) (found []bridge.AgentKind) {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil {
		return nil
	}
	for _, kind := range bridge.Kinds() {
		if _, err := agent.Locate(kind, lookup(d, settings.Bin(kind))); err == nil {
			found = append(found, kind)
		}
	}
	return found
}
