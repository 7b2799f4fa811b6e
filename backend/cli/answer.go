package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bridge/backend/bridge"
	"bridge/backend/dashboard/shape"
	"bridge/backend/ipc/api"
)

// answerCommand answers what a session asks, from a terminal that no agent started
// (NED-03).
func answerCommand(a *App) *cobra.Command {
	args := api.AnswerQuestionArgs{}
	cmd := a.jsonFlag(&cobra.Command{
		Use: "answer ID", Short: "Answer what a session asks you", Args: exactArgs(1),
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
		text, err := a.readAnswer()
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
	one, err := client.AnswerQuestion(ctx, args)
	if err != nil {
		return err
	}
	told := "is told"
	if !one.Carried {
		told = "will be told"
	}
	return a.print(shape.QuestionOf(one), fmt.Sprintf("Answered: %s %s: %s\n", bridge.OneLine(one.By.Name), told, bridge.OneLine(one.Answer.Words())))
}

// answerBytes bounds an answer on standard input: far more than anybody types.
const answerBytes = 64 << 10

// readAnswer reads an answer from standard input until its end.
func (a *App) readAnswer() (string, error) {
	if input, ok := a.Stdin.(*os.File); ok && term.IsTerminal(int(input.Fd())) {
		fmt.Fprintln(a.Stderr, "Type your answer; Ctrl-D on a line of its own ends it.")
	}
	text, err := io.ReadAll(io.LimitReader(a.Stdin, answerBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the answer: %w", err)
	case len(text) > answerBytes:
		return "", bridge.Errorf(bridge.Invalid, "an answer has at most %s", bridge.Size(answerBytes))
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
