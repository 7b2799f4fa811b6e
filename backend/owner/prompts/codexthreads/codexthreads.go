// Package codexthreads shows the permission prompts of codex threads to their owner
// (row NED-02). It works if the terminals of codex share its background server. It is
// another client of that server. The terminal's dialog continues, and the first answer
// wins. It sends only answers that the owner decided here.
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

// Desk shows prompts to the owner; *prompts.Prompts implements it.
type Desk interface {
	// Shows reports whether a prompt of that kind becomes a card now.
	Shows(kind bridge.AgentKind) bool
	// Hold creates a card and waits for the answer; an empty one leaves it to the terminal.
	Hold(ctx context.Context, asker any, args api.PromptArgs) (api.PromptAnswer, error)
	// Deliver reports that codex has the answer, Tell the outcome of the prompt.
	Deliver(asker any, id string) error
	Report(asker any, id string, sign prompt.Sign) error
	// Release releases all prompts that by holds.
	Release(asker any)
}

// Broker is the part of the broker that Watcher uses; *broker.Broker implements it.
type Broker interface {
	// Threads lists the live sessions that a background server of codex runs.
	Threads() []broker.Thread
	// Watch returns a channel that signals each change.
	Watch() (changes <-chan struct{}, stop func())
}

// Options configures a Watcher. All fields are required but Timing.
type Options struct {
	Broker Broker
	Desk   Desk
	Timing Timing
	Log    *slog.Logger
}

// Timing sets how often Watcher polls whether prompts are wanted.
type Timing struct {
	// Throttle is the shortest time between two polls, PollInterval the longest while there are threads.
	Throttle, PollInterval time.Duration
	// Again is the pause before a retry of an unreachable server.
	Again time.Duration
}

func (p Timing) orUsual() Timing {
	if p == (Timing{}) {
		return Timing{Throttle: 200 * time.Millisecond, PollInterval: 2 * time.Second, Again: 10 * time.Second}
	}
	return p
}

// Watcher watches the background servers of the live sessions while the owner wants
// their prompts shown. Otherwise it connects to none.
type Watcher struct {
	opts    Options
	servers map[string]*server // by folder; only Run uses it
	running sync.WaitGroup
}

// New returns a Watcher that Run starts.
func New(opts Options) *Watcher {
	opts.Timing = opts.Timing.orUsual()
	return &Watcher{opts: opts, servers: map[string]*server{}}
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	changes, stop := w.opts.Broker.Watch()
	defer stop()
	defer w.running.Wait()
	for {
		var nextPoll <-chan time.Time // the broker does not signal an open page
		if w.look(ctx) {
			nextPoll = time.After(w.opts.Timing.PollInterval)
		}
		select {
		case <-changes:
		case <-nextPoll:
		case <-ctx.Done():
			return
		}
		if !ipc.Pause(ctx, w.opts.Timing.Throttle) {
			return
		}
	}
}

// look connects to the wanted servers and disconnects from the others. It reports
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
	showsCards := w.opts.Desk.Shows(bridge.Codex)
	for folder, s := range w.servers {
		if s.hasEnded() {
			delete(w.servers, folder)
			continue
		}
		s.look(folders[folder], showsCards)
	}
	for folder, known := range folders {
		if w.servers[folder] == nil && showsCards && listens(folder) {
			w.servers[folder] = w.start(ctx, folder, known)
		}
	}
	return true
}

// listens reports whether the folder has a socket of a background server.
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
			ipc.Pause(ctx, w.opts.Timing.Again)
		}
	})
	return s
}
