package ipc

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
)

// samePeer returns the process at the other end, as it was at the connect. It fails
// if another user owns that process (MSG-02). An ended process has the identity
// goneIdentity, because its id may be reused (SEC-01).
func samePeer(conn net.Conn) (job.Process, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn() //nolint:errcheck // we listen on Unix sockets only
	if err != nil {
		return job.Process{}, fmt.Errorf("look at the socket: %w", err)
	}
	var cred *unix.Ucred
	var credErr, handleErr error
	var handle int
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		handle, handleErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	}); err != nil {
		return job.Process{}, fmt.Errorf("look at the socket: %w", err)
	}
	if handleErr == nil {
		defer unix.Close(handle) //nolint:errcheck // nothing was written to it
	}
	if credErr != nil {
		return job.Process{}, fmt.Errorf("ask who is at the other end: %w", credErr)
	}
	if int(cred.Uid) != os.Geteuid() {
		return job.Process{}, fmt.Errorf("the caller is user %d, this home belongs to user %d", cred.Uid, os.Geteuid())
	}
	peer := job.Process{PID: int(cred.Pid), Identity: goneIdentity}
	identity, err := proc.Identity(peer.PID)
	switch {
	case err != nil: // it has ended
	case errors.Is(handleErr, unix.ENOPROTOOPT), handleErr == nil && runs(handle): // a kernel before 6.5 has no handle
		peer.Identity = identity
	}
	return peer, nil
}

// runs reports whether the process of a pidfd (pidfd_open(2)) still runs.
func runs(handle int) bool {
	watched := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for {
		ready, err := unix.Poll(watched, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && ready == 0
	}
}
