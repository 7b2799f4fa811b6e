package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"bridge/backend/agent/connect"
	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/core/proof"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/report"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/runs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
)

// statusReport is the output of `bridge status --json`.
type statusReport struct {
	Running bool       `json:"running"`
	Broker  api.Status `json:"broker"`
	Home    string     `json:"home"`
	// Jobs lists the running and queued jobs, newest first; null if they cannot be read.
	Jobs []dto.Run `json:"jobs"`
	// Needs lists the owner's needs (NED-01); null if unknown.
	Needs []needs.Item `json:"needs"`
	// Storage is the result of a quick check of the storage; null if none was
	// possible.
	Storage *check.QuickStatus `json:"storage"`
	// Agents lists the connected agent CLIs.
	Agents []connect.Standing `json:"agents"`
	// Unreadable lists what this answer lacks because it cannot be read, as sentences.
	Unreadable []string `json:"unreadable,omitempty"`
	// Cost is what Bridge put into each session, with --cost only.
	Cost *api.Costs `json:"cost,omitempty"`
}

func statusCommand(a *App) *cobra.Command {
	cost := false
	cmd := a.jsonFlag(&cobra.Command{
		Use: "status", Short: "Show the broker and the live sessions", Example: "  bridge status\n  bridge status --json\n  bridge status --cost", Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, home, err := a.dialOwner(cmd.Context(), startsNone)
			if bridge.CodeOf(err) == bridge.Unavailable && !errors.Is(err, context.DeadlineExceeded) {
				return statusOffline(cmd.Context(), a, home)
			}
			if err != nil {
				return err
			}
			defer client.Close()
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			going, jobsErr := runningJobs(cmd.Context(), client)
			facts, factsErr := needsFacts(cmd.Context(), client)
			if err := firstOther(jobsErr, factsErr); err != nil {
				return err
			}
			full := statusReport{Running: true, Broker: status, Home: home.Dir()}
			if jobsErr == nil {
				full.Jobs = runs.ListOf(api.Runs{Jobs: going}).Runs
			}
			full.Unreadable = unreadableParts(status, facts, jobsErr, factsErr)
			line := lineOf(home)
			more := reportStorage(cmd.Context(), a, home, facts, &full)
			if facts != nil {
				full.Needs = needs.List(*facts, a.Now())
			}
			full.Agents, _ = a.agents(home).Standings() // `bridge doctor` reports an unreadable installation
			more += report.Agents(full.Agents, line) + report.Proofs(status.Proofs, line) + report.Jobs(going, line) + report.Needs(full.Needs, line) + report.Unreadable(full.Unreadable)
			text := report.Status(status, home.Dir(), more, len(full.Agents) > 0, line, a.Now())
			if cost {
				costs, err := client.Costs(cmd.Context())
				if err != nil {
					return err
				}
				full.Cost = &costs
				text += report.Costs(costs)
			}
			return a.print(full, text)
		},
	})
	cmd.Flags().BoolVar(&cost, "cost", false, "show the tokens that Bridge put into each session, by day")
	return cmd
}

// firstOther returns the first error that is not about an unreadable store, or nil: only
// such an error takes the whole answer.
func firstOther(errs ...error) error {
	for _, err := range errs {
		if err != nil && bridge.CodeOf(err) != bridge.Storage {
			return err
		}
	}
	return nil
}

// unreadableParts returns what the broker could not read, as sentences. facts may be nil.
func unreadableParts(status api.Status, facts *needs.Facts, jobsErr, factsErr error) []string {
	sentences := slices.Clone(status.Unreadable)
	if jobsErr != nil {
		sentences = append(sentences, "The jobs cannot be read: "+jobsErr.Error())
	}
	if factsErr != nil {
		sentences = append(sentences, "What needs you cannot be read: "+factsErr.Error())
	}
	if facts != nil {
		for _, sentence := range facts.Unreadable {
			if !slices.Contains(sentences, sentence) {
				sentences = append(sentences, sentence)
			}
		}
	}
	return sentences
}

