package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// permissionWords returns the words after the PC's name.
func permissionWords() (names []string) {
	for _, list := range new(config.Network).AllowLists() {
		names = append(names, list.Permission)
	}
	return names
}

// allowed is the answer of `bridge allow` and `bridge deny`.
type allowed struct {
	Name string `json:"name"`
	May  string `json:"may"` // one sentence
}

// Permissions returns `bridge allow` and `bridge deny`: they change what another PC may do
// here (RMT-06).
func Permissions(r command.Run, owner Owner) []*cobra.Command {
	allow := &cobra.Command{
		Use: "allow PC WHAT...", Short: "Let another PC do something here",
		Long: "Lets a paired PC, or one of the team, do something here. WHAT is one or more of:\n" +
			"  messages    write to the sessions here\n  decisions   exchange decisions for all sessions, in both directions\n" +
			"  dashboard   see which sessions and jobs there are here\n  files       send files into the inbox here\n  jobs        start jobs here\n\n" +
			"Bridge applies it from the next request on. Within an agent it is refused.",
		Example: "  bridge allow desk messages\n  bridge allow desk decisions files",
	}
	deny := &cobra.Command{
		Use: "deny PC WHAT...", Short: "Stop letting another PC do something here",
		Long:    "Takes back what `bridge allow` let a PC do. WHAT is one or more of " + strings.Join(permissionWords(), ", ") + ", or all.\nWithin an agent it is refused.",
		Example: "  bridge deny desk files\n  bridge deny desk all",
	}
	for _, cmd := range []*cobra.Command{allow, deny} {
		cmd.Args, cmd.ValidArgsFunction = checkPermissions(cmd == deny), completePermissions(owner.PCs)
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return changePermissions(r, owner, cmd, args) }
	}
	return []*cobra.Command{r.JSONFlag(allow), r.JSONFlag(deny)}
}

// checkPermissions returns the check of the arguments. all is a word only if it may be one.
func checkPermissions(mayBeAll bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names := permissionWords()
		if len(args) < 2 {
			return &outcome.UsageError{Err: fmt.Errorf("%s takes the name of a PC and one or more of %s: it is used as `%s`", cmd.CommandPath(), strings.Join(names, ", "), cmd.UseLine())}
		}
		if mayBeAll {
			names = append(names, "all")
		}
		for _, permission := range args[1:] {
			if slices.Contains(names, permission) {
				continue
			}
			text := fmt.Sprintf("%q is no permission: choose of %s. %s", permission, strings.Join(names, ", "), bridge.DidYouMean(permission, names))
			return &outcome.UsageError{Err: errors.New(strings.TrimSpace(text))}
		}
		return nil
	}
}

func completePermissions(pcs cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return pcs(cmd, args, typed)
		}
		unused := slices.DeleteFunc(permissionWords(), func(permission string) bool { return slices.Contains(args[1:], permission) })
		return unused, cobra.ShellCompDirectiveNoFileComp
	}
}

// changePermissions changes the lists of one PC and prints what it may do now.
func changePermissions(r command.Run, owner Owner, cmd *cobra.Command, args []string) error {
	if err := r.OnlyOwner(cmd.Name()); err != nil {
		return err
	}
	home, err := homeToChange(r)
	if err != nil {
		return err
	}
	client, err := owner.Dial(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	network, err := client.Network(cmd.Context())
	if err != nil {
		return err
	}
	name, requested, allows := args[0], args[1:], cmd.Name() == "allow"
	settings, err := save(home, func(n *config.Network) error {
		if err := checkName(network, *n, name, requested, allows); err != nil {
			return err
		}
		for _, list := range n.AllowLists() {
			if slices.Contains(requested, list.Permission) || slices.Contains(requested, "all") {
				*list.Peers = config.Listed(*list.Peers, name, allows)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if network, err = client.Network(cmd.Context()); err != nil {
		return err
	}
	answer := allowed{Name: name, May: sentenceOf(network, name)}
	text := bridge.OneLine(answer.May) + "\n"
	if allows {
		text += missing(home, settings, slices.Contains(requested, "jobs"))
	}
	return r.Print(answer, text)
}

// checkName fails with NotFound if no PC has the name, and with Invalid for a whole team
// and anything but decisions. A name that is no PC's any more can only be denied.
func checkName(network api.Network, settings config.Network, name string, permissions []string, allows bool) error {
	names := []string{}
	for _, pc := range network.Peers {
		names = append(names, pc.Name)
	}
	if network.Team != nil && name == remote.TeamShare(network.Team.Team) {
		if !slices.Equal(permissions, []string{"decisions"}) {
			return bridge.Errorf(bridge.Invalid, "a whole team can be allowed decisions only: allow the rest to its PCs by name")
		}
		return nil
	}
	if slices.Contains(names, name) || !allows && slices.Contains(settings.Names(), name) {
		return nil
	}
	question := bridge.DidYouMean(name, names)
	if question != "" {
		question += " "
	}
	return bridge.Errorf(bridge.NotFound, "no PC is called %q. %s`bridge network` lists them", name, question)
}

// sentenceOf returns what the PC, or the whole team, may do here.
func sentenceOf(network api.Network, name string) string {
	for _, pc := range network.Peers {
		if pc.Name == name {
			return pc.May
		}
	}
	if network.Team != nil && name == remote.TeamShare(network.Team.Team) {
		return network.Team.May
	}
	return remote.May{}.Words(name)
}

// missing returns the commands for what else a permission needs, one on a line.
func missing(home config.Home, settings config.Network, jobs bool) (text string) {
	next := func(what string, args ...string) {
		text += what + ":\n  " + home.CommandLine("bridge", args...) + "\n"
	}
	if !settings.Enabled {
		next("Links are off. Turn them on", "network", "on")
	}
	if !jobs {
		return text
	}
	if !settings.RemoteJobs.Enabled {
		next("Jobs of other PCs are off. Turn them on", "config", "set", "network.remoteJobs.enabled", "true")
	}
	if len(settings.RemoteJobs.Agents) == 0 {
		next("No agent is allowed for such jobs. Name one", "config", "set", "network.remoteJobs.agents", `["codex"]`)
	}
	if len(settings.RemoteJobs.AllowRoots) == 0 {
		next("No folder is allowed for such jobs. Name one", "config", "set", "network.remoteJobs.allowRoots", `["/home/me/projects"]`)
	}
	return text
}
