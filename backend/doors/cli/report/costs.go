package report

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// Costs returns what Bridge put into each session, by day (CTX-03).
func Costs(costs api.Costs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nCost       tokens that Bridge put into each session in %d days; %d bytes count as one token\n", costs.KeptDays, costs.BytesPerToken)
	if len(costs.Sessions) == 0 {
		b.WriteString("           none yet\n")
		return b.String()
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tDAY\tTOOLS\tNOTES\tMAIL\tNOTICES\tALL")
	for _, cost := range costs.Sessions {
		costRow(table, cost.Name, "all", cost.Total)
		for _, day := range cost.Days {
			costRow(table, "", day.Day, day.Cost)
		}
	}
	_ = table.Flush() // a strings.Builder never fails
	return b.String()
}

func costRow(table *tabwriter.Writer, name, day string, cost session.Cost) {
	fmt.Fprintf(table, "  %s\t%s\t%d\t%d\t%d\t%d\t%d\n", bridge.OneLine(name), day, cost.Tools, cost.Notes, cost.Mail, cost.Notices, cost.Total())
}
