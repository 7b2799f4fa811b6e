package worker

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/platform/shellenv"
)

const (
	// otherStart is how long a process waits for another one's start of a broker. It is
	// shorter than the caller's timeout, because a suspended process keeps its lock.
	otherStart     = 3 * time.Second
	otherStartPoll = 20 * time.Millisecond
)

// StartBroker returns a starter of brokers that outlive this process. If several processes
// lose their broker, one starts another and the others wait for it (MSG-01). The starting
// process locks the home's folder, so it writes nothing if no broker can serve.
//
// The starter fails with Unavailable inside a delegated job, whose end would end the broker,
// and with Denied in a demo's home, which is removed with the demo. It fails with the error of
// CheckHome if no broker can serve, and with Storage if the program cannot run.
func (p Program) StartBroker() ipc.Starter {
	var tooLong atomic.Bool // another process kept the lock for otherStart
	return func(ctx context.Context) (<-chan struct{}, error) {
		if name := p.Getenv(sandbox.JobVariable); name != "" {
			return nil, bridge.Errorf(bridge.Unavailable, "Bridge is not running for this home, and %s, a delegated job, starts none", name)
		}
		if config.IsDemo(p.Home) {
			return nil, bridge.Errorf(bridge.Denied, "no broker is running for %s: it is the home of a demo, which has ended", p.Home.Dir())
		}
		lock, err := disk.TryLock(p.Home.Dir())
		if errors.Is(err, disk.ErrLocked) && !tooLong.Swap(false) {
			return p.otherStart(ctx, &tooLong), nil
		}
		// After another error this process starts one without a lock.
		ended, err := p.start()
		if err != nil {
			return nil, errors.Join(err, lock.Release())
		}
		go func() {
			select {
			case <-ended:
			case <-ctx.Done():
			}
			_ = lock.Release() // closes a file that was never written
		}()
		return ended, nil
	}
}

// start starts a broker and returns a channel that closes when the broker has ended.
func (p Program) start() (<-chan struct{}, error) {
	if err := p.CheckHome(context.Background(), p.Home); err != nil {
		return nil, err
	}
	started, err := proc.StartDetached(proc.Command{
		Path: p.Console, Args: []string{"serve", "--background", "--home", p.Home.Dir()}, Dir: p.Home.Dir(), LogFile: p.Home.Log() + ".start",
		Env: shellenv.Broker(os.Environ()), // it also serves other projects than this one
	})
	if err != nil {
		return nil, bridge.Errorf(bridge.Storage, "a broker could not be started: %w", err)
	}
	return started.Done(), nil
}

// otherStart returns a channel that closes when no process is starting a broker any
// more, or after otherStart; then it sets tooLong.
func (p Program) otherStart(ctx context.Context, tooLong *atomic.Bool) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		waiting, cancel := context.WithTimeout(ctx, otherStart)
		defer cancel()
		for ipc.Pause(waiting, otherStartPoll) {
			if locked, err := disk.IsLocked(p.Home.Dir()); err != nil || !locked {
				return
			}
		}
		tooLong.Store(ctx.Err() == nil)
	}()
	return over
}
