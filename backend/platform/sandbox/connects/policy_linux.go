package connects

import (
	"os"
	"path/filepath"
	"strings"
)

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
