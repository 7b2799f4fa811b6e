package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/check"
)

// Control executes the owner's actions on one service.
type Control struct {
	Service Service
	Manager Manager
	// Broker returns the status of the home's broker, or nil without one.
	Broker func(ctx context.Context) (*api.Status, error)
}

// Report is the state of a service and the broker of its home.
type Report struct {
	Service string `json:"service"`
	System  bool   `json:"system"`
	Account string `json:"account"`
	Home    string `json:"home"`
	Status
	// Broker is the home's broker. It is nil without one, or if the home belongs to
	// another account, whose broker answers only that account.
	Broker *api.Status `json:"broker"`
}

// serves reports whether the service's own process is the home's broker.
func (r Report) serves() bool { return r.Broker != nil && r.Broker.Host == Host }

// waits reports whether the service runs and waits for another broker, which a
// person started.
func (r Report) waits() bool {
	return r.State == Running && r.Broker != nil && r.Broker.Host != Host && r.Broker.Host != broker.HostBackground
}

// Install writes the service and returns descriptions of the written files. It fails with
// Denied without the rights, with Conflict if the service is installed already, and if the
// service manager refuses it.
func (c Control) Install(ctx context.Context) ([]string, error) {
	if err := c.Manager.MayChange(); err != nil {
		return nil, err
	}
	status, err := c.Manager.Status(ctx)
	if err != nil {
		return nil, err
	}
	if status.Installed {
		return nil, bridge.Errorf(bridge.Conflict, "the service %s is installed already; `bridge service uninstall` removes it", c.Service.Name)
	}
	lines, err := c.Manager.Install(ctx)
	if err != nil {
		return nil, err
	}
	return append(lines, "Start it now with `"+c.Service.Command("start")+"`."), nil
}

// Uninstall stops the service and removes the files of Install. It fails with Denied without
// the rights, with NotFound if the service is not installed, and if the service manager cannot
// stop it.
func (c Control) Uninstall(ctx context.Context) ([]string, error) {
	if _, err := c.change(ctx); err != nil {
		return nil, err
	}
	lines, err := c.Manager.Uninstall(ctx)
	if err != nil {
		return nil, err
	}
	return append(lines, "Your messages and decisions are kept in "+c.Service.Home.Dir()+"."), nil
}

// change returns the status of an existing service. It fails for users who may not
// change it.
func (c Control) change(ctx context.Context) (Status, error) {
	if err := c.Manager.MayChange(); err != nil {
		return Status{}, err
	}
	status, err := c.Manager.Status(ctx)
	if err == nil && !status.Installed {
		err = bridge.Errorf(bridge.NotFound, "the service %s is not installed; `%s` does that", c.Service.Name, c.Service.Command("install"))
	}
	return status, err
}

// Start starts the service and returns its state. It fails with Denied without the rights, and
// with NotFound if the service is not installed. It fails with check.ErrLost if the store of
// this account's home is lost.
func (c Control) Start(ctx context.Context) (Report, error) { return c.bringUp(ctx, c.Manager.Start) }

// Restart restarts the service and returns its state. It fails as Start does.
func (c Control) Restart(ctx context.Context) (Report, error) {
	return c.bringUp(ctx, c.Manager.Restart)
}

func (c Control) bringUp(ctx context.Context, start func(context.Context) error) (Report, error) {
	if _, err := c.change(ctx); err != nil {
		return Report{}, err
	}
	if c.Service.IsMine() {
		if _, err := check.HasStore(ctx, c.Service.Home); errors.Is(err, check.ErrLost) {
			return Report{}, err
		}
	}
	if err := start(ctx); err != nil {
		return Report{}, err
	}
	return c.await(ctx)
}

// startPatience is how long a start observes the service.
const startPatience = 30 * time.Second

// The interval of checks on the account's own service, and the time another
// account's service has to fail.
const (
	startPause   = 100 * time.Millisecond
	foreignPause = 2 * time.Second
)

