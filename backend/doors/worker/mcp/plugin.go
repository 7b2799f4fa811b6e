package mcp

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/hook"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/ipc/api"
)

// Plugin binds the command that serves an agent's plugin or mod, as JSON lines on
// standard input and output. KIND is the agent's kind.
func Plugin(flags *pflag.FlagSet) worker.Run {
	var mod api.ModWait
	var report bool
	flags.StringVar(&mod.SessionID, "session", "", "claude's conversation")
	flags.BoolVar(&mod.Busy, "busy", false, "a turn is under way in it")
	flags.BoolVar(&report, "report", false, "pass one report of claude's mod on, from standard input")
	return func(ctx context.Context, p worker.Program, args []string) error {
		if len(args) != 1 {
			return &outcome.UsageError{Err: fmt.Errorf("plugin is about one kind of agent, and was given %q", args)}
		}
		kind, err := bridge.ParseKind(args[0])
		if err != nil {
			return err
		}
		target, err := worker.Target(p.Home)
		if err != nil {
			return err
		}
		log, closeLog := worker.OpenLog(p.Home, p.Getenv)
		defer closeLog()
		options := hook.Options{Home: p.Home, Version: p.Version, CLIDataDir: hook.CLIDataDir(kind, p.Getenv), Now: p.Now, Log: log}
		switch {
		case bridge.TraitsOf(kind).Mod && report:
			return hook.ReportMod(ctx, options, p.Stdin)
		case bridge.TraitsOf(kind).Mod:
			return hook.RunMod(ctx, options, mod, p.Stdout)
		default:
			return hook.RunPlugin(ctx, options, kind, target, p.StartBroker(), p.Stdin, p.Stdout)
		}
	}
}
