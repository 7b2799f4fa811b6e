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
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("look at the socket: %w", err)
	}
	var cred *unix.Xucred
	var credErr error
	var pid int
	if err := raw.Control(func(fd uintptr) {
		if cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); credErr == nil {
			pid, credErr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
	}); err != nil {
		return 0, fmt.Errorf("look at the socket: %w", err)
	}
	if credErr != nil {
		return 0, fmt.Errorf("ask who is at the other end: %w", credErr)
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("the caller is user %d, this home belongs to user %d", cred.Uid, os.Geteuid())
	}
	return pid, nil
}
