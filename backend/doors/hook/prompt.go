package hook

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/proc"
)

const (
	// promptLife bounds how long a hook holds a prompt; the host's own limit is a
	// little longer (setup.promptSeconds).
	promptLife = 3500 * time.Second
	// lastWord is how long a hook that was told to end may take to say so.
	lastWord = 300 * time.Millisecond
)

// RunPrompt puts claude's permission prompt to its owner, while the terminal shows it,
// too. It writes something only when he has answered: whatever else ends it, a broker
// that is away or dies, a signal, the end of claude, leaves the prompt to the terminal.
func RunPrompt(ctx context.Context, opts Options, pid int, input io.Reader, output io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, promptLife)
	defer cancel()
	asked, err := hooks.ParseClaudePrompt(readInputWithin(ctx, input))
	if err != nil {
		opts.Log.Debug("a prompt is not understood", "err", err)
		return
	}
	asked.Call.CLIDataDir = opts.CLIDataDir
	above := proc.Ancestors(os.Getpid(), maxAncestors)
	for _, p := range above {
		asked.Call.Ancestors = append(asked.Call.Ancestors, p.PID)
	}
	told, untell := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer untell()
	go endWithAgent(told, cancel, above, modLook)
	holdPrompt(ctx, told, opts, promptArgs(uuid.NewString(), asked, pid), func(answer api.PromptAnswer) bool {
		decision := asked.ClaudeDecision(answer.Decision == job.Allow, answer.Reason, answer.Answers)
		_, err := output.Write(decision)
		return err == nil && len(decision) > 0
	})
}

// TellPrompt tells the owner of codex's permission prompt, which its terminal shows and
// decides alone. It says nothing to codex and holds nothing up.
func TellPrompt(ctx context.Context, opts Options, input io.Reader) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	asked, err := hooks.ParseCodexPrompt(readInput(ctx, input))
	if err != nil {
		opts.Log.Debug("a prompt is not understood", "err", err)
		return
	}
	asked.Call.CLIDataDir, asked.Call.Ancestors = opts.CLIDataDir, above()
	client, err := dialForPrompt(ctx, opts)
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := client.Prompt(ctx, promptArgs(uuid.NewString(), asked, 0)); err != nil {
		opts.Log.Debug("a prompt is not told", "err", err)
	}
}

func promptArgs(id string, p hooks.Prompt, pid int) api.PromptArgs {
	return api.PromptArgs{
		ID: id, Call: p.Call, Kind: p.Kind, What: p.What, Detail: p.Detail, Why: p.Why, OnlyTold: p.OnlyTold, Caution: p.Caution, PID: pid, Choices: p.Choices,
	}
}

// holdPrompt waits for the owner's answer on one broker and hands it over. waiting ends
// when the host wants it to end.
func holdPrompt(ctx, waiting context.Context, opts Options, args api.PromptArgs, handOver func(api.PromptAnswer) bool) {
	client, err := dialForPrompt(waiting, opts)
	if err != nil {
		return
	}
	defer client.Close()
	answer, err := client.Prompt(waiting, args)
	switch {
	case waiting.Err() != nil && ctx.Err() == nil: // the host says so: it has its answer
		report(client, api.PromptReport{ID: args.ID, Event: api.PromptStopped})
	case err != nil || answer.Decision == "":
		return
	case handOver(answer):
		report(client, api.PromptReport{ID: args.ID, Event: api.PromptDelivered})
	}
}

func dialForPrompt(ctx context.Context, opts Options) (*ipc.Client, error) {
	token, err := opts.Home.ExistingToken()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, budget) // a broker that hangs holds nobody
	defer cancel()
	return ipc.Dial(ctx, ipc.Target{Socket: opts.Home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleHook, PID: os.Getpid(), Version: opts.Version})
}

// report says what became of it, as far as the broker still hears that.
func report(client *ipc.Client, said api.PromptReport) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	_ = client.PromptReport(ctx, said) // the end of the connection tells as much
}
