package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/platform/sandbox/connects"
)

const (
	// leaveTime is how long a CLI may take to end before it is terminated. Each ends
	// within 80 ms if nothing runs.
	leaveTime = 2 * time.Second
	// drainTime is how long what a CLI's process wrote last may still come after
	// its end. Without it a child that keeps the pipe would keep the run.
	drainTime = time.Second
	// maxStderr is how much of the end of a CLI's standard error is kept.
	maxStderr = 8 << 10
)

// The names of folders in a job's own folder.
const (
	temporaryName = "tmp"
	cachesName    = "cache" // in the temporary folder
	sharedName    = "shm"
)

// Temporary is the TMPDIR of a job's processes. It is beside no CLI's home:
// codex fails below a TMPDIR that holds its home.
func Temporary(spec job.Spec) string { return filepath.Join(spec.StateFolder, temporaryName) }

// sharedMemory is the folder of what a job names in /dev/shm. The job writes in it by the
// supervisor alone.
func sharedMemory(spec job.Spec) string { return filepath.Join(spec.StateFolder, sharedName) }

// FloorOf returns what lies below the CLI's own rules of a kind that has no sandbox of its
// own (JOB-14, SEC-03): the system's sandbox where there is one. It fails with Denied when
// a job that needs a sandbox cannot have one, as one of a paired PC always does.
func FloorOf(spec job.Spec) (job.Floor, error) {
	switch {
	case len(spec.Sandbox) > 0:
		return job.FloorSandbox, nil
	case spec.Unlinked:
		return "", bridge.Errorf(bridge.Denied, "a job of a paired PC needs a sandbox, and this system has none for %s", spec.Kind)
	case spec.Access == job.AccessAsk:
		return job.FloorNone, nil // each change is asked about
	case spec.ToolLevelOnly, spec.Access == job.AccessEdit && bridge.TraitsOf(spec.Kind).Jobs.OwnRulesForEdit:
		return job.FloorNone, nil
	}
	return "", bridge.Errorf(bridge.Denied, "%s for %s needs a sandbox that this system does not have; the owner's config can allow the CLI's own rules alone", spec.Access, spec.Kind)
}

// Process is a CLI that runs, leader of a session of its own.
type Process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *tail
	ended  chan struct{} // closed when the process has ended and was collected
	after  func()        // called then; may be nil
	// connections answers the connect calls of the process and of all that it has started
	// until the process has ended; nil for none.
	connections *connects.Supervisor

	writing chan struct{} // one token: who holds it writes to stdin
}

// Command is what Launch starts.
type Command struct {
	Argv     []string
	Env      Environ
	Writable []string // folders that the CLI itself must be able to write under a floor
	Files    []string // the same, files that exist
	Readable []string // what a job of a paired PC reads of the CLI's state; other jobs read everything
	After    func()   // called when the process has ended; may be nil
	Floor    job.Floor
	// OwnersCaches leaves the CLI the owner's caches: its commands write more than the CLI
	// may run, and have the job's caches by other means.
	OwnersCaches bool

	connections *connects.Supervisor // answers the connect calls below the sandbox; nil for none
}

func (c Command) release() {
	if c.connections != nil {
		c.connections.Close()
	}
}

// policy returns to which unix sockets a job connects: the broker's, those in the folders
// that it may write, and those that the owner allows to jobs that do more than read.
func policy(spec job.Spec, rules sandbox.Rules) connects.Policy {
	allowed := connects.Policy{Broker: spec.BrokerSocket}
	for _, folder := range slices.Concat(rules.Writable, rules.Unlinked) {
		if real, err := filepath.EvalSymlinks(folder); err == nil { // one that is not there has no sockets
			allowed.Folders = append(allowed.Folders, real)
		}
	}
	if spec.Access != job.AccessRead {
		allowed.Sockets, allowed.Shared = spec.Sockets, sharedMemory(spec)
	}
	return allowed
}

// Rules returns what a job of that access writes below the sandbox, whatever its agent is:
// its temporary folder, and its folder unless it only reads. A job that reads changes no
// file's attributes either (SEC-10); others have terminals and shared memory of their own
// (RWM-22).
func Rules(spec job.Spec) sandbox.Rules {
	rules := sandbox.Rules{Writable: []string{Temporary(spec)}}
	if spec.Access == job.AccessRead {
		rules.KeepAttributes = true
		return rules
	}
	rules.OwnDevices = true
	own := &rules.Writable
	if spec.Unlinked {
		own = &rules.Unlinked
	}
	*own = append(append(*own, spec.Folder), spec.Writable...)
	return rules
}

// Launch starts the CLI of spec below the floor of c. It fails if a folder of the job cannot be
// created, and with Unavailable if the program does not start.
func Launch(spec job.Spec, c Command) (*Process, error) {
	if err := os.MkdirAll(Temporary(spec), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of job %s: %w", spec.Job, err)
	}
	if c.Floor != job.FloorNone && !c.OwnersCaches {
		caches, err := PrivateCaches(spec, c.Env)
		if err != nil {
			return nil, err
		}
		c.Env.set(caches...)
	}
	if c.Floor == job.FloorSandbox {
		rules := Rules(spec)
		rules.Writable, rules.Files = append(rules.Writable, c.Writable...), c.Files
		if spec.Unlinked {
			rules.Readable = readable(spec, c.Env, c.Readable)
		}
		for _, folder := range rules.Writable {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, fmt.Errorf("make what job %s may write: %w", spec.Job, err)
			}
		}
		if err := os.MkdirAll(sharedMemory(spec), 0o700); err != nil {
			return nil, fmt.Errorf("make what job %s names in /dev/shm: %w", spec.Job, err)
		}
		supervisor, err := connects.New(policy(spec, rules), spec.Sandbox)
		if err != nil {
			return nil, fmt.Errorf("supervise the connections of job %s: %w", spec.Job, err)
		}
		rules.Supervised, c.connections = true, supervisor
		c.Argv = sandbox.CommandLine(spec.Sandbox, rules, c.Argv)
	}
	if !spec.Unlinked {
		return start(c, spec.Folder)
	}
	// What is checked is what is entered: the folder is held while the CLI starts.
	held, err := sandbox.HoldFolder(spec.Folder)
	if err != nil {
		c.release()
		return nil, err
	}
	defer held.Close()
	return start(c, sandbox.HeldName(held))
}

