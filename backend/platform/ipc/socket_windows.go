package ipc

import (
	"context"
	"fmt"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"bridge/backend/core/job"
)

// Listen opens the home's named pipe for the current user only. It fails if the
// pipe exists already.
func Listen(name string) (net.Listener, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("find the current user: %w", err)
	}
	listener, err := winio.ListenPipe(name, &winio.PipeConfig{
		// Full access for this user, no access for others, nothing inherited.
		SecurityDescriptor: "D:P(A;;GA;;;" + user.User.Sid.String() + ")",
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	return listener, nil
}

func dial(ctx context.Context, name string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, name)
}

// samePeer returns an empty process: the pipe's security descriptor admits only one user.
func samePeer(net.Conn) (job.Process, error) { return job.Process{}, nil }
