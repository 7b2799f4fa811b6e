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
		fmt.Fprintf(&b, "%s   (%s)\n", item.Title, when)
		for _, line := range append(item.lines(), item.Place, item.Command()) {
			if line != "" {
				fmt.Fprintf(&b, "  %s\n", line)
			}
		}
	}
	return b.String()
}

// lines are what exactly, for a terminal: answers to choose from have their numbers.
func (i Item) lines() []string {
	if len(i.choices) > 0 {
		return job.ChoiceText(i.choices)
	}
	return strings.Split(i.Detail, "\n")
}

// Offers says in a line what can be chosen, "" where nothing is.
func (i Item) Offers() string { return job.Offers(i.choices) }

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
