package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
)

// answerCommand answers a session's question, from a terminal that no agent started
// (NED-03).
func answerCommand(a *App) *cobra.Command {
	args := api.AnswerQuestionArgs{}
	cmd := a.jsonFlag(&cobra.Command{
		Use: "answer ID", ValidArgsFunction: completing(a, needIDs(needs.Question)), Short: "Answer what a session asks you", Args: usage.Exact(1),
		Long:    "Answers what a session asks you; the first answer wins. It is the owner's alone: within an agent it is refused.",
		Example: "  bridge answer 0198f0a2-0000-7000-8000-000000000001 --option 2\n  bridge answer 0198f0a2-0000-7000-8000-000000000001 --text \"port 4778\" --pin",
		RunE: func(cmd *cobra.Command, ids []string) error {
			args.ID = ids[0]
			return a.answer(cmd.Context(), args)
		},
	})
	cmd.Flags().StringVar(&args.Answer.Option, "option", "", "the number of one of the offered answers")
	cmd.Flags().StringVar(&args.Answer.Text, "text", "", "an answer in words, or a remark beside the option; - reads it from standard input")
	cmd.Flags().BoolVar(&args.Answer.Pin, "pin", false, "pin it as a decision, too")
	return cmd
}

func (a *App) answer(ctx context.Context, args api.AnswerQuestionArgs) error {
	if err := a.onlyOwner("answer"); err != nil {
		return err
	}
	if args.Answer.Text == "-" {
		text, err := terminal.ReadText(a.Stdin, a.Stderr, "Type your answer; Ctrl-D on a line of its own ends it.")
		if err != nil {
			return err
		}
		args.Answer.Text = text
	}
	client, _, err := a.dialOwner(ctx, startsNone)
	if err != nil {
		return err
	}
	defer client.Close()
	question, err := client.AnswerQuestion(ctx, args)
	if err != nil {
		return err
	}
	effect := "is told"
	if !question.Carried {
		effect = "will be told"
	}
	return a.print(dto.QuestionOf(question), fmt.Sprintf("Answered: %s %s: %s\n", bridge.OneLine(question.By.Name), effect, bridge.OneLine(question.Answer.Words())))
}
