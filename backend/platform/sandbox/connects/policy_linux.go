package connects

import (
	"os"
	"path/filepath"
	"strings"
)

// decision is a policy's decision on a socket.
type decision int

const (
	denied decision = iota
	allowed
	viaConnector
)

// decide returns the decision on the socket with the given path, without links, and
// file information.
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
