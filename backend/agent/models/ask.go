package models

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
)

const (
	// leaveTime is the time that a CLI has to end after its last answer.
	leaveTime = 3 * time.Second
	maxLine   = 8 << 20
)

// environment is that of the owner's terminal, with what keeps the CLIs to themselves.
func (b *Book) environment() []string {
	environ := os.Environ()
	if b.Where.Environ != nil {
		environ = b.Where.Environ()
	}
	return append(environ, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_PURE=1", "DISABLE_AUTOUPDATER=1")
}

// talk starts a CLI, sends it the lines, and passes on each line of its output,
// until each returns true or the CLI ends. The CLI has ended when talk returns.
func talk(ctx context.Context, argv, env, says []string, each func(line []byte) (enough bool)) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = env, agent.AskFolder(), leaveTime
	cmd.Cancel = func() error { return proc.KillTree(cmd.Process.Pid) }
	var stderr tail
	cmd.Stderr = &stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return bridge.Errorf(bridge.Unavailable, "start %s: %w", argv[0], err)
	}
	for _, line := range says {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			break // it has ended; its output shows why
		}
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	enough := false
	for !enough && lines.Scan() {
		enough = each(lines.Bytes())
	}
	in.Close()
	end := time.AfterFunc(leaveTime, func() { proc.KillTree(cmd.Process.Pid) }) //nolint:errcheck // it may be at its end
	defer end.Stop()
	io.Copy(io.Discard, out) //nolint:errcheck // its end is how it ends
	err := cmd.Wait()
	switch {
	case enough:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("it did not answer within %v", askTime)
	case len(says) == 0 && err == nil:
		return nil // all that it had to say
	}
	if words := strings.TrimSpace(stderr.String()); words != "" {
		return errors.New(words)
	}
	return errors.New("it ended without an answer")
}

// tail keeps the last line that is written to it.
type tail struct{ text string }

func (t *tail) Write(data []byte) (int, error) {
	const most = 500
	t.text += string(data)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(data), nil
}

func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(t.text, "")), "\n")
	return lines[len(lines)-1]
}
