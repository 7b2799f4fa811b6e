package app

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/daemon"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// link keeps the app connected to the home's broker, and makes this process that
// broker where no other is (DSK-01).
type link struct {
	opts        daemon.Options
	changed     func()      // something may have changed: gather the facts anew
	warn        func(error) // says what is not as it should be
	retrySignal lifecycle.Signal

	brokers sync.WaitGroup // this process's own

	started chan struct{} // closed when a broker is looked for, or there is a reason for none
	begin   sync.Once

	mu          sync.Mutex       // guards below
	reconnector *ipc.Reconnector // nil while the home cannot be used
	reason      error            // why no broker is looked for
	client      *ipc.Client      // the present connection, nil without
	first       bool             // the first attempt to connect has ended
}

func newLink(opts daemon.Options, changed func(), warn func(error)) *link {
	opts.Host = "desktop"
	return &link{opts: opts, changed: changed, warn: warn, retrySignal: lifecycle.NewSignal(), started: make(chan struct{})}
}

// run connects, and connects again, until ctx ends. When it returns this
// process's own broker has ended in order.
func (l *link) run(ctx context.Context) {
	defer l.brokers.Wait()
	target, ok := l.prepare(ctx)
	if !ok {
		return
	}
	_, err := l.startBroker(ctx) // one that sessions started makes room for it
	reconnector := &ipc.Reconnector{
		Target: target,
		Hello:  ipc.Hello{Role: api.RoleDashboard, PID: os.Getpid(), Version: l.opts.Version},
		Start:  func(context.Context) (<-chan struct{}, error) { return l.startBroker(ctx) },
		Joined: l.joined,
		Event:  func(ipc.Event) { l.changed() },
	}
	l.mu.Lock()
	l.reconnector, l.first = reconnector, err != nil && bridge.CodeOf(err) != bridge.Conflict
	l.mu.Unlock()
	l.begin.Do(func() { close(l.started) })
	l.changed()
	reconnector.Run(ctx)
}

// prepareAgain is the pause before an unusable home is looked at again.
const prepareAgain = 4 * time.Second

// prepare makes the home usable, waiting until it is.
func (l *link) prepare(ctx context.Context) (ipc.Target, bool) {
	for ctx.Err() == nil {
		err := l.opts.Home.Ensure()
		if err == nil {
			token, tokenErr := l.opts.Home.Token()
			if tokenErr == nil {
				return ipc.Target{Socket: l.opts.Home.Socket(), Token: string(token)}, true
			}
			err = tokenErr
		}
		l.mu.Lock()
		l.reason, l.first = err, true
		l.mu.Unlock()
		l.begin.Do(func() { close(l.started) })
		l.changed()
		select {
		case <-time.After(prepareAgain):
		case <-l.retrySignal:
		case <-ctx.Done():
		}
	}
	return ipc.Target{}, false
}

// retry looks at once again at what failed.
func (l *link) retry() {
	l.retrySignal.Notify()
}

// startBroker makes this process the home's broker and returns a channel that is
// closed at its end. Where another is the broker the code is Conflict. A port in
// use does not keep Bridge from working: it takes a free one instead and says so.
func (l *link) startBroker(ctx context.Context) (<-chan struct{}, error) {
	running, err := daemon.Start(ctx, l.opts)
	if bridge.CodeOf(err) == bridge.Conflict {
		free, elsewhere := 0, l.opts
		elsewhere.Port = &free
		if running, err = daemon.Start(ctx, elsewhere); err == nil {
			l.warn(fmt.Errorf("the port that the settings ask for is in use by another program: the dashboard is at %s until the next start", running.URL()))
		}
	}
	if err != nil {
		return nil, err
	}
	l.opts.Log.Info("ready", "url", running.URL(), "host", l.opts.Host, "pid", os.Getpid(), "version", l.opts.Version)
	ended := make(chan struct{})
	l.brokers.Go(func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-running.Done():
		}
		if err := running.Close(); err != nil {
			l.opts.Log.Error("the broker did not end in order", "err", err)
		}
	})
	return ended, nil
}

// joined is called with each new connection.
func (l *link) joined(ctx context.Context, client *ipc.Client) error {
	if err := client.Subscribe(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.client, l.first = client, true
	l.mu.Unlock()
	l.changed()
	go func() {
		<-client.Done()
		l.mu.Lock()
		if l.client == client {
			l.client = nil
		}
		l.mu.Unlock()
		l.changed()
	}()
	return nil
}

// reach returns the connection, waiting for one as long as ctx lets it.
func (l *link) reach(ctx context.Context) (*ipc.Client, error) {
	select {
	case <-l.started:
	case <-ctx.Done():
		return nil, bridge.Errorf(bridge.Unavailable, "Bridge is starting")
	}
	l.mu.Lock()
	reconnector, reason := l.reconnector, l.reason
	l.mu.Unlock()
	if reconnector == nil {
		return nil, reason
	}
	return reconnector.Client(ctx)
}

// ticket brings an address that opens the dashboard once (AUT-04).
func (l *link) ticket(ctx context.Context) (string, error) {
	client, err := l.reach(ctx)
	if err != nil {
		return "", err
	}
	return client.Ticket(ctx)
}

// entry returns what to start the owner's browser with.
func (l *link) entry(ctx context.Context) (string, error) {
	client, err := l.reach(ctx)
	if err != nil {
		return "", err
	}
	return client.Entry(ctx)
}

// lookPatience bounds how long the facts wait for a broker or its answer.
const lookPatience = 2 * time.Second

// look fills in what the broker knows.
func (l *link) look(ctx context.Context, f *Facts) {
	l.mu.Lock()
	client, first := l.client, l.first
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if client == nil {
		f.Starting = !first
		f.Problem = l.problem(ctx)
		return
	}
	status, err := client.Status(ctx)
	if err != nil {
		f.Problem = err.Error()
		return
	}
	f.URL, f.Sessions = status.URL, len(status.Peers)
	for _, peer := range status.Peers {
		if peer.State == "busy" {
			f.Busy++
		}
	}
	f.Jobs = jobsOf(ctx, client)
	if known, err := client.Needs(ctx); err == nil {
		f.Known = &known
	}
}

// jobsOf returns the delegated jobs, none if jobs are not enabled, and nil if they are unknown.
func jobsOf(ctx context.Context, client *ipc.Client) []Job {
	result, err := client.Jobs(ctx, api.Caller{})
	if err != nil && bridge.CodeOf(err) != bridge.Unsupported {
		return nil
	}
	jobs := make([]Job, len(result.Jobs))
	for i, view := range result.Jobs {
		jobs[i] = Job{Name: view.Job, State: view.Status}
		if view.EndedAt > 0 {
			jobs[i].EndedAt = time.UnixMilli(view.EndedAt)
		}
	}
	return jobs
}

// problem says why there is no broker now.
func (l *link) problem(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond) // what is known, not what comes
	defer cancel()
	if _, err := l.reach(ctx); err != nil {
		return err.Error()
	}
	return "connecting"
}
