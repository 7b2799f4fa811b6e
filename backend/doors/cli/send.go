package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

func sendCommand(a *App) *cobra.Command {
	var reply string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "send TO TEXT", Short: "Send a message from you to a session, or to all with '*'",
		Long: "Sends a message from you. TEXT is the message. With - the message is what is on standard input. `bridge help targets` says what TO may be.", ValidArgsFunction: completing(a, sessionNames),
		Example: "  bridge send codex-api \"the tests on main are red\"\n  bridge send '*' \"stop pushing for an hour\"\n  bridge send --reply none codex-api \"thanks, all is well\"\n  git diff | bridge send codex-api -", Args: usage.Exact(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] == "-" {
				text, err := terminal.ReadText(a.Stdin, a.Stderr, "Type the message, then Ctrl-D on a line of its own:")
				if err != nil {
					return err
				}
				args[1] = text
			}
			client, _, err := a.dialOwner(cmd.Context(), startsToWrite)
			if err != nil {
				return err
			}
			defer client.Close()
			sent, err := sendOnce(cmd.Context(), client, api.SendArgs{To: args[0], Body: args[1], Reply: mail.Reply(reply)})
			if err != nil {
				return err
			}
			return a.print(sent, sentText(sent))
		},
	})
	cmd.Flags().StringVar(&reply, "reply", string(mail.ReplyOptional), "ask for an answer: wanted, optional or none; none wakes nobody")
	return cmd
}

func sendOnce(ctx context.Context, client *ipc.Client, args api.SendArgs) (api.SendResult, error) {
	sent, err := client.Send(ctx, args)
	var e *bridge.Error
	if errors.As(err, &e) && e.Code == bridge.NotFound && !strings.Contains(args.To, "/") {
		return sent, bridge.Errorf(bridge.NotFound, "%s (bridge status lists the sessions)", e.Message)
	}
	return sent, err
}

func sentText(sent api.SendResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Stored as %s for:\n", sent.ID)
	for _, r := range sent.Recipients {
		switch {
		case r.Note != "":
			fmt.Fprintf(&b, "  %s: %s\n", bridge.OneLine(r.Name), bridge.OneLine(r.Note))
		case r.Wake:
			fmt.Fprintf(&b, "  %s: a wake was asked for\n", bridge.OneLine(r.Name))
		case r.Online:
			fmt.Fprintf(&b, "  %s: at its next step\n", bridge.OneLine(r.Name))
		default:
			fmt.Fprintf(&b, "  %s: when it is back\n", bridge.OneLine(r.Name))
		}
	}
	return b.String()
}