func start(c Command, folder string) (*Process, error) {
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
			c.release()
			return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
		}
		files = append(files, read, write)
	}
	cmd := exec.CommandContext(context.Background(), c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env.list(), folder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	leadSession(cmd)
	if c.connections != nil {
		cmd.ExtraFiles = []*os.File{c.connections.File()} // sandbox.SupervisorFD
	}
	if err := sandbox.StartLeader(cmd); err != nil {
		closeAll()
		c.release()
		return nil, bridge.Errorf(bridge.Unavailable, "start %s: %w", c.Argv[0], err)
	}
	if c.connections != nil {
		c.connections.Start(cmd.Process.Pid)
	}
	for _, file := range []*os.File{files[0], files[3], files[5]} {
		file.Close()
	}
	p := &Process{
		cmd: cmd, stdin: files[1], stdout: files[2], stderr: &tail{},
		ended: make(chan struct{}), writing: make(chan struct{}, 1), after: c.After, connections: c.connections,
	}
	go p.collect(files[4])
	return p, nil
}

// collect waits for the process's end. Whoever still holds its pipes then may
// say a last word, but not keep them open.
func (p *Process) collect(stderr *os.File) {
	drained := make(chan struct{})
	go func() {
		io.Copy(p.stderr, &lastWords{file: stderr, left: pipeSize}) //nolint:errcheck // its end is how it ends
		close(drained)
	}()
	_ = p.cmd.Wait() // how it ended is in ProcessState
	sandbox.Collected(p.cmd.Process.Pid)
	deadline := time.Now().Add(drainTime) //nolint:forbidigo // pipes take deadlines by the clock
	for _, pipe := range []*os.File{stderr, p.stdout} {
		if pipe.SetReadDeadline(deadline) != nil {
			time.AfterFunc(drainTime, func() { pipe.Close() })
		}
	}
	<-drained
	p.stdin.Close()
	if p.connections != nil {
		p.connections.Close()
	}
	if p.after != nil {
		p.after()
	}
	close(p.ended)
}

// Ended is closed when the process has ended and was collected.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Terminate asks the process to end.
func (p *Process) Terminate() { terminate(p.cmd.Process) }

// identity names the process for whoever finds it later.
func (p *Process) identity() job.Process {
	id, _ := proc.Identity(p.cmd.Process.Pid) // one that has ended already needs no name
	return job.Process{PID: p.cmd.Process.Pid, Identity: id, Role: "cli"}
}

// Send writes one line. It fails with ErrEnded if the process reads no more. It fails with
// ErrUnconfirmed if ctx ends during the write, and with ctx's error if ctx ends before.
func (p *Process) Send(ctx context.Context, line []byte) error {
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

// output is what the process writes, until it ends.
func (p *Process) output() io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{&lastWords{file: p.stdout, left: pipeSize}, p.stdout}
}

const (
	// pipeSize is as much as waits in a pipe at most.
	pipeSize = 64 << 10
	// moment is how long a pipe is waited for that may be empty.
	moment = 10 * time.Millisecond
)

// lastWords reads a pipe to its deadline, and then what is in it all the same: who was
// busy, or asleep, until the deadline had passed has not read all that was written by then.
type lastWords struct {
	file *os.File
	late bool // the deadline has passed
	left int  // bytes that may be read after it, because the output may not end
}

// Read reads from the pipe. After the deadline it reads at most left bytes, and then fails with
// io.EOF. It fails with os.ErrDeadlineExceeded if no more data comes in time.
func (l *lastWords) Read(into []byte) (int, error) {
	if !l.late {
		n, err := l.file.Read(into)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		l.late = true
	}
	if l.left == 0 {
		return 0, io.EOF
	}
	if err := l.file.SetReadDeadline(time.Now().Add(moment)); err != nil { //nolint:forbidigo // pipes take deadlines by the clock
		return 0, err
	}
	n, err := l.file.Read(into[:min(len(into), l.left)])
	l.left -= n
	return n, err
}

// Lost waits for the end of a process whose output has ended; one that lives on
// without it cannot be talked to and is killed.
func (p *Process) Lost() {
	select {
	case <-p.ended:
	case <-time.After(leaveTime):
		_ = killGroup(p.cmd.Process) // it may be at its end
		<-p.ended
	}
}

// end ends the process. It waits for the process to exit, then terminates it, and kills its
// process group when ctx is done.
func (p *Process) end(ctx context.Context) error {
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
func (p *Process) exited() job.Exited {
	return job.Exited{Code: p.cmd.ProcessState.ExitCode(), Signal: signalOf(p.cmd.ProcessState), Stderr: p.stderr.String()}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

// Write keeps the last part of the data within maxStderr. Its error is always nil.
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
