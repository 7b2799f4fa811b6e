// Package settings is `bridge config`: it shows, changes and checks config.json.
package settings

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/config"
	storage "bridge/backend/storage/maintain/check"
)

// Command returns `bridge config` with its subcommands. All are the owner's.
func Command(r command.Run) *cobra.Command {
	root := &cobra.Command{
		Use: "config", Short: "Show, change and check your settings",
		Long:    "Reads and changes config.json in the home. Comments in the file stay. Within an agent it is refused.",
		Example: "  bridge config get jobs.maxJobs\n  bridge config set backups.auto true\n  bridge config unset port\n  bridge config check",
		Args:    usage.None,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(getCommand(r), setCommand(r), unsetCommand(r), checkCommand(r), pathCommand(r))
	return root
}

// file returns config.json of the home for the owner.
func file(r command.Run) (config.File, error) {
	if err := r.OnlyOwner("config"); err != nil {
		return config.File{}, err
	}
	home, err := r.ReadHome()
	return config.File{Home: home}, err
}

// fileToChange returns the file of a home that is there. It fails if files would land in
// another user's folder, or if the home is mistyped.
func fileToChange(r command.Run) (config.File, error) {
	at, err := file(r)
	if err == nil {
		_, err = r.Home()
	}
	if err == nil {
		err = storage.RequireHome(at.Home)
	}
	return at, err
}

// shown is one setting in the answer of `bridge config get`.
type shown struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"` // null if it is not set and has no default
}

func getCommand(r command.Run) *cobra.Command {
	return r.JSONFlag(&cobra.Command{
		Use: "get [KEY]", Short: "Show the value of a setting, or all", Example: "  bridge config get\n  bridge config get jobs.maxJobs",
		ValidArgsFunction: completeKeys,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &outcome.UsageError{Err: fmt.Errorf("bridge config get takes one key, but was given %d", len(args))}
			}
			at, err := file(r)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				value, err := at.Member(args[0])
				if err != nil {
					return err
				}
				return r.Print(shown{args[0], value}, plain(value)+"\n")
			}
			list, text := []shown{}, ""
			for _, key := range config.Members() {
				value, err := at.Member(key)
				if err != nil {
					return err
				}
				list = append(list, shown{key, value})
				text += key + " = " + bridge.OneLine(string(value)) + "\n"
			}
			return r.Print(list, text)
		},
	})
}

// plain returns a value for a script: a text without its quotation marks.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && string(value) != "null" {
		return text
	}
	return string(value)
}

func setCommand(r command.Run) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting", Args: usage.Exact(2), ValidArgsFunction: completeKeys,
		Example: "  bridge config set jobs.maxJobs 4\n  bridge config set name desk\n  bridge config set jobs.writable '[\"~/.m2\"]'",
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := fileToChange(r)
			if err == nil {
				err = at.SetMember(args[0], args[1])
			}
			if err != nil {
				return err
			}
			value, err := at.Member(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(r.Stdout, "%s = %s\n", args[0], bridge.OneLine(string(value)))
			return err
		},
	}
}

func unsetCommand(r command.Run) *cobra.Command {
	return &cobra.Command{
		Use: "unset KEY", Short: "Take a setting out of the file, so that the default holds", Args: usage.Exact(1), ValidArgsFunction: completeKeys,
		Example: "  bridge config unset jobs.maxJobs",
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := fileToChange(r)
			if err == nil {
				err = at.UnsetMember(args[0])
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(r.Stdout, "%s is not set any more.\n", bridge.OneLine(args[0]))
			return err
		},
	}
}

// checked is the answer of `bridge config check`.
type checked struct {
	Path    string                 `json:"path"`
	Error   string                 `json:"error"` // why Bridge cannot use the file, or ""
	Unknown []config.UnknownMember `json:"unknown"`
}

func checkCommand(r command.Run) *cobra.Command {
	return r.JSONFlag(&cobra.Command{
		Use: "check", Short: "Name each mistake in the file, with its line", Args: usage.None,
		Long:    "Exits 1 if the file has a mistake, or a member that is not a setting.",
		Example: "  bridge config check",
		RunE: func(*cobra.Command, []string) error {
			at, err := file(r)
			if err != nil {
				return err
			}
			result, text := check(at)
			if err := r.Print(result, text); err != nil || result.Error == "" && len(result.Unknown) == 0 {
				return err
			}
			return &outcome.ReportedError{Code: outcome.Failed}
		},
	})
}

// check returns the mistakes in the file, also as text.
func check(at config.File) (result checked, text string) {
	result = checked{Path: at.Home.ConfigFile(), Unknown: []config.UnknownMember{}}
	unknown, err := at.Unknown()
	if err != nil {
		result.Error = outcome.Sentence(err)
		return result, result.Error + "\n"
	}
	for _, member := range unknown {
		result.Unknown = append(result.Unknown, member)
		text += result.Path + ", " + member.Text() + "\n"
	}
	if text == "" {
		text = result.Path + ": no mistakes.\n"
	}
	return result, text
}

func pathCommand(r command.Run) *cobra.Command {
	return &cobra.Command{
		Use: "path", Short: "Print where the file is", Args: usage.None, Example: "  bridge config path",
		RunE: func(*cobra.Command, []string) error {
			at, err := file(r)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(r.Stdout, at.Home.ConfigFile())
			return err
		},
	}
}

// completeKeys completes the first argument with the paths of all settings.
func completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return config.Members(), cobra.ShellCompDirectiveNoFileComp
}
