package driver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/job"
	"bridge/backend/proc"
	"bridge/backend/sandbox"
)

const (
	// leaveTime is what a CLI gets to end by itself before it is told to: each
	// ends within 80 ms when nothing runs.
	leaveTime = 2 * time.Second
	// drainTime is how long what a CLI's process wrote last may still come after
	// its end. Without it a child that keeps the pipe would keep the run.
	drainTime = time.Second
	// maxLine bounds one line of a CLI; pictures make them long.
	maxLine = 64 << 20
	// maxStderr is how much of the end of a CLI's standard error is kept.
	maxStderr = 8 << 10
)

// temporary is the TMPDIR of a job's processes. It is beside no CLI's home:
// codex fails below a TMPDIR that holds its home.
func temporary(spec job.Spec) string { return filepath.Join(spec.StateFolder, "tmp") }

// process is a CLI that runs, leader of a session of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *tail
	ended  chan struct{} // closed when the process has ended and was collected

	writing chan struct{} // one token: who holds it writes to stdin
}

// command is what launch starts.
type command struct {
	argv     []string
	env      environ
	writable []string // what the CLI itself must be able to write under a floor
	floor    job.Floor
}

// launch starts the CLI of spec with what floor says below it.
func launch(spec job.Spec, c command) (*process, error) {
	if err := os.MkdirAll(temporary(spec), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of job %s: %w", spec.Job, err)
	}
	if c.floor == job.FloorSandbox {
		rules := sandbox.Rules{Writable: append([]string{temporary(spec)}, c.writable...)}
		if spec.Access == job.AccessEdit {
			rules.Writable = append(rules.Writable, spec.Folder)
			rules.Writable = append(rules.Writable, spec.Writable...)
		}
		for _, folder := range rules.Writable {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, fmt.Errorf("make what job %s may write: %w", spec.Job, err)
			}
		}
		c.argv = sandbox.CommandLine(spec.Sandbox, rules, c.argv)
	}
	return start(c, spec.Folder)
}

func start(c command, folder string) (*process, error) {
	var files []*os.File
	closeAll := func() {
		for _, file := range files {
			file.Close()
		}
	}
	for range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("start %s: %w", c.argv[0], err)
		}
		files = append(files, read, write)
	}
	cmd := exec.CommandContext(context.Background(), c.argv[0], c.argv[1:]...)
	cmd.Env, cmd.Dir = c.env.list(), folder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	leadSession(cmd)
	if err := cmd.Start(); err != nil {
		closeAll()
		return nil, bridge.Errorf(bridge.Unavailable, "start %s: %w", c.argv[0], err)
	}
	for _, theirs := range []*os.File{files[0], files[3], files[5]} {
		theirs.Close()
	}
	p := &process{
		cmd: cmd, stdin: files[1], stdout: files[2], stderr: &tail{},
		ended: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	go p.collect(files[4])
	return p, nil
}

// collect waits for the process's end. Whoever still holds its pipes then may
// say a last word, but not keep them open.
func (p *process) collect(stderr *os.File) {
	drained := make(chan struct{})
	go func() {
		io.Copy(p.stderr, stderr) //nolint:errcheck // its end is how it ends
		close(drained)
	}()
	_ = p.cmd.Wait()                      // how it ended is in ProcessState
	deadline := time.Now().Add(drainTime) //nolint:forbidigo // pipes take deadlines by the clock
	for _, pipe := range []*os.File{stderr, p.stdout} {
		if pipe.SetReadDeadline(deadline) != nil {
			time.AfterFunc(drainTime, func() { pipe.Close() })
		}
	}
	<-drained
	p.stdin.Close()
	close(p.ended)
}

// identity names the process for whoever finds it later.
func (p *process) identity() job.Process {
	id, _ := proc.Identity(p.cmd.Process.Pid) // one that has ended already needs no name
	return job.Process{PID: p.cmd.Process.Pid, Identity: id, Role: "cli"}
}

// send writes one line. ErrEnded: the process reads no more. ErrUnconfirmed: ctx
// ended while the line was on its way.
func (p *process) send(ctx context.Context, line []byte) error {
	select {
	case p.writing <- struct{}{}:
	case <-p.ended:
		return job.ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	written := make(chan error, 1)
	go func() {
		_, err := p.stdin.Write(append(line, '\n'))
		<-p.writing
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil {
			return job.ErrEnded
		}
		return nil
	case <-ctx.Done():
		return job.ErrUnconfirmed
	}
}

// lines calls each with every line of the process's output until it ends. A line
// over the limit is left out.
func (p *process) lines(each func(line []byte)) {
	defer p.stdout.Close()
	readLines(p.stdout, maxLine, each)
}

func readLines(from io.Reader, limit int, each func(line []byte)) {
	reader := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		if len(line) <= limit {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && len(line) <= limit {
			each(trimmed)
		}
		if err != nil {
			return
		}
		line = nil
	}
}

// lost waits for the end of a process whose output has ended; one that lives on
// without it cannot be talked to and is killed.
func (p *process) lost() {
	select {
	case <-p.ended:
	case <-time.After(leaveTime):
		_ = killGroup(p.cmd.Process) // it may be at its end
		<-p.ended
	}
}

// end ends the process: it waits for it to leave by itself, then tells it to,
// and when ctx is done kills its process group.
func (p *process) end(ctx context.Context) error {
	p.stdin.Close()
	leave := time.NewTimer(leaveTime)
	defer leave.Stop()
	select {
	case <-p.ended:
		return nil
	case <-leave.C:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		terminate(p.cmd.Process)
		select {
		case <-p.ended:
			return nil
		case <-ctx.Done():
		}
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.cmd.Process.Pid, err)
	}
	<-p.ended
	return nil
}

// exited is the last event of a process that has ended.
func (p *process) exited() job.Exited {
	return job.Exited{Code: p.cmd.ProcessState.ExitCode(), Stderr: p.stderr.String()}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	t.kept = t.kept[max(0, len(t.kept)-maxStderr):]
	return len(data), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.kept, []byte("�")))
}
