package needs

import (
	"fmt"
	"strings"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/job"
)

// Text is the list for people: who, what exactly, where, since when, and how long
// is left.
func Text(list []Item, now time.Time) string {
	if len(list) == 0 {
		return "Nothing needs you.\n"
	}
	var b strings.Builder
	for _, item := range list {
		when := bridge.Ago(item.Since, now)
		if item.Until != nil {
			when += ", " + bridge.Span(time.UnixMilli(*item.Until).Sub(now)) + " left"
		}
		fmt.Fprintf(&b, "%s   (%s)\n%s", item.Headline(), when, item.what())
		for _, line := range []string{item.oneLine(item.Place), item.Command()} {
			if line != "" {
				fmt.Fprintf(&b, "  %s\n", line)
			}
		}
	}
	return b.String()
}

// what is the text of what exactly. Each line of what an agent asks has a mark, for the
// command that answers it stands below: nothing that an agent says is such a line. Answers
// to choose from have their numbers.
func (i Item) what() string {
	switch {
	case len(i.choices) > 0:
		return bridge.QuoteLines(strings.Join(job.ChoiceText(i.choices), "\n"), quoteMark)
	case i.Detail == "":
		return ""
	case i.Sort == Approval || i.Sort == Question:
		return bridge.QuoteLines(i.Detail, quoteMark)
	default:
		return "  " + bridge.OneLine(i.Detail) + "\n"
	}
}

// quoteMark begins each line of what an agent asks.
const quoteMark = "  | "

// Headline is the title as one line for a terminal.
func (i Item) Headline() string { return i.oneLine(i.Title) }

// oneLine returns a text of the item as one line. Of an approval and a question it shows
// all that is hidden.
func (i Item) oneLine(text string) string {
	if i.Sort == Approval || i.Sort == Question {
		return bridge.VisibleExact(bridge.OneLine(text))
	}
	return bridge.OneLine(text)
}

// Offers says in a line what can be chosen, "" where nothing is.
func (i Item) Offers() string { return bridge.VisibleExact(bridge.OneLine(job.Offers(i.choices))) }

// Command is the one that deals with it, "" where none does.
func (i Item) Command() string {
	if i.told {
		return ""
	}
	_, id, _ := strings.Cut(i.ID, ":")
	switch i.Sort {
	case Approval:
		return job.ApproveText(id, i.choices)
	case Question:
		return "bridge answer " + id
	case JobReview:
		name, _, _ := strings.Cut(id, ":")
		return "bridge finish " + name
	case Storage:
		return "bridge doctor"
	default:
		return ""
	}
}