// runningJobs returns the delegated jobs that have not ended, or none if jobs are off.
func runningJobs(ctx context.Context, client *ipc.Client) ([]api.JobView, error) {
	found, err := client.Jobs(ctx, api.Caller{})
	if bridge.CodeOf(err) == bridge.Unsupported {
		return nil, nil
	}
	return slices.DeleteFunc(found.Jobs, func(view api.JobView) bool { return view.Status.IsEnded() }), err
}

// lineOf returns the function that writes a command for this home.
func lineOf(home config.Home) report.Line {
	return func(args ...string) string { return home.CommandLine("bridge", args...) }
}

// needsFacts returns the facts for the list of needs, or nil if the broker reports none.
func needsFacts(ctx context.Context, client *ipc.Client) (*needs.Facts, error) {
	facts, err := client.Needs(ctx)
	code := bridge.CodeOf(err)
	if code == bridge.Denied || code == bridge.Unsupported || code == bridge.Invalid { // within an agent, or of a broker that is older
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &facts, nil
}

// statusOffline prints the status without a broker.
func statusOffline(ctx context.Context, a *App, home config.Home) error {
	if _, err := check.HasStore(ctx, home); errors.Is(err, check.ErrLost) {
		return err
	}
	full := statusReport{Home: home.Dir(), Broker: api.Status{Peers: []api.Peer{}, Proofs: []proof.Summary{}}, Jobs: []dto.Run{}}
	storage := reportStorage(ctx, a, home, nil, &full)
	full.Agents, _ = a.agents(home).Standings() // `bridge doctor` reports an unreadable installation
	text := fmt.Sprintf("No broker runs for %s.\n%s%s%s", home.Dir(), startsOne(home), storage, report.Agents(full.Agents, lineOf(home)))
	if err := a.print(full, text); err != nil {
		return err
	}
	return &outcome.ReportedError{Code: outcome.NoOne}
}

// startsOne returns the way to start a broker for the home.
func startsOne(home config.Home) string {
	serve := home.CommandLine("bridge", "serve")
	if bridge.CodeOf(check.RequireHome(home)) == bridge.NotFound {
		return fmt.Sprintf("`%s` makes a home there and starts one.\n", serve)
	}
	return fmt.Sprintf("A session starts one by itself; `%s` and `%s` do, too.\n", home.CommandLine("bridge", "open"), serve)
}

// quickCheck inspects the home and combines the result with the broker's facts,
// which may be nil. Status and needs then agree. It changes nothing in the home.
func quickCheck(ctx context.Context, a *App, home config.Home, facts *needs.Facts) (check.QuickStatus, error) {
	quick, err := maintain.New(home, "bridge status", config.Settings{}, a.Now).Doctor().QuickCheck(ctx)
	if err != nil || facts == nil {
		return quick, err
	}
	quick.ReadWhole = facts.Storage.Errors > 0
	if quick.ReadWhole && facts.Storage.Do == "" {
		facts.Storage.Means, facts.Storage.Do = quick.Report.ReadDamage()
	}
	quick.Report.Into(facts, quick.CheckedAt)
	quick.Finding = check.ExplainWorst(facts.Storage)
	quick.Summary = quick.Worse(check.Summary{Errors: facts.Storage.Errors, Warnings: facts.Storage.Warnings})
	return quick, nil
}

// reportStorage adds the state of the storage to the report, and returns it as
// text. It needs no broker and changes nothing.
func reportStorage(ctx context.Context, a *App, home config.Home, facts *needs.Facts, full *statusReport) string {
	quick, err := quickCheck(ctx, a, home, facts)
	if err != nil {
		return fmt.Sprintf("Storage    could not be looked at: %s\n", err)
	}
	full.Storage = &quick
	if err := check.RequireHome(home); err != nil {
		return fmt.Sprintf("Storage    %s\n", err)
	}
	return report.Storage(quick, lineOf(home), a.Now())
}
