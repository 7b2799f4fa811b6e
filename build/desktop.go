package main

import (
	"context"
	"errors"
	"os"
	"runtime"

	"bridge/app/mark"
)

// runDesktop builds the desktop app and, beside it, the console programs, which
// are what agents are told to start.
func runDesktop(ctx context.Context, p project, _ []string) error {
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	return buildDesktop(ctx, p)
}

// buildDesktop builds the app alone; the page must be there.
func buildDesktop(ctx context.Context, p project) error {
	if runtime.GOOS != "linux" && runtime.GOOS != "windows" {
		return errors.New("the desktop app is built on Linux and Windows; `bridge open` shows the dashboard in a browser")
	}
	if err := p.windowLibraries(ctx); err != nil {
		return err
	}
	return p.compile(ctx, desktopApp(p.desktopBinary()), "./cmd/bridge-desktop")
}

// desktopBinary is where the app is built for this system.
func (p project) desktopBinary() string {
	return p.at("bin", executable("bridge-desktop", runtime.GOOS))
}

// desktopApp is how the app is built for the processor at hand. On Windows the
// start at login is C code: without a compiler the app says that it is missing.
func desktopApp(output string) target {
	app := target{system: runtime.GOOS, processor: runtime.GOARCH, output: output, tags: "desktop,production"}
	if app.system == "windows" {
		app.ldflags = "-H windowsgui"
	}
	if app.system == "linux" {
		app.tags += ",webkit2_41"
	}
	if app.system == "linux" || onPath("gcc") {
		app.env = []string{"CGO_ENABLED=1"}
	}
	return app
}

// desktopTests drive the real app on a screen and a session bus of their own.
func desktopTests(ctx context.Context, p project) error {
	if runtime.GOOS != "linux" {
		p.skip("every test", "the desktop app is tested on Linux")
		return nil
	}
	if err := buildDesktop(ctx, p); err != nil {
		return err
	}
	return p.goTest(ctx, 1, []string{withoutC, "BRIDGE_DESKTOP_BIN=" + p.desktopBinary()}, "-count=1", "-timeout=20m", "./cmd/bridge-desktop")
}

// runIcon draws the icon of the packages anew.
func runIcon(_ context.Context, p project, _ []string) error {
	picture, err := mark.PNG(mark.Draw(256, mark.Plain))
	if err != nil {
		return err
	}
	return os.WriteFile(p.at("build", "appicon.png"), picture, 0o644)
}
