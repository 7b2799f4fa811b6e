package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"bridge/backend/chat"
	"bridge/backend/host"
)

// queueTimeout bounds one run of `codex queue`. Starting a cold CLI takes part
// of it; beyond it the outcome is unclear, for the message may be in.
const queueTimeout = 10 * time.Second

// maxReasonChars bounds what a refusal quotes of the CLI's own words.
const maxReasonChars = 160

// Queue is the queue command of codex: the one way to put input before a live
// codex thread that never interrupts a turn (CHT-04).
type Queue struct {
	Bin     string        // the codex program
	Timeout time.Duration // 0 for the usual bound
}

// Push runs `codex queue --thread <thread> --message <message>` without a shell,
// so every character arrives as it is. The reason says in words for people why
// it was not accepted.
func (q Queue) Push(ctx context.Context, thread, message string) (result chat.QueueResult, reason string) {
	timeout := q.Timeout
	if timeout == 0 {
		timeout = queueTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, q.Bin, "queue", "--thread", thread, "--message", message)
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return chat.QueueRefused, "codex could not be started: " + shortReason(err.Error())
	}
	err := cmd.Wait()
	if err == nil {
		return chat.QueueAccepted, ""
	}
	if ctx.Err() != nil {
		return chat.QueueUnclear, fmt.Sprintf("codex did not answer in %s", timeout)
	}
	return judgeExit(err, output.String())
}

// judgeExit tells a refusal, which certainly queued nothing, from an end that
// leaves it open.
func judgeExit(err error, output string) (chat.QueueResult, string) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !exit.Exited() {
		return chat.QueueUnclear, "codex died after it was started"
	}
	if unknownCommand(output) {
		return chat.QueueUnsupported, "this codex is too old to know the command `queue`"
	}
	return chat.QueueRefused, fmt.Sprintf("codex exited with %d: %s", exit.ExitCode(), shortReason(output))
}

// unknownCommand recognises how argument parsers refuse a command they lack.
func unknownCommand(output string) bool {
	lower := strings.ToLower(output)
	return strings.Contains(lower, "unrecognized subcommand") || strings.Contains(lower, "unexpected argument") ||
		strings.Contains(lower, "unknown command")
}

func shortReason(words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if words == "" {
		return "it said nothing"
	}
	return host.Shorten(words, maxReasonChars)
}
