package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// golangci is the linter at the version that .golangci.yml was written for.
const (
	golangciModule  = "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
	golangciVersion = "v2.15.0"
)

// runLint checks the Go code, for this system and for Windows, and the page.
func runLint(ctx context.Context, p project, _ []string) error {
	linter, err := installTool(ctx, p, "golangci-lint", golangciModule, golangciVersion)
	if err != nil {
		return err
	}
	if err := runPage(ctx, p, nil); err != nil {
		return err
	}
	for _, system := range []string{runtime.GOOS, "windows"} {
		run := step{env: []string{"GOOS=" + system}, name: linter, args: []string{"run", "./..."}}
		if err := p.do(ctx, run); err != nil {
			return err
		}
	}
	return p.npm(ctx, "frontend", "run", "lint")
}

// installTool builds the program of a module once, into a folder of .cache/bin, and returns
// its path.
func installTool(ctx context.Context, p project, name, module, version string) (string, error) {
	dir := p.at(".cache", "bin", name+"-"+version)
	program := filepath.Join(dir, executable(name, runtime.GOOS))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	p.say("building %s, once; this takes a minute or two", name)
	return program, p.do(ctx, step{
		env:  []string{"GOBIN=" + dir, withoutC},
		name: "go", args: []string{"install", module + "@" + version},
	})
}

// runCLIs installs the agent CLIs of build/clis into .cache/clis. It is `npm
// install` with the lock file rather than `npm ci`, because a registry need not
// carry the builds for systems other than this one. No script of theirs runs:
// the tests start the platform's binaries directly.
func runCLIs(ctx context.Context, p project, _ []string) error {
	dir := p.at(".cache", "clis")
	current, err := copyChanged(p.at("build", "clis"), dir, "package.json", "package-lock.json", ".npmrc")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil && current {
		p.say("the agent CLIs are installed")
		return nil
	}
	p.say("installing the agent CLIs, about 1 GB, into %s", dir)
	return p.npm(ctx, filepath.Join(".cache", "clis"), "install", "--no-save", "--ignore-scripts", "--loglevel=error")
}

// copyChanged makes the named files of to equal to those of from and reports
// whether they were already.
func copyChanged(from, to string, names ...string) (same bool, err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return false, err
	}
	same = true
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return false, err
		}
		if have, err := os.ReadFile(filepath.Join(to, name)); err == nil && bytes.Equal(have, want) {
			continue
		}
		same = false
		if err := os.WriteFile(filepath.Join(to, name), want, 0o644); err != nil {
			return false, err
		}
	}
	return same, nil
}

// need is something of the system that the tests use.
type need struct {
	what     string   // for people
	programs []string // any one of them will do
	packages []string // on Debian and Ubuntu
}

func needs() []need {
	return []need{
		{"a browser for the tests of the page", browsers(), []string{"chromium", "fonts-dejavu-core"}},
		{"git", []string{"git"}, []string{"git"}},
		{"filters of git that people have", []string{"git-lfs"}, []string{"git-lfs"}},
		{"the same for secrets", []string{"git-crypt"}, []string{"git-crypt"}},
		{"a screen for the tests of the desktop app", []string{"Xvfb"}, []string{"xvfb"}},
		{"a session bus for the same", []string{"dbus-daemon"}, []string{"dbus"}},
		{"a network of their own for the agent CLIs", []string{"ip"}, []string{"iproute2"}},
		{"sessions of their own for test processes", []string{"setsid"}, []string{"util-linux"}},
		{"a service manager for the tests of the service", []string{"systemctl"}, []string{"systemd"}},
	}
}

// browsers are the programs that can show the page, the best known first.
func browsers() []string {
	return []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "msedge"}
}

// headless is Chromium without what a window needs, as a package of its own: it draws the
// same page for two thirds of the work.
const headless = "chromium-headless-shell"

// installNeeds installs what the tests use and this system lacks. Only Linux
// needs more than a browser.
func installNeeds(ctx context.Context, p project) error {
	wanted := needs()
	if runtime.GOOS != "linux" {
		wanted = wanted[:2]
	}
	if err := p.install(ctx, wanted); err != nil {
		return err
	}
	if onPath("apt-get") && os.Geteuid() == 0 && !onPath(headless) && !p.long {
		if err := p.do(ctx, aptGet(true, []string{"install", "-y", "--no-install-recommends", headless})); err != nil {
			p.say("there is no %s here: the whole browser takes its place, and more time", headless)
		}
	}
	return nil
}

// install brings what is missing of wanted.
func (p project) install(ctx context.Context, wanted []need) error {
	missing := missingNeeds(wanted, onPath)
	if len(missing) == 0 {
		return nil
	}
	if !onPath("apt-get") {
		return fmt.Errorf("please install %s: this system has no apt-get to do it with", describe(missing))
	}
	p.say("installing %s", describe(missing))
	packages := []string{}
	for _, need := range missing {
		packages = append(packages, need.packages...)
	}
	if err := p.apt(ctx, packages); err != nil {
		return err
	}
	if missing = missingNeeds(wanted, onPath); len(missing) > 0 {
		return fmt.Errorf("apt-get did not bring %s", describe(missing))
	}
	return nil
}

// apt installs packages of Debian or Ubuntu.
func (p project) apt(ctx context.Context, packages []string) error {
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		if err := p.do(ctx, aptGet(os.Geteuid() == 0, args)); err != nil {
			return err
		}
	}
	return nil
}

func aptGet(root bool, args []string) step {
	quiet := append([]string{"-q"}, args...)
	if root {
		return step{env: []string{"DEBIAN_FRONTEND=noninteractive"}, name: "apt-get", args: quiet}
	}
	return step{name: "sudo", args: append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get"}, quiet...)}
}

func missingNeeds(wanted []need, has func(string) bool) []need {
	var missing []need
	for _, need := range wanted {
		if !slices.ContainsFunc(need.programs, has) {
			missing = append(missing, need)
		}
	}
	return missing
}

func describe(missing []need) string {
	var parts []string
	for _, need := range missing {
		parts = append(parts, fmt.Sprintf("%s (%s)", need.what, need.programs[0]))
	}
	return strings.Join(parts, ", ")
}

// onPath reports whether a program is on PATH or, since an ordinary user's PATH
// may lack them, in a system folder.
func onPath(name string) bool {
	_, err := findProgram(name)
	return err == nil
}

func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || runtime.GOOS == "windows" {
		return path, err
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		candidate := filepath.Join(dir, name)
		if _, statErr := os.Stat(candidate); statErr == nil {
			return candidate, nil
		}
	}
	return "", err
}

// findBrowser returns the browser for the tests of the page: BRIDGE_CHROMIUM,
// or the first known one. A whole one is what people have; else the headless one will do.
func findBrowser(full bool) (string, error) {
	if chosen := os.Getenv("BRIDGE_CHROMIUM"); chosen != "" {
		return chosen, nil
	}
	known := browsers()
	if !full {
		known = append([]string{headless}, known...)
	}
	for _, name := range known {
		if path, err := findProgram(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium or Chrome is installed; BRIDGE_CHROMIUM can name one")
}
