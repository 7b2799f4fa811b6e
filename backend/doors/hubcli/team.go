package hubcli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/network/hub/server"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

// lookEvery is the interval of `invite`'s checks on its invitation.
const lookEvery = time.Second

func (a *App) inviteCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "invite", Short: "Show a code by which one PC can join the team", Args: usage.None,
		Long:    "Shows a code for ten minutes and waits for the PC that comes with it. It is good once; after three wrong codes it is\nburnt. An earlier invitation ends.",
		Example: "  bridge-hub invite",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.invite(cmd.Context()) },
	})
}

func (a *App) invite(ctx context.Context) error {
	if err := a.onlyOwner(); err != nil {
		return err
	}
	client, err := a.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	invited, err := client.Invite(ctx)
	if err != nil {
		return err
	}
	defer func() { // an interrupted command must leave no valid code
		withdraw, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookEvery)
		defer cancel()
		_ = client.Withdraw(withdraw, invited.ID) // it also expires automatically
	}()
	text := fmt.Sprintf("On the PC that joins, run:\n\n  bridge join %s\n\nand type this code there, within %s:\n\n  %s\n\n",
		invited.Addresses[0], bridge.Span(time.UnixMilli(invited.ExpiresAt).Sub(a.Now())), invited.Code)
	if err := a.print(invited, text); err != nil {
		return err
	}
	state, err := a.await(ctx, client, invited)
	if err != nil {
		return err
	}
	switch state.State {
	case link.InvitationUsed:
		if !a.json {
			fmt.Fprintf(a.Stdout, "%s belongs to the team.\n", state.PC)
		}
		return nil
	case link.InvitationBurnt:
		err = bridge.Errorf(bridge.Conflict, "three wrong codes were given: the invitation is burnt, run `bridge-hub invite` again")
	default:
		err = bridge.Errorf(bridge.Conflict, "no PC came in time: run `bridge-hub invite` again")
	}
	if a.json { // the document is already printed
		fmt.Fprintf(a.Stderr, "bridge-hub: %s\n", err)
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return err
}

// await waits until the invitation is no longer open, and counts down on a terminal.
func (a *App) await(ctx context.Context, client *server.Client, invited server.Invited) (server.Invitation, error) {
	out, counts := terminal.File(a.Stdout)
	counts = counts && !a.json
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		state, err := client.Invitation(ctx, invited.ID)
		if ctx.Err() != nil {
			return state, ctx.Err() // its owner cancelled; the hub is not the cause
		}
		if err != nil || state.State != link.InvitationOpen {
			if counts {
				fmt.Fprint(out, "\r\033[K")
			}
			return state, err
		}
		if counts {
			remaining := time.UnixMilli(invited.ExpiresAt).Sub(a.Now()).Round(time.Second)
			fmt.Fprintf(out, "\r\033[K%d:%02d left, %d of %d tries used", int(remaining.Minutes()), int(remaining.Seconds())%60, state.WrongCodes, link.MaxWrongCodes)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return server.Invitation{}, ctx.Err()
		}
	}
}

func (a *App) pcsCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "pcs", Short: "Show the PCs of the team", Args: usage.None, Example: "  bridge-hub pcs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(func(hub *server.Client) error {
				members, err := hub.PCs(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(map[string]any{"pcs": members}, membersText(members, a.Now()))
			})
		},
	})
}

func membersText(members []server.Member, now time.Time) string {
	if len(members) == 0 {
		return "No PC belongs to the team: `bridge-hub invite` shows a code for one.\n"
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, m := range members {
		state := "away"
		if m.Up {
			state = "up"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\tjoined %s\n", m.Name, link.Fingerprint(m.ID), state, bridge.Ago(m.EnrolledAt, now))
	}
	_ = table.Flush() // to memory
	for _, m := range members {
		if m.Before != nil {
			fmt.Fprintf(&b, "%s.\n", m.BeforeWords())
		}
	}
	return b.String()
}

func (a *App) removeCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "remove PC", Short: "Remove a PC from the team, at once", Args: usage.Exact(1),
		Long:    "Removes the PC of that name or identity. Its connection ends, its key opens nothing any more, and what it had sent\nand no PC took yet is gone from the hub.",
		Example: "  bridge-hub remove laptop",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.onlyOwner(); err != nil {
				return err
			}
			return a.ask(func(hub *server.Client) error {
				pc, err := hub.Remove(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(map[string]string{"name": pc.Name, "id": pc.ID}, pc.Name+" does not belong to the team any more.\n")
			})
		},
	})
}

func (a *App) statusCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "status", Short: "Show how the hub is", Args: usage.None, Example: "  bridge-hub status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(func(hub *server.Client) error {
				status, err := hub.Status(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(status, statusText(status, a.Now()))
			})
		},
	})
}

