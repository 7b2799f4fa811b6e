// Package codexthreads puts the permission prompts of codex's threads to their owner, where
// the terminals of codex share its background server (row NED-02): it is a client of
// that server beside them. The terminal's own dialog goes on, the first answer wins, and
// nothing is ever answered that the owner did not decide here.
package codexthreads

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"bridge/backend/agent/appserver"
	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/prompt"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Desk is where prompts are put to the owner; *prompts.Prompts is one.
type Desk interface {
	// Shows reports whether a prompt of that kind becomes a card now.
	Shows(kind bridge.AgentKind) bool
	// Hold makes a card and waits for the answer; an empty one leaves it to the terminal.
	Hold(ctx context.Context, by any, args api.PromptArgs) (api.PromptAnswer, error)
	// Deliver says that codex has the answer, Tell what became of the prompt.
	Deliver(by any, id string) error
	Tell(by any, id string, sign prompt.Sign) error
	// Release ends all that by held.
	Release(by any)
}

// Broker is what is asked of the broker; *broker.Broker is one.
type Broker interface {
	// Threads lists the live sessions that a background server of codex runs.
	Threads() []broker.Thread
	// Watch brings a signal whenever something changed.
	Watch() (changes <-chan struct{}, stop func())
}

// Options says what a Watcher works with. All fields are required but Pace.
type Options struct {
	Broker Broker
	Desk   Desk
	Pace   Pace
	Log    *slog.Logger
}

// Pace is how often is looked whether prompts are wanted.
type Pace struct {
	// Throttle is the least time between two looks, Look the most while there are threads.
	Throttle, Look time.Duration
	// Again is how long a server is left alone that could not be reached.
	Again time.Duration
}

func (p Pace) orUsual() Pace {
	if p == (Pace{}) {
		return Pace{Throttle: 200 * time.Millisecond, Look: 2 * time.Second, Again: 10 * time.Second}
	}
	return p
}

// Watcher watches the background servers of the sessions that there are, as long as the
// owner wants their prompts shown: nothing is connected otherwise.
type Watcher struct {
	opts    Options
	servers map[string]*server // by folder; of Run alone
	running sync.WaitGroup
}

// New watches nothing before Run.
func New(opts Options) *Watcher {
	opts.Pace = opts.Pace.orUsual()
	return &Watcher{opts: opts, servers: map[string]*server{}}
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	changes, stop := w.opts.Broker.Watch()
	defer stop()
	defer w.running.Wait()
	for {
		var again <-chan time.Time // an open page is no change of the broker's
		if w.look(ctx) {
			again = time.After(w.opts.Pace.Look)
		}
		select {
		case <-changes:
		case <-again:
		case <-ctx.Done():
			return
		}
		if !ipc.Pause(ctx, w.opts.Pace.Throttle) {
			return
		}
	}
}

// look connects to the servers that are wanted, and leaves the others. It reports
// whether there are any threads.
func (w *Watcher) look(ctx context.Context) (any bool) {
	folders := map[string]map[string]bool{}
	for _, thread := range w.opts.Broker.Threads() {
		if folders[thread.Folder] == nil {
			folders[thread.Folder] = map[string]bool{}
		}
		folders[thread.Folder][thread.ID] = true
	}
	if len(folders) == 0 && len(w.servers) == 0 {
		return false
	}
	shown := w.opts.Desk.Shows(bridge.Codex)
	for folder, s := range w.servers {
		if s.hasEnded() {
			delete(w.servers, folder)
			continue
		}
		s.look(folders[folder], shown)
	}
	for folder, known := range folders {
		if w.servers[folder] == nil && shown && listens(folder) {
			w.servers[folder] = w.start(ctx, folder, known)
		}
	}
	return true
}

// listens reports whether a background server of that folder may be there.
func listens(folder string) bool {
	info, err := os.Stat(appserver.Socket(folder))
	return err == nil && info.Mode().Type() == os.ModeSocket
}

func (w *Watcher) start(ctx context.Context, folder string, known map[string]bool) *server {
	ctx, leave := context.WithCancel(ctx)
	s := &server{
		opts: w.opts, leave: leave, ended: make(chan struct{}),
		known: known, threads: map[string]*thread{},
	}
	w.running.Go(func() {
		defer close(s.ended)
		defer leave()
		if err := s.serve(ctx, appserver.Socket(folder)); err != nil && ctx.Err() == nil {
			w.opts.Log.Warn("prompts of codex are left to its terminals for now", "folder", folder, "err", err)
			ipc.Pause(ctx, w.opts.Pace.Again)
		}
	})
	return s
}
