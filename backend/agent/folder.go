package agent

import (
	"os"
	"path/filepath"
	"runtime"
)

// AskFolder returns the folder in which a CLI is queried. A CLI reads the settings
// of its folder, so others must not be able to write there. It is the owner's home
// folder, or the root folder without one (SEC-13).
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
