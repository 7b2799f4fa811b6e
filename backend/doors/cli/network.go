package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/access"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/pairs"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/network/link"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// pairCommand shows a code and waits for the PC that uses it (RMT-01).
func pairCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "pair", Short: "Show a code by which another PC can pair with this one", Args: usage.None,
		Long:    "Shows an address and a code for ten minutes, and waits for the other PC. After three wrong codes the invitation is\nvoid. On a terminal it first asks whether links shall be on, and at which address of this PC. A paired PC may do\nnothing here until you allow it: by `bridge allow`, or on the Network page.",
		Example: "  bridge pair",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.pair(cmd.Context()) },
	})
}

func (a *App) pair(ctx context.Context) error {
	if err := a.onlyOwner("pair"); err != nil {
		return err
	}
	client, home, err := a.dialOwner(ctx, startsToWrite)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := access.AskToReach(a.run(), home); err != nil {
		return err
	}
	invitation, err := client.Invite(ctx)
	if err != nil {
		return err
	}
	if err := a.print(pairs.Show(invitation), pairs.Invited(invitation, home, a.Now())); err != nil {
		return err
	}
	ended, err := client.AwaitInvitation(ctx, invitation.ID)
	if err != nil {
		return err
	}
	if err = pairs.Ended(ended); err == nil {
		a.explain(pairs.Paired(ended.Peer, home))
		return access.AskToLink(a.run(), home)
	}
	if a.json { // the document is already printed
		fmt.Fprintf(a.Stderr, "bridge: %s\n", outcome.Sentence(err))
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return err
}

// linkCommand pairs with the PC that shows a code.
func linkCommand(a *App) *cobra.Command {
	return a.byCode(&cobra.Command{
		Use: "link ADDRESS", Short: "Pair with the PC that shows a code",
		Long:    "Pairs with the PC at that address, where `bridge pair` runs. Bridge asks for the code that is shown there, because\nother users can see the arguments of a command. On a terminal it then asks whether links shall be on.",
		Example: "  bridge link 192.168.1.20:4778",
	}, func(ctx context.Context, client *ipc.Client, home config.Home, args api.LinkArgs) (any, string, error) {
		peer, err := client.Link(ctx, args)
		return peer, pairs.Paired(peer, home) + "\n", err
	})
}

// joinCommand adds this PC to a team (HUB-03).
func joinCommand(a *App) *cobra.Command {
	cmd := a.byCode(&cobra.Command{
		Use: "join ADDRESS", Short: "Join the team whose hub shows a code",
		Long: "Adds this PC to the team whose hub is at that address. Bridge asks for the code that `bridge-hub invite` shows there,\nbecause other users can see the arguments of a command. The team's PCs may do nothing here until you allow it.\n" +
			"A team with a NATS server of its own has no code: each PC has credentials there, and a roster that the team's key has signed.",
		Example: "  bridge join hub.example\n  bridge join --nats tls://nats.example:4222 --creds laptop.creds --team crew --roster 3f2a...",
	}, func(ctx context.Context, client *ipc.Client, home config.Home, args api.LinkArgs) (any, string, error) {
		joined, err := client.JoinTeam(ctx, args)
		return joined, pairs.Joined(joined, home), err
	})
	own, needsAddress, byCode := pairs.BindExternal(cmd.Flags()), cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if own.IsSet() {
			return usage.None(cmd, args)
		}
		return needsAddress(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !own.IsSet() {
			return byCode(cmd, args)
		}
		if err := a.onlyOwner(cmd.Name()); err != nil {
			return err
		}
		home, err := a.home()
		if err != nil {
			return err
		}
		join, err := own.Read(home)
		if err == nil {
			err = a.withBroker(startsToWrite, join)(cmd, args)
		}
		if err != nil || cmd.Flags().Changed("identity") { // that joins nothing
			return err
		}
		return access.AskToLink(a.run(), home)
	}
	return cmd
}

// byCode makes a command that asks for the code shown at an address, and calls do
// with it.
func (a *App) byCode(cmd *cobra.Command, do func(ctx context.Context, client *ipc.Client, home config.Home, args api.LinkArgs) (answer any, text string, err error)) *cobra.Command {
	var fromInput bool
	cmd.Args = usage.Exact(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.onlyOwner(cmd.Name()); err != nil {
			return err
		}
		code, err := a.readCode(fromInput)
		if err != nil {
			return err
		}
		if _, err := link.CleanCode(code); err != nil {
			return err
		}
		home, err := a.home()
		if err != nil {
			return err
		}
		err = a.trusting(func(ctx context.Context, client *ipc.Client, args []string) (any, string, error) {
			answer, text, err := do(ctx, client, home, api.LinkArgs{Address: args[0], Code: code})
			if bridge.CodeOf(err) == bridge.Unavailable { // it concerns the other side, not this broker
				err = bridge.Errorf(bridge.Conflict, "%s", err.Error())
			}
			return answer, text, err
		})(cmd, args)
		if err != nil {
			return err
		}
		return access.AskToLink(a.run(), home)
	}
	cmd.Flags().BoolVar(&fromInput, "code-stdin", false, "read the code from standard input")
	return a.jsonFlag(cmd)
}

// trusting returns the function of a command that changes the trust in other PCs.
func (a *App) trusting(do func(ctx context.Context, client *ipc.Client, args []string) (answer any, text string, err error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.onlyOwner(cmd.Name()); err != nil {
			return err
		}
		return a.withBroker(startsToWrite, func(ctx context.Context, client *ipc.Client) (any, string, error) { return do(ctx, client, args) })(cmd, args)
	}
}

// withBroker returns the function of a command that queries the broker about other PCs.
func (a *App) withBroker(starts starting, look func(ctx context.Context, client *ipc.Client) (answer any, text string, err error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		client, _, err := a.dialOwner(cmd.Context(), starts)
		if err != nil {
			return err
		}
		defer client.Close()
		answer, text, err := look(cmd.Context(), client)
		if err != nil {
			return err
		}
		return a.print(answer, text)
	}
}

// leaveCommand removes this PC from its team.
func leaveCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "leave", Short: "Leave the team", Args: usage.None,
		Long:    "Ends this PC's membership of its team, at once: its key for the hub is gone, and what you allowed the team's PCs by name.\nThe hub is told and takes it out of the team; where it cannot be reached this says so, and `bridge-hub remove` does it there.\nCredentials for a NATS server of the team's own are removed from here.",
		Example: "  bridge leave",
		RunE: a.trusting(func(ctx context.Context, client *ipc.Client, _ []string) (any, string, error) {
			former, err := client.LeaveTeam(ctx)
			return former, pairs.Left(former), err
		}),
	})
}

