package pairs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/network/link"
	"bridge/backend/platform/ipc/api"
)

// Team is this PC's team in the output of `bridge team --json`.
type Team struct {
	Joined bool `json:"joined"`
	api.Team
	Members []api.PC `json:"members"` // without this PC
}

// TeamOf returns the team of the network, with online members first.
func TeamOf(network api.Network) Team {
	crew := Team{Team: api.Team{Unheard: []string{}, Keyless: []string{}, Dropped: []api.Dropped{}}, Members: []api.PC{}}
	if network.Team != nil {
		crew.Joined, crew.Team = true, *network.Team
	}
	for _, pc := range network.Peers {
		if pc.Member {
			crew.Members = append(crew.Members, pc)
		}
	}
	slices.SortStableFunc(crew.Members, func(a, b api.PC) int {
		switch {
		case a.Up == b.Up:
			return 0
		case a.Up:
			return -1
		}
		return 1
	})
	return crew
}

// Text returns the team's members, their presence and their permissions here as text.
func (c Team) Text(now time.Time) string {
	if !c.Joined {
		return "This PC belongs to no team: `bridge join ADDRESS` makes it one of the team whose hub is there.\n"
	}
	var b strings.Builder
	team(&b, c.Team, now)
	if c.Team.Team == "" {
		return b.String()
	}
	if len(c.Members) == 0 && c.Up {
		b.WriteString("Nobody else is in the team yet.\n")
	}
	b.WriteString(c.May + "\n" + c.Carried + "\n")
	if len(c.Members) > 0 && !c.Up {
		b.WriteString("These were in it when the hub was last heard:\n")
	}
	for _, pc := range c.Members {
		fmt.Fprintf(&b, "\n%s (%s), %s\n  %s\n", bridge.OneLine(pc.Name), link.Fingerprint(pc.ID), bridge.OneLine(c.presence(pc, now)), bridge.OneLine(pc.May))
		if pc.Before != nil {
			fmt.Fprintf(&b, "  Since %s %s is another PC: before it was %s.\n", time.UnixMilli(pc.Before.Since).UTC().Format("2006-01-02 15:04 MST"), pc.Name, link.Fingerprint(pc.Before.ID))
		}
		if pc.Update != "" {
			fmt.Fprintf(&b, "  Update needed: %s.\n", pc.Update)
		}
	}
	if len(c.Dropped) > 0 {
		fmt.Fprintf(&b, "\nWhat came from the team and was dropped, in the last %s:\n", bridge.Span(now.Sub(time.UnixMilli(c.Watched))))
	}
	for _, d := range c.Dropped {
		fmt.Fprintf(&b, "  %d × %s (last %s)\n", d.Count, bridge.OneLine(d.Words), bridge.Ago(d.Last, now))
	}
	fmt.Fprintf(&b, "\n%s\n", c.Sees)
	return b.String()
}

// presence returns whether a PC of the team is online, as far as known.
func (c Team) presence(pc api.PC, now time.Time) string {
	text := "not there"
	switch {
	case pc.Up:
		text = "there for " + bridge.Span(now.Sub(time.UnixMilli(pc.Since)))
	case !c.Up:
		text = "not reached"
	}
	if pc.Paired {
		text += ", paired with this PC, too"
	}
	if pc.Release != "" {
		text += ", Bridge " + pc.Release
	}
	return text
}
