//go:build !windows

package shellenv

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// systemPath returns the program folders of the system.
func systemPath() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	}
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// isOfRoot reports whether root owns a folder and others cannot write to it.
func isOfRoot(folder string) bool {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && stat.Uid == 0
}

// containerMarks are files that container engines create in each container.
var containerMarks = []string{"/.dockerenv", "/run/.containerenv"}

// container returns the environment that a container gives to a new process: that
// of process 1. It is nil outside of a container, or if this user may not read it.
func container() []string {
	for _, mark := range containerMarks {
		if _, err := os.Lstat(mark); err != nil {
			continue
		}
		if raw, err := os.ReadFile(filepath.Join("/proc", "1", "environ")); err == nil {
			return parseEnviron(raw)
		}
	}
	return nil
}

// parseEnviron splits a process's environment in the system's format.
func parseEnviron(raw []byte) []string {
	var environ []string
	for pair := range bytes.SplitSeq(raw, []byte{0}) {
		if bytes.IndexByte(pair, '=') > 0 {
			environ = append(environ, string(pair))
		}
	}
	return environ
}
