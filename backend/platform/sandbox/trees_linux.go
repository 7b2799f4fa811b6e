package sandbox

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errClosed reports that a connection's other end is closed.
var errClosed = errors.New("the other end of the connection is closed")

// socket is one end of a TCP connection, as the kernel reports it.
type socket struct {
	user  int // the user who opened it
	inode uint64
}

// peerOf returns the socket at the other end of a local TCP connection from the
// kernel's tables. It fails with [errors.ErrUnsupported] without such a table or
// for another connection type. It fails with errClosed if the other end is closed.
func peerOf(conn net.Conn) (socket, error) {
	here, isTCP := conn.LocalAddr().(*net.TCPAddr)
	tcpAddr, isToo := conn.RemoteAddr().(*net.TCPAddr)
	if !isTCP || !isToo {
		return socket{}, errors.ErrUnsupported
	}
	local, remote := addrPort(tcpAddr), addrPort(here) // from the other end's view
	tables := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // this computer has no such table
		}
		tables++
		found, ok := findSocket(bufio.NewScanner(file), local, remote)
		_ = file.Close()
		if ok {
			return found, nil
		}
	}
	if tables == 0 {
		return socket{}, errors.ErrUnsupported
	}
	return socket{}, errClosed
}

func addrPort(a *net.TCPAddr) netip.AddrPort {
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// The columns of /proc/net/tcp (proc(5)).
const (
	tcpLocal  = 1
	tcpRemote = 2
	tcpUser   = 7
	tcpInode  = 9
)

// findSocket returns the socket that is connected from one address to the other. It
// does not find a socket that no process has open: its inode is 0.
func findSocket(lines *bufio.Scanner, from, port netip.AddrPort) (socket, bool) {
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= tcpInode || fields[tcpInode] == "0" {
			continue
		}
		if parseAddr(fields[tcpLocal]) != from || parseAddr(fields[tcpRemote]) != port {
			continue
		}
		user, userErr := strconv.Atoi(fields[tcpUser])
		inode, inodeErr := strconv.ParseUint(fields[tcpInode], 10, 64)
		if errors.Join(userErr, inodeErr) == nil {
			return socket{user: user, inode: inode}, true
		}
	}
	return socket{}, false
}

// parseAddr decodes an address of /proc/net/tcp: 4-byte words in the processor's
// order, then the port. It returns the zero address for a malformed one.
func parseAddr(text string) netip.AddrPort {
	digits, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(digits)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for chunk := range slices.Chunk(raw, 4) {
		slices.Reverse(chunk) // Bridge supports only little-endian processors
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}

// holdersOf returns the processes that have a socket open. It omits processes with
// unreadable descriptor tables. A descriptor in transit between two processes is in
// no table.
func holdersOf(s socket) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("find whose connection it is: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && s.isHeldBy(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isHeldBy reports whether a process has the socket open.
func (s socket) isHeldBy(pid int) bool {
	return hasOpen(pid, "socket:["+strconv.FormatUint(s.inode, 10)+"]")
}

// hasOpen reports whether a process has a file open. Each thread may have a
// separate descriptor table (unshare(2), CLONE_FILES), and the first thread may
// have ended before the others.
func hasOpen(pid int, name string) bool {
	if tableHas(filepath.Join("/proc", strconv.Itoa(pid), "fd"), name) {
		return true
	}
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return false
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err == nil && tid != pid && !sharesTable(pid, tid) && tableHas(filepath.Join(tasks, thread.Name(), "fd"), name) {
			return true
		}
	}
	return false
}

func tableHas(folder, name string) bool {
	files, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(file os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(folder, file.Name()))
		return err == nil && target == name
	})
}

// kcmpFiles is KCMP_FILES of kcmp(2).
const kcmpFiles = 2

// sharesTable reports whether two threads are known to share one descriptor table.
// If the kernel does not report it, every table is read.
func sharesTable(pid, tid int) bool {
	order, _, failed := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(tid), kcmpFiles, 0, 0, 0)
	return failed == 0 && order == 0
}
