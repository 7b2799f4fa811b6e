package shellenv

import (
	"os"
	"path/filepath"
)

// systemPath returns the program folders of Windows.
func systemPath() []string {
	root := os.Getenv("SystemRoot")
	return []string{filepath.Join(root, "System32"), root}
}

// isOfRoot returns false: Windows already reports every folder of the machine.
func isOfRoot(string) bool { return false }

// container returns nil: a container's environment is that of the system.
func container() []string { return nil }
