package usage

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build describes the running program: its release, and the build that made it.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // the revision of the source, or "unknown"
	Go      string `json:"go"`
	System  string `json:"system"`
}

// BuildOf returns the description of the running program, which is of that release.
func BuildOf(version string) Build {
	return Build{Version: version, Commit: commit(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
}

// Text returns the line that --version and the command version print.
func (b Build) Text(program string) string {
	return fmt.Sprintf("%s %s (commit %s, %s, %s)\n", program, b.Version, b.Commit, b.Go, b.System)
}

// commit returns the revision from which this program was built, or "unknown".
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown"
}
