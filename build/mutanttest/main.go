// Command mutanttest stands for the go command while gremlins runs. It mends what would
// make the figures wrong: go test exits alike when a mutant does not compile and when a
// test fails, and a coverage profile holds no block for the expressions of a case.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// realGo is the variable that names the go command; its value is an absolute path.
const realGo = "BRIDGE_MUTANTS_GO"

// chosenTests is the variable with the regular expression of the tests that run; all do
// without a value.
const chosenTests = "BRIDGE_MUTANTS_TESTS"

// notViable is the exit code from which gremlins tells that a mutant does not compile.
const notViable = 2

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutanttest:", err)
	}
	os.Exit(code)
}

// run calls the go command with args and returns its exit code, or notViable when a
// package did not compile. After a run with coverage it widens the profile.
func run(args []string, output io.Writer) (code int, err error) {
	if len(args) > 0 && args[0] == "test" {
		args = testArguments(args, os.Getenv(chosenTests))
	}
	cmd := exec.Command(os.Getenv(realGo), args...)
	cmd.Env = append(os.Environ(), "PATH="+withoutOwnFolder(os.Getenv("PATH")))
	var printed bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, io.MultiWriter(output, &printed), os.Stderr
	failed := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(failed, &exit) && didNotCompile(printed.String()):
		return notViable, nil
	case errors.As(failed, &exit):
		return max(1, exit.ExitCode()), nil // a signal has the code -1
	case failed != nil:
		return 1, failed
	}
	if at := slices.Index(args, "-coverprofile"); at >= 0 && at+1 < len(args) {
		if err := widenProfile(args[at+1], "."); err != nil {
			return 1, err
		}
	}
	return 0, nil
}

// testArguments returns the arguments of go test without vet, whose complaint would count
// as a failed test, for the named package alone, and for the chosen tests.
func testArguments(args []string, tests string) []string {
	changed := []string{"test", "-vet=off", "-ldflags=-s -w"}
	if tests != "" {
		changed = append(changed, "-run="+tests)
	}
	for _, arg := range args[1:] {
		changed = append(changed, strings.TrimSuffix(arg, "/..."))
	}
	return changed
}

// didNotCompile reports whether go test printed that it could not build the tests.
func didNotCompile(printed string) bool {
	lines := bufio.NewScanner(strings.NewReader(printed))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "FAIL\t") && (strings.HasSuffix(line, " [build failed]") || strings.HasSuffix(line, " [setup failed]")) {
			return true
		}
	}
	return false
}

// withoutOwnFolder returns a PATH without the folder of this program, so that a test that
// calls go reaches the real one.
func withoutOwnFolder(path string) string {
	own, err := os.Executable()
	if err != nil {
		return path
	}
	folders := slices.DeleteFunc(filepath.SplitList(path), func(folder string) bool { return folder == filepath.Dir(own) })
	return strings.Join(folders, string(os.PathListSeparator))
}
