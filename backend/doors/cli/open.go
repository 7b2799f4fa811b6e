package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/ipc/api"
)

func openCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: "open", Short: "Open the dashboard in the browser", Example: "  bridge open", Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, _, err := a.dialOwner(cmd.Context(), startsToWrite)
			if err != nil {
				return err
			}
			defer client.Close()
			entry, err := client.Entry(cmd.Context())
			if err != nil {
				return err
			}
			if err := openBrowser(cmd.Context(), entry); err != nil {
				link, err := client.Ticket(cmd.Context())
				if err != nil {
					return err
				}
				fmt.Fprintf(a.Stdout, "No browser could be started here. This link opens the dashboard once, within 30 seconds:\n%s\n", link)
				return nil
			}
			fmt.Fprintf(a.Stdout, "The dashboard is at %s\n", client.Welcome().URL)
			return nil
		},
	}
}

// openBrowser lets the desktop open an address or a file. Other users of this
// computer can read the command line, so the address must hold no key.
func openBrowser(ctx context.Context, link string) error {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return exec.CommandContext(ctx, command[0], append(command[1:], link)...).Run()
}

func urlCommand(a *App) *cobra.Command {
	renew := false
	command := a.jsonFlag(&cobra.Command{
		Use: "url", Short: "Print the dashboard's launch link", Example: "  bridge url\n  bridge url --new", Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, _, err := a.dialOwner(cmd.Context(), startsToWrite)
			if err != nil {
				return err
			}
			defer client.Close()
			link, err := client.LaunchLink(cmd.Context(), api.LaunchArgs{New: renew})
			if err != nil {
				return err
			}
			return a.print(map[string]string{"url": link}, link+"\n")
		},
	})
	command.Flags().BoolVar(&renew, "new", false, "make a new link; end the old one and sign every browser out")
	return command
}
