package remote

import (
	"fmt"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// May is what the owner permits one paired PC here.
type May struct {
	Linked bool // links are on; otherwise nothing is permitted
	Jobs   bool
	Roots  []string           // of jobs
	Agents []bridge.AgentKind // of jobs
	Access job.Access         // the highest access of a job here

	Messages  bool
	Decisions bool
	Dashboard bool
	Files     bool
}

// Words returns one sentence about what a PC of that name may do here.
func (m May) Words(name string) string {
	may, but := m.things()
	sentence := name + " may do nothing here"
	if len(may) > 0 {
		sentence = fmt.Sprintf("%s may %s; nothing else", name, strings.Join(may, "; "))
	}
	if !m.Linked && (len(may) > 0 || but != "") {
		sentence = fmt.Sprintf("Links are off, so %s may do nothing here. Were they on: %s", name, sentence)
	}
	return sentence + "." + but
}

// TeamWords returns one sentence about what a team shares with this PC as a whole: each
// of its PCs may have further rights by its own name.
func TeamWords(team string, linked, decisions bool) string {
	if !decisions {
		return fmt.Sprintf("No decisions are shared with the team %s as a whole.", team)
	}
	sentence := fmt.Sprintf("the whole team %s shares decisions that are for everybody: all its PCs read those made here, also PCs that join later, and those made there hold here.", team)
	if !linked {
		return fmt.Sprintf("Links are off, so nothing is shared with the team %s. Were they on: %s", team, sentence)
	}
	return "T" + sentence[1:]
}

// things returns what is permitted, and what prevents an apparent permission.
func (m May) things() (may []string, but string) {
	if m.Jobs {
		switch {
		case len(m.Agents) == 0:
			but = " It is allowed jobs, but no agent for them: none starts."
		case len(m.Roots) == 0:
			but = " It is allowed jobs, but no folder for them: none starts."
		default:
			may = append(may, fmt.Sprintf("start %s jobs that %s below %s%s", and(kinds(m.Agents)), accessWords[m.Access], and(m.Roots), reachOfJobs))
		}
	}
	for _, thing := range []struct {
		is   bool
		text string
	}{
		{m.Messages, "write to the sessions here"},
		{m.Decisions, "share decisions that are for everybody, in both directions"},
		{m.Dashboard, "see which sessions and jobs there are here"},
		{m.Files, "send files into the inbox here"},
	} {
		if thing.is {
			may = append(may, thing.text)
		}
	}
	return may, but
}

// reachOfJobs describes what else such a job can reach (SEC-04).
const reachOfJobs = " (besides these they read the system and their agents' settings, and their agents reach the network)"

// accessWords describe the most that a job does with files.
var accessWords = map[job.Access]string{
	job.AccessRead: "read files",
	job.AccessAsk:  "edit files, each change with a question,",
	job.AccessEdit: "edit files",
}

func kinds(agents []bridge.AgentKind) []string {
	var names []string
	for _, kind := range agents {
		names = append(names, string(kind))
	}
	return names
}

// and joins items with commas and "and".
func and(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
