package maintenance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Owner is how the commands reach the broker as the owner.
type Owner struct {
	// Dial connects to the broker; a broker that is not there it may start.
	Dial func(ctx context.Context) (*ipc.Client, error)
	// Reach connects to a broker that runs, and starts none.
	Reach func(ctx context.Context) (*ipc.Client, error)
	// Sessions completes the name of one session.
	Sessions cobra.CompletionFunc
}

// Pause returns `bridge pause` and `bridge resume`: they decide about the messages of two
// sessions to each other (QUI-02).
func Pause(r command.Run, owner Owner) []*cobra.Command {
	pause := &cobra.Command{
		Use: "pause A B", Short: "Have the messages of two sessions to each other wait",
		Long: "Pauses the messages of two sessions to each other. Bridge keeps what they send, but delivers it only after\n" +
			"`bridge resume`, and wakes nobody for it. Your messages and those of other sessions still arrive. A pause holds\n" +
			"after a restart. Within an agent it is refused.",
		Example: "  bridge pause claude-app codex-api",
	}
	resume := &cobra.Command{
		Use: "resume A B", Short: "Let two sessions exchange messages again",
		Long: "Ends a pause: what waits is delivered once, in order. If the two are not paused, they go on, and Bridge counts\n" +
			"their messages from the start. Within an agent it is refused.",
		Example: "  bridge resume claude-app codex-api",
	}
	for cmd, action := range map[*cobra.Command]api.ExchangeAction{pause: api.ExchangePause, resume: api.ExchangeResume} {
		cmd.Args, cmd.ValidArgsFunction = usage.Exact(2), completeTwo(owner.Sessions)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := r.OnlyOwner(cmd.Name()); err != nil {
				return err
			}
			client, err := owner.Dial(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			state, err := api.OpExchange.Call(cmd.Context(), client, api.ExchangeArgs{A: args[0], B: args[1], Action: action})
			if err != nil {
				return withNames(cmd.Context(), client, args, err)
			}
			return r.Print(state, exchangeText(state))
		}
	}
	return []*cobra.Command{r.JSONFlag(pause), r.JSONFlag(resume)}
}

// completeTwo completes two different names by the completion of one.
func completeTwo(completionFunc cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, directive := completionFunc(cmd, nil, typed)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}

// withNames adds to a NotFound the names of sessions that are like the typed ones.
func withNames(ctx context.Context, client *ipc.Client, typed []string, err error) error {
	if bridge.CodeOf(err) != bridge.NotFound {
		return err
	}
	text := "(bridge status lists the sessions)"
	if status, failed := client.Status(ctx); failed == nil {
		var names []string
		question := ""
		for _, peer := range status.Peers {
			names = append(names, peer.Name)
		}
		for _, name := range typed {
			if !slices.Contains(names, name) && strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				question = cmp.Or(question, bridge.DidYouMean(name, names))
			}
		}
		text = strings.TrimSpace(question + " " + text)
	}
	return bridge.WithCause(bridge.NotFound, err, err.Error()+". "+text)
}

func exchangeText(state api.Exchange) string {
	a, b := bridge.OneLine(state.A), bridge.OneLine(state.B)
	waiting := state.Waiting.Of("message")
	switch {
	case state.Paused && state.Changed:
		return fmt.Sprintf("Paused: %s and %s get no messages from each other. Waiting: %s.\n", a, b, waiting)
	case state.Paused:
		return fmt.Sprintf("%s and %s were paused before. Waiting: %s.\n", a, b, waiting)
	case state.Changed:
		return fmt.Sprintf("Resumed: %s and %s exchange messages again. Delivered now: %s.\n", a, b, waiting)
	default:
		return fmt.Sprintf("%s and %s may go on. Bridge counts their messages from the start.\n", a, b)
	}
}
