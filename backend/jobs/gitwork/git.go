// Package gitwork runs git for delegated jobs (JOB-08, JOB-18, JOB-19). It finds the
// repository of a folder and gives each job a worktree. It compares a job's changes with
// the files at its start, and lands or drops them for the owner. It loses no commit and no
// file: it parks uncommitted work as a commit first, and names commits that no branch
// holds. Git itself removes a checkout, never by force. Package gitwork calls the owner's
// git with argument lists, without hooks, pager, colour, editor or questions.
//
// A job can write its repository's settings, and the path to git's folder. If the system
// has a floor, git runs below it (SEC-02), and so does each program that git starts. It can
// write only the checkout, its git folder and a folder of this call. It opens no socket, and
// all its processes end with the call. In addition, settings disable known ways to start
// programs; without a floor this is the only protection. Filters run as they were before
// the job began, or git stores nothing (RWM-02).
package gitwork

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Git works with the owner's repositories. It is safe for concurrent use; git's own
// lock files serialize the calls.
type Git struct{ program }

// program runs git.
type program struct {
	bin string
	env []string
	// naming are further variables of the owner that set the author of commits.
	naming []string
	// lockWait is the timeout for another git's lock file.
	lockWait time.Duration
	// pause waits between two tries; tests replace it.
	pause func(context.Context, time.Duration) error

	sandbox []string // the command of sandbox.Main; empty without a floor
	scratch string   // the folder for temporary index files
	home    string   // Bridge's own, canonical; "" for none
	places  map[string]*gitFolders
	bounds  bounds
	say     func(string) // receives reports of content that a snapshot omitted
	// removing is called during the removal of a worktree; may be nil.
	removing func(Removal)

	// untamed is for tests of the floor: settings disable nothing, as if git had
	// unknown settings that start programs.
	untamed bool
}

// Options configures Open.
type Options struct {
	Environ []string // the owner's environment: it locates git and its settings
	// Jobs changes Environ as config.json does for jobs, for the author of commits. A
	// name without a value removes the variable.
	Jobs []string
	// Sandbox is the command of sandbox.Main, which runs git; empty if the system has
	// no floor.
	Sandbox []string
	// Home is Bridge's home: snapshots never include its files. Temporary index files
	// go to its folder scratch, created if missing. "" means no home.
	Home string
	// Say receives a sentence about content that a snapshot omitted; may be nil.
	Say func(string)
}

// passedVariables are the variables that git needs to find its programs and the owner's settings.
// No other GIT_* variable passes, because one could name another repository.
var passedVariables = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "TMPDIR", "USER", "LOGNAME",
	"SYSTEMROOT", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP", "PATHEXT", "COMSPEC",
}

// set are the variables of every git. They allow no protocol: Bridge's git fetches no
// objects, and a repository's settings cannot override that (unlike protocol.allow).
// git-lfs leaves its pointer if it lacks the content.
var set = []string{
	"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_ASKPASS=false", "SSH_ASKPASS=false",
	"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=:", "GIT_SSH_COMMAND=false", "GIT_PROXY_COMMAND=false", "GIT_LFS_SKIP_DOWNLOAD_ERRORS=1",
}

// options are the options of every git. Hooks serve the owner's own work; a job's
// repository must not start programs when Bridge reads it.
var options = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "color.ui=false", "-c", "core.quotePath=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "commit.gpgSign=false", "-c", "advice.addEmbeddedRepo=false", "-c", "core.untrackedCache=false",
	"-c", "diff.ignoreSubmodules=dirty", "-c", "submodule.recurse=false", "-c", "core.safecrlf=false",
	"-c", "protocol.allow=never", "-c", "credential.helper=", "-c", "core.alternateRefsCommand=false", "-c", "log.showSignature=false",
	"-c", "gpg.program=false", "-c", "gpg.openpgp.program=false", "-c", "gpg.x509.program=false", "-c", "gpg.ssh.program=false", "-c", "gpg.ssh.defaultKeyCommand=",
	"-c", "interactive.diffFilter=cat", "-c", "lfs.transfer.maxretries=1",
}

// New is Open without a floor, for the PATH of environ. It fails with Unavailable if git is not
// installed.
func New(environ []string) (*Git, error) { return Open(Options{Environ: environ}) }

// Open finds git on the PATH of the options' environment. It fails with Unavailable without git.
func Open(opts Options) (*Git, error) {
	env := slices.Clone(set)
	var path string
	for _, entry := range opts.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(passedVariables, strings.ToUpper(name)) {
			env = append(env, entry)
		}
		if strings.EqualFold(name, "PATH") {
			path = value
		}
	}
	bin, err := lookPath(path)
	if err != nil {
		return nil, bridge.Errorf(bridge.Unavailable, "git is not installed: worktrees and diffs of jobs need git 2.38 or newer on the PATH")
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	g := &Git{program{bin: bin, env: env, naming: namingVariables(slices.Concat(opts.Environ, opts.Jobs)), lockWait: 10 * time.Second, pause: pause, sandbox: opts.Sandbox, scratch: os.TempDir(), bounds: usualBounds, say: opts.Say}}
	if opts.Home != "" {
		if g.home, err = disk.CanonicalTarget(opts.Home); err != nil {
			return nil, err
		}
		g.scratch = filepath.Join(g.home, "scratch")
	}
	return g, nil
}

