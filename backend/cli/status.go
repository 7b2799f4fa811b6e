package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/ipc/api"
	"bridge/backend/maintain"
	"bridge/backend/maintain/check"
	"bridge/backend/maintain/inventory"
)

// statusReport is what `bridge status --json` prints.
type statusReport struct {
	Running bool       `json:"running"`
	Broker  api.Status `json:"broker"`
	Home    string     `json:"home"`
	Jobs    []struct{} `json:"jobs"`
	// Storage is how the storage stands at a quick look; null when none was
	// possible.
	Storage *check.QuickStatus `json:"storage"`
}

func statusCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "status", Short: "Show the broker and the live sessions", Example: "  bridge status\n  bridge status --json", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, home, err := a.dialOwner(cmd.Context(), false)
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
			report := statusReport{Running: true, Broker: status, Home: home.Dir(), Jobs: []struct{}{}}
			storage := lookAtStorage(cmd.Context(), a, home, &report)
			return a.print(report, statusText(status, home.Dir(), storage, a.Now()))
		},
	})
}

// statusOffline says that no broker runs.
func statusOffline(ctx context.Context, a *App, home config.Home) error {
	if _, err := check.HasStore(ctx, home); errors.Is(err, check.ErrLost) {
		return err
	}
	report := statusReport{Home: home.Dir(), Broker: api.Status{Peers: []api.Peer{}}, Jobs: []struct{}{}}
	storage := lookAtStorage(ctx, a, home, &report)
	text := fmt.Sprintf("No broker runs for %s.\nA session starts one by itself; `bridge serve` or `bridge open` do too.\n%s", home.Dir(), storage)
	if err := a.print(report, text); err != nil {
		return err
	}
	return &reported{exitNoOne}
}

// lookAtStorage puts how the storage stands into the report, and returns it in
// words. It needs no broker and changes nothing.
func lookAtStorage(ctx context.Context, a *App, home config.Home, report *statusReport) string {
	maintenance := maintain.Maintenance{Home: home, Now: a.Now}
	quick, err := maintenance.Doctor().QuickCheck(ctx)
	if err != nil {
		return fmt.Sprintf("Storage    could not be looked at: %s\n", err)
	}
	report.Storage = &quick
	if err := check.RequireHome(home); err != nil {
		return fmt.Sprintf("Storage    %s\n", err)
	}
	return storageText(quick, a.Now())
}

func storageText(s check.QuickStatus, now time.Time) string {
	more := "bridge doctor reads everything"
	if s.Errors+s.Warnings > 0 {
		more = "bridge doctor says what it is"
	}
	return fmt.Sprintf("Storage    %s at a quick look   (%s)\nBackups    full: %s; messages: %s; last proven restore: %s\n",
		s.Words(), more, setAge(s.LastSnapshot, now), setAge(s.LastMessages, now), testAge(s.LastTest, now))
}

func setAge(set *inventory.Set, now time.Time) string {
	if set == nil {
		return "none"
	}
	return bridge.Ago(set.CreatedAt, now)
}

func testAge(result *inventory.TestResult, now time.Time) string {
	if result == nil {
		return "none"
	}
	return bridge.Ago(result.At, now)
}

func statusText(s api.Status, home, storage string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Broker     version %s, process %d (%s), up %s\n", s.Version, s.PID, s.Host, now.Sub(time.UnixMilli(s.Since)).Round(time.Second))
	fmt.Fprintf(&b, "Dashboard  %s   (bridge open)\n", s.URL)
	fmt.Fprintf(&b, "Home       %s, store schema %d\n%s", home, s.Schema, storage)
	fmt.Fprintf(&b, "Tried      %s   (versions of the agent CLIs)\n", agent.TriedAll())
	if len(s.Peers) == 0 {
		b.WriteString("Sessions   none; connect your agents with `bridge install`, then start one\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Sessions   %d\n\n", len(s.Peers))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tAGENT\tSTATE\tUNREAD\tMAIL BY\tFOLDER")
	for _, p := range s.Peers {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\t%s\n", p.Name, p.Agent, p.State, p.Unread, p.Transport, p.Cwd)
	}
	_ = table.Flush() // a strings.Builder never fails
	for _, p := range s.Peers {
		if p.Problem != "" {
			fmt.Fprintf(&b, "\n  ! %s: %s\n", p.Name, p.Detail)
		}
	}
	return b.String()
}
