package cli

import (
	"context"
	"os"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/sandbox"
	"bridge/backend/worker"
)

// onlyOwner refuses a command of the owner's (bridge.OwnerCommands), which it is given the
// words of, where it was started within a job; the broker looks at the process tree, too.
func (a *App) onlyOwner(words string) error {
	if name := a.Getenv(sandbox.JobVariable); name != "" {
		return bridge.Errorf(bridge.Denied, "only the owner %s: this was asked for from within %s", bridge.OwnerDoes(words), name)
	}
	return nil
}

// brokerPatience bounds how long a command waits for the broker's first answer.
const brokerPatience = 5 * time.Second

// dialOwner connects to the broker as the owner. With start, one is started
// where none runs.
func (a *App) dialOwner(ctx context.Context, start bool) (*ipc.Client, config.Home, error) {
	home, err := config.ResolveHome(a.homeFlag, a.Getenv) // only with start is something made there
	if err == nil {
		err = config.CheckContents(home)
	}
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
	return client, home, err
}

// targetOf makes the home only for a command that may start a broker.
func (a *App) targetOf(home config.Home, create bool) (ipc.Target, error) {
	if create {
		return worker.Target(home)
	}
	token, err := home.ExistingToken()
	if bridge.CodeOf(err) == bridge.NotFound {
		return ipc.Target{Socket: home.Socket()}, nil // no bridge ran here yet: nobody will answer
	}
	if err != nil {
		return ipc.Target{}, err
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}, nil
}
