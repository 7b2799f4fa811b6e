package report

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"bridge/backend/agent"
	"bridge/backend/agent/connect"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/core/proof"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
)

// Status returns the broker and the live sessions as text. more holds the lines
// about storage, jobs and needs from the functions below. connected means that
// agents are connected.
func Status(s api.Status, home, more string, connected bool, line Line, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Broker     version %s, process %d (%s), up %s\n", s.Version, s.PID, bridge.OneLine(s.Host), now.Sub(time.UnixMilli(s.Since)).Round(time.Second))
	fmt.Fprintf(&b, "Dashboard  %s   (%s)\n", s.URL, line("open"))
	fmt.Fprintf(&b, "Home       %s, store schema %d\n%s", bridge.OneLine(home), s.Schema, more)
	fmt.Fprintf(&b, "Tried      %s   (versions of the agent CLIs)\n", agent.TriedAll())
	if len(s.Peers) == 0 {
		next := "start one, or start it again if it was open before"
		if !connected {
			next = "connect your agents with `" + line("install") + "`, then start one"
		}
		fmt.Fprintf(&b, "Sessions   none; %s\n", next)
		return b.String()
	}
	fmt.Fprintf(&b, "Sessions   %d\n\n", len(s.Peers))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tAGENT\tSTATE\tUNREAD\tMAIL BY\tFOLDER")
	for _, p := range s.Peers {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", bridge.OneLine(p.Name), p.Agent, p.State, p.Unread, p.Transport, bridge.OneLine(p.Cwd))
	}
	_ = table.Flush() // a strings.Builder never fails
	for _, p := range s.Peers {
		if p.Problem != "" {
			fmt.Fprintf(&b, "\n  ! %s: %s\n", bridge.OneLine(p.Name), bridge.OneLine(p.Detail))
		}
	}
	return b.String()
}

// Line writes a command of Bridge as a person types it.
type Line func(args ...string) string

// Agents returns whether the connected agents reach Bridge, and whether they ask
// before they start agents.
func Agents(connected []connect.Standing, line Line) string {
	var asking, starting []string
	var b strings.Builder
	for _, standing := range connected {
		if standing.Gone != "" {
			fmt.Fprintf(&b, "Agents     %s   (%s)\n", needs.GoneDetail(standing.Kind, bridge.OneLine(standing.Gone)), line("install", string(standing.Kind)))
		}
		if standing.Jobs {
			starting = append(starting, string(standing.Kind))
		} else {
			asking = append(asking, string(standing.Kind))
		}
	}
	if len(asking) > 0 {
		fmt.Fprintf(&b, "Agents     %s: asks you before a session starts agents on this PC   (%s)\n", strings.Join(asking, ", "), line("install", "--allow-jobs"))
	}
	if len(starting) > 0 {
		fmt.Fprintf(&b, "Agents     %s: sessions may start agents on this PC without asking you   (%s)\n", strings.Join(starting, ", "), line("install", "--allow-jobs=false"))
	}
	return b.String()
}

// Proofs returns what is broken of the routes into the agents' versions, and which versions
// work or could not be tried.
func Proofs(proofs []proof.Summary, line Line) string {
	var b strings.Builder
	for _, p := range proofs {
		name := string(p.Kind) + " " + bridge.OneLine(p.Version)
		switch {
		case p.Problem != "":
			fmt.Fprintf(&b, "Routes     %s: not proven: %s   (%s)\n", name, bridge.OneLine(p.Problem), line("prove", string(p.Kind)))
		case len(p.Broken) == 0:
			fmt.Fprintf(&b, "Routes     %s: all work\n", name)
		}
		for _, broken := range p.Broken {
			fmt.Fprintf(&b, "Routes     %s: %s   (%s)\n", name, bridge.OneLine(broken.Text), line("prove", string(p.Kind)))
		}
	}
	return b.String()
}

// Storage returns the state of the storage and its backups, and the worst error in three
// lines. It comes from a quick check, as far as that saw as much as the broker.
func Storage(s check.QuickStatus, line Line, now time.Time) string {
	more, how := line("doctor")+" reads everything", " at a quick look"
	if s.Errors+s.Warnings > 0 {
		more = line("doctor") + " says what it is"
	}
	if seen := s.Report.Summary(); s.ReadWhole || s.Errors != seen.Errors || s.Warnings != seen.Warnings {
		how = ""
	}
	text := fmt.Sprintf("Storage    %s%s   (%s)\n", s.Words(), how, more)
	if s.Finding != nil {
		for _, sentence := range []string{s.Finding.What, s.Finding.Means, s.Finding.Do} {
			if sentence != "" {
				text += "           " + needs.TypedCommands(bridge.OneLine(sentence), line) + "\n"
			}
		}
	}
	text += fmt.Sprintf("Backups    full: %s; messages: %s; last proven restore: %s\n",
		setAge(s.LastSnapshot, now), setAge(s.LastMessages, now), testAge(s.LastTest, now))
	for _, finding := range s.Report.Findings {
		switch {
		case finding.Code == check.VariableUnknown || finding.Code == check.VariableInvalid:
			text += "Variable   " + bridge.OneLine(finding.Detail) + "\n"
		case finding.Code == check.SettingUnknown:
			text += "Settings   " + bridge.OneLine(finding.Path+", "+finding.Detail) + "\n"
		case finding.Path == check.ConfigFile: // status works, and the file does not
			text += "Settings   " + bridge.OneLine(finding.Path+": "+finding.Detail) + "\n"
		}
	}
	return text
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

// Needs returns the number of the owner's needs and the commands that answer them,
// or "" for an unknown (nil) list. line writes a command.
func Needs(list []needs.Item, line Line) string {
	switch {
	case list == nil:
		return ""
	case len(list) == 0:
		return "Needs you  nothing\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Needs you  %s   (%s)\n", bridge.Counted(len(list), "thing"), line("needs"))
	items := slices.DeleteFunc(slices.Clone(list), func(item needs.Item) bool {
		return len(item.Commands()) == 0 || item.Sort != needs.Approval && item.Sort != needs.Question
	})
	for _, item := range items[:min(len(items), fewAsked)] {
		fmt.Fprintf(&b, "           %s\n", item.Headline())
		if offers := item.Offers(); offers != "" {
			fmt.Fprintf(&b, "             %s\n", offers)
		}
		for _, command := range item.Commands() {
			fmt.Fprintf(&b, "             %s\n", command.Text(line))
		}
	}
	return b.String()
}

// Unreadable returns what the answer lacks because it could not be read.
func Unreadable(sentences []string) string {
	text := ""
	for _, sentence := range sentences {
		text += "Unknown    " + bridge.OneLine(sentence) + "\n"
	}
	return text
}

// Jobs returns the number of running jobs as text, or "" for none.
func Jobs(going []api.JobView, line Line) string {
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
	var parts []string
	for _, what := range []string{"at work", "waiting", "in line"} {
		if n := count[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Jobs       %s   (%s)\n", strings.Join(parts, ", "), line("runs"))
}
