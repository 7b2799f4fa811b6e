package cli

import (
	"github.com/spf13/cobra"

	"bridge/backend/bridge"
	"bridge/backend/hook"
	"bridge/backend/ipc/api"
)

func pluginCommand(a *App) *cobra.Command {
	var mod api.ModWait
	var report bool
	cmd := &cobra.Command{
		Use: "plugin KIND", Short: "Serve an agent's plugin, as JSON lines on standard input and output", Hidden: true,
		Example: "  bridge plugin opencode", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := bridge.ParseKind(args[0])
			if err != nil {
				return err
			}
			home, err := a.home()
			if err != nil {
				return err
			}
			target, err := a.target(home)
			if err != nil {
				return err
			}
			log, closeLog := a.openLog(home)
			defer closeLog()
			options := hook.Options{Home: home, Version: a.Version, CLIDataDir: hook.CLIDataDir(kind, a.Getenv), Now: a.Now, Log: log}
			switch {
			case kind == bridge.Claude && report:
				return hook.ReportMod(cmd.Context(), options, a.Stdin)
			case kind == bridge.Claude:
				return hook.RunMod(cmd.Context(), options, mod, a.Stdout)
			default:
				return hook.RunPlugin(cmd.Context(), options, kind, target, a.startBackground(home), a.Stdin, a.Stdout)
			}
		},
	}
	cmd.Flags().StringVar(&mod.SessionID, "session", "", "claude's conversation")
	cmd.Flags().BoolVar(&mod.Busy, "busy", false, "a turn is under way in it")
	cmd.Flags().BoolVar(&report, "report", false, "pass one report of claude's mod on, from standard input")
	return cmd
}
