package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/rule"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// rulesCommand lists the owner's standing rules, and revokes them (NED-04).
func rulesCommand(a *App) *cobra.Command {
	var id string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "rules", Short: "List what you allow from now on, or take it back", Args: usage.None,
		Long:    "Lists what you allow agents from now on, with its uses. With --take-back a rule ends at once. Within an agent it is refused.",
		Example: "  bridge rules\n  bridge rules --take-back rule-0198f0a2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.onlyOwner("rules"); err != nil {
				return err
			}
			client, _, err := a.dialOwner(cmd.Context(), startsNone)
			if err != nil {
				return err
			}
			defer client.Close()
			if cmd.Flags().Changed("take-back") {
				return a.revokeRule(cmd.Context(), client, id)
			}
			live, err := client.Rules(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(dto.Rules{Rules: dto.Each(live, dto.RuleOf)}, rule.Text(live))
		},
	})
	cmd.Flags().StringVar(&id, "take-back", "", "the id of a rule that ends")
	return cmd
}

func (a *App) revokeRule(ctx context.Context, client *ipc.Client, id string) error {
	revoked, err := client.RevokeRule(ctx, api.RuleArgs{ID: id})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Taken back: %s. It was used %s.\n", revoked.Rule.Sentence(), bridge.Counted(revoked.Rule.Uses, "time"))
	if requests, deliveries := len(revoked.Asked), len(revoked.Handed); requests+deliveries > 0 {
		text += fmt.Sprintf("Of what it had allowed, %d is asked again, and of %d the agent may have acted already.\n", requests, deliveries)
	}
	return a.print(dto.TakenBack{Rule: dto.RuleOf(revoked.Rule), Asked: dto.List(revoked.Asked), Handed: dto.List(revoked.Handed)}, text)
}