// lookPath finds git in the folders of path, which may differ from this process's PATH.
func lookPath(path string) (string, error) {
	for _, folder := range splitList(path) {
		if found, err := exec.LookPath(folder + string(os.PathSeparator) + "git"); err == nil && folder != "" {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}

func splitList(path string) []string { return strings.Split(path, string(os.PathListSeparator)) }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// maxOutput limits the output of a git; the longest is the list of a tree's files.
const maxOutput = 256 << 20

// maxTime is longer than git needs in any repository. A program of a repository may
// block forever.
const maxTime = 30 * time.Minute

// call is one run of git.
type call struct {
	dir   string
	args  []string
	env   []string // added to the environment of every git
	input string
	limit int // output limit in bytes, after which it is cut; 0 means maxOutput and an error
	// writable are folders that the call may write in addition to those of its place.
	writable []string
	// search makes git search for the repository in dir and above, by its current
	// links.
	search bool
}

// result is the result of a call.
type result struct {
	out  string
	text string // its error output
	code int
	cut  bool
}

// failure is the error of a git with an exit code.
type failure struct {
	args []string
	code int
	text string
}

func (f *failure) Error() string {
	text := strings.ReplaceAll(strings.TrimSpace(f.text), "\n", "; ") // one sentence, suitable for display
	if text == "" {
		text = "it gave no reason"
	}
	return "git " + f.args[0] + ": " + text
}

// output runs git and returns its output, without the last line break.
func (g *program) output(ctx context.Context, dir string, args ...string) (string, error) {
	done, err := g.run(ctx, call{dir: dir, args: args})
	return strings.TrimSuffix(done.out, "\n"), err
}

// run runs git, and retries while another git holds a lock. It fails with Busy after lockWait.
func (g *program) run(ctx context.Context, c call) (result, error) {
	const step = 100 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		done, err := g.once(ctx, c)
		lock := lockOf(err)
		if lock == "" {
			return done, err
		}
		if waited >= g.lockWait {
			return done, bridge.Errorf(bridge.Busy, "another git is at work: %s is there for more than %s (remove it if none runs)", lock, bridge.Span(g.lockWait))
		}
		if err := g.pause(ctx, step); err != nil {
			return done, err
		}
	}
}

var lockText = regexp.MustCompile(`(?i)unable to (?:create|lock) '?([^'\n]*\.lock)'?: File exists|cannot lock ref [^\n]*unable to create '([^']*\.lock)'`)

// lockOf returns the lock file that caused the error, or "" for another cause.
func lockOf(err error) string {
	var failed *failure
	if !errors.As(err, &failed) {
		return ""
	}
	found := lockText.FindStringSubmatch(failed.text)
	if found == nil {
		return ""
	}
	return found[1] + found[2]
}

func (g *program) once(ctx context.Context, c call) (result, error) {
	callerCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	argv := g.commandLine(c)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, g.environment(c)
	if len(g.sandbox) > 0 { // sandbox.Main ends git and its child processes
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	}
	cmd.Stdin = strings.NewReader(c.input)
	cmd.WaitDelay = 5 * time.Second
	out := &bounded{limit: maxOutput}
	if c.limit > 0 {
		out.limit = c.limit
	}
	text := &bounded{limit: 16 << 10}
	cmd.Stdout, cmd.Stderr = out, text
	err := cmd.Run()
	done := result{out: out.output.String(), text: text.output.String(), cut: out.cut}
	var exit *exec.ExitError
	switch {
	case callerCtx.Err() != nil:
		return done, callerCtx.Err()
	case ctx.Err() != nil:
		return done, bridge.Errorf(bridge.Unavailable, "git %s in %s was ended after %s: a program of the repository may keep it waiting", c.args[0], c.dir, bridge.Span(maxTime))
	case errors.As(err, &exit):
		done.code = exit.ExitCode()
		return done, &failure{args: c.args, code: done.code, text: text.output.String()}
	case err != nil:
		return done, bridge.Errorf(bridge.Unavailable, "git cannot be started in %s: %w", c.dir, err)
	case out.cut && c.limit == 0:
		return done, bridge.Errorf(bridge.TooLarge, "git %s says more than %s", c.args[0], bridge.Size(maxOutput))
	}
	return done, nil
}

// bounded keeps the start of the data that is written to it.
type bounded struct {
	output bytes.Buffer // not embedded: its ReadFrom would bypass the limit
	limit  int
	cut    bool
}

// Write accepts all data and keeps the part within the limit. Its error is always nil.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.output.Len()
	b.cut = b.cut || len(p) > room
	b.output.Write(p[:min(len(p), room)])
	return len(p), nil
}

// codeOf returns a failed git's exit code, or -1 for another error.
func codeOf(err error) int {
	var failed *failure
	if errors.As(err, &failed) {
		return failed.code
	}
	return -1
}

// fields splits git's NUL-separated output.
func fields(text string) []string {
	text = strings.TrimSuffix(text, "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
