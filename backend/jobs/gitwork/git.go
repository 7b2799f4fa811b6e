// Package gitwork works with git for delegated jobs (JOB-08, JOB-18, JOB-19): which
// repository a folder belongs to, a worktree of its own for each job, what a job
// changed against the files that stood there at its start, and how the owner lands
// or drops it. No commit and no file is lost by any of it: what is not committed is
// parked as a commit first, what no branch holds gets a name, and git itself removes
// a checkout, never by force. It runs the owner's git by argument lists, without
// hooks, pager, colour, editor or questions.
//
// A job can write its repository's settings, and what leads to git's folder. So git runs
// below a floor of the system where there is one (SEC-02), which holds whatever a
// repository makes git start: written is only the checkout, its git folder and a folder of
// this call, no socket is made, and nothing outlives the call. Besides, settings switch
// off what is known to start programs; where there is no floor that is all there is. Filters
// run as they were before the job began, or nothing is stored (RWM-02).
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

// Git works with the owner's repositories. It may be used by several goroutines at
// once; git's own lock files order them.
type Git struct{ program }

// program runs git.
type program struct {
	bin string
	env []string
	// naming are the owner's variables that say, besides those, who commits.
	naming []string
	// lockWait is for how long another git's lock file is waited for.
	lockWait time.Duration
	// pause waits between two tries; tests put something else in its place.
	pause func(context.Context, time.Duration) error

	sandbox []string // what leads to sandbox.Main; empty where there is no floor
	scratch string   // where temporary index files are made
	home    string   // Bridge's own, canonical; "" for none
	places  map[string]*place
	bounds  bounds
	say     func(string) // is told what a snapshot left out
	// removing is called while a worktree is taken away; nil for nobody.
	removing func(Removal)

	// untamed is for tests of the floor: settings switch nothing off, as if the next git
	// started programs by settings that nobody knows so far.
	untamed bool
}

// Options say how git is run.
type Options struct {
	Environ []string // the owner's: it finds git, and git's settings
	// Jobs changes Environ as config.json does for jobs, where git says who commits. A name
	// alone takes the variable away.
	Jobs []string
	// Sandbox is the command that leads to sandbox.Main, below which git runs; empty where
	// the system has no floor.
	Sandbox []string
	// Home is Bridge's: none of its files is ever taken up, and temporary index files lie
	// in its folder scratch, made where it is not there. "" is no home.
	Home string
	// Say is told what a snapshot left out, in a sentence; nil for nobody.
	Say func(string)
}

// kept are the variables of the environment that git needs: to find its programs
// and the owner's settings. No other GIT_* of the caller gets through, for one names
// another repository.
var kept = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "TMPDIR", "USER", "LOGNAME",
	"SYSTEMROOT", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP", "PATHEXT", "COMSPEC",
}

// set are the variables that every git gets. No protocol is allowed: Bridge's git asks
// nobody for objects, and a repository's settings cannot say otherwise (they can of
// protocol.allow). git-lfs leaves its pointer where it has not got the content.
var set = []string{
	"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_ASKPASS=false", "SSH_ASKPASS=false",
	"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=:", "GIT_SSH_COMMAND=false", "GIT_PROXY_COMMAND=false", "GIT_LFS_SKIP_DOWNLOAD_ERRORS=1",
}

// options are those of every git. Hooks are the owner's for his own work; a job's
// repository must not start programs when Bridge looks at it.
var options = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "color.ui=false", "-c", "core.quotePath=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "commit.gpgSign=false", "-c", "advice.addEmbeddedRepo=false", "-c", "core.untrackedCache=false",
	"-c", "diff.ignoreSubmodules=dirty", "-c", "submodule.recurse=false", "-c", "core.safecrlf=false",
	"-c", "protocol.allow=never", "-c", "credential.helper=", "-c", "core.alternateRefsCommand=false", "-c", "log.showSignature=false",
	"-c", "gpg.program=false", "-c", "gpg.openpgp.program=false", "-c", "gpg.x509.program=false", "-c", "gpg.ssh.program=false", "-c", "gpg.ssh.defaultKeyCommand=",
	"-c", "interactive.diffFilter=cat", "-c", "lfs.transfer.maxretries=1",
}

// New is Open without a floor, for the PATH of environ.
func New(environ []string) (*Git, error) { return Open(Options{Environ: environ}) }

// Open finds git on the PATH of the options' environment. Unavailable where there is none.
func Open(opts Options) (*Git, error) {
	env := slices.Clone(set)
	var path string
	for _, entry := range opts.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(kept, strings.ToUpper(name)) {
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

// lookPath finds git in the folders of path, which need not be this process's PATH.
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

// maxOutput bounds what a git may say; the longest is the list of a tree's files.
const maxOutput = 256 << 20

// maxTime is more than git needs in any repository. A program that a repository names may
// wait for ever.
const maxTime = 30 * time.Minute

// call is one run of git.
type call struct {
	dir   string
	args  []string
	env   []string // added to every git's
	input string
	limit int // of the output in bytes, after which it is cut; 0 is maxOutput and an error
	// writable are folders that it may write besides those of its place.
	writable []string
	// search has git look for the repository itself, in dir and above it, by what leads
	// there now.
	search bool
}

// result is what came of it.
type result struct {
	out  string
	text string // what it said beside
	code int
	cut  bool
}

// failure is a git that did not do what it was asked to.
type failure struct {
	args []string
	code int
	text string
}

func (f *failure) Error() string {
	text := strings.ReplaceAll(strings.TrimSpace(f.text), "\n", "; ") // one sentence, wherever it is shown
	if text == "" {
		text = "it gave no reason"
	}
	return "git " + f.args[0] + ": " + text
}

// output runs git and returns what it says, without the last line break.
func (g *program) output(ctx context.Context, dir string, args ...string) (string, error) {
	done, err := g.run(ctx, call{dir: dir, args: args})
	return strings.TrimSuffix(done.out, "\n"), err
}

// run runs git, again while another git holds a lock.
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

// lockOf returns the lock file that made a git fail, "" when it was something else.
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
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	argv := g.commandLine(c)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, g.environment(c)
	if len(g.sandbox) > 0 { // who waits for git ends it, and what it started
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
	done := result{out: out.kept.String(), text: text.kept.String(), cut: out.cut}
	var exit *exec.ExitError
	switch {
	case asked.Err() != nil:
		return done, asked.Err()
	case ctx.Err() != nil:
		return done, bridge.Errorf(bridge.Unavailable, "git %s in %s was ended after %s: a program of the repository may keep it waiting", c.args[0], c.dir, bridge.Span(maxTime))
	case errors.As(err, &exit):
		done.code = exit.ExitCode()
		return done, &failure{args: c.args, code: done.code, text: text.kept.String()}
	case err != nil:
		return done, bridge.Errorf(bridge.Unavailable, "git cannot be started in %s: %w", c.dir, err)
	case out.cut && c.limit == 0:
		return done, bridge.Errorf(bridge.TooLarge, "git %s says more than %s", c.args[0], bridge.Size(maxOutput))
	}
	return done, nil
}

// bounded keeps the begin of what is written to it.
type bounded struct {
	kept  bytes.Buffer // not embedded: its ReadFrom would go round the limit
	limit int
	cut   bool
}

// Write takes everything and keeps what fits.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	b.cut = b.cut || len(p) > room
	b.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

// codeOf is a failed git's exit code, -1 for another error.
func codeOf(err error) int {
	var failed *failure
	if errors.As(err, &failed) {
		return failed.code
	}
	return -1
}

// fields splits what git separates by NUL.
func fields(text string) []string {
	text = strings.TrimSuffix(text, "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
