package maintenance

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/inventory"
)

// Commands returns the doctor's works by plain names.
func Commands(r command.Run) []*cobra.Command {
	return []*cobra.Command{backupsCommand(r), backupCommand(r), restoreCommand(r), drillCommand(r)}
}

// listed is a set in the answer of `bridge backups`.
type listed struct {
	inventory.Set
	Name string `json:"name"` // the short name that the commands take
	Kind string `json:"kind"` // snapshot, messages or recovery
}

func backupsCommand(r command.Run) *cobra.Command {
	return r.JSONFlag(&cobra.Command{
		Use: "backups", Short: "List the backups, newest first", Args: usage.None,
		Long:    "A snapshot holds everything. A backup of messages holds messages only. A recovery set holds what a restore replaced.",
		Example: "  bridge backups",
		RunE: func(*cobra.Command, []string) error {
			home, err := r.ReadHome()
			if err != nil {
				return err
			}
			list, err := sets(home)
			if err != nil {
				return err
			}
			return r.Print(list, listText(r, home, list))
		},
	})
}

// sets returns all backups of a home, newest first.
func sets(home config.Home) ([]listed, error) {
	list := []listed{}
	for _, kind := range []struct {
		name, folder string
	}{{"snapshot", home.Backups()}, {"recovery", home.Backups()}, {"messages", home.MessageBackups()}} {
		named := inventory.SnapshotName
		switch kind.name {
		case "recovery":
			named = inventory.RecoveryName
		case "messages":
			named = inventory.MessagesName
		}
		found, err := inventory.Sets(kind.folder, named)
		if err != nil {
			return nil, err
		}
		for _, set := range found {
			set.Path = path.Join(filepath.Base(kind.folder), set.Path) // both are directly in the home
			list = append(list, listed{Set: set, Name: inventory.ShortName(set.Path), Kind: kind.name})
		}
	}
	slices.SortStableFunc(list, func(a, b listed) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return list, nil
}

func listText(r command.Run, home config.Home, list []listed) string {
	if len(list) == 0 {
		return fmt.Sprintf("There are no backups. Make one: %s\n", home.CommandLine("bridge", "backup"))
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tMADE\tFOLDER")
	for _, listing := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", listing.Name, listing.Kind, bridge.Ago(listing.CreatedAt, r.Now()), bridge.OneLine(listing.Path))
	}
	_ = table.Flush() // a strings.Builder never fails
	if newest := slices.IndexFunc(list, func(listing listed) bool { return listing.Kind == "snapshot" }); newest >= 0 {
		fmt.Fprintf(&b, "\nThe beginning of a name is enough. The newest snapshot: %s\n", home.CommandLine("bridge", "restore", list[newest].Name))
	}
	return b.String()
}

func backupCommand(r command.Run) *cobra.Command {
	return r.JSONFlag(&cobra.Command{
		Use: "backup", Short: "Make a full snapshot, also beside a running broker", Args: usage.None,
		Long: "The same as `bridge doctor --backup`.", Example: "  bridge backup",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return doctor{Run: r, flags: doctorFlags{backup: true}}.carryOut(cmd.Context(), "")
		},
	})
}

func restoreCommand(r command.Run) *cobra.Command {
	var yes bool
	cmd := r.JSONFlag(&cobra.Command{
		Use: "restore SNAPSHOT", Short: "Replace the current data with a snapshot", Args: usage.Exact(1),
		Long:    "The same as `bridge doctor --restore`. SNAPSHOT is a name of `bridge backups` or its beginning, a folder, or latest. The current data is kept in a recovery set first.",
		Example: "  bridge restore latest\n  bridge restore 2026-11-27-1426", ValidArgsFunction: completeSets(r),
		RunE: func(cmd *cobra.Command, args []string) error {
			return doctor{Run: r, flags: doctorFlags{restore: args[0], yes: yes}}.carryOut(cmd.Context(), "")
		},
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "consent without being asked")
	return cmd
}

func drillCommand(r command.Run) *cobra.Command {
	return r.JSONFlag(&cobra.Command{
		Use: "drill [SNAPSHOT]", Short: "Prove that a snapshot, by default the newest, can be restored",
		Long: "The same as `bridge doctor --drill`. It changes nothing.", Example: "  bridge drill\n  bridge drill 2026-11-27-1426", ValidArgsFunction: completeSets(r),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Exact(1)(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return doctor{Run: r, flags: doctorFlags{drill: true}}.carryOut(cmd.Context(), strings.Join(args, ""))
		},
	})
}

// completeSets completes the names of the snapshots.
func completeSets(r command.Run) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		home, err := r.ReadHome()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := sets(home) // a folder that cannot be read has nothing to offer
		names := []string{"latest"}
		for _, listing := range list {
			if listing.Kind == "snapshot" {
				names = append(names, listing.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
