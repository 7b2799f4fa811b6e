// Package hubcli implements the commands of bridge-hub: it parses flags, prints,
// and picks exit codes. Package server implements the hub.
package hubcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/natefinch/lumberjack.v2"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/network/hub/server"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sandbox"
)

// App is one run of the program.
type App struct {
	Args    []string // without the program's name
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Now     func() time.Time
	Version string

	homeFlag string
	json     bool
}

// Run runs one command and returns its exit code.
func (a *App) Run(ctx context.Context) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := a.root()
	a.json = slices.Contains(a.Args, "--json") // an invalid command line also answers as JSON
	root.SetArgs(a.Args)
	a.Stdout, a.Stderr = terminal.Writer(a.Stdout), terminal.Writer(a.Stderr)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		outcome.Report(terminal.JSON(a.Stdout), a.Stderr, "bridge-hub", a.json, err)
	}
	return outcome.Code(err)
}

// Commands returns the root command with all subcommands, for the reference.
func (a *App) Commands() *cobra.Command { return a.root() }

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use: "bridge-hub", Short: "The hub of a team: what its PCs share goes through here",
		Long:    "A hub keeps messages between the PCs of a team until they are taken, and the decisions that their owners share.\nEach PC joins once, by a code, and may speak under its own identity only.",
		Example: "  bridge-hub serve --team crew   run the hub\n  bridge-hub invite              show a code by which one PC can join",
		Args:    usage.None,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.homeFlag, "home", "", "folder that holds everything of the hub's (default $BRIDGE_HUB_HOME, else ~/.bridge-hub)")
	root.AddCommand(
		a.serveCommand(), a.inviteCommand(), a.pcsCommand(), a.removeCommand(), a.statusCommand(), a.checkCommand(),
		a.backupCommand(), a.restoreCommand(), a.permissionsCommand(), a.rosterCommand(), a.versionCommand(),
	)
	usage.Prepare(root, a.versionText())
	return root
}

// jsonFlag adds --json to a command, which then prints one JSON document.
func (a *App) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON document")
	return cmd
}

// print prints a command's result, as JSON or as text.
func (a *App) print(value any, text string) error {
	if a.json {
		return json.NewEncoder(terminal.JSON(a.Stdout)).Encode(value)
	}
	_, err := io.WriteString(a.Stdout, text)
	return err
}

func (a *App) home() (server.Home, error) {
	folder := a.homeFlag
	if folder == "" {
		folder = a.Getenv("BRIDGE_HUB_HOME")
	}
	return server.At(folder)
}

// dial connects to the running hub.
func (a *App) dial() (*server.Client, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	return server.Dial(home)
}

// ask runs question with a connection to the running hub.
func (a *App) ask(question func(*server.Client) error) error {
	hub, err := a.dial()
	if err != nil {
		return err
	}
	defer hub.Close()
	return question(hub)
}

// onlyOwner fails if a delegated job calls the command.
func (a *App) onlyOwner() error {
	if name := a.Getenv(sandbox.JobVariable); name != "" {
		return bridge.Errorf(bridge.Denied, "only the owner decides who is in the team: this was asked for from within %s", name)
	}
	return nil
}

func (a *App) serveCommand() *cobra.Command {
	usual := server.Usual()
	var flags server.Settings
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the hub in the foreground", Args: usage.None,
		Long: "Runs the hub until it is interrupted. What is set by a flag stays set. A hub listens at all of this machine's\naddresses unless --listen names one: without a key that it gave out, no PC gets further than TLS.",
		Example: "  bridge-hub serve --team crew\n  bridge-hub serve --url tls://hub.example:4780\n" +
			"  bridge-hub serve --node hub-1 --cluster 10.0.0.1:4781 --peer 10.0.0.2:4781 --peer 10.0.0.3:4781",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		home, err := a.home()
		if err != nil {
			return err
		}
		set, err := home.Load()
		if errors.Is(err, fs.ErrNotExist) {
			set, err = usual, nil
		}
		if err != nil {
			return err
		}
		override(&set, flags, cmd.Flags().Changed)
		return a.serve(cmd.Context(), home, set)
	}
	cmd.Flags().StringVar(&flags.Team, "team", usual.Team, "the team's name")
	cmd.Flags().StringVar(&flags.Node, "node", usual.Node, "this node's name, in a hub of three")
	cmd.Flags().StringVar(&flags.Listen, "listen", "", "the one address to listen at (default all)")
	cmd.Flags().IntVar(&flags.Port, "port", usual.Port, "port where PCs join; 0 picks a free one")
	cmd.Flags().IntVar(&flags.NATSPort, "nats-port", usual.NATSPort, "port where PCs talk to the hub; 0 picks a free one")
	cmd.Flags().StringSliceVar(&flags.URLs, "url", nil, "tls://host:port that PCs are told, for each node (default where they joined)")
	cmd.Flags().Int64Var(&flags.MaxBytes, "max-bytes", usual.MaxBytes, "how much the hub stores at most")
	cmd.Flags().StringVar(&flags.Cluster, "cluster", "", "host:port where the other nodes of a hub of three come in")
	cmd.Flags().StringSliceVar(&flags.Peers, "peer", nil, "host:port of another node, twice")
	return cmd
}

// override applies the settings given on the command line.
func override(set *server.Settings, flags server.Settings, changed func(string) bool) {
	for name, apply := range map[string]func(){
		"team": func() { set.Team = flags.Team }, "node": func() { set.Node = flags.Node }, "listen": func() { set.Listen = flags.Listen },
		"port": func() { set.Port = flags.Port }, "nats-port": func() { set.NATSPort = flags.NATSPort }, "url": func() { set.URLs = flags.URLs },
		"max-bytes": func() { set.MaxBytes = flags.MaxBytes }, "cluster": func() { set.Cluster = flags.Cluster }, "peer": func() { set.Peers = flags.Peers },
	} {
		if changed(name) {
			apply()
		}
	}
}

func (a *App) serve(ctx context.Context, home server.Home, set server.Settings) error {
	log, done := openLog(home)
	defer done()
	hub, err := server.Open(ctx, server.Options{Home: home, Settings: set, Now: a.Now, Log: log})
	if err != nil {
		return err
	}
	defer hub.Close()
	fmt.Fprintf(a.Stdout, "bridge-hub: ready, PCs join at %s\n", strings.Join(hub.Addresses(), ", "))
	select {
	case <-ctx.Done():
		return nil
	case <-hub.Done():
		return bridge.Errorf(bridge.Internal, "NATS has ended by itself: %s has the reason", home.Log())
	}
}

// The sizes of the rotated log.
const (
	logMegabytes = 20
	logKept      = 5
)

func openLog(home server.Home) (*slog.Logger, func()) {
	file := &logFile{home: home, Logger: lumberjack.Logger{Filename: home.Log(), MaxSize: logMegabytes, MaxBackups: logKept}}
	return slog.New(slog.NewTextHandler(file, nil)), func() { _ = file.Close() }
}

// logFile creates the log's folder with access for the owner only; the library
// would create it for everyone.
type logFile struct {
	home server.Home
	lumberjack.Logger
}

func (l *logFile) Write(line []byte) (int, error) {
	if err := disk.MakeDir(l.home.Logs()); err != nil {
		return 0, err
	}
	return l.Logger.Write(line)
}
