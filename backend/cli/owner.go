package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/dashboard"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/maintain"
	"bridge/backend/maintain/inventory"
)

func (a *App) openCommand() *cobra.Command {
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

func (a *App) urlCommand() *cobra.Command {
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
			link := client.Welcome().URL + dashboard.LaunchPath(string(secret))
			return a.print(map[string]string{"url": link}, link+"\n")
		},
	})
}

// statusReport is what `bridge status --json` prints.
type statusReport struct {
	Running bool       `json:"running"`
	Broker  api.Status `json:"broker"`
	Home    string     `json:"home"`
	Jobs    []struct{} `json:"jobs"`
	// Storage is how the storage stands at a quick look; null when none was
	// possible.
	Storage *maintain.Standing `json:"storage"`
}

func (a *App) statusCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "status", Short: "Show the broker and the live sessions", Example: "  bridge status\n  bridge status --json", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, home, err := a.dialOwner(cmd.Context(), false)
			if bridge.CodeOf(err) == bridge.Unavailable && !errors.Is(err, context.DeadlineExceeded) {
				return a.statusOffline(cmd.Context(), home)
			}
			if err != nil {
				return err
			}
			defer client.Close()
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			report := statusReport{Running: true, Broker: status, Home: home.Dir(), Jobs: []struct{}{}}
			storage := a.lookAtStorage(cmd.Context(), home, &report)
			return a.print(report, statusText(status, home.Dir(), storage, a.Now()))
		},
	})
}

func (a *App) statusOffline(ctx context.Context, home config.Home) error {
	if _, err := (maintain.Caretaker{Home: home}).HasStore(ctx); errors.Is(err, maintain.ErrLost) {
		return err
	}
	report := statusReport{Home: home.Dir(), Broker: api.Status{Peers: []api.Peer{}}, Jobs: []struct{}{}}
	storage := a.lookAtStorage(ctx, home, &report)
	text := fmt.Sprintf("No broker runs for %s.\nA session starts one by itself; `bridge serve` or `bridge open` do too.\n%s", home.Dir(), storage)
	if err := a.print(report, text); err != nil {
		return err
	}
	return &reported{exitNoOne}
}

// lookAtStorage puts how the storage stands into the report, and returns it in
// words. It needs no broker and changes nothing.
func (a *App) lookAtStorage(ctx context.Context, home config.Home, report *statusReport) string {
	caretaker := maintain.Caretaker{Home: home, Now: a.Now}
	standing, err := caretaker.Look(ctx)
	if err != nil {
		return fmt.Sprintf("Storage    could not be looked at: %s\n", err)
	}
	report.Storage = &standing
	if err := caretaker.RequireHome(); err != nil {
		return fmt.Sprintf("Storage    %s\n", err)
	}
	return storageText(standing, a.Now())
}

func storageText(s maintain.Standing, now time.Time) string {
	more := "bridge doctor reads everything"
	if s.Errors+s.Warnings > 0 {
		more = "bridge doctor says what it is"
	}
	return fmt.Sprintf("Storage    %s at a quick look   (%s)\nBackups    full: %s; messages: %s; last proven restore: %s\n",
		s.Words(), more, setAge(s.LastSnapshot, now), setAge(s.LastMessages, now), proofAge(s.LastProof, now))
}

func setAge(set *inventory.Set, now time.Time) string {
	if set == nil {
		return "none"
	}
	return bridge.Ago(set.CreatedAt, now)
}

func proofAge(proof *inventory.Proof, now time.Time) string {
	if proof == nil {
		return "none"
	}
	return bridge.Ago(proof.At, now)
}

func statusText(s api.Status, home, storage string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Broker     version %s, process %d (%s), up %s\n", s.Version, s.PID, s.Host, now.Sub(time.UnixMilli(s.Since)).Round(time.Second))
	fmt.Fprintf(&b, "Dashboard  %s   (bridge open)\n", s.URL)
	fmt.Fprintf(&b, "Home       %s, store schema %d\n%s", home, s.Schema, storage)
	fmt.Fprintf(&b, "Tried      %s   (versions of the agent CLIs)\n", agent.TriedAll())
	if len(s.Peers) == 0 {
		b.WriteString("Sessions   none; connect your agents with `bridge install`, then start one\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Sessions   %d\n\n", len(s.Peers))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tAGENT\tSTATE\tUNREAD\tMAIL BY\tFOLDER")
	for _, p := range s.Peers {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\t%s\n", p.Name, p.Agent, p.State, p.Unread, p.Transport, p.Cwd)
	}
	_ = table.Flush() // a strings.Builder never fails
	for _, p := range s.Peers {
		if p.Problem != "" {
			fmt.Fprintf(&b, "\n  ! %s: %s\n", p.Name, p.Detail)
		}
	}
	return b.String()
}

func (a *App) sendCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "send TO TEXT", Short: "Send a message from you to a session, or to all with '*'",
		Example: "  bridge send codex-api \"the tests on main are red\"\n  bridge send '*' \"stop pushing for an hour\"", Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, _, err := a.dialOwner(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer client.Close()
			sent, err := a.sendOnce(cmd.Context(), client, args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(sent, sentText(sent))
		},
	})
}

func (a *App) sendOnce(ctx context.Context, client *ipc.Client, to, text string) (api.SendResult, error) {
	sent, err := client.Send(ctx, api.SendArgs{To: to, Body: text})
	var e *bridge.Error
	if errors.As(err, &e) && e.Code == bridge.NotFound {
		return sent, bridge.Errorf(bridge.NotFound, "%s (bridge status lists the sessions)", e.Message)
	}
	return sent, err
}

func sentText(sent api.SendResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Stored as %s for:\n", sent.ID)
	for _, r := range sent.Recipients {
		switch {
		case r.Wake:
			fmt.Fprintf(&b, "  %s: a wake was asked for\n", r.Name)
		case r.Online:
			fmt.Fprintf(&b, "  %s: at its next step\n", r.Name)
		default:
			fmt.Fprintf(&b, "  %s: when it is back\n", r.Name)
		}
	}
	return b.String()
}
