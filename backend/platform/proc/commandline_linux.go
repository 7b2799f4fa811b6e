package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CommandLine returns the arguments with which a process was started, or nil if
// they cannot be read.
func CommandLine(pid int) []string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}
