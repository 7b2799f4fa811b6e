package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/check"
)

// brokerPatience is the timeout of the broker's first answer to a command.
const brokerPatience = 5 * time.Second

// starting controls where a command starts a broker.
type starting int

const (
	startsNone    starting = iota
	startsToRead           // in an existing home: a command that only reads creates none
	startsToWrite          // also in an empty folder, and in the home that needs no --home
)

// dialOwner connects to the broker as the owner, and starts one if none runs and
// the command may. It fails with NotFound if --home names no folder, and with
// Unavailable if no broker runs.
func (a *App) dialOwner(ctx context.Context, starts starting) (*ipc.Client, config.Home, error) {
	home, err := config.ResolveHome(a.homeFlag, a.Getenv) // only starting a broker creates files there
	if err == nil {
		err = config.CheckContents(home)
	}
	if err != nil {
		return nil, home, err
	}
	start, err := mayStart(home, a.homeFlag != "", starts)
	if err != nil {
		return nil, home, err
	}
	target, err := a.targetOf(home, start)
	if err != nil {
		return nil, home, err
	}
	hello := ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: a.Version}
	var starter ipc.Starter
	if start {
		starter = a.startBackground(home)
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	client, err := ipc.DialOrStart(ctx, target, hello, starter)
	if starter == nil && bridge.CodeOf(err) == bridge.Unavailable && !errors.Is(err, ipc.ErrSilent) && !errors.Is(err, context.DeadlineExceeded) {
		err = bridge.WithCause(bridge.Unavailable, err, noBroker(home))
	}
	return client, home, err
}

// mayStart reports whether a command may start a broker in the home. It fails with NotFound if
// the command would create a home at a mistyped --home. named means that --home is given.
func mayStart(home config.Home, named bool, starts starting) (bool, error) {
	if starts == startsNone || config.HomeExists(home) {
		return starts != startsNone, nil
	}
	if starts == startsToRead {
		return false, nil
	}
	if err := check.RequireHome(home); named && !home.IsDefault() && bridge.CodeOf(err) == bridge.NotFound {
		return false, bridge.Errorf(bridge.NotFound, "%w. `%s` makes one there", err, home.CommandLine("bridge", "serve"))
	}
	return true, nil
}

// noBroker returns the message that no broker runs, with the way to start one.
func noBroker(home config.Home) string {
	if err := check.RequireHome(home); bridge.CodeOf(err) == bridge.NotFound {
		return err.Error()
	}
	return fmt.Sprintf("no broker runs for %s: a session starts one by itself, and so does `%s`", home.Dir(), home.CommandLine("bridge", "open"))
}

// targetOf creates the home only for a command that may start a broker.
func (a *App) targetOf(home config.Home, create bool) (ipc.Target, error) {
	if create {
		return worker.Target(home)
	}
	token, err := home.ExistingToken()
	if bridge.CodeOf(err) == bridge.NotFound {
		return ipc.Target{Socket: home.Socket()}, nil // no bridge has run here yet, so no broker answers
	}
	if err != nil {
		return ipc.Target{}, err
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}, nil
}
