package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/cli/demo"
	"bridge/backend/config"
	"bridge/backend/daemon"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/proc"
	"bridge/backend/sandbox"
)

// target is the address of the home's broker; the home and its token are made
// when this is the first use.
func (a *App) target(home config.Home) (ipc.Target, error) {
	if err := home.Ensure(); err != nil {
		return ipc.Target{}, err
	}
	token, err := home.Token()
	if err != nil {
		return ipc.Target{}, err
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}, nil
}

// onlyOwner refuses what was started within a job; the broker looks at the process
// tree, too.
func (a *App) onlyOwner(does string) error {
	if name := a.Getenv(sandbox.JobVariable); name != "" {
		return bridge.Errorf(bridge.Denied, "only the owner %s: this was asked for from within %s", does, name)
	}
	return nil
}

// startBackground starts a broker that outlives this process. Where none can
// run, it says why and starts nothing; nor is one started in a demo's home, which goes
// away with the demo. Within a delegated job it starts none: the
// end of the job, which ends all its processes, would end the broker, too.
func (a *App) startBackground(home config.Home) ipc.Starter {
	return func() (<-chan struct{}, error) {
		if name := a.Getenv(sandbox.JobVariable); name != "" {
			return nil, bridge.Errorf(bridge.Unavailable, "no broker is running for this home, and %s, a delegated job, starts none", name)
		}
		if demo.IsHome(home) {
			return nil, bridge.Errorf(bridge.Denied, "no broker is running for %s: it is the home of a demo, which has ended", home.Dir())
		}
		if err := daemon.Check(context.Background(), home, a.Getenv); err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		started, err := proc.StartDetached(proc.Command{
			Path: self, Args: []string{"serve", "--background", "--home", home.Dir()}, Dir: home.Dir(), LogFile: home.Log() + ".start",
		})
		if err != nil {
			return nil, bridge.Errorf(bridge.Storage, "a broker could not be started: %w", err)
		}
		return started.Done(), nil
	}
}

// brokerPatience bounds how long a command waits for the broker's first answer.
const brokerPatience = 5 * time.Second

// dialOwner connects to the broker as the owner. With start, one is started
// where none runs.
func (a *App) dialOwner(ctx context.Context, start bool) (*ipc.Client, config.Home, error) {
	home, err := a.home()
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
		return a.target(home)
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
