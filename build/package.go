package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// release is what packages are made of: the same one makes the same bytes.
type release struct {
	version string
	epoch   string // seconds since 1970, the time of every file in a package
}

// runPackage builds the installers of every system into bin/; args choose some
// of them by name.
func runPackage(ctx context.Context, p project, args []string) error {
	for _, arg := range args {
		if !slices.Contains([]string{"linux", "windows"}, arg) {
			return fmt.Errorf("there are packages for linux and for windows, not for %q", arg)
		}
	}
	wanted := func(system string) bool { return len(args) == 0 || slices.Contains(args, system) }
	r, err := p.release(ctx)
	if err != nil {
		return err
	}
	if err := runPage(ctx, p, nil); err != nil {
		return err
	}
	if err := os.MkdirAll(p.at("bin"), 0o755); err != nil {
		return err
	}
	if wanted("linux") {
		for _, processor := range []string{"amd64", "arm64"} {
			if err := errors.Join(p.packBridge(ctx, r, processor, p.at("bin")), p.packHub(ctx, r, processor, p.at("bin"))); err != nil {
				return err
			}
		}
		if err := p.packDesktop(ctx, r, p.at("bin")); err != nil {
			return err
		}
	}
	if wanted("windows") {
		return p.packWindows(ctx, r, p.at("bin"))
	}
	return nil
}

// release reads the version, which all programs must agree on, and the time:
// SOURCE_DATE_EPOCH, else that of the commit.
func (p project) release(ctx context.Context) (release, error) {
	version, err := p.versionOf("bridge")
	if err != nil {
		return release{}, err
	}
	for _, program := range append(consolePrograms()[1:], "bridge-hub", "bridge-desktop") {
		if other, err := p.versionOf(program); err != nil || other != version {
			return release{}, errors.Join(fmt.Errorf("cmd/bridge is version %s, cmd/%s %q", version, program, other), err)
		}
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		log := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		log.Dir = p.root
		printed, err := log.Output()
		if err != nil {
			return release{}, fmt.Errorf("the time of the commit, for want of SOURCE_DATE_EPOCH: %w", err)
		}
		epoch = strings.TrimSpace(string(printed))
	}
	return release{version: version, epoch: epoch}, nil
}

var versionLine = regexp.MustCompile(`(?m)^var version = "([0-9]+\.[0-9]+\.[0-9]+)"$`)

func (p project) versionOf(program string) (string, error) {
	source, err := os.ReadFile(p.at("cmd", program, "main.go"))
	if err != nil {
		return "", err
	}
	found := versionLine.FindSubmatch(source)
	if found == nil {
		return "", fmt.Errorf("cmd/%s/main.go has no line `var version = \"1.2.3\"`", program)
	}
	return string(found[1]), nil
}

// packBridge makes the deb and the rpm of the console programs.
func (p project) packBridge(ctx context.Context, r release, processor, into string) error {
	built := p.at(".cache", "package", "linux-"+processor)
	for _, program := range consolePrograms() {
		err := p.compile(ctx, target{system: "linux", processor: processor, output: filepath.Join(built, program)}, "./cmd/"+program)
		if err != nil {
			return err
		}
	}
	return p.pack(ctx, r, "bridge", processor, built, into)
}

// packHub makes those of a team's hub.
func (p project) packHub(ctx context.Context, r release, processor, into string) error {
	built := p.at(".cache", "package", "linux-"+processor)
	err := p.compile(ctx, target{system: "linux", processor: processor, output: filepath.Join(built, "bridge-hub")}, "./cmd/bridge-hub")
	if err != nil {
		return err
	}
	return p.pack(ctx, r, "bridge-hub", processor, built, into)
}

// packDesktop makes those of the app, for the processor at hand: its window
// needs this system's libraries.
func (p project) packDesktop(ctx context.Context, r release, into string) error {
	if runtime.GOOS != "linux" {
		p.say("no Linux packages of the app: they are built on Linux")
		return nil
	}
	if err := p.windowLibraries(ctx); err != nil {
		return err
	}
	built := p.at(".cache", "package", "linux-"+runtime.GOARCH)
	app := desktopApp(filepath.Join(built, "bridge-desktop"))
	if err := p.compile(ctx, app, "./cmd/bridge-desktop"); err != nil {
		return err
	}
	return p.pack(ctx, r, "bridge-desktop", runtime.GOARCH, built, into)
}

// target is one program to build for a package.
type target struct {
	system, processor string
	output, tags      string
	ldflags           string
	env               []string
}

// compile builds without anything of this machine in the result: no paths, no
// symbol tables.
func (p project) compile(ctx context.Context, t target, pkg string) error {
	env := append([]string{"CGO_ENABLED=0", "GOOS=" + t.system, "GOARCH=" + t.processor}, t.env...)
	args := []string{"build", "-trimpath", "-buildvcs=auto", "-tags=" + t.tags, "-ldflags=" + strings.TrimSpace("-s -w "+t.ldflags), "-o", t.output, pkg}
	return p.do(ctx, step{env: env, name: "go", args: args})
}

// pack makes the deb and the rpm that installer/<name>.yaml describes.
func (p project) pack(ctx context.Context, r release, name, processor, built, into string) error {
	for _, format := range []string{"deb", "rpm"} {
		err := p.do(ctx, step{
			env:  []string{"VERSION=" + r.version, "ARCH=" + processor, "BUILT=" + built, "SOURCE_DATE_EPOCH=" + r.epoch},
			name: "go", args: tool("nfpm", "package", "--config", p.at("installer", name+".yaml"), "--packager", format, "--target", into+string(filepath.Separator)),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tool is the arguments of go for a tool of build/tools, whose module keeps what
// only packaging needs out of the product's.
func tool(name string, args ...string) []string {
	return append([]string{"tool", "-modfile=build/tools/go.mod", name}, args...)
}

// windowLibraries installs what the app's window is built with, which Linux alone has not got.
func (p project) windowLibraries(ctx context.Context) error {
	if runtime.GOOS != "linux" || exec.CommandContext(ctx, "pkg-config", "--exists", "gtk+-3.0", "webkit2gtk-4.1").Run() == nil && onPath("gcc") {
		return nil
	}
	if !onPath("apt-get") {
		return errors.New("please install a C compiler, pkg-config and the development files of GTK 3 and WebKitGTK 4.1: this system has no apt-get to do it with")
	}
	p.say("installing the libraries of the app's window")
	return p.apt(ctx, []string{"gcc", "libc6-dev", "pkg-config", "libgtk-3-dev", "libwebkit2gtk-4.1-dev"})
}
