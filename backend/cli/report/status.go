package report

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/connect"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
	"bridge/backend/maintain/check"
	"bridge/backend/maintain/inventory"
	"bridge/backend/needs"
)

// Status shows the broker and the live sessions. What is told of storage, jobs and
// needs stands between them, lines as the functions below give them.
func Status(s api.Status, home, more string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Broker     version %s, process %d (%s), up %s\n", s.Version, s.PID, bridge.OneLine(s.Host), now.Sub(time.UnixMilli(s.Since)).Round(time.Second))
	fmt.Fprintf(&b, "Dashboard  %s   (bridge open)\n", s.URL)
	fmt.Fprintf(&b, "Home       %s, store schema %d\n%s", bridge.OneLine(home), s.Schema, more)
	fmt.Fprintf(&b, "Tried      %s   (versions of the agent CLIs)\n", agent.TriedAll())
	if len(s.Peers) == 0 {
		b.WriteString("Sessions   none; connect your agents with `bridge install`, then start one\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Sessions   %d\n\n", len(s.Peers))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tAGENT\tSTATE\tUNREAD\tMAIL BY\tFOLDER")
	for _, p := range s.Peers {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\t%s\n", bridge.OneLine(p.Name), p.Agent, p.State, p.Unread, p.Transport, bridge.OneLine(p.Cwd))
	}
	_ = table.Flush() // a strings.Builder never fails
	for _, p := range s.Peers {
		if p.Problem != "" {
			fmt.Fprintf(&b, "\n  ! %s: %s\n", bridge.OneLine(p.Name), bridge.OneLine(p.Detail))
		}
	}
	return b.String()
}

// Agents says of those that are connected whether they ask before they start agents.
func Agents(connected []connect.Standing) string {
	var asking, starting []string
	for _, one := range connected {
		if one.Jobs {
			starting = append(starting, string(one.Kind))
		} else {
			asking = append(asking, string(one.Kind))
		}
	}
	var b strings.Builder
	if len(asking) > 0 {
		fmt.Fprintf(&b, "Agents     %s: asks you before a session starts agents on this PC   (bridge install --allow-jobs)\n", strings.Join(asking, ", "))
	}
	if len(starting) > 0 {
		fmt.Fprintf(&b, "Agents     %s: sessions may start agents on this PC without asking you   (bridge install --allow-jobs=false)\n", strings.Join(starting, ", "))
	}
	return b.String()
}

// Storage is how the storage stands at a quick look, and its backups.
func Storage(s check.QuickStatus, now time.Time) string {
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

// fewAsked is how many questions and permissions Needs names.
const fewAsked = 5

// Needs says how many things need the owner, and which commands answer what he is asked;
// "" for a nil list, which is not told.
func Needs(list []needs.Item) string {
	switch {
	case list == nil:
		return ""
	case len(list) == 0:
		return "Needs you  nothing\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Needs you  %s   (bridge needs)\n", bridge.Counted(len(list), "thing"))
	asked := slices.DeleteFunc(slices.Clone(list), func(item needs.Item) bool {
		return item.Command() == "" || item.Sort != needs.Approval && item.Sort != needs.Question
	})
	for _, item := range asked[:min(len(asked), fewAsked)] {
		fmt.Fprintf(&b, "           %s: %s\n", item.Headline(), item.Command())
		if offers := item.Offers(); offers != "" {
			fmt.Fprintf(&b, "             %s\n", offers)
		}
	}
	return b.String()
}

// Jobs says how many jobs go on; "" for none.
func Jobs(going []api.JobView) string {
	count := map[string]int{}
	for _, view := range going {
		switch view.Status {
		case job.Queued:
			count["in line"]++
		case job.Waiting:
			count["waiting"]++
		default:
			count["at work"]++
		}
	}
	var words []string
	for _, what := range []string{"at work", "waiting", "in line"} {
		if n := count[what]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, what))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("Jobs       %s   (bridge runs)\n", strings.Join(words, ", "))
}
