// Package cli is the command line: it parses flags, asks for consent, prints, and
// picks exit codes. Packages below it do the commands' work.
package cli

import (
	"context"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/doors/cli/access"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/maintenance"
	"bridge/backend/doors/cli/manual"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/settings"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/hook"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
)

// App is one run of the program: its inputs, and the shared state of its commands.
// Each command is in a separate file.
type App struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Now     func() time.Time
	Page    fs.FS
	Manual  fs.FS // the pages of `bridge help TOPIC`
	Version string
	// Program is the console binary that agents and workers must start; "" means
	// this very program.
	Program string

	homeFlag string
	json     bool
}

// Run runs one command and returns its exit code.
func (a *App) Run(ctx context.Context) int {
	if len(a.Args) > 0 && a.Args[0] == "hook" && !hook.AsksForHelp(a.Args) {
		return a.runHook(ctx, a.Args[1:]) // the hosts wait for it: no flag parser is built
	}
	a.Stdout, a.Stderr = terminal.Writer(a.Stdout), terminal.Writer(a.Stderr)
	root := a.root()
	// Set before parsing: an invalid command line also answers as JSON if it asks
	// for JSON.
	a.json = slices.Contains(a.Args, "--json")
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		outcome.Report(terminal.JSON(a.Stdout), a.Stderr, "bridge", a.json, err)
	}
	return outcome.Code(err)
}

// Commands returns the root command with all subcommands, for the reference.
func (a *App) Commands() *cobra.Command { return a.root() }

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "bridge",
		Short:   "A local message bridge between coding-agent sessions",
		Long:    "Bridge lets the coding-agent sessions on this PC talk to each other, pins your decisions so that every\nsession has them, and shows you all of it in a local dashboard.",
		Example: "  bridge install        connect the agent CLIs found on this PC\n  bridge open           show the dashboard\n  bridge demo           look at a live dashboard without any agent",
		Args:    usage.None,
		RunE:    func(cmd *cobra.Command, _ []string) error { return showNext(cmd.Context(), a) },
	}
	root.PersistentFlags().StringVar(&a.homeFlag, "home", "", "folder that holds everything Bridge stores (default $BRIDGE_HOME, else ~/.bridge)")
	for _, part := range commandGroups(a) {
		root.AddGroup(&cobra.Group{ID: part.title, Title: part.title})
		for _, command := range part.commands {
			command.GroupID = part.title
			root.AddCommand(command)
		}
	}
	root.AddCommand(
		demoAgentCommand(a), mcpCommand(a), hookCommand(a), pluginCommand(a), retireCommand(a), backupWorkerCommand(a),
		runJobCommand(a), sandboxExecCommand(a), printEnvCommand(a), checkHomeCommand(a), maintenance.ProveInside(a.run()),
	)
	root.SetCompletionCommandGroupID(lastGroup)
	usage.Prepare(root, usage.BuildOf(a.Version).Text("bridge"))
	usage.AddTopics(root, manual.Help(a.Manual, a.Stdout))
	root.SetHelpCommandGroupID(lastGroup)
	return root
}

// group is a group of commands in the help.
type group struct {
	title    string
	commands []*cobra.Command
}

const lastGroup = "Help:"

// commandGroups returns the commands that people type.
func commandGroups(a *App) []group {
	dial := func(starts starting) func(context.Context) (*ipc.Client, error) {
		return func(ctx context.Context) (*ipc.Client, error) {
			client, _, err := a.dialOwner(ctx, starts)
			return client, err
		}
	}
	owner := maintenance.Owner{Sessions: completing(a, sessionNames), Dial: dial(startsToRead), Reach: dial(startsNone)}
	return []group{
		{"Start:", []*cobra.Command{installCommand(a), openCommand(a), statusCommand(a), demoCommand(a)}},
		{"Every day:", append([]*cobra.Command{
			needsCommand(a), sendCommand(a), answerCommand(a), approveCommand(a), decideCommand(a), decisionsCommand(a), rulesCommand(a), urlCommand(a),
		}, maintenance.Pause(a.run(), owner)...)},
		{"Jobs:", []*cobra.Command{runsCommand(a), watchCommand(a), finishCommand(a)}},
		{"Other PCs and teams:", append([]*cobra.Command{
			pairCommand(a), linkCommand(a), unlinkCommand(a), networkCommand(a), sendFileCommand(a), filesCommand(a), joinCommand(a), leaveCommand(a), teamCommand(a),
		}, access.Permissions(a.run(), access.Owner{Dial: dial(startsToRead), PCs: completing(a, pcNames)})...)},
		{"Run and keep:", append(maintenance.Commands(a.run()), serveCommand(a), serviceCommand(a), maintenance.Logs(a.run()), maintenance.Doctor(a.run()), maintenance.Prove(a.run(), owner, completing(a, kindNames)), settings.Command(a.run()), uninstallCommand(a))},
		{lastGroup, []*cobra.Command{versionCommand(a)}},
	}
}

// run returns what the commands of other packages have of this run.
func (a *App) run() command.Run {
	return command.Run{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Getenv: a.Getenv, Now: a.Now, HomeFlag: &a.homeFlag, JSON: &a.json}
}

func (a *App) home() (config.Home, error)                 { return a.run().Home() }
func (a *App) onlyOwner(action string) error              { return a.run().OnlyOwner(action) }
func (a *App) jsonFlag(cmd *cobra.Command) *cobra.Command { return a.run().JSONFlag(cmd) }
func (a *App) print(value any, text string) error         { return a.run().Print(value, text) }
func (a *App) explain(sentences string)                   { a.run().Explain(sentences) }
func (a *App) consent(yes bool) error                     { return a.run().Consent(yes) }
func (a *App) ask(question string, yes bool) error        { return a.run().Ask(question, yes) }
