// Package pairs prints the output of the commands for other PCs: the paired PCs and
// their shared lists.
package pairs

import (
	"fmt"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/access"
	"bridge/backend/network/link"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// Lists returns the sessions and jobs of the paired PCs as text (RMT-23).
func Lists(lists api.NetworkLists, now time.Time) string {
	var b strings.Builder
	if len(lists.Peers) == 0 {
		return "No PC is paired with this one: `bridge pair` shows a code for one.\n"
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, pc := range lists.Peers {
		asOf := pc.Failed
		if pc.AsOf != 0 {
			asOf = strings.TrimSuffix("as of "+bridge.Ago(pc.AsOf, now)+"; "+pc.Failed, "; ")
		}
		fmt.Fprintf(table, "%s\t%s\n", bridge.OneLine(pc.Name), bridge.OneLine(asOf))
		for _, s := range pc.Sessions {
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", bridge.OneLine(s.Name), s.Agent, bridge.OneLine(s.State), bridge.OneLine(s.Cwd))
		}
		for _, j := range pc.Jobs {
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", bridge.OneLine(j.Name), j.Agent, bridge.OneLine(j.Status), bridge.OneLine(j.Title))
		}
	}
	_ = table.Flush() // to memory
	return b.String()
}

// Network returns the paired PCs and their permissions here as text.
func Network(network api.Network, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This PC is %s", network.Name)
	if network.ID != "" {
		fmt.Fprintf(&b, " (%s)", link.Fingerprint(network.ID))
	}
	switch {
	case !network.Enabled:
		b.WriteString("; links are off (turn them on with `bridge network on`)")
	case network.Failed != "":
		b.WriteString("; no PC can connect: " + network.Failed)
	case len(network.Listening) > 0:
		b.WriteString("; it listens at " + strings.Join(network.Listening, ", "))
	}
	b.WriteString(".\n")
	if network.Team != nil {
		team(&b, *network.Team, now)
	}
	if len(network.Peers) == 0 && network.Team == nil {
		b.WriteString("No PC is paired with it: `bridge pair` shows a code for one.\n")
		return b.String()
	}
	for _, pc := range network.Peers {
		up, down := "linked", "not linked"
		if pc.Member && !pc.Paired {
			up, down = "of the team, there", "of the team, not there"
		}
		state := down
		if pc.Up {
			state = up + " " + bridge.Ago(pc.Since, now)
		}
		if pc.Release != "" {
			state += ", Bridge " + pc.Release
		}
		fmt.Fprintf(&b, "\n%s (%s), %s\n  %s\n", bridge.OneLine(pc.Name), link.Fingerprint(pc.ID), bridge.OneLine(state), bridge.OneLine(pc.May))
		if pc.Update != "" {
			fmt.Fprintf(&b, "  Update needed: %s.\n", pc.Update)
		}
		if pc.Failed != "" && !pc.Up {
			fmt.Fprintf(&b, "  The last connection attempt failed: %s.\n", bridge.OneLine(pc.Failed))
		}
	}
	return b.String()
}

// team writes the team of this PC and the link to its hub.
func team(b *strings.Builder, t api.Team, now time.Time) {
	switch {
	case t.Team == "":
		fmt.Fprintf(b, "Its team is not known: %s.\n", bridge.OneLine(t.Failed))
		return
	case t.Own && t.Up:
		fmt.Fprintf(b, "It is %s in the team %s (roster %s), by the team's own NATS server %s, connected %s.\n", bridge.OneLine(t.Name), bridge.OneLine(t.Team), link.Fingerprint(t.Hub), t.Server, bridge.Ago(t.Since, now))
	case t.Own:
		fmt.Fprintf(b, "It is %s in the team %s (roster %s), whose own NATS server is not reached: %s.\n", bridge.OneLine(t.Name), bridge.OneLine(t.Team), link.Fingerprint(t.Hub), bridge.OneLine(t.Failed))
	case t.Up:
		fmt.Fprintf(b, "It is %s in the team %s, by the hub %s (%s), connected %s.\n", bridge.OneLine(t.Name), bridge.OneLine(t.Team), t.Server, link.Fingerprint(t.Hub), bridge.Ago(t.Since, now))
	default:
		fmt.Fprintf(b, "It is %s in the team %s, whose hub (%s) is not reached: %s.\n", bridge.OneLine(t.Name), bridge.OneLine(t.Team), link.Fingerprint(t.Hub), bridge.OneLine(t.Failed))
	}
	if t.Waits != nil {
		fmt.Fprintf(b, "%s (first seen %s).\n", t.Waits.Words, bridge.Ago(t.Waits.Since, now))
	}
	for _, name := range t.Unheard {
		fmt.Fprintf(b, "The team's PC %s is not heard: a paired PC has that name. Give one of them another network.name.\n", name)
	}
}

// Invited returns the instructions for pairing the other PC.
func Invited(invitation api.Invited, home config.Home, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "On the other PC, run:\n\n  bridge link %s\n\nand type this code there, within %s:\n\n  %s\n\n",
		invitation.Addresses[0], bridge.Span(time.UnixMilli(invitation.ExpiresAt).Sub(now).Round(time.Minute)), invitation.Code)
	if host, _, err := net.SplitHostPort(invitation.Addresses[0]); err == nil && net.ParseIP(host).IsLoopback() {
		b.WriteString("Only this PC reaches that address. " + access.Choose(home) + "\n")
	}
	fmt.Fprintf(&b, "This PC is %s (%s).\n", invitation.Name, link.Fingerprint(invitation.Self))
	return b.String()
}

// Paired returns the message that a PC is paired.
func Paired(peer api.PCName, home config.Home) string {
	return fmt.Sprintf("Paired with %s (%s). It may do nothing here until you allow it, for example:\n  %s",
		peer.Name, link.Fingerprint(peer.ID), home.CommandLine("bridge", "allow", peer.Name, "messages"))
}

// Joined returns the message that this PC has joined a team.
func Joined(joined api.Joined, home config.Home) string {
	proof := "hub"
	if joined.Own {
		proof = "roster"
	}
	return fmt.Sprintf("This PC is %s in the team %s now (%s %s). The team's PCs may do nothing here until you allow it:\n  %s\n",
		joined.Name, joined.Team, proof, link.Fingerprint(joined.Hub), home.CommandLine("bridge", "network"))
}

// Shown is the output of `bridge pair --json`.
type Shown struct {
	Address   string            `json:"address"`
	Code      string            `json:"code"`
	ExpiresAt bridge.UnixMillis `json:"expiresAt"`
	ID        string            `json:"id"`
}

// Ended returns nil for a used invitation, and else an error with the reason of its end.
func Ended(ended api.InvitationEnded) error {
	switch link.InvitationState(ended.State) {
	case link.InvitationUsed:
		return nil
	case link.InvitationBurnt:
		return bridge.Errorf(bridge.Conflict, "three wrong codes were given: the invitation is burnt, run `bridge pair` again")
	default:
		return bridge.Errorf(bridge.Conflict, "no PC came in time: run `bridge pair` again")
	}
}

// Show returns the JSON form of an invitation.
func Show(invitation api.Invited) Shown {
	return Shown{Address: invitation.Addresses[0], Code: invitation.Code, ExpiresAt: invitation.ExpiresAt, ID: invitation.ID}
}
