package app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/daemon"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/sqlitex"
)

// errShown says that another desktop app of this home runs and was asked to show
// its window.
var errShown = errors.New("another desktop app of this home was shown")

// instance is this process's claim to be the home's only desktop app (DSK-02).
type instance struct {
	version   string
	restarted lifecycle.Signal // the app was started again

	lock     *sqlitex.Lock
	listener net.Listener
	server   *ipc.Server
	serving  sync.WaitGroup
}

const (
	// claimPatience is how long another app may take to answer, or to end.
	claimPatience = 15 * time.Second
	claimPause    = 50 * time.Millisecond
)

// claim takes the home's lock. Each further start of an app then sends restarted. If another app
// has the lock, claim fails with errShown, and asks that app to show itself unless hidden.
func claim(ctx context.Context, opts daemon.Options, hidden bool, restarted lifecycle.Signal) (*instance, error) {
	if err := opts.Home.Ensure(); err != nil {
		return nil, err
	}
	token, err := opts.Home.Token()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	for {
		lock, err := sqlitex.AcquireLock(ctx, opts.Home.Window().Lock)
		if err == nil {
			return listen(opts, string(token), lock, restarted)
		}
		if !errors.Is(err, sqlitex.ErrLocked) {
			return nil, err
		}
		if hidden || showOther(ctx, opts.Home, string(token), opts.Version) == nil {
			return nil, errShown
		}
		if !ipc.Pause(ctx, claimPause) {
			return nil, bridge.Errorf(bridge.Unavailable, "another desktop app of this home runs but does not answer: end it and try again")
		}
	}
}

func showOther(ctx context.Context, home config.Home, token, version string) error {
	target := ipc.Target{Socket: home.Window().Socket, Token: token}
	client, err := ipc.Dial(ctx, target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: version})
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Show(ctx)
}

func listen(opts daemon.Options, token string, lock *sqlitex.Lock, restarted lifecycle.Signal) (*instance, error) {
	i := &instance{version: opts.Version, restarted: restarted, lock: lock}
	var err error
	if i.listener, err = ipc.Listen(opts.Home.Window().Socket); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	i.server = ipc.NewServer(token, i, opts.Log)
	i.serving.Go(func() {
		if err := i.server.Serve(i.listener); err != nil {
			opts.Log.Error("a second start of the desktop app cannot be heard", "err", err)
		}
	})
	return i, nil
}

// Connected, Handle and Disconnected serve a second start (ipc.Handler).
func (i *instance) Connected(conn *ipc.Conn) (ipc.Welcome, error) {
	if err := api.OpShow.CheckCaller(conn.Hello().Role); err != nil {
		return ipc.Welcome{}, err
	}
	return ipc.Welcome{Version: i.version, PID: os.Getpid()}, nil
}

// Handle knows one operation.
func (i *instance) Handle(_ context.Context, _ *ipc.Conn, op string, _ json.RawMessage) (any, error) {
	if op != api.OpShow.Name {
		return nil, bridge.Errorf(bridge.Unsupported, "a desktop app does not serve %q", op)
	}
	i.restarted.Notify()
	return api.Empty{}, nil
}

// Disconnected has nothing to tidy up.
func (i *instance) Disconnected(*ipc.Conn) {}

// Close gives the claim up; the lock last, so that the next app finds the
// endpoint free.
func (i *instance) Close() error {
	err := i.listener.Close()
	i.server.Close()
	i.serving.Wait()
	return errors.Join(err, i.lock.Release())
}