func statusText(s server.Status, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Hub of the team %s, node %s (%s), since %s.\n", s.Team, s.Node, link.Fingerprint(s.ID), bridge.Ago(s.Since, now))
	var keeps []string
	if !s.IsMissing(server.KindMessages) {
		keeps = append(keeps, bridge.Counted(int(s.Waiting), "message")+" for PCs that are away")
	}
	if !s.IsMissing(server.KindDecisions) {
		keeps = append(keeps, bridge.Counted(int(s.Decisions), "decision"))
	}
	keeps = append(keeps, fmt.Sprintf("%s of %s are used", bridge.Size(int64(s.Bytes)), bridge.Size(s.MaxBytes)))
	fmt.Fprintf(&b, "%d of %d PCs are up. %s.\n", s.Up, s.PCs, strings.Join(keeps, ", "))
	if s.Replicas > 1 {
		fmt.Fprintf(&b, "Each message is on %s.\n", bridge.Counted(s.Replicas, "node"))
	}
	if s.Full != 0 {
		fmt.Fprintf(&b, "FULL: %s.\n", s.FullWords())
	}
	for _, u := range s.Unanswered {
		fmt.Fprintf(&b, "NO ANSWER: %s.%s\n", u.Words(), lacking(u.Kind))
	}
	for _, m := range s.Namesakes {
		fmt.Fprintf(&b, "%s.\n", m.BeforeWords())
	}
	for _, node := range s.Behind {
		fmt.Fprintf(&b, "Behind: %s.\n", node)
	}
	return b.String()
}

// lacking returns the line for a stream of that kind that did not answer.
func lacking(kind string) string {
	if kind == server.KindPresence {
		return " Only PCs that are connected to this node are counted as up."
	}
	return " How much it keeps is not told above."
}

func (a *App) permissionsCommand() *cobra.Command {
	var team string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "permissions PC", Short: "Print what a NATS server of the team's own must allow one PC", Args: usage.Exact(1),
		Long:    "Prints the permissions of the PC with that identity, and what must be there before it comes: for a team that runs its\nown NATS server instead of this hub. `bridge join --identity` shows a PC's identity, and `bridge-hub roster init` makes the\nstreams.",
		Example: "  bridge-hub permissions --team crew 3f2a...",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := subject.CheckTeam(team); err != nil {
				return err
			}
			if err := subject.CheckPC(args[0]); err != nil {
				return err
			}
			allowed := subject.For(team, args[0])
			return a.print(map[string]any{"publish": allowed.Publish, "subscribe": allowed.Subscribe, "streams": streams(team), "consumer": consumer(team, args[0])}, permissionsText(team, args[0], allowed))
		},
	})
	cmd.Flags().StringVar(&team, "team", server.Usual().Team, "the team's name")
	return cmd
}

// stream is one that a server of the team's own must have.
type stream struct {
	Name      string `json:"name"`
	Subjects  string `json:"subjects"`
	Retention string `json:"retention"`
	Storage   string `json:"storage"`
	Note      string `json:"note"`
}

func streams(team string) []stream {
	return []stream{
		{subject.MessageStream(team), subject.MessageSubjects(team), "workqueue", "file", "discard new, at most 10000 messages a subject (discard new per subject)"},
		{subject.DecisionStream(team), subject.DecisionSubjects(team), "limits", "file", "discard new, direct get allowed, deny delete and purge"},
		{subject.BucketStream(subject.RosterBucket(team)), subject.BucketKey(subject.RosterBucket(team), ">"), "limits", "file", "key-value bucket " + subject.RosterBucket(team) + ", history 1"},
		{subject.BucketStream(subject.PresenceBucket(team)), subject.BucketKey(subject.PresenceBucket(team), ">"), "limits", "memory", "key-value bucket " + subject.PresenceBucket(team) + ", history 1, a life of " + subject.LongestPresence.String()},
	}
}

func consumer(team, pc string) map[string]string {
	return map[string]string{"stream": subject.MessageStream(team), "name": subject.Consumer(pc), "filter": subject.Inbox(team, pc), "acknowledgement": "explicit, one at a time (max_ack_pending 1)"}
}

func permissionsText(team, pc string, allowed subject.Permissions) string {
	var b strings.Builder
	b.WriteString("permissions: {\n  publish: { allow: [\n")
	for _, s := range allowed.Publish {
		fmt.Fprintf(&b, "    %q\n", s)
	}
	b.WriteString("  ] }\n  subscribe: { allow: [\n")
	for _, s := range allowed.Subscribe {
		fmt.Fprintf(&b, "    %q\n", s)
	}
	b.WriteString("  ] }\n}\n\n# The server needs max_payload: 1064960 or more, and in jetstream {} sync_interval: always.\n# In the team's account, all made by `bridge-hub roster`:\n")
	for _, s := range streams(team) {
		fmt.Fprintf(&b, "#   stream %s: subjects %s, %s retention, %s storage; %s\n", s.Name, s.Subjects, s.Retention, s.Storage, s.Note)
	}
	fmt.Fprintf(&b, "#   durable consumer %s in %s: filter %s, explicit acknowledgement, max_ack_pending 1\n", subject.Consumer(pc), subject.MessageStream(team), subject.Inbox(team, pc))
	return b.String()
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Args: usage.None, Example: "  bridge-hub version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.Stdout, a.versionText())
			return err
		},
	}
}

func (a *App) versionText() string { return usage.BuildOf(a.Version).Text("bridge-hub") }
