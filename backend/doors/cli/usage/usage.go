// Package usage is how Bridge's programs read a command line: a wrong one is refused in one
// sentence, which names what was probably meant.
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

// Prepare makes root and its commands, which must all be there, refuse wrong flags and
// wrong topics of help. version is what --version prints.
func Prepare(root *cobra.Command, version string) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = version
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
}

// None refuses arguments. On a command that has others below it an argument is one that
// there is not.
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

// Exact returns what refuses another number of arguments than n.
func Exact(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return wrong("%s takes %s, but was given %d: it is used as `%s`", cmd.CommandPath(), bridge.Counted(n, "argument"), len(args), cmd.UseLine())
	}
}

// AtLeast returns what refuses fewer arguments than n.
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

// unknown says that cmd has no command of that name, and which was probably meant.
func unknown(cmd *cobra.Command, name string) string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return fmt.Sprintf("there is no command %q. %s`%s --help` lists them", cmd.CommandPath()+" "+name, meant(name, names, cmd.CommandPath()+" "), cmd.CommandPath())
}

// meant asks whether one of the names that are like the typed one was meant, "" where none is.
func meant(typed string, names []string, before string) string {
	like := bridge.Similar(typed, names)
	if len(like) == 0 {
		return ""
	}
	return "Did you mean `" + before + strings.Join(like, "` or `"+before) + "`? "
}

// flagError makes a wrong flag a wrong use of the command.
func flagError(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	words := cmd.Flags().Args()
	switch {
	case !errors.As(err, &missing):
		return &outcome.UsageError{Err: err}
	case cmd.HasAvailableSubCommands() && len(words) > 0: // the flag may be one of what was meant
		return wrong("%s", unknown(cmd, words[0]))
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

// helpCommand shows the help of a command, and refuses a topic that there is not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command", Example: "  bridge help send",
		RunE: func(cmd *cobra.Command, words []string) error {
			at := cmd.Root()
			for _, word := range words {
				below := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
				if below < 0 {
					return wrong("%s", unknown(at, word))
				}
				at = at.Commands()[below]
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}
