//go:build !windows

package shellenv

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
)

// most bounds the bytes read: an environment with the surrounding output of the
// shell's startup files.
const most = 8 << 20

// ask starts the shell as a login and interactive shell, as a terminal does, because
// keys can be in the files of either. The shell has no terminal and no input.
func ask(ctx context.Context, q Question) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if !filepath.IsAbs(q.Shell) {
		return nil, errors.New("that is no absolute path")
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	mark := rand.Text()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), q.Shell, "-l", "-i", "-c", commandLine(append(q.Program, mark))) // its tree is ended below
	cmd.Env, cmd.Dir, cmd.Stdout = append(q.Environ, Asking+"=1"), q.Home, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline, _ := ctx.Deadline()
	if err := read.SetReadDeadline(deadline); err != nil {
		return nil, errors.Join(err, proc.KillTree(cmd.Process.Pid))
	}
	output, err := between(read, mark)
	if err != nil && !errors.Is(err, errSilent) {
		cancel() // no output can follow
	}
	select {
	case failed := <-ended:
		if errors.Is(err, errSilent) && failed != nil {
			err = fmt.Errorf("%w: %w", err, failed)
		}
	case <-ctx.Done():
		if killed := proc.KillTree(cmd.Process.Pid); killed != nil && !errors.Is(killed, proc.ErrGone) {
			err = errors.Join(err, killed)
		}
		<-ended //nolint:errcheck // it was killed
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %s", Timeout)
	}
	return output, err
}

// Login returns the absolute path of this user's login shell, or "" if it is
// unknown. A service may lack the variable in its environment.
func Login(getenv func(string) string) string {
	if shell := getenv("SHELL"); shell != "" {
		return shell
	}
	users, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(users)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) == 7 && fields[2] == strconv.Itoa(os.Getuid()) {
			return fields[6]
		}
	}
	return ""
}

// commandLine returns the arguments quoted for a shell.
func commandLine(args []string) string {
	var quoted []string
	for _, arg := range args {
		quoted = append(quoted, bridge.QuotePOSIX(arg))
	}
	return strings.Join(quoted, " ")
}

// errSilent reports that the shell ended without running the command.
var errSilent = errors.New("it ended without telling")

// between returns the entries between the two marks.
func between(from io.Reader, mark string) ([]string, error) {
	var output []byte
	sign := []byte(mark + "\x00")
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		output = append(output, buffer[:n]...)
		if _, behind, started := bytes.Cut(output, sign); started {
			if content, _, ended := bytes.Cut(behind, sign); ended {
				return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00"), nil
			}
		}
		switch {
		case len(output) > most:
			return nil, fmt.Errorf("it printed more than %d MiB", most>>20)
		case errors.Is(err, io.EOF):
			return nil, errSilent
		case err != nil:
			return nil, err
		}
	}
}
