package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/store"
)

// decisionsReport is the output of `bridge decisions --json`: the answer of GET
// /api/decisions.
type decisionsReport struct {
	Decisions  []decision.Revision  `json:"decisions"`
	Unreadable []unreadableDecision `json:"unreadable,omitempty"`
}

// unreadableDecision is a stored decision that is not published. Why continues a
// sentence about it; Newer means that a newer release may have written it.
type unreadableDecision struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Why   string `json:"why"`
	Newer bool   `json:"newer"`
}

func decisionsCommand(a *App) *cobra.Command {
	var from string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "decisions [QUERY]", Short: "Show the decisions in force, or those with QUERY in topic or text; needs no broker",
		Example: "  bridge decisions\n  bridge decisions licence --json\n  bridge decisions --from laptop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &outcome.UsageError{Err: fmt.Errorf("%s are too many: put a query of several into quotes; it is used as `%s`", bridge.Counted(len(args), "word"), cmd.UseLine())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			query := strings.Join(args, "")
			if err := decision.CheckQuery(query); err != nil {
				return &outcome.UsageError{Err: err}
			}
			if cmd.Flags().Changed("from") {
				if err := bridge.CheckPlainName(from); err != nil {
					return &outcome.UsageError{Err: fmt.Errorf("--from takes the name of a PC: %w", err)}
				}
			}
			home, err := a.home()
			if err != nil {
				return err
			}
			report, err := readDecisions(cmd.Context(), home, decision.Lookup{Query: query}, from)
			if err != nil {
				return err
			}
			return a.print(report, decisionsText(report, query, from, a.Now()))
		},
	})
	cmd.Flags().StringVar(&from, "from", "", "only those that came from the PC with this name")
	return cmd
}

// readDecisions reads the current decisions directly from the store: it opens no writer
// and runs no migration (DEC-19). With from it returns only decisions from that PC.
func readDecisions(ctx context.Context, home config.Home, lookup decision.Lookup, from string) (decisionsReport, error) {
	report := decisionsReport{Decisions: []decision.Revision{}}
	if _, err := check.HasStore(ctx, home); errors.Is(err, check.ErrLost) {
		return report, err
	}
	reader, err := store.OpenReader(ctx, home.DB())
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil // no decision was made here yet
	}
	if err != nil {
		return report, err
	}
	defer reader.Close()
	found, err := reader.Decisions(ctx, lookup)
	if err != nil {
		return report, fmt.Errorf("read the decisions: %w", err)
	}
	if from != "" {
		found = decision.FromPC(found, from)
	}
	report.Decisions = append(report.Decisions, found...)
	rows, err := reader.UnreadableDecisions(ctx, "")
	if err != nil {
		return report, fmt.Errorf("read the decisions: %w", err)
	}
	for _, row := range rows {
		report.Unreadable = append(report.Unreadable, unreadableDecision{ID: row.Key, Topic: row.Topic, Why: row.Why, Newer: row.Newer})
	}
	return report, nil
}

func decisionsText(report decisionsReport, query, from string, now time.Time) string {
	var b strings.Builder
	switch {
	case len(report.Decisions) > 0:
	case from != "" && query != "":
		fmt.Fprintf(&b, "No decision in force that came from %s holds %q.\n", from, query)
	case from != "":
		fmt.Fprintf(&b, "No decision in force came from %s.\n", from)
	case query != "":
		fmt.Fprintf(&b, "No decision in force holds %q.\n", query)
	default:
		b.WriteString("Nothing is decided yet.\n")
	}
	for _, d := range report.Decisions {
		fmt.Fprintf(&b, "%s   (for %s; %s, %s)\n", bridge.OneLine(d.Topic), bridge.OneLine(d.Scope.Words()), bridge.OneLine(d.Author.Name), bridge.Ago(d.CreatedAt, now))
		for line := range strings.Lines(d.Text) {
			fmt.Fprintf(&b, "    %s\n", bridge.OneLine(strings.TrimRight(line, "\r\n")))
		}
	}
	for _, row := range report.Unreadable {
		fmt.Fprintf(&b, "! The decision %s on %q cannot be read, so no session gets it; `bridge doctor` says more.\n", bridge.OneLine(row.ID), row.Topic)
	}
	return b.String()
}
