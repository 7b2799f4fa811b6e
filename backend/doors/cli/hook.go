package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"bridge/backend/core/decision"
	"bridge/backend/core/session"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/hook"
	"bridge/backend/platform/config"
	"bridge/backend/storage/store"
)

// hookCommand documents the command for `bridge --help`; Run serves it without a
// flag parser.
func hookCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: "hook KIND EVENT", Short: "Serve one hook call of an agent CLI: JSON in, JSON out", Hidden: true,
		Example: "  bridge hook claude PostToolUse < event.json", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if hook.AsksForHelp(args) {
				return cmd.Help()
			}
			if code := a.runHook(cmd.Context(), args); code != outcome.Done {
				return &outcome.ReportedError{Code: code}
			}
			return nil
		},
	}
}

// runHook is the long form of `bridge-hook`. It never fails the host, except for a
// command line that no host writes.
func (a *App) runHook(ctx context.Context, args []string) int {
	return hook.Program{
		Name: "bridge hook", Args: args, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr,
		Getenv: a.Getenv, Now: a.Now, Version: a.Version, Note: startNote,
	}.Run(ctx)
}

// startNote returns the short list of decisions at a session's start (DEC-15). It
// reads the store directly, so it needs no broker.
func startNote(ctx context.Context, home config.Home, log *slog.Logger, call session.HookCall) string {
	reader, err := store.OpenReader(ctx, home.DB())
	if err != nil {
		return "" // no store yet, or an unreadable one
	}
	defer reader.Close()
	all, err := reader.Decisions(ctx, decision.Lookup{})
	if err != nil {
		log.Warn("the decisions could not be read", "err", err)
		return ""
	}
	target := decision.Target{Agent: call.Kind, SessionID: call.SessionID, Cwd: call.Cwd}
	if peers, err := reader.Peers(ctx); err == nil {
		for _, p := range peers {
			if p.SessionID == call.SessionID && p.Agent == call.Kind {
				target.ID, target.Name = p.ID, p.Name
				break
			}
		}
	}
	return decision.Note(decision.Applicable(all, target))
}
