package report

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
)

// Doctor returns the findings of `bridge doctor` as text: the verdict, then the advice.
func Doctor(r check.Report, c maintain.Maintenance, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Storage in %s: %s\n", bridge.OneLine(c.Home.Dir()), r.Summary().Words())
	for _, finding := range r.Findings {
		mark := "!"
		if finding.Severity == check.Error {
			mark = "✗"
		}
		means, do := r.Advice(finding.Code)
		fmt.Fprintf(&b, "\n %s %s: %s [%s]: %s\n   %s\n   → %s\n", mark, finding.Severity, bridge.OneLine(finding.Path), finding.Code, bridge.OneLine(finding.Detail), means, runnable(c.Home, do))
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, schema := range r.Schema {
		fmt.Fprintf(table, "  %s\tschema %d of %d\n", schema.Path, schema.Actual, schema.Expected)
	}
	fmt.Fprintf(table, "  size\t%s in %s\n", bridge.Size(r.TotalBytes), bridge.Counted(len(r.Sizes), "place"))
	fmt.Fprintf(table, "  backups\t%s\n", backupsText(r, c, now))
	fmt.Fprintf(table, "  last proven restore\t%s\n", testText(c, now))
	_ = table.Flush() // a strings.Builder never fails
	return b.String()
}

// runnable writes the commands in a sentence as they run for this home.
func runnable(home config.Home, sentence string) string {
	return needs.TypedCommands(sentence, func(args ...string) string { return home.CommandLine("bridge", args...) })
}

func backupsText(r check.Report, c maintain.Maintenance, now time.Time) string {
	if len(r.Backups) == 0 {
		return "none yet; make one with " + runnable(c.Home, "`bridge doctor --backup`")
	}
	return fmt.Sprintf("%d, the newest made %s: %s", len(r.Backups), bridge.Ago(r.Backups[0].CreatedAt, now), r.Backups[0].Path)
}

func testText(c maintain.Maintenance, now time.Time) string {
	result, ok := inventory.LastPassed(c.Home.Backups())
	if !ok {
		return "none; prove one with " + runnable(c.Home, "`bridge doctor --drill`")
	}
	return fmt.Sprintf("%s, of %s", bridge.Ago(result.At, now), result.Snapshot)
}
