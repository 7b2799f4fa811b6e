// Package testkit says how hard the tests try. Every run makes the same assertions; a
// long one, `go run ./build test -long`, makes them of many more rounds: thousands of
// kills, every call made to fail, hundreds of generated repositories.
package testkit

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// Env is the one knob. Unset or empty, a run is short. Set to 1 it is long, and to a
// larger number it goes as many times as many rounds as a long one.
const Env = "BRIDGE_TEST_LONG"

// QuickExit has a program that the race detector watches end at once, or nearly: by itself
// it stands still for a second at its end.
const QuickExit = "GORACE=atexit_sleep_ms=20"

// Patience is how long a test waits for a condition that comes by itself. It is no
// bound on how long that may take: only what hangs uses it up.
const Patience = 2 * time.Minute

// Times is how many times as many rounds as a long run has are asked for: 0 in a short
// run.
func Times(t testing.TB) int {
	t.Helper()
	times, err := parse(os.Getenv(Env))
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func parse(text string) (times int, err error) {
	if text == "" {
		return 0, nil
	}
	times, err = strconv.Atoi(text)
	if err != nil || times < 1 {
		return 0, fmt.Errorf("%s=%q: 1 asks for a long run, a larger number for more rounds", Env, text)
	}
	return times, nil
}

// IsLong reports whether this is a long run.
func IsLong() bool { return os.Getenv(Env) != "" }

// Rounds is how many rounds a test goes: short in every run, long in a long one.
func Rounds(t testing.TB, short, long int) int {
	t.Helper()
	if times := Times(t); times > 0 {
		return times * long
	}
	return short
}

// Stride is how far apart the steps are that a test disturbs: so many in every run,
// each single one in a long run.
func Stride(t testing.TB, short int) int {
	t.Helper()
	if Times(t) > 0 {
		return 1
	}
	return short
}

// Long skips what only a long run does, saying why it takes long.
func Long(t testing.TB, why string) {
	t.Helper()
	if Times(t) == 0 {
		t.Skipf("in a long run only (%s=1): %s", Env, why)
	}
}

// Environ is the environment in which the tests were started: the go command finds its
// caches by it.
var Environ = os.Environ()

// Programs are those that lie beside each other in every package of the product, bridge first.
var Programs = []string{"bridge", "bridge-hook", "bridge-mcp", "bridge-worker"}

// Product is the path of the bridge that tests of whole programs run, with the others beside
// it: of the one that BRIDGE_TEST_BIN names, else of one that is built into folder, with
// flags for the go command.
func Product(folder string, flags ...string) (path string, err error) {
	if path = os.Getenv("BRIDGE_TEST_BIN"); path != "" {
		return path, nil
	}
	for _, program := range Programs {
		flags = append(flags, "bridge/cmd/"+program)
	}
	return filepath.Join(folder, Programs[0]), Build(folder, flags...)
}

// Build has the go command build to a file or into a folder that is there; args are
// packages, and flags before them.
func Build(to string, args ...string) error {
	build := exec.CommandContext(context.Background(), "go", append([]string{"build", "-o", to}, args...)...)
	build.Env = Environ
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %q: %w\n%s", args, err, out)
	}
	return nil
}

// Away runs the tests of a package that starts whole programs, away from the home folder of
// whoever runs them: a broker has the login shell tell its environment, and reads the
// settings of agents. They meet an empty one.
func Away(m interface{ Run() int }) (code int) {
	home, err := os.MkdirTemp("", "bridge-home")
	if err == nil {
		defer func() { _ = os.RemoveAll(home) }()
		variable := "HOME"
		if runtime.GOOS == "windows" {
			variable = "USERPROFILE"
		}
		err = os.Setenv(variable, home)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Within tells that something took longer than it may on a machine with nothing else to
// do. A long run fails by it, which is one at night; every other run only says it: how
// long something takes there hangs on what runs beside it.
func Within(t testing.TB, most, took time.Duration, what string) {
	t.Helper()
	switch {
	case took <= most:
	case Times(t) > 0:
		t.Errorf("%s after %s, and may take %s", what, took, most)
	default:
		t.Logf("%s after %s, and may take %s", what, took, most)
	}
}

// Mode returns the permissions that [os.Stat] reports of a file that was written with mode.
// Windows keeps only whether the file may be written.
func Mode(mode fs.FileMode) fs.FileMode {
	switch {
	case runtime.GOOS != "windows":
		return mode
	case mode&0o200 != 0:
		return 0o666
	default:
		return 0o444
	}
}

// Page is a kind of page in the tree of a table or an index.
type Page string

// The pages that DamagePage overwrites.
const (
	RootPage Page = "pageno = (SELECT rootpage FROM sqlite_schema s WHERE s.name = dbstat.name)"
	LeafPage Page = "pagetype = 'leaf'" // the first leaf
)

// DamagePage overwrites a page of a table or an index in the SQLite database at path, which
// nobody has open. The caller links the driver "sqlite".
func DamagePage(t testing.TB, path, name string, page Page) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var number, size int64
	err = pool.QueryRowContext(t.Context(), "SELECT pageno, pgsize FROM dbstat WHERE name = ? AND "+string(page)+" ORDER BY path LIMIT 1", name).Scan(&number, &size)
	if closeErr := pool.Close(); err != nil || closeErr != nil {
		t.Fatalf("find a page of %s: %v, %v", name, err, closeErr)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(bytes.Repeat([]byte("x"), int(size)), (number-1)*size)
	if closeErr := file.Close(); err != nil || closeErr != nil {
		t.Fatalf("damage page %d: %v, %v", number, err, closeErr)
	}
}
