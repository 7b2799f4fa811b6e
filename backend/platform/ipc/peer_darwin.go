package ipc

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
)

// samePeer returns the process at the other end. It fails if another user owns that
// process (MSG-02). An ended process has the identity goneIdentity.
func samePeer(conn net.Conn) (job.Process, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return job.Process{}, fmt.Errorf("look at the socket: %w", err)
	}
	var cred *unix.Xucred
	var credErr error
	var pid int
	if err := raw.Control(func(fd uintptr) {
		if cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); credErr == nil {
			pid, credErr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
	}); err != nil {
		return job.Process{}, fmt.Errorf("look at the socket: %w", err)
	}
	if credErr != nil {
		return job.Process{}, fmt.Errorf("ask who is at the other end: %w", credErr)
	}
	if int(cred.Uid) != os.Geteuid() {
		return job.Process{}, fmt.Errorf("the caller is user %d, this home belongs to user %d", cred.Uid, os.Geteuid())
	}
	peer := job.Process{PID: pid, Identity: goneIdentity}
	if identity, err := proc.Identity(pid); err == nil {
		peer.Identity = identity
	}
	return peer, nil
}
