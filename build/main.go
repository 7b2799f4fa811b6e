// Command build is the project's task runner: `go run ./build <task>` from
// anywhere in the checkout. It needs Go and Node and nothing else to start
// with; every task installs what it needs besides and says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// task is one thing the runner can do.
type task struct {
	name, about string
	run         func(ctx context.Context, p project, args []string) error
}

func tasks() []task {
	return []task{
		{"run", "build everything and start Bridge with its dashboard; arguments go to `bridge serve`", runBridge},
		{"test", "run every check there is; ends with a summary and fails when one failed", runTests},
		{"bench", "measure against baselines of the same run, as one table; arguments go to build/bench (-quick)", runBench},
		{"soak", "kill brokers, sessions and jobs under load, a thousand times each, and let every write and sync fail; -hours N measures a broker at work instead; other arguments go to `go test` (-run, -v)", runSoak},
		{"fuzz", "run every fuzz target for a minute; -for DURATION, -keep NUMBER of new inputs, parts of names", runFuzz},
		{"mutants", "change the rules one operator at a time, and list the changes that no test notices; -workers NUMBER, parts of folders", runMutants},
		{"promises", "write docs/promises.md, which test holds which requirement, from the names of the tests; -check writes nothing", runPromises},
		{"docs", "write the generated pages of docs: the reference of commands and tools, and docs/promises.md", runDocs},
		{"demo", "build and show a throw-away Bridge with scripted sessions; arguments go to `bridge demo`", runDemo},
		{"pictures", "make the README's pictures of the page, docs/pictures, from the demo", runPictures},
		{"lint", "check style and mistakes in Go and in the page", runLint},
		{"cross", "build bin/bridge-<system>-<processor>, and the programs beside it, for every supported system", runCross},
		{"desktop", "build bin/bridge-desktop, the app with window and tray; installs its window's libraries when missing", runDesktop},
		{"package", "build the installers into bin/: deb, rpm and a Windows setup; `package linux` or `package windows` for some", runPackage},
		{"clis", "install the agent CLIs, at the versions that the tests drive, into .cache/clis", runCLIs},
		{"page", "build the dashboard page when its sources changed", runPage},
		{"icon", "draw build/appicon.png anew", runIcon},
	}
}

// agentMarks are what coding agents set for the programs that they start. Bridge refuses
// owner's commands to a program that has one, so the tests run without.
var agentMarks = []string{"CLAUDECODE", "CODEX_THREAD_ID", "CODEX_SANDBOX", "OPENCODE", "OPENCODE_PID", "GEMINI_CLI"}

func main() {
	for _, mark := range agentMarks {
		_ = os.Unsetenv(mark) // it fails for a name that no variable can have
	}
	ctx, stop := untilEnded(context.Background())
	err := dispatch(ctx, os.Args[1:], os.Stdout)
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.As(err, new(badArgument)):
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(2)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// untilEnded returns a context that ends when this program is interrupted or terminated. Then
// the programs that it has started end, too.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// errUsage says that the usage was printed.
var errUsage = errors.New("wrong usage")

// badArgument says which argument of a task is wrong; nothing was run.
type badArgument string

func (b badArgument) Error() string { return string(b) }

// dispatch runs the task that args name.
func dispatch(ctx context.Context, args []string, output io.Writer) error {
	if len(args) > 0 {
		for _, task := range tasks() {
			if task.name == args[0] {
				p, err := openProject(output)
				if err != nil {
					return err
				}
				return task.run(ctx, p, args[1:])
			}
		}
		fmt.Fprintf(output, "There is no task %q.\n\n", args[0])
	}
	fmt.Fprintln(output, "Usage: go run ./build <task> [arguments]")
	for _, task := range tasks() {
		fmt.Fprintf(output, "  %-8s %s\n", task.name, task.about)
	}
	return errUsage
}

// project is the checkout the tasks work on.
type project struct {
	root   string    // absolute
	output io.Writer // where tasks and the programs they start print
	// notes, when set, takes what a stage of the tests left out and what failed.
	notes *notes
	// changed, when set, has the packages whose tests may come out otherwise: no other
	// ones run.
	changed map[string]bool
	// long asks for all the rounds of each test, which takes hours.
	long bool
	// tidy, when set, is the program that runs each package's tests and fails when these
	// leave processes behind.
	tidy string
	// once has what fails not tried again, and takes no result from an earlier run.
	once bool
	// working, when set, are the lanes of stages that are at work.
	working *workers
}

// openProject finds the checkout around the working folder.
func openProject(output io.Writer) (project, error) {
	dir, err := os.Getwd()
	if err != nil {
		return project{}, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module bridge\n") {
			return project{root: dir, output: output}, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return project{}, errors.New("this is not a checkout of Bridge: no go.mod of `module bridge` here or above")
		}
		dir = parent
	}
}

// at returns a path within the checkout.
func (p project) at(names ...string) string {
	return filepath.Join(append([]string{p.root}, names...)...)
}

func (p project) say(format string, args ...any) {
	fmt.Fprintf(p.output, "==> "+format+"\n", args...)
}

// step is one program to run.
type step struct {
	dir  string   // within the checkout
	env  []string // NAME=value, added to the environment
	name string
	args []string
}

// String is what one types into a shell at the checkout's root.
func (s step) String() string {
	var args []string
	if s.dir != "" {
		args = append(args, "cd", quote(s.dir), "&&")
	}
	for _, setting := range s.env {
		name, value, _ := strings.Cut(setting, "=")
		args = append(args, name+"="+quote(value))
	}
	for _, arg := range append([]string{s.name}, s.args...) {
		args = append(args, quote(arg))
	}
	return strings.Join(args, " ")
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./^-]+$`)

func quote(arg string) string {
	if plainWord.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// leftBehind is how long a program's output is awaited after its end, when
// something that it started still holds it open.
const leftBehind = 10 * time.Second

// do runs a program and shows what it prints.
func (p project) do(ctx context.Context, s step) error {
	p.say("%s", s)
	cmd := exec.CommandContext(ctx, s.name, s.args...)
	cmd.Dir = p.at(s.dir)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.WaitDelay = leftBehind
	switch err := cmd.Run(); {
	case errors.Is(err, exec.ErrWaitDelay):
		p.say("%s has ended well; something that it started has not and is no longer listened to", s.name)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// goTool runs the go command at the checkout's root.
func (p project) goTool(ctx context.Context, args ...string) error {
	return p.do(ctx, step{name: "go", args: args})
}

// npm runs npm in a folder of the checkout.
func (p project) npm(ctx context.Context, dir string, args ...string) error {
	return p.do(ctx, step{dir: dir, name: "npm", args: args})
}