// await waits until the service serves, waits for another broker, or has failed.
// For another account's service it only knows the manager's status.
func (c Control) await(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	isMine, pause := c.Service.IsMine(), startPause
	if !isMine {
		pause = foreignPause
	}
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		report, err := c.Report(context.WithoutCancel(ctx))
		settled := report.serves() || report.waits() || report.State == Failed || report.State == Stopped || !isMine
		if err != nil || settled || ctx.Err() != nil {
			return report, err
		}
	}
}

// Stop ends the service until the next login or boot, and returns that as text. It fails with
// Denied without the rights, and with NotFound if the service is not installed. A stopped
// service is no error.
func (c Control) Stop(ctx context.Context) ([]string, error) {
	status, err := c.change(ctx)
	if err != nil {
		return nil, err
	}
	if status.State == Stopped {
		return []string{"The service " + c.Service.Name + " did not run."}, nil
	}
	if err := c.Manager.Stop(ctx); err != nil {
		return nil, err
	}
	return []string{"The service " + c.Service.Name + " is stopped. A session that needs a broker starts one in the background."}, nil
}

// Report returns the state of the service. It does not query another account's broker. It fails
// if the service manager or the broker cannot be queried.
func (c Control) Report(ctx context.Context) (Report, error) {
	s := c.Service
	status, err := c.Manager.Status(ctx)
	report := Report{Service: s.Name, System: s.System, Account: s.Account, Home: s.Home.Dir(), Status: status}
	if err != nil || !s.IsMine() {
		return report, err
	}
	report.Broker, err = c.Broker(ctx)
	return report, err
}

// LogLines returns the last lines of the broker's log, which rotation keeps small. It fails
// with NotFound if there is no log yet, and if the log cannot be read.
func (s Service) LogLines(count int) ([]string, error) {
	lines, err := lastLines(s.Home.Log(), count)
	switch {
	case err == nil:
		return lines, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the log: %w", err)
	}
	if _, err := s.Manager(); err != nil {
		return nil, bridge.Errorf(bridge.NotFound, "no broker has written %s yet", s.Home.Log())
	}
	return nil, bridge.Errorf(bridge.NotFound, "no broker has written %s yet; %s may know why", s.Home.Log(), s.Journal())
}

func lastLines(path string, count int) ([]string, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(bytes.TrimRight(raw, "\n")), "\n")
	return lines[max(0, len(lines)-count):], nil
}

// Text returns a report for people.
func (s Service) Text(r Report) string {
	var b strings.Builder
	if !r.Installed {
		fmt.Fprintf(&b, "Service  %s is not installed; `%s` does that\n", s.Name, s.Command("install"))
	} else {
		starts := "does not start by itself"
		switch {
		case r.Automatic && s.System:
			starts = "starts with the machine"
		case r.Automatic:
			starts = "starts when you log in"
		}
		fmt.Fprintf(&b, "Service  %s, account %s, %s\n", s.Name, s.Account, starts)
		state := r.State
		if r.PID > 0 {
			state += fmt.Sprintf(", process %d", r.PID)
		}
		fmt.Fprintf(&b, "State    %s\n", state)
	}
	fmt.Fprintf(&b, "Broker   %s\n", s.brokerText(r))
	fmt.Fprintf(&b, "Home     %s\n", r.Home)
	if r.File != "" && r.Installed {
		fmt.Fprintf(&b, "File     %s\n", r.File)
	}
	if r.Installed && r.State != Running {
		fmt.Fprintf(&b, "Why      `%s` shows what it said, %s what the system saw\n", s.Command("logs"), s.Journal())
	}
	return b.String()
}

// brokerText describes the broker of the home.
func (s Service) brokerText(r Report) string {
	switch {
	case !s.IsMine():
		return "only " + s.Account + " may ask it: run this as that account"
	case r.Broker == nil:
		return "none serves this home"
	case r.serves():
		return fmt.Sprintf("this service, version %s, %s", r.Broker.Version, r.Broker.URL)
	case r.waits():
		return fmt.Sprintf("process %d (%s) serves this home; the service waits and takes over when that one ends", r.Broker.PID, r.Broker.Host)
	default:
		return fmt.Sprintf("process %d (%s) serves this home", r.Broker.PID, r.Broker.Host)
	}
}