// readCode reads the code from the terminal, or a line from a script.
func (a *App) readCode(fromInput bool) (string, error) {
	if !fromInput {
		input, ok := a.Stdin.(*os.File)
		if !ok || !term.IsTerminal(int(input.Fd())) {
			return "", bridge.Errorf(bridge.Denied, "this is no terminal to ask for the code on: a script gives it on standard input with --code-stdin")
		}
		asking := a.Stdout
		if a.json {
			asking = a.Stderr
		}
		fmt.Fprint(asking, "Code shown there: ")
	}
	line, err := bufio.NewReader(io.LimitReader(a.Stdin, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the code: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// unlinkCommand removes a pairing.
func unlinkCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "unlink NAME", ValidArgsFunction: completing(a, pcNames), Short: "End the pairing with another PC", Args: usage.Exact(1),
		Long:    "Ends the pairing with that PC, at once: its key opens nothing here any more. Unlink this PC there, too.",
		Example: "  bridge unlink desk",
		RunE: a.trusting(func(ctx context.Context, client *ipc.Client, args []string) (any, string, error) {
			return map[string]string{"name": args[0]}, args[0] + " is not paired with this PC any more.\n", client.Unlink(ctx, args[0])
		}),
	})
}

// teamCommand lists the members of the team.
func teamCommand(a *App) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "team", Short: "Show who is in the team, who is there and what each may do here", Args: usage.None, Example: "  bridge team",
		RunE: a.withBroker(startsToRead, func(ctx context.Context, client *ipc.Client) (any, string, error) {
			network, err := client.Network(ctx)
			crew := pairs.TeamOf(network)
			return crew, crew.Text(a.Now()), err
		}),
	})
}

// networkCommand lists the paired PCs.
func networkCommand(a *App) *cobra.Command {
	var sessions bool
	cmd := &cobra.Command{
		Use: "network", Short: "Show the other PCs, paired or of the team, and what each may do here", Args: usage.None,
		Example: "  bridge network\n  bridge network --sessions\n  bridge network on --listen 192.168.1.20",
		RunE: a.withBroker(startsToRead, func(ctx context.Context, client *ipc.Client) (any, string, error) {
			if sessions {
				lists, err := client.NetworkLists(ctx)
				return lists, pairs.Lists(lists, a.Now()), err
			}
			network, err := client.Network(ctx)
			return network, pairs.Network(network, a.Now()), err
		}),
	}
	cmd.Flags().BoolVar(&sessions, "sessions", false, "show the sessions and jobs of the paired PCs, as far as their owners do")
	cmd.AddCommand(access.Switches(a.run(), access.Owner{Reach: func(ctx context.Context) (*ipc.Client, error) {
		client, _, err := a.dialOwner(ctx, startsNone)
		return client, err
	}})...)
	return a.jsonFlag(cmd)
}
