package realcli

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"bridge/backend/agent/prove/scripted"
)

// Isolate runs this same program again, with the same arguments, by scripted.Isolate, and
// returns its exit code. What it leaves running when it ends by itself is named, and fails
// it. An error means that the system does not permit namespaces.
func Isolate() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, remaining, err := scripted.Isolate(ctx, scripted.Isolation{Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr})
	if remaining != "" {
		fmt.Print(remaining)
		code = max(code, 1)
	}
	return code, err
}

// apartVar marks a process that runs one test for another process.
const apartVar = "BRIDGE_TEST_APART"

// Apart runs each test of this program in a process of its own, which makes namespaces
// of its own by Isolate, half as many more at a time as there are processors: a test of a CLI
// waits as long as it works, and in a network of its own it meets no other one. The tests
// that are named as the longest begin first. What tests say is printed when they end, each
// by itself. done is false where there is nothing to be dealt out: then the caller runs what
// it was asked for.
func Apart(longest ...string) (code int, done bool) {
	flag.Parse()
	wanted := flag.Lookup("test.run").Value.String()
	if os.Getenv(apartVar) == "1" || strings.Contains(wanted, "/") || flag.Lookup("test.list").Value.String() != "" {
		return 0, false
	}
	tests, err := listTests(wanted)
	if err != nil || len(tests) < 2 {
		return 0, false
	}
	slices.SortStableFunc(tests, func(a, b string) int { return cmp.Compare(place(longest, a), place(longest, b)) })
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var (
		next   = make(chan string)
		mu     sync.Mutex
		failed = 0
		hands  sync.WaitGroup
	)
	for range runtime.NumCPU() + runtime.NumCPU()/2 {
		hands.Go(func() {
			for test := range next {
				output, err := runApart(ctx, test)
				mu.Lock()
				if _, _ = os.Stdout.Write(output); err != nil {
					failed = 1
				}
				mu.Unlock()
			}
		})
	}
	for _, test := range tests {
		if ctx.Err() == nil {
			next <- test
		}
	}
	close(next)
	hands.Wait()
	if ctx.Err() != nil { // what was not begun has not passed
		failed = 1
	}
	printVerdict(os.Stdout, failed == 0)
	return failed, true
}

// place returns at which place a test stands among the longest, behind all of them if it is
// none.
func place(longest []string, test string) int {
	if at := slices.Index(longest, test); at >= 0 {
		return at
	}
	return len(longest)
}

// listTests lists the tests of this program that a pattern finds, in their order.
func listTests(pattern string) ([]string, error) {
	list := exec.Command("/proc/self/exe", "-test.list="+cmp.Or(pattern, "."))
	list.Env = append(os.Environ(), apartVar+"=1")
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	return testName.FindAllString(string(output), -1), nil
}

var testName = regexp.MustCompile(`(?m)^Test\w*$`)

// runApart runs one test to its end. What it returns is all that the test said, without
// the verdict: there is one of the whole.
func runApart(ctx context.Context, test string) (output []byte, err error) {
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool {
		return strings.HasPrefix(arg, "-test.testlogfile=") // of one process: several would write over each other
	})
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(args, "-test.run=^"+test+"$")...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), apartVar+"=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // Isolate ends what it started
	output, err = cmd.CombinedOutput()
	if at := verdict.FindAllIndex(output, -1); len(at) > 0 {
		last := at[len(at)-1]
		output = slices.Delete(output, last[0], last[1])
	}
	return output, err
}

// verdict is the last line of a program of tests, of those that are its own words: \x16
// stands before these where test2json reads them.
var verdict = regexp.MustCompile(`(?m)^\x16?(PASS|FAIL)\n`)

func printVerdict(writer io.Writer, passed bool) {
	mark, verdict := "", "FAIL"
	if flag.Lookup("test.v").Value.String() == "test2json" {
		mark = "\x16"
	}
	if passed {
		verdict = "PASS"
	}
	fmt.Fprintf(writer, "%s%s\n", mark, verdict)
}
