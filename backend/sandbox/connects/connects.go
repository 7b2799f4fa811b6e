// Package connects decides to which unix sockets the processes of a job may connect. A
// filter of system calls stops each connect call; a supervisor outside of the sandbox
// copies the socket and its address, decides, and connects the copy, so that nothing that
// the job changes meanwhile is used (SEC-10).
package connects

import (
	"os"
	"path/filepath"
	"strings"
)

// Policy says to which unix sockets the processes of a job may connect. Sockets of other
// families are not its business.
type Policy struct {
	// Broker is the path of the broker's socket, empty for none. The job connects to it by
	// a process of its own, so that the broker sees a process of the job.
	Broker string
	// Folders are absolute folders without links; a job connects to the sockets in them.
	Folders []string
	// Sockets are the paths of single sockets that the owner allows.
	Sockets []string
}

// decision is what a policy says of a socket.
type decision int

const (
	denied decision = iota
	allowed
	viaConnector
)

// decide returns what the policy says of the socket whose path, without links, and whose
// information are given.
func (p Policy) decide(path string, socket os.FileInfo) decision {
	if same(p.Broker, socket) {
		return viaConnector
	}
	for _, folder := range p.Folders {
		if folder != "" && strings.HasPrefix(path, filepath.Clean(folder)+string(filepath.Separator)) {
			return allowed
		}
	}
	for _, allowedPath := range p.Sockets {
		if same(allowedPath, socket) {
			return allowed
		}
	}
	return denied
}

// same reports whether a path leads to that file.
func same(path string, file os.FileInfo) bool {
	if path == "" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, file)
}
