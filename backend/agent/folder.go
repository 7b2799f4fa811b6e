package agent

import (
	"os"
	"path/filepath"
	"runtime"
)

// AskFolder is the folder in which a CLI is asked about itself. A CLI reads the settings of
// its folder, so it is no folder that others can write into: the owner's home folder, or
// the top where there is none (SEC-13).
func AskFolder() string {
	home, err := os.UserHomeDir()
	if err == nil && filepath.IsAbs(home) {
		if info, err := os.Stat(home); err == nil && info.IsDir() {
			return home
		}
	}
	if runtime.GOOS == "windows" {
		return os.Getenv("SystemRoot")
	}
	return "/"
}
