package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// names returns what an argument can be. client is nil if no broker runs.
type names func(ctx context.Context, client *ipc.Client) []string

// completing returns the completion of a command's first argument by live names. It
// starts no broker. It offers no names within an agent, where the commands are refused, and
// no file names except for the further arguments of send-file.
func completing(a *App, list names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0 && cmd.Name() == sendFileName:
			return nil, cobra.ShellCompDirectiveDefault
		case len(args) > 0 || a.onlyOwner(cmd.Name()) != nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, _, err := a.dialOwner(cmd.Context(), startsNone)
		if err != nil {
			return list(cmd.Context(), nil), cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		return list(cmd.Context(), client), cobra.ShellCompDirectiveNoFileComp
	}
}

// sessionNames returns the names of the live sessions.
func sessionNames(ctx context.Context, client *ipc.Client) (found []string) {
	if client == nil {
		return nil
	}
	status, err := client.Status(ctx)
	if err != nil {
		return nil
	}
	for _, peer := range status.Peers {
		found = append(found, peer.Name)
	}
	return found
}

// jobNames returns the names of the jobs that the broker lists.
func jobNames(ctx context.Context, client *ipc.Client) (found []string) {
	if client == nil {
		return nil
	}
	list, err := client.Jobs(ctx, api.Caller{})
	if err != nil {
		return nil
	}
	for _, view := range list.Jobs {
		found = append(found, view.Job)
	}
	return found
}

// pcNames returns the names of the paired PCs.
func pcNames(ctx context.Context, client *ipc.Client) (found []string) {
	if client == nil {
		return nil
	}
	known, err := client.Network(ctx)
	if err != nil {
		return nil
	}
	for _, pc := range known.Peers {
		found = append(found, pc.Name)
	}
	return found
}

// needIDs returns names that are the ids of what needs the owner, of one sort. Each has the
// item's plain title as its description.
func needIDs(sort needs.Sort) names {
	return func(ctx context.Context, client *ipc.Client) (found []string) {
		if client == nil {
			return nil
		}
		facts, err := client.Needs(ctx)
		if err != nil {
			return nil
		}
		for _, item := range needs.List(facts, time.Now()) {
			if _, id, _ := strings.Cut(item.ID, ":"); item.Sort == sort && len(item.Commands()) > 0 {
				found = append(found, cobra.CompletionWithDesc(id, item.Plain()))
			}
		}
		return found
	}
}

// kindNames returns the kinds of agents.
func kindNames(context.Context, *ipc.Client) (found []string) {
	for _, kind := range bridge.Kinds() {
		found = append(found, string(kind))
	}
	return found
}
