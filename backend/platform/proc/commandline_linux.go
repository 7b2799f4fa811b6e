package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CommandLine returns the words that a process was started with. It returns nil where
// they cannot be read.
func CommandLine(pid int) []string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}
