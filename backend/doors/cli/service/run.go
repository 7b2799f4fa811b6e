//go:build linux || windows || darwin

package service

import (
	"context"
	"os"
	"runtime"

	kardianos "github.com/kardianos/service"
)

// Run runs the broker as the system's service manager expects it, until
// the manager ends it or it ends by itself. A person who starts it by hand gets
// the same in the foreground.
func Run(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{run: func() error { return run(ctx) }, cancel: cancel, done: make(chan struct{})}
	manager, err := kardianos.New(p, &kardianos.Config{Name: "bridge", Option: kardianos.KeyValue{
		// The broker hears the signals that end it; what is waited for is its end.
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

// program is the broker as the service manager sees it (kardianos.Interface).
type program struct {
	run    func() error
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	err    error         // what it returned; read after done
}

// Start returns at once, as the manager asks. On Windows nothing but the end of
// the process tells the manager that a broker failed, so that it starts it again.
func (p *program) Start(kardianos.Service) error {
	go func() {
		defer close(p.done)
		p.err = p.run()
		if p.err != nil && runtime.GOOS == "windows" && !kardianos.Interactive() {
			os.Exit(1) // the log says why
		}
	}()
	return nil
}

// Stop ends the broker cleanly and waits for it.
func (p *program) Stop(kardianos.Service) error {
	p.cancel()
	<-p.done
	return nil
}
