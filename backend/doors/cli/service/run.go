//go:build linux || windows || darwin

package service

import (
	"context"
	"os"
	"runtime"

	kardianos "github.com/kardianos/service"
)

// Run runs the broker under the system's service manager, until either ends it. If
// a person starts it, it runs in the foreground. It returns the error of run.
func Run(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{run: func() error { return run(ctx) }, cancel: cancel, done: make(chan struct{})}
	manager, err := kardianos.New(p, &kardianos.Config{Name: "bridge", Option: kardianos.KeyValue{
		// The broker handles the signals that end it; this waits for its end.
		"RunWait": func() { <-p.done },
	}})
	if err != nil {
		return err
	}
	if err := manager.Run(); err != nil {
		return err
	}
	return p.err
}

// program is the broker in the form of kardianos.Interface.
type program struct {
	run    func() error
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	err    error         // the result of run; read after done
}

// Start returns immediately, as the manager requires. On Windows the manager
// notices a failed broker only by the end of the process, and then restarts it.
func (p *program) Start(kardianos.Service) error {
	go func() {
		defer close(p.done)
		p.err = p.run()
		if p.err != nil && runtime.GOOS == "windows" && !kardianos.Interactive() {
			os.Exit(1) // the log has the reason
		}
	}()
	return nil
}

// Stop ends the broker cleanly and waits for it. Its error is always nil.
func (p *program) Stop(kardianos.Service) error {
	p.cancel()
	<-p.done
	return nil
}
