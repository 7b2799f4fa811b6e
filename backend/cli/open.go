package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"bridge/backend/bridge"
	"bridge/backend/dashboard/guard"
)

func openCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: "open", Short: "Open the dashboard in the browser", Example: "  bridge open", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, _, err := a.dialOwner(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer client.Close()
			link, err := client.Ticket(cmd.Context())
			if err != nil {
				return err
			}
			if err := openBrowser(cmd.Context(), link); err != nil {
				fmt.Fprintf(a.Stdout, "No browser could be started here. This link opens the dashboard once, within 30 seconds:\n%s\n", link)
				return nil
			}
			fmt.Fprintf(a.Stdout, "The dashboard is at %s\n", client.Welcome().URL)
			return nil
		},
	}
}

// openBrowser hands a link to the desktop.
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
	return a.jsonFlag(&cobra.Command{
		Use: "url", Short: "Print the dashboard's launch link", Example: "  bridge url", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, home, err := a.dialOwner(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer client.Close()
			secret, err := home.LaunchSecret()
			if err != nil {
				return err
			}
			if client.Welcome().URL == "" {
				return bridge.Errorf(bridge.Unavailable, "the broker serves no dashboard; %s says why", home.Log())
			}
			link := client.Welcome().URL + guard.LaunchPath(string(secret))
			return a.print(map[string]string{"url": link}, link+"\n")
		},
	})
}
