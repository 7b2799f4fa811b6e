//go:build !windows

package ipc

import (
	"context"
	"fmt"
	"net"
	"os"
)

// Listen binds the home's socket, accessible only to its owner. The caller holds
// the election lock, so an existing socket is a dead broker's, and Listen replaces
// it. It fails if the socket cannot be replaced, bound or protected.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("replace the left-over socket %s: %w", path, err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close() // the first error is the one to report
		return nil, fmt.Errorf("protect the socket %s: %w", path, err)
	}
	return listener, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", path)
}
