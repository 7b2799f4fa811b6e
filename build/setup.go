package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// packWindows makes the setup program for Windows. Its programs are signed,
// and the setup and its uninstaller with them, when BRIDGE_SIGN names a program
// that signs the file it is given.
func (p project) packWindows(ctx context.Context, r release, into string) error {
	if err := p.install(ctx, setupNeeds()); err != nil {
		return err
	}
	built := p.at(".cache", "package", "windows-amd64")
	if err := p.windowsPrograms(ctx, r, built); err != nil {
		return err
	}
	setup := filepath.Join(into, "bridge-"+r.version+"-setup.exe")
	signer := os.Getenv("BRIDGE_SIGN")
	args := []string{"-V2", "-DVERSION=" + r.version, "-DBUILT=" + built, "-DSETUP=" + setup, "-DICON=" + filepath.Join(built, "bridge.ico")}
	if signer != "" {
		args = append(args, "-DSIGN="+signer)
	}
	return p.do(ctx, step{
		env:  []string{"SOURCE_DATE_EPOCH=" + r.epoch},
		name: "makensis", args: append(args, p.at("installer", "windows", "bridge.nsi")),
	})
}

func setupNeeds() []need {
	return []need{
		{"the maker of the Windows setup", []string{"makensis"}, []string{"nsis"}},
		{"a C compiler for Windows", []string{"x86_64-w64-mingw32-gcc"}, []string{"gcc-mingw-w64-x86-64"}},
	}
}

// windowsPrograms builds the programs with their icon, version and manifest.
// Starting at login is C code on Windows, hence the compiler.
func (p project) windowsPrograms(ctx context.Context, r release, built string) error {
	programs := []struct {
		name, manifest, about string
		target                target
	}{
		{"bridge", "cli", "Bridge", target{}},
		{"bridge-hook", "cli", "Bridge for the hooks of agents", target{}},
		{"bridge-mcp", "cli", "Bridge beside a session", target{}},
		{"bridge-worker", "cli", "Bridge beside a job", target{}},
		{"bridge-desktop", "gui", "Bridge on the desktop", target{
			tags: "desktop,production", ldflags: "-H windowsgui", env: []string{"CGO_ENABLED=1", "CC=x86_64-w64-mingw32-gcc"},
		}},
	}
	for _, program := range programs {
		if err := p.resources(ctx, r, program.name, program.manifest, program.about); err != nil {
			return err
		}
		t := program.target
		t.system, t.processor, t.output = "windows", "amd64", filepath.Join(built, program.name+".exe")
		if err := p.compile(ctx, t, "./cmd/"+program.name); err != nil {
			return err
		}
		if signer := os.Getenv("BRIDGE_SIGN"); signer != "" {
			if err := p.do(ctx, step{name: signer, args: []string{t.output}}); err != nil {
				return err
			}
		}
	}
	return p.icon(filepath.Join(built, "bridge.ico"))
}

// resources writes the .syso files that the linker takes into a Windows program.
// They are named for the system and processor, so no other build sees them.
func (p project) resources(ctx context.Context, r release, program, manifest, about string) error {
	return p.do(ctx, step{name: "go", args: tool("go-winres", "simply",
		"--arch", "amd64", "--out", p.at("cmd", program, "rsrc"), "--icon", p.at("build", "appicon.png"), "--manifest", manifest,
		"--product-version", r.version, "--file-version", r.version, "--product-name", "Bridge", "--file-description", about,
		"--original-filename", program+".exe",
	)})
}

// icon makes the setup's icon: an .ico file may hold one whole PNG picture.
func (p project) icon(path string) error {
	picture, err := os.ReadFile(p.at("build", "appicon.png"))
	if err != nil {
		return err
	}
	size := len(picture)
	header := []byte{0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 32, 0, byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24), 22, 0, 0, 0}
	if err := os.WriteFile(path, append(header, picture...), 0o644); err != nil {
		return fmt.Errorf("write the setup's icon: %w", err)
	}
	return nil
}
