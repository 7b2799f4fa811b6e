// Command wine runs tests of Bridge as Windows programs under Wine (PRF-07). It builds each
// test for Windows, runs it in a fresh Wine prefix, and prints what Wine cannot show.
//
// Run it in the checkout:
//
//	go run ./build/wine [-install] [-optional] [PACKAGE...]
//
// It exits 1 if a test fails. Without Wine it exits 3, or with -optional prints that no test
// ran and exits 0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// packages are the Debian packages of the tools.
var packages = []string{"wine", "wine64", "gcc-mingw-w64-x86-64", "nsis"}

// errMissing is the failure on a machine without Wine.
var errMissing = errors.New("wine or the compiler for it is missing: run `apt-get install " + strings.Join(packages, " ") + "`")

func main() {
	install := flag.Bool("install", false, "install Wine and the tools with apt-get first")
	optional := flag.Bool("optional", false, "without Wine, run no test and succeed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *install, flag.Args())
	switch {
	case errors.Is(err, errMissing) && *optional:
		fmt.Println("SKIPPED: no Windows program is run:", err)
	case errors.Is(err, errMissing):
		fmt.Fprintln(os.Stderr, "wine:", err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "wine:", err)
		os.Exit(1)
	}
}

// run runs the suites of the named packages, or all. It fails with errMissing without Wine,
// and if a package is unknown or a test fails.
func run(ctx context.Context, install bool, names []string) error {
	if install {
		if err := installTools(ctx); err != nil {
			return err
		}
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	p, err := newPrefix(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	var failed []string
	for _, s := range chosen {
		startedAt := time.Now()
		err := p.test(ctx, s)
		state := "passed"
		if err != nil {
			state = "FAILED: " + err.Error()
			failed = append(failed, s.name)
		}
		fmt.Printf("%-28s %5.1f s  %s\n", s.name, time.Since(startedAt).Seconds(), state)
		for _, gap := range s.gaps {
			fmt.Printf("    not shown by Wine: %s: %s\n", gap.tests, gap.why)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(names) == 0 {
		if err := walk(ctx); err != nil {
			failed = append(failed, "the walks with bridge.exe")
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d packages failed: %s", len(failed), len(chosen), strings.Join(failed, ", "))
	}
	return nil
}

// walk runs the tests of this folder, which use the programs as a person does. It fails if
// one of them fails.
func walk(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=30m", "-v", "-run=PRF_07", "./build/wine")
	cmd.Env = append(os.Environ(), "BRIDGE_TEST_WINE=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// installTools installs the Debian packages. It fails if apt-get does.
func installTools(ctx context.Context) error {
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)} {
		apt := exec.CommandContext(ctx, "apt-get", args...)
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		apt.Stdout, apt.Stderr = os.Stdout, os.Stderr
		if err := apt.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}

// choose returns the suites of the named packages, or all suites. It fails if there is none
// of a name.
func choose(names []string) ([]suite, error) {
	if len(names) == 0 {
		return suites, nil
	}
	var chosen []suite
	for _, name := range names {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no suite %q: the suites are %s", name, strings.Join(suiteNames(), ", "))
		}
		chosen = append(chosen, suites[i])
	}
	return chosen, nil
}
