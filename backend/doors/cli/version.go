package cli

import (
	"github.com/spf13/cobra"

	"bridge/backend/doors/cli/usage"
)

func versionCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Example: "  bridge version --json", Args: usage.None,
		RunE: func(*cobra.Command, []string) error {
			build := usage.BuildOf(a.Version)
			return a.print(build, build.Text("bridge"))
		},
	})
}
