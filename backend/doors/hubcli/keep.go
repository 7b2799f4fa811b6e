package hubcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/network/hub/server"
)

func (a *App) checkCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "check", Short: "Check the hub (read-only)", Args: usage.None, Example: "  bridge-hub check",
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			found := server.Check(cmd.Context(), home)
			var text strings.Builder
			ok := true
			for _, f := range found {
				mark := "ok "
				if f.Bad {
					mark, ok = "BAD", false
				}
				fmt.Fprintf(&text, "%s  %s\n", mark, f.What)
			}
			if err := a.print(map[string]any{"ok": ok, "findings": found}, text.String()); err != nil {
				return err
			}
			if !ok {
				return &outcome.ReportedError{Code: outcome.Failed}
			}
			return nil
		},
	})
}

func (a *App) backupCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "backup DIR", Short: "Write everything of the hub's into a new folder, and prove that it can be restored", Args: usage.Exact(1),
		Long:    "Writes the hub's keys and all that it stores into a folder that must not be there yet, while the hub goes on, and\nrestores it once beside the home. The folder is as secret as the home.",
		Example: "  bridge-hub backup /mnt/backup/hub-monday",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.dial()
			if err != nil {
				return err
			}
			defer client.Close()
			backup, err := client.Backup(cmd.Context(), args[0], a.Now())
			if err != nil {
				return err
			}
			total := int64(0)
			for _, s := range backup.Streams {
				total += s.Bytes
			}
			return a.print(backup, fmt.Sprintf("%s are in %s, and were restored once to see that they can be.\n", bridge.Size(total), args[0]))
		},
	})
}

func (a *App) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore DIR", Short: "Make a home of a backup", Args: usage.Exact(1),
		Long:    "Makes a home of a backup; the home must be none yet. PCs that joined after the backup join again.",
		Example: "  bridge-hub restore /mnt/backup/hub-monday --home /var/lib/bridge-hub",
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			if err := server.Restore(cmd.Context(), args[0], home); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Stdout, "The hub is restored into %s: start it with `bridge-hub serve`.\n", home.Dir())
			return err
		},
	}
}
