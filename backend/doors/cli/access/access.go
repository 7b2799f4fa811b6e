// Package access holds the commands by which the owner lets other PCs in: `bridge network
// on` and `off`, `bridge allow` and `bridge deny`, and the questions of a pairing.
package access

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/network/link"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	storage "bridge/backend/storage/maintain/check"
)

// Owner is how the commands reach the broker as the owner.
type Owner struct {
	// Dial connects to the broker, and starts one in an existing home.
	Dial func(ctx context.Context) (*ipc.Client, error)
	// Reach connects to a broker that runs, and starts none.
	Reach func(ctx context.Context) (*ipc.Client, error)
	// PCs completes the name of another PC.
	PCs cobra.CompletionFunc
}

// links is the answer of `bridge network on` and `off`.
type links struct {
	Enabled bool     `json:"enabled"`
	Listen  []string `json:"listen"` // host:port, at which this PC accepts links
}

// Switches returns the subcommands on and off of `bridge network` (RMT-06).
func Switches(r command.Run, owner Owner) []*cobra.Command {
	var addresses []string
	on := r.JSONFlag(&cobra.Command{
		Use: "on", Short: "Turn the links with other PCs on", Args: usage.None,
		Long:    "Turns on the links with paired PCs and with the team. Without --listen, Bridge keeps the addresses of\nnetwork.listen; at first these are of this PC only. Within an agent it is refused.",
		Example: "  bridge network on\n  bridge network on --listen 192.168.1.20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return turn(cmd.Context(), r, owner, "network on", func(n *config.Network) {
				n.Enabled = true
				if cmd.Flags().Changed("listen") {
					n.Listen = addresses
				}
			})
		},
	})
	on.Flags().StringSliceVar(&addresses, "listen", nil, "an address of this PC at which other PCs reach it")
	_ = on.RegisterFlagCompletionFunc("listen", cobra.FixedCompletions(link.OwnAddresses(), cobra.ShellCompDirectiveNoFileComp)) // it is a flag of this command
	off := r.JSONFlag(&cobra.Command{
		Use: "off", Short: "Turn the links with other PCs off", Args: usage.None,
		Long:    "Ends the links with other PCs at once. Pairings and permissions stay. Within an agent it is refused.",
		Example: "  bridge network off",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return turn(cmd.Context(), r, owner, "network off", func(n *config.Network) { n.Enabled = false })
		},
	})
	return []*cobra.Command{on, off}
}

// turn changes the settings for other PCs and prints what holds now.
func turn(ctx context.Context, r command.Run, owner Owner, action string, change func(*config.Network)) error {
	if err := r.OnlyOwner(action); err != nil {
		return err
	}
	home, err := homeToChange(r)
	if err != nil {
		return err
	}
	settings, err := save(home, func(n *config.Network) error { change(n); return nil })
	if err != nil {
		return err
	}
	if err := apply(ctx, owner); err != nil {
		return err
	}
	answer := links{Enabled: settings.Enabled, Listen: at(settings)}
	if !settings.Enabled {
		return r.Print(answer, "Links are off: no PC reaches this one, and this one reaches none. Pairings stay.\n")
	}
	return r.Print(answer, "Links are on. "+reachable(home, settings))
}

// apply has a running broker apply the settings at once. Without one there is nothing to do.
func apply(ctx context.Context, owner Owner) error {
	client, err := owner.Reach(ctx)
	if bridge.CodeOf(err) == bridge.Unavailable {
		return nil
	}
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Network(ctx) // the broker applies them before it answers
	return err
}

// homeToChange returns the home, which must be there.
func homeToChange(r command.Run) (config.Home, error) {
	home, err := r.Home()
	if err == nil {
		err = storage.RequireHome(home)
	}
	return home, err
}

// save changes network in config.json and returns what holds now. It fails with Invalid if
// a value does not fit, and with Storage if the file cannot be written.
func save(home config.Home, change func(*config.Network) error) (config.Network, error) {
	file := config.File{Home: home}
	_, revision, err := file.Read()
	if err != nil {
		return config.Network{}, err
	}
	edit, err := file.Plan(revision, func(c *config.Config) error { return change(&c.Network) })
	if err == nil {
		err = edit.Save()
	}
	return edit.After.Network, err
}

