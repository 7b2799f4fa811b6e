package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holdersOf finds the processes that have the other end of a TCP connection of this
// computer open. hidden are those whose open files this process may not see. An error
// says that the other end is gone.
func holdersOf(conn net.Conn) (pids, hidden []int, err error) {
	socket, err := otherEnd(conn)
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil, fmt.Errorf("find whose connection it is: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		switch has, err := hasOpen(pid, socket); {
		case has:
			pids = append(pids, pid)
		case errors.Is(err, fs.ErrPermission):
			hidden = append(hidden, pid)
		}
	}
	return pids, hidden, nil
}

func hasOpen(pid int, socket string) (bool, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	for _, file := range files {
		if target, err := os.Readlink(filepath.Join(folder, file.Name())); err == nil && target == socket {
			return true, nil
		}
	}
	return false, nil
}

// otherEnd is the socket at the other end of a connection, as /proc names open files.
func otherEnd(conn net.Conn) (string, error) {
	here, isTCP := conn.LocalAddr().(*net.TCPAddr)
	there, isToo := conn.RemoteAddr().(*net.TCPAddr)
	if !isTCP || !isToo {
		return "", errors.ErrUnsupported
	}
	from, to := fmt.Sprintf(":%04X", there.Port), fmt.Sprintf(":%04X", here.Port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // there is no such table on this computer
		}
		inode := findSocket(bufio.NewScanner(file), from, to)
		_ = file.Close()
		if inode != "" {
			return "socket:[" + inode + "]", nil
		}
	}
	return "", errors.New("the other end of the connection is closed")
}

// The columns of /proc/net/tcp (proc(5)).
const (
	tcpLocal  = 1
	tcpRemote = 2
	tcpInode  = 9
)

// findSocket finds the inode of the socket that is connected from one port to the
// other. One that no process has open any more has the inode 0.
func findSocket(lines *bufio.Scanner, from, to string) string {
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > tcpInode && strings.HasSuffix(fields[tcpLocal], from) && strings.HasSuffix(fields[tcpRemote], to) && fields[tcpInode] != "0" {
			return fields[tcpInode]
		}
	}
	return ""
}
