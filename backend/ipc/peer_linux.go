package ipc

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// samePeer returns the process at the other end, and an error when it belongs
// to another user (MSG-02).
func samePeer(conn net.Conn) (int, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn() //nolint:errcheck // we listen on Unix sockets only
	if err != nil {
		return 0, fmt.Errorf("look at the socket: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("look at the socket: %w", err)
	}
	if credErr != nil {
		return 0, fmt.Errorf("ask who is at the other end: %w", credErr)
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("the caller is user %d, this home belongs to user %d", cred.Uid, os.Geteuid())
	}
	return int(cred.Pid), nil
}