// at returns the addresses of this PC that accept links, as host:port; without the port if
// any is taken.
func at(settings config.Network) (list []string) {
	for _, address := range settings.Addresses() {
		if settings.Port != 0 {
			address = net.JoinHostPort(address, strconv.Itoa(settings.Port))
		}
		list = append(list, address)
	}
	return list
}

// reachable returns a sentence about the addresses of this PC, and the command that adds
// one if only this PC can reach them.
func reachable(home config.Home, settings config.Network) string {
	if !onlyLocal(settings) {
		return fmt.Sprintf("Other PCs reach this one at %s.\n", strings.Join(at(settings), ", "))
	}
	return "This PC can reach others; they cannot reach it at " + strings.Join(at(settings), ", ") + ".\n" + Choose(home)
}

// onlyLocal reports whether only this PC reaches the addresses.
func onlyLocal(settings config.Network) bool {
	return !slices.ContainsFunc(settings.Addresses(), func(address string) bool { return !net.ParseIP(address).IsLoopback() })
}

// Choose returns the command that chooses an address of this PC, for each that it has.
func Choose(home config.Home) string {
	own := link.OwnAddresses()
	if len(own) == 0 {
		return "This PC has no address in a network now.\n"
	}
	text := "To let them in, choose an address of this PC:\n"
	for _, address := range own {
		text += "  " + home.CommandLine("bridge", "network", "on", "--listen", address) + "\n"
	}
	return text
}

// AskToReach asks on a terminal, before a pairing, whether links shall be on and at which
// address of this PC. Without a terminal it changes nothing. It fails with Invalid for a wrong
// number, and if the settings cannot be read or written.
func AskToReach(r command.Run, home config.Home) error {
	settings, err := readSettings(home)
	if err != nil || !r.IsTerminal() || *r.JSON {
		return err
	}
	if !settings.Enabled {
		if err := AskToLink(r, home); err != nil {
			return err
		}
	}
	if len(settings.Listen) > 0 {
		return nil
	}
	own := link.OwnAddresses()
	if len(own) == 0 {
		return nil
	}
	fmt.Fprintln(r.Stdout, "At which address does the other PC reach this one?")
	for i, address := range own {
		fmt.Fprintf(r.Stdout, "  %d) %s\n", i+1, address)
	}
	answer, err := r.Line("Number, or Enter for this PC only: ")
	if err != nil || answer == "" {
		return err
	}
	number, err := strconv.Atoi(answer)
	if err != nil || number < 1 || number > len(own) {
		return bridge.Errorf(bridge.Invalid, "%q is no number from 1 to %d: nothing was changed", answer, len(own))
	}
	_, err = save(home, func(n *config.Network) error { n.Listen = []string{own[number-1]}; return nil })
	return err
}

// AskToLink turns links on if they are off and the owner agrees on a terminal. Without a
// terminal it prints the command that does so. It fails if the settings cannot be read or
// written.
func AskToLink(r command.Run, home config.Home) error {
	settings, err := readSettings(home)
	if err != nil || settings.Enabled {
		return err
	}
	turnOn := home.CommandLine("bridge", "network", "on")
	if *r.JSON {
		return nil
	}
	if !r.IsTerminal() {
		r.Explain("Links are off on this PC, so nothing crosses yet. Turn them on: " + turnOn)
		return nil
	}
	answer, err := r.Line("Links with other PCs are off here. Turn them on? [y/N] ")
	if err != nil {
		return err
	}
	if !command.IsYes(answer) {
		r.Explain("Links stay off. To turn them on later: " + turnOn)
		return nil
	}
	_, err = save(home, func(n *config.Network) error { n.Enabled = true; return nil })
	if err == nil {
		r.Explain("Links are on.")
	}
	return err
}

func readSettings(home config.Home) (config.Network, error) {
	settings, _, err := config.File{Home: home}.Read()
	return settings.Network, err
}
