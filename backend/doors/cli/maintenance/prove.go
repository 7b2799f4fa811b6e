package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/agent"
	"bridge/backend/agent/prove"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

// proved is the answer of `bridge prove`.
type proved struct {
	OK     bool           `json:"ok"` // no route is broken
	Agents []prove.Report `json:"agents"`
}

// Prove returns `bridge prove`.
func Prove(r command.Run, owner Owner, completeKinds cobra.CompletionFunc) *cobra.Command {
	var flags proveFlags
	record := true
	cmd := r.JSONFlag(&cobra.Command{
		Use: "prove [KIND...]", Short: "Try each route from Bridge into your agents, without an account", ValidArgsFunction: completeKinds,
		Long: "Start your own agent program in an empty home and without a network, with a scripted model in place of its\n" +
			"vendor's, and try each route: it connects, start note, mail at a prompt, at a tool call and at the end of a turn,\n" +
			"the wake of an idle session, your words, words to a sub-agent, a permission prompt and a job. It costs no tokens,\n" +
			"and touches neither your sessions nor your settings. It takes up to a minute a kind. It exits 1 if a route is\n" +
			"broken, and 3 if this system permits no network namespace. A running broker keeps the results: Needs you, the\n" +
			"page and `bridge status` then name what is broken. With --route or a shorter --timeout it keeps none. Only on Linux.",
		Example: "  bridge prove\n  bridge prove codex\n  bridge prove claude opencode --json\n  bridge prove codex --route job --route wake\n  bridge prove --timeout 1m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.patience <= 0 {
				return &outcome.UsageError{Err: errors.New("--timeout must be above 0")}
			}
			only, err := flags.only()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			keep := func(prove.Report) {}
			if record && len(only) == 0 && flags.patience >= prove.DefaultPatience {
				keep = recorder(ctx, r, owner)
			}
			return proveAll(ctx, r, args, prove.Run{StepTimeout: flags.patience, Only: only}, keep)
		},
	})
	flags.add(cmd)
	cmd.Flags().BoolVar(&record, recordFlag, true, "have a running broker keep the results")
	_ = cmd.Flags().MarkHidden(recordFlag) // the flag exists: it cannot fail
	return cmd
}

// proveFlags are the flags of `bridge prove` and of the command that it starts.
type proveFlags struct {
	patience time.Duration
	routes   []string
}

// add declares the flags.
func (f *proveFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.patience, "timeout", prove.DefaultPatience, "how long a step may take; a start may take twice as long")
	cmd.Flags().StringArrayVar(&f.routes, "route", nil, "try only this route, and that the agent connects; repeat it for more routes")
	var names []string
	for _, route := range prove.Routes() {
		names = append(names, string(route))
	}
	if err := cmd.RegisterFlagCompletionFunc("route", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is such a flag
	}
}

// only returns the routes that the flag --route names, nil for all. It fails with Invalid,
// and a suggestion, if there is no such route.
func (f *proveFlags) only() ([]prove.Route, error) {
	var only []prove.Route
	for _, name := range f.routes {
		route, err := prove.ParseRoute(name)
		if err != nil {
			return nil, err
		}
		only = append(only, route)
	}
	return only, nil
}

// recordFlag is the flag by which the broker's own child records nothing.
const recordFlag = "record"

// recorder returns a function that has a running broker keep a report. Without a broker it
// keeps none; a refusal is printed on standard error.
func recorder(ctx context.Context, r command.Run, owner Owner) func(prove.Report) {
	return func(report prove.Report) {
		if report.Version == "" {
			return
		}
		client, err := owner.Reach(ctx)
		if err != nil {
			return // it is told of a broker by the commands that need one
		}
		defer client.Close()
		if _, err := api.OpRecordProof.Call(ctx, client, proofOf(report)); err != nil {
			fmt.Fprintf(r.Stderr, "bridge: the broker does not keep this result: %s\n", outcome.Sentence(err))
		}
	}
}

