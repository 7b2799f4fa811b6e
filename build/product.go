package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// minNode is the oldest Node.js that builds the page (frontend/package.json).
var minNode = [2]int{20, 19}

// runPage builds the dashboard page when it is missing or older than its
// sources, and puts into it whose work the product is made from.
func runPage(ctx context.Context, p project, _ []string) error {
	if err := checkNode(ctx); err != nil {
		return err
	}
	if err := installPage(ctx, p); err != nil {
		return err
	}
	sum, err := pageSum(p.at("frontend"))
	if err != nil {
		return err
	}
	stamp := p.at(".cache", "page.sum")
	built, err := os.ReadFile(stamp)
	if _, missing := os.Stat(p.at("frontend", "dist", "index.html")); missing == nil && err == nil && string(built) == sum {
		p.say("the page is up to date")
		return writeLicences(ctx, p)
	}
	if err := p.npm(ctx, "frontend", "run", "build"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(stamp), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(stamp, []byte(sum), 0o644); err != nil {
		return err
	}
	return writeLicences(ctx, p)
}

// installPage installs the page's packages unless they are those of the lock
// file already. npm writes its own copy of the lock file last.
func installPage(ctx context.Context, p project) error {
	lock, err := os.Stat(p.at("frontend", "package-lock.json"))
	if err != nil {
		return err
	}
	installed, err := os.Stat(p.at("frontend", "node_modules", ".package-lock.json"))
	if err == nil && !installed.ModTime().Before(lock.ModTime()) {
		return nil
	}
	return p.npm(ctx, "frontend", "ci", "--no-fund", "--no-audit", "--loglevel=error") // without notices for its authors
}

// pageSum is a checksum of everything the page is built from.
func pageSum(frontend string) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(frontend, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(frontend, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (name == "node_modules" || name == "dist" || name == "e2e" || name == "test-results" || name == "playwright-report"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		fmt.Fprintf(hash, "%s\x00", filepath.ToSlash(name))
		_, err = io.Copy(hash, file)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

func checkNode(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, "node", "--version").Output()
	if ctx.Err() != nil {
		return context.Cause(ctx) // the run was ended: that says nothing of Node
	}
	if err != nil {
		return fmt.Errorf("Node.js %d.%d or newer is needed to build the page: install it and try again (%w)", minNode[0], minNode[1], err)
	}
	return nodeIsEnough(strings.TrimSpace(string(output)))
}

// nodeIsEnough reads the likes of v20.20.2.
func nodeIsEnough(version string) error {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	numbers := [2]int{}
	for i := range numbers {
		n, err := strconv.Atoi(append(parts, "", "")[i])
		if err != nil {
			return fmt.Errorf("node --version says %q, which is not a version", version)
		}
		numbers[i] = n
	}
	if numbers[0] < minNode[0] || numbers[0] == minNode[0] && numbers[1] < minNode[1] {
		return fmt.Errorf("Node.js %s is too old to build the page: install %d.%d or newer", version, minNode[0], minNode[1])
	}
	return nil
}

// binary is where the console binary is built for this system.
func (p project) binary() string { return p.at("bin", executable("bridge", runtime.GOOS)) }

func executable(name, system string) string {
	if system == "windows" {
		return name + ".exe"
	}
	return name
}

// consolePrograms are built together and lie beside each other wherever Bridge
// is: the agents are told to start the second for their hooks, and the first becomes the
// others beside them.
func consolePrograms() []string {
	return []string{"bridge", "bridge-hook", "bridge-mcp", "bridge-worker"}
}

// buildBridge builds the page, when needed, and the console programs.
func buildBridge(ctx context.Context, p project) error {
	if err := runPage(ctx, p, nil); err != nil {
		return err
	}
	announceCompilation(p)
	for _, program := range consolePrograms() {
		if err := p.build(ctx, runtime.GOOS, runtime.GOARCH, program, p.at("bin", executable(program, runtime.GOOS))); err != nil {
			return err
		}
	}
	return nil
}

// announceCompilation says why nothing is printed for so long, at the first compilation.
func announceCompilation(p project) {
	if _, err := os.Stat(p.binary()); errors.Is(err, fs.ErrNotExist) {
		p.say("Go compiles Bridge now; the first time takes a few minutes, and it prints nothing meanwhile")
	}
}

func (p project) build(ctx context.Context, system, processor, program, output string) error {
	return p.do(ctx, step{
		env:  []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + processor},
		name: "go", args: []string{"build", "-trimpath", "-o", output, "./cmd/" + program},
	})
}

// platforms are the systems and processors that Bridge is built for.
func platforms() [][2]string {
	return [][2]string{
		{"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	}
}

func runCross(ctx context.Context, p project, _ []string) error {
	if err := runPage(ctx, p, nil); err != nil {
		return err
	}
	for _, platform := range platforms() {
		for _, program := range consolePrograms() {
			name := executable(program+"-"+platform[0]+"-"+platform[1], platform[0])
			if err := p.build(ctx, platform[0], platform[1], program, p.at("bin", name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// runDocs writes the generated pages of docs.
func runDocs(ctx context.Context, p project, args []string) error {
	if len(args) > 0 {
		return badArgument("docs takes no arguments")
	}
	if err := p.goTool(ctx, "run", "./build/reference"); err != nil {
		return err
	}
	return runPromises(ctx, p, nil)
}

func runDemo(ctx context.Context, p project, args []string) error {
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	return p.foreground(append([]string{"demo"}, args...))
}

func runBridge(ctx context.Context, p project, args []string) error {
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	return p.foreground(append([]string{"serve"}, args...))
}

// foreground runs the built binary as if it had been started in our place: an
// interrupt from the terminal reaches it by itself, a request to end is passed
// on, and its exit status becomes ours. When it prints its launch link, the
// link is opened where there is a screen.
func (p project) foreground(args []string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	cmd := exec.Command(p.binary(), args...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGTERM {
					_ = cmd.Process.Signal(s) // it may have ended by itself meanwhile
				}
			case <-done:
				return
			}
		}
	}()
	readErr := p.show(printed)
	err = cmd.Wait()
	close(done)
	return errors.Join(err, readErr)
}

// show passes on what the binary prints and opens its launch link.
func (p project) show(printed io.Reader) error {
	lines := bufio.NewReader(printed)
	for {
		line, err := lines.ReadString('\n')
		fmt.Fprint(p.output, line)
		if link, ready := launchLink(line); ready {
			if !openLink(link, runtime.GOOS, os.Getenv) {
				p.say("open that link in a browser on this machine; Ctrl-C ends Bridge")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// launchLink finds the link in the line that `bridge serve` prints when ready.
func launchLink(line string) (link string, ready bool) {
	link, ready = strings.CutPrefix(strings.TrimSpace(line), "bridge: ready ")
	return link, ready && strings.HasPrefix(link, "http://")
}

// openLink shows link in the user's browser and reports whether there is one.
func openLink(link, system string, getenv func(string) string) bool {
	command := opener(system, getenv)
	if command == nil {
		return false
	}
	return exec.Command(command[0], append(command[1:], link)...).Start() == nil
}

// opener is the command that shows a link, or nil without a screen.
func opener(system string, getenv func(string) string) []string {
	switch {
	case getenv("CI") != "" || getenv("SSH_CONNECTION") != "":
		return nil
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case system == "darwin":
		return []string{"open"}
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		return []string{"xdg-open"}
	}
	return nil
}
