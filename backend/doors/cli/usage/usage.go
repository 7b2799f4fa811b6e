// Package usage validates the command lines of Bridge's programs. A wrong one is
// refused in one sentence that suggests the probable meaning.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
)

// Prepare makes root and its commands, which must all exist, refuse wrong flags and
// help topics. version is the output of --version.
func Prepare(root *cobra.Command, version string) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd() // now, so that the reference holds it
	for _, command := range root.Commands() {
		if command.Name() == "completion" {
			command.Short = "Print the script by which your shell completes commands and names"
		}
	}
}

// Topics are pages of help beside the commands. Their names win over those of commands.
type Topics struct {
	Names []string
	List  string                                      // the end of the help of the root
	Show  func(cmd *cobra.Command, name string) error // prints one page
}

// AddTopics lets `help` of root show topics, too.
func AddTopics(root *cobra.Command, topics Topics) {
	help := helpCommand()
	commands := help.RunE
	help.Use, help.Short = "help [COMMAND|TOPIC]", "Show the help of a command, or a page about a topic"
	help.ValidArgsFunction = completeHelp(topics.Names)
	help.Example = "  bridge help send\n  bridge help config"
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && slices.Contains(topics.Names, args[0]) {
			return topics.Show(cmd, args[0])
		}
		err := commands(cmd, args)
		switch {
		case err == nil && len(args) == 0:
			_, err = fmt.Fprint(cmd.OutOrStdout(), topics.List)
		case err != nil && len(args) == 1:
			if like := bridge.Similar(args[0], topics.Names); len(like) > 0 && len(bridge.Similar(args[0], namesBelow(cmd.Root()))) == 0 {
				return wrong("there is no command and no topic %q. Did you mean `%s help %s`? `%[2]s help` lists them", args[0], cmd.Root().Name(), like[0])
			}
		}
		return err
	}
	root.SetHelpCommand(help)
}

// None refuses arguments. On a command with subcommands an argument is an unknown
// subcommand.
func None(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasAvailableSubCommands():
		return wrong("%s", unknown(cmd, args[0]))
	default:
		return wrong("%s takes no arguments, but was given %q", cmd.CommandPath(), args[0])
	}
}

// Exact returns a check that fails unless there are exactly n arguments.
func Exact(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return wrong("%s takes %s, but was given %d: it is used as `%s`", cmd.CommandPath(), bridge.Counted(n, "argument"), len(args), cmd.UseLine())
	}
}

// AtLeast returns a check that fails for fewer than n arguments.
func AtLeast(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return wrong("%s takes at least %s, but was given %d: it is used as `%s`", cmd.CommandPath(), bridge.Counted(n, "argument"), len(args), cmd.UseLine())
	}
}

func wrong(format string, values ...any) error {
	return &outcome.UsageError{Err: fmt.Errorf(format, values...)}
}

// unknown returns the message that cmd has no subcommand name, with a suggestion.
func unknown(cmd *cobra.Command, name string) string {
	return fmt.Sprintf("there is no command %q. %s`%s --help` lists them", cmd.CommandPath()+" "+name, meant(name, namesBelow(cmd), cmd.CommandPath()+" "), cmd.CommandPath())
}

// namesBelow returns the names of the commands that the help of cmd lists.
func namesBelow(cmd *cobra.Command) (names []string) {
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// meant returns a suggestion from the names similar to the typed one, or "".
func meant(typed string, names []string, before string) string {
	like := bridge.Similar(typed, names)
	if len(like) == 0 {
		return ""
	}
	return "Did you mean `" + before + strings.Join(like, "` or `"+before) + "`? "
}

// flagError makes a wrong flag a usage error.
func flagError(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	args := cmd.Flags().Args()
	switch {
	case !errors.As(err, &missing):
		return &outcome.UsageError{Err: err}
	case cmd.HasAvailableSubCommands() && len(args) > 0: // the flag may belong to a suggested command
		return wrong("%s", unknown(cmd, args[0]))
	case missing.GetSpecifiedShortnames() != "":
		return &outcome.UsageError{Err: err}
	}
	var names []string
	add := func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, "--"+flag.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	slices.Sort(names)
	typed := "--" + missing.GetSpecifiedName()
	return wrong("%s has no flag %s. %s`%[1]s --help` lists them", cmd.CommandPath(), typed, meant(typed, slices.Compact(names), ""))
}

// helpCommand shows the help of a command, and refuses an unknown topic.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command", Example: "  bridge help send",
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, arg := range args {
				below := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == arg || c.HasAlias(arg) })
				if below < 0 {
					return wrong("%s", unknown(at, arg))
				}
				at = at.Commands()[below]
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
		ValidArgsFunction: completeHelp(nil),
	}
}

// completeHelp completes the path of a command, or one of the topics.
func completeHelp(topics []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		at, _, err := cmd.Root().Find(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := namesBelow(at)
		if len(args) == 0 {
			found = append(found, topics...)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