// proofOf returns a report as the broker keeps it.
func proofOf(report prove.Report) proof.Proof {
	return proof.Proof{Kind: report.Kind, Version: report.Version, Routes: report.Routes}
}

// proveAll tries the named kinds, or those that are on this PC, as like says, and calls
// keep with each report.
func proveAll(ctx context.Context, r command.Run, args []string, like prove.Run, keep func(prove.Report)) error {
	if err := prove.Check(); err != nil {
		return err
	}
	runs, err := toProve(r, args, like)
	if err != nil {
		return err
	}
	progress := terminal.NewProgress(r.Stderr, r.Now)
	answer := proved{OK: true, Agents: []prove.Report{}}
	for i, run := range runs {
		progress.Tell(string(run.Kind), int64(i), int64(len(runs)))
		report, err := run.Do(ctx)
		progress.End()
		if err != nil {
			return err
		}
		keep(report)
		answer.Agents = append(answer.Agents, report)
		answer.OK = answer.OK && len(report.Broken()) == 0
		if !*r.JSON {
			fmt.Fprint(r.Stdout, report.Text()) // each as soon as it is known
		}
	}
	if err := r.Print(answer, ""); err != nil {
		return err
	}
	if !answer.OK {
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return nil
}

// toProve returns a run for each kind. It fails with Unsupported or NotFound for a named
// kind that cannot be tried or is not here, and with NotFound if no agent is on this PC.
func toProve(r command.Run, args []string, like prove.Run) ([]prove.Run, error) {
	home, err := r.ReadHome()
	if err != nil {
		return nil, err
	}
	settings, err := home.Settings(r.Getenv)
	if err != nil {
		settings = config.FallbackSettings(r.Getenv) // the doctor tells of damaged ones
	}
	own, err := proc.ProgramOr("")
	if err != nil {
		return nil, err
	}
	var kinds []bridge.AgentKind
	for _, arg := range args {
		kind, err := bridge.ParseKind(arg)
		if err == nil {
			err = prove.CheckKind(kind)
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(args) == 0 {
		kinds = prove.Kinds()
	}
	var runs []prove.Run
	for _, kind := range kinds {
		program, err := agent.Locate(kind, agent.Lookup{Env: r.Getenv, Configured: settings.Bin(kind)})
		if bridge.CodeOf(err) == bridge.NotFound && len(args) == 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		like.Kind, like.Program, like.Bridge = kind, program, own
		runs = append(runs, like)
	}
	if len(runs) == 0 {
		return nil, bridge.Errorf(bridge.NotFound, "none of claude, codex and opencode is on PATH")
	}
	return runs, nil
}

// ProveInside returns the hidden command that `bridge prove` starts in namespaces.
func ProveInside(r command.Run) *cobra.Command {
	var flags proveFlags
	cmd := &cobra.Command{
		Use: prove.InsideCommand + " KIND PROGRAM", Short: "Try the routes of one agent; `bridge prove` starts this", Hidden: true, Args: usage.Exact(2),
		Example: "  bridge " + prove.InsideCommand + " codex /usr/bin/codex",
		RunE: func(cmd *cobra.Command, args []string) error {
			own, err := proc.ProgramOr("")
			if err != nil {
				return err
			}
			only, err := flags.only()
			if err != nil {
				return err
			}
			run := prove.Run{Kind: bridge.AgentKind(args[0]), Program: args[1], Bridge: own, StepTimeout: flags.patience, Only: only}
			report, err := run.Inside(cmd.Context())
			answer := prove.Answer{Report: report}
			if err != nil {
				answer.Error, answer.Code = outcome.Sentence(err), bridge.CodeOf(err)
			}
			return json.NewEncoder(terminal.JSON(r.Stdout)).Encode(answer)
		},
	}
	flags.add(cmd)
	return cmd
}
