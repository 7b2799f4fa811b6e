// Package report formats the output of the status commands for people: the broker
// and its sessions, the storage, the jobs and their questions.
package report

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

// Runs returns the jobs and the open questions, with the commands that answer them.
func Runs(found api.Runs, line Line, now time.Time) string {
	if len(found.Jobs) == 0 {
		return "No jobs yet. Ask an agent to start one, for example: \"Have Codex review this.\"\n"
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tBY\tSTATE\tSINCE\tTITLE")
	for _, view := range found.Jobs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", view.Job, bridge.OneLine(view.By), stateText(view), sinceText(view, now), bridge.OneLine(view.Title))
	}
	_ = table.Flush() // a strings.Builder never fails
	for _, approval := range found.Approvals {
		if approval.IsOpen(now) {
			what := bridge.VisibleExact(bridge.OneLine(approval.What))
			fmt.Fprintf(&b, "\n%s asks (%s):\n%s  %s\n", approval.Job, what, bridge.QuoteLines(approval.Detail, "  | "), line("approve", approval.ID))
		}
	}
	return b.String()
}

func stateText(view api.JobView) string {
	switch {
	case view.Status == job.Waiting && view.Wait != nil:
		return "waiting: " + string(view.Wait.For)
	case view.Status.IsActive() && view.Progress.Percent != nil:
		return fmt.Sprintf("%s %d %%", view.Status, *view.Progress.Percent)
	default:
		return string(view.Status)
	}
}

func sinceText(view api.JobView, now time.Time) string {
	switch {
	case view.EndedAt != 0 && view.Status.IsEnded():
		return bridge.Ago(view.EndedAt, now)
	case view.StartedAt != 0:
		return bridge.Ago(view.StartedAt, now)
	default:
		return "-"
	}
}
