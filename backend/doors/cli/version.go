package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"bridge/backend/doors/cli/usage"
)

// versionInfo is the output of `bridge version`.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func versionCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Example: "  bridge version --json", Args: usage.None,
		RunE: func(*cobra.Command, []string) error {
			v := versionOf(a)
			return a.print(v, v.text())
		},
	})
}

func versionOf(a *App) versionInfo {
	return versionInfo{Version: a.Version, Commit: commit(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
}

func (v versionInfo) text() string {
	return fmt.Sprintf("bridge %s (commit %s, %s, %s)\n", v.Version, v.Commit, v.Go, v.System)
}

// commit returns the revision from which this binary was built, if known.
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
