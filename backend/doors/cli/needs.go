package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bridge/backend/core/needs"
	"bridge/backend/core/prompt"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/report"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
)

// needsCommand lists the owner's needs, as the page and the tray do (NED-01).
func needsCommand(a *App) *cobra.Command {
	var away string
	cmd := a.jsonFlag(&cobra.Command{
		Use: "needs", Short: "List what needs you: the same list as the page's", Args: usage.None,
		Long: "Lists what needs you: the same list as the page's. With --away on, permission prompts of your sessions are kept on the page, " +
			"too, as far as the setting answerPrompts lets them; the terminal's own prompts go on.",
		Example: "  bridge needs\n  bridge needs --json\n  bridge needs --away on",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("away") {
				return a.switchAway(cmd.Context(), away)
			}
			if err := a.onlyOwner("needs"); err != nil {
				return err
			}
			client, home, err := a.dialOwner(cmd.Context(), startsNone)
			if err != nil {
				return err
			}
			defer client.Close()
			facts, err := client.Needs(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := quickCheck(cmd.Context(), a, home, &facts); err != nil {
				return err
			}
			list := needs.List(facts, a.Now())
			text := needs.Text(list, a.Now(), lineOf(home)) + report.Unreadable(facts.Unreadable)
			return a.print(dto.Needs{Needs: list, Unreadable: facts.Unreadable}, text)
		},
	})
	cmd.Flags().StringVar(&away, "away", "", "on or off: keep permission prompts of sessions on the page while you are away")
	return cmd
}

// switchAway switches away mode (NED-02).
func (a *App) switchAway(ctx context.Context, setting string) error {
	if setting != "on" && setting != "off" {
		return &outcome.UsageError{Err: fmt.Errorf("--away is on or off, not %q", setting)}
	}
	if err := a.onlyOwner("needs --away"); err != nil {
		return err
	}
	client, _, err := a.dialOwner(ctx, startsNone)
	if err != nil {
		return err
	}
	defer client.Close()
	on := setting == "on"
	now, err := client.Away(ctx, api.AwayArgs{On: &on})
	if err != nil {
		return err
	}
	text := "Away mode is " + setting + ".\n"
	if on && now.AnswerPrompts == prompt.Off {
		text += "Prompts of sessions stay in their terminals all the same: answerPrompts is off in the settings.\n"
	}
	return a.print(dto.Prompting{AnswerPrompts: string(now.AnswerPrompts), Away: now.Away}, text)
}
