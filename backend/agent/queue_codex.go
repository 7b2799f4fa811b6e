package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"bridge/backend/core/chat"
	"bridge/backend/core/hooks"
)

// queueTimeout is the timeout of one run of `codex queue`. Starting a cold CLI takes part
// of it. After a timeout the outcome is unclear, because codex may have the message.
const queueTimeout = 10 * time.Second

// Queue is the queue command of codex, the only way to send input to a live codex
// thread without ever interrupting a turn (CHT-04).
type Queue struct {
	Bin     string        // the codex program
	Timeout time.Duration // 0 for the default
	Environ []string      // codex's environment; nil for this process's
}

// Push runs `codex queue --thread <thread> --message <message>` without a shell, so
// every character arrives unchanged. codex accepts the message only on its command
// line, which every program on this PC can read while codex runs (SEC-13). reason
// is a readable explanation of a refusal.
func (q Queue) Push(ctx context.Context, thread, message string) (result chat.QueueResult, reason string) {
	timeout := q.Timeout
	if timeout == 0 {
		timeout = queueTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, q.Bin, "queue", "--thread", thread, "--message", message)
	cmd.Env, cmd.Dir, cmd.WaitDelay = q.Environ, AskFolder(), time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return chat.QueueRefused, "codex could not be started: " + hooks.ShortReason(err.Error())
	}
	err := cmd.Wait()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it succeeded, even if a child process still holds its output
		return chat.QueueAccepted, ""
	}
	if ctx.Err() != nil {
		return chat.QueueUnclear, fmt.Sprintf("codex did not answer in %s", timeout)
	}
	return judgeExit(err, thread, output.String())
}

// judgeExit distinguishes a refusal, which certainly queued nothing, from all other
// ends. After those, codex may have the message.
func judgeExit(err error, thread, output string) (chat.QueueResult, string) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !exit.Exited() {
		return chat.QueueUnclear, "codex died after it was started"
	}
	failure, certain := failureIn(output)
	for _, known := range refusals {
		found := known.line.FindStringSubmatch(failure)
		if certain && exit.ExitCode() == known.code && found != nil && (len(found) == 1 || found[1] == thread) {
			return known.result, known.reason
		}
	}
	return chat.QueueUnclear, fmt.Sprintf("codex exited with %d: %s", exit.ExitCode(), hooks.ShortReason(cmp.Or(failure, output)))
}

// refusals are the ends that certainly queued nothing, by exit code and by the line
// with the reason, in the real CLI's form (CHT-06). A line that names a thread must
// name this one.
var refusals = []struct {
	code   int
	line   *regexp.Regexp
	result chat.QueueResult
	reason string
}{
	{
		2, regexp.MustCompile(`^error: (?:unrecognized subcommand|unexpected argument|unknown command|unknown option)`),
		chat.QueueUnsupported, "this codex is too old to know the command `queue`",
	},
	{
		1, regexp.MustCompile("^Error: .*thread/queue/add failed: (?:Method not found|Invalid request: unknown variant `thread/queue/add`)"),
		chat.QueueUnsupported, "codex's background server is too old to know the queue; restart that server",
	},
	{
		1, regexp.MustCompile(`^Error: .*thread/queue/add failed: .*no rollout found for thread id (\S+)`),
		chat.QueueRefused, "codex knows no thread of this id: no rollout found",
	},
	{
		1, regexp.MustCompile(`^Error: No active session found matching '(.*)'\.$`),
		chat.QueueRefused, "codex knows no session of this id",
	},
	{
		1, regexp.MustCompile(`^Error: .*thread/queue/add failed: direct app-server input is not allowed for unloaded spawned sub-agents`),
		chat.QueueRefused, "another codex process runs this child",
	},
}

// wentOn are the lines of a run that continued past the point of a refusal.
var wentOn = regexp.MustCompile(`^Queued message |^thread '.*' .*panicked at `)

// failureIn returns the last error line of an output. certain is false if the
// output may hold two errors, or quote the queued message.
func failureIn(output string) (line string, certain bool) {
	certain = true
	for said := range strings.Lines(output) {
		said = strings.TrimSpace(said)
		switch {
		case wentOn.MatchString(said):
			certain = false
		case strings.HasPrefix(strings.ToLower(said), "error: "):
			certain = certain && line == ""
			line = said
		}
	}
	return line, certain
}
