package hubcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/provision"
	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
)

// rosterCommand returns the command for a team that runs its own NATS server (HUB-01).
func (a *App) rosterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "roster", Short: "Who is in a team that has a NATS server of its own", Args: usage.None,
		Long: "Keeps who is in a team that has a NATS server of its own in place of this hub, and seals it with the team's key. Both\n" +
			"are in the home's folder roster, on a machine of the team's owner and not on the server: whoever has it decides who is in\nthe team. Keep a copy.",
		Example: "  bridge-hub roster init --team crew --nats tls://nats.example:4222 --creds owner.creds\n  bridge-hub roster add laptop 3f2a...\n  bridge-hub roster print",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.rosterInit(), a.rosterAdd(), a.rosterRemove(), a.rosterPublish(), a.rosterPrint())
	return cmd
}

// rosterDir returns the folder of the roster.
func (a *App) rosterDir() (string, error) {
	home, err := a.home()
	return filepath.Join(home.Dir(), "roster"), err
}

// withRoster runs do with the existing roster.
func (a *App) withRoster(ctx context.Context, do func(*provision.Roster) error) error {
	dir, err := a.rosterDir()
	if err != nil {
		return err
	}
	r, err := provision.Open(ctx, dir, a.Now)
	if err != nil {
		return err
	}
	defer r.Close()
	return do(r)
}

func (a *App) rosterInit() *cobra.Command {
	set := provision.Settings{}
	var creds, ca string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "init", Short: "Make what the team needs on its server, and the team's key", Args: usage.None,
		Long:    "Makes the team's streams and buckets on the server, with credentials that may do everything in the team's account, and a\nkey that seals who is in the team. With a roster that is there already it changes where the server is.",
		Example: "  bridge-hub roster init --team crew --nats tls://nats.example:4222 --creds owner.creds",
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := a.onlyOwner(); err != nil {
			return err
		}
		if set.Access.Creds, err = readFile("--creds", "credentials file", creds); err != nil {
			return err
		}
		if ca != "" {
			if set.Access.CA, err = readFile("--ca", "certificates file", ca); err != nil {
				return err
			}
		}
		dir, err := a.rosterDir()
		if err != nil {
			return err
		}
		r, err := provision.Init(cmd.Context(), dir, set, a.Now)
		if err != nil {
			return err
		}
		defer r.Close()
		return a.printRoster(r)
	}
	cmd.Flags().StringVar(&set.Team, "team", "team", "the team's name")
	cmd.Flags().StringSliceVar(&set.URLs, "nats", nil, "tls://host:port of the server")
	cmd.Flags().StringVar(&creds, "creds", "", "file with the owner's credentials; they are copied into the home")
	cmd.Flags().StringVar(&ca, "ca", "", "file with the certificates that sign the server's (default the system's)")
	cmd.Flags().BoolVar(&set.Access.Plain, "plain", false, "let nats://, which is not encrypted, go beyond this machine")
	cmd.Flags().Int64Var(&set.MaxBytes, "max-bytes", 1<<30, "how much of the server's disk the team takes at most")
	cmd.Flags().IntVar(&set.Replicas, "replicas", 1, "how many of the server's nodes keep each message")
	return cmd
}

func readFile(flag, what, path string) (string, error) {
	if path == "" {
		return "", bridge.Errorf(bridge.Invalid, "%s is missing: a %s", flag, what)
	}
	data, err := disk.ReadLimited(path, externalnats.MaxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bridge.Errorf(bridge.Invalid, "the %s %s is not there", what, path)
	case errors.Is(err, os.ErrPermission):
		return "", bridge.Errorf(bridge.Invalid, "the %s %s may not be read", what, path)
	case err != nil:
		return "", bridge.WithCause(bridge.Invalid, err, fmt.Sprintf("the %s %s cannot be read: %s", what, path, disk.Reason(err)))
	}
	return string(data), nil
}

func (a *App) rosterAdd() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "add NAME IDENTITY", Short: "Take a PC into the team", Args: usage.Exact(2),
		Long:    "Takes the PC of that identity into the team, by that name. `bridge join --identity` shows it on the PC, and its key, which\ndoes in its place: others can seal to it then before they have heard it (network.hub.seal).",
		Example: "  bridge-hub roster add laptop 3f2a...",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.onlyOwner(); err != nil {
				return err
			}
			return a.withRoster(cmd.Context(), func(r *provision.Roster) error {
				pc, err := r.Add(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				return a.print(pc, fmt.Sprintf("%s is in the team %s. With the credentials that it has from the server's administrator, run there:\n\n  %s\n", pc.Name, r.Settings().Team, joinLine(r, pc.Name)))
			})
		},
	})
}

// joinLine returns the command that adds a PC to the team.
func joinLine(r *provision.Roster, name string) string {
	set := r.Settings()
	line := fmt.Sprintf("bridge join --nats %s --creds %s.creds --team %s --roster %s", strings.Join(set.URLs, ","), name, set.Team, r.Key())
	if set.Access.CA != "" {
		line += " --ca ca.pem"
	}
	if set.Access.Plain {
		line += " --plain"
	}
	return line
}

func (a *App) rosterRemove() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "remove PC", Short: "Remove a PC from the team", Args: usage.Exact(1),
		Long:    "Removes the PC of that name or identity: no PC of the team hears it any more, and what it had sent and no PC took yet is\ngone. Its credentials the server's administrator takes back.",
		Example: "  bridge-hub roster remove laptop",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.onlyOwner(); err != nil {
				return err
			}
			return a.withRoster(cmd.Context(), func(r *provision.Roster) error {
				pc, err := r.Remove(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(pc, pc.Name+" does not belong to the team any more. Have the server's administrator take its credentials back.\n")
			})
		},
	})
}

func (a *App) rosterPublish() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "publish", Short: "Have the server show the roster again, and all that the team needs", Args: usage.None,
		Long:    "Makes on the server what is missing there: streams, inboxes and the roster's entries. For one that was put back or set up\nanew, and after an attempt that did not reach it.",
		Example: "  bridge-hub roster publish",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.onlyOwner(); err != nil {
				return err
			}
			return a.withRoster(cmd.Context(), func(r *provision.Roster) error {
				if err := r.Publish(cmd.Context()); err != nil {
					return err
				}
				return a.printRoster(r)
			})
		},
	})
}

func (a *App) rosterPrint() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: "print", Short: "Show the team's key and who is in the team", Args: usage.None, Example: "  bridge-hub roster print",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.withRoster(cmd.Context(), a.printRoster) },
	})
}

// printRoster prints all settings except the owner's credentials.
func (a *App) printRoster(r *provision.Roster) error {
	set, pcs := r.Settings(), append([]provision.PC{}, r.PCs()...)
	var b strings.Builder
	fmt.Fprintf(&b, "Team %s at %s. Its key, which each PC is told by you and not by the server:\n\n  %s\n\n", set.Team, strings.Join(set.URLs, ", "), r.Key())
	if len(pcs) == 0 {
		b.WriteString("No PC belongs to it yet: `bridge-hub roster add NAME IDENTITY` takes one in.\n")
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, pc := range pcs {
		fmt.Fprintf(table, "%s\t%s\n", pc.Name, link.Fingerprint(pc.ID))
	}
	_ = table.Flush() // to memory
	return a.print(map[string]any{"team": set.Team, "urls": set.URLs, "key": r.Key(), "pcs": pcs}, b.String())
}
