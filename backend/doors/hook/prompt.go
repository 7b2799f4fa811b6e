package hook

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
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
	// lastWord is the timeout of the final report of a hook that must end.
	lastWord = 300 * time.Millisecond
)

// RunPrompt forwards Claude Code's permission prompt to its owner, while the terminal
// also shows it. It writes output only after the owner's answer. In all other cases (no
// broker, a dead broker, a signal, the end of Claude Code) the terminal decides.
func RunPrompt(ctx context.Context, opts Options, kind bridge.AgentKind, pid int, input io.Reader, output io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, promptLife)
	defer cancel()
	prompt, err := hooks.ParseHeldPrompt(kind, readInputWithin(ctx, input))
	if err != nil {
		opts.Log.Debug("a prompt is not understood", "err", err)
		return
	}
	prompt.Call.CLIDataDir = opts.CLIDataDir
	ancestors := proc.Ancestors(os.Getpid(), maxAncestors)
	for _, p := range ancestors {
		prompt.Call.Ancestors = append(prompt.Call.Ancestors, p.PID)
	}
	terminated, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	go endWithAgent(terminated, cancel, ancestors, modLook)
	holdPrompt(ctx, terminated, opts, promptArgs(uuid.NewString(), prompt, pid), func(answer api.PromptAnswer) bool {
		decision := prompt.Decision(answer.Decision == job.Allow, answer.Reason, answer.Answers)
		_, err := output.Write(decision)
		return err == nil && len(decision) > 0
	})
}

// ReportPrompt reports codex's permission prompt to the owner; only codex's terminal
// shows and decides it. It sends codex no output and delays nothing.
func ReportPrompt(ctx context.Context, opts Options, kind bridge.AgentKind, input io.Reader) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	prompt, err := hooks.ParseReportedPrompt(kind, readInput(ctx, input))
	if err != nil {
		opts.Log.Debug("a prompt is not understood", "err", err)
		return
	}
	prompt.Call.CLIDataDir, prompt.Call.Ancestors = opts.CLIDataDir, above()
	client, err := dialForPrompt(ctx, opts)
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := client.Prompt(ctx, promptArgs(uuid.NewString(), prompt, 0)); err != nil {
		opts.Log.Debug("a prompt is not told", "err", err)
	}
}

func promptArgs(id string, p hooks.Prompt, pid int) api.PromptArgs {
	return api.PromptArgs{
		ID: id, Call: p.Call, Kind: p.Kind, What: p.What, Detail: p.Detail, Why: p.Why, OnlyTold: p.OnlyTold, Caution: p.Caution, PID: pid, Choices: p.Choices,
	}
}

// holdPrompt waits for the owner's answer on one broker and passes it to handOver.
// waiting ends when the host ends the wait.
func holdPrompt(ctx, waiting context.Context, opts Options, args api.PromptArgs, handOver func(api.PromptAnswer) bool) {
	client, err := dialForPrompt(waiting, opts)
	if err != nil {
		return
	}
	defer client.Close()
	answer, err := client.Prompt(waiting, args)
	switch {
	case waiting.Err() != nil && ctx.Err() == nil: // the host has its answer
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
	ctx, cancel := context.WithTimeout(ctx, budget) // a broker that hangs delays no caller
	defer cancel()
	return ipc.Dial(ctx, ipc.Target{Socket: opts.Home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleHook, PID: os.Getpid(), Version: opts.Version})
}

// report sends a final report, if the broker still accepts it.
func report(client *ipc.Client, report api.PromptReport) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	_ = client.PromptReport(ctx, report) // the end of the connection has the same effect
}
