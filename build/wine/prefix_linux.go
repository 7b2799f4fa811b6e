package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// prefix is a fresh Wine prefix: a Windows system in a folder.
type prefix struct {
	dir     string // with the prefix, the built tests and the overlay
	wine    string // the program
	overlay string // the file for `go build -overlay`
}

// shim is the library that Go programs load for random numbers and that Wine 8 lacks.
const shim = `#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, (ULONG)size); }
`

// newPrefix makes a prefix in a temporary folder. It fails with errMissing without Wine or
// its compiler.
func newPrefix(ctx context.Context) (*prefix, error) {
	p := &prefix{}
	compiler, err := exec.LookPath("x86_64-w64-mingw32-gcc")
	if err != nil {
		return nil, errMissing
	}
	for _, name := range []string{"wine", "wine64", "/usr/lib/wine/wine64"} {
		if p.wine, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, errMissing
	}
	if p.dir, err = os.MkdirTemp("", "bridge-wine-"); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, compiler); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// prepare boots the prefix and adds the shim and the overlay.
func (p *prefix) prepare(ctx context.Context, compiler string) error {
	if err := os.Mkdir(p.at("home"), 0o700); err != nil {
		return err
	}
	if out, err := p.run(p.command(ctx, p.dir, "wineboot", "--init")); err != nil {
		return fmt.Errorf("wineboot: %w: %s", err, lastOf(out))
	}
	source := p.at("shim.c")
	if err := os.WriteFile(source, []byte(shim), 0o600); err != nil {
		return err
	}
	library := p.at("prefix", "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if out, err := exec.CommandContext(ctx, compiler, "-shared", "-o", library, source, "-ladvapi32").CombinedOutput(); err != nil {
		return fmt.Errorf("build bcryptprimitives.dll: %w: %s", err, lastOf(out))
	}
	return p.writeOverlay(ctx)
}

// writeOverlay writes an overlay in which os.RemoveAll takes its way for old file systems:
// Wine 8 lacks the other one.
func (p *prefix) writeOverlay(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "internal", "syscall", "windows", "at_windows.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	changed := bytes.Replace(text, []byte("var TestDeleteatFallback bool"), []byte("var TestDeleteatFallback = true"), 1)
	if bytes.Equal(changed, text) {
		return fmt.Errorf("%s of Go %s has no TestDeleteatFallback", original, runtime.Version())
	}
	if err := os.WriteFile(p.at("at_windows.go"), changed, 0o600); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: p.at("at_windows.go")}})
	if err != nil {
		return err
	}
	p.overlay = p.at("overlay.json")
	return os.WriteFile(p.overlay, overlay, 0o600)
}

func (p *prefix) at(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

// command returns a command that runs a Windows program with a clean environment.
func (p *prefix) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.wine, append([]string{program}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"WINEPREFIX=" + p.at("prefix"), "WINEARCH=win64", "WINEDEBUG=-all", "HOME=" + p.at("home"), "PATH=" + os.Getenv("PATH"),
		"WINEDLLOVERRIDES=mscoree,mshtml=", "LANG=C.UTF-8", // no installer of Mono or Gecko
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command and returns its output. The output goes through a file, because the
// server of Wine keeps a pipe open.
func (p *prefix) run(cmd *exec.Cmd) ([]byte, error) {
	file, err := os.CreateTemp(p.dir, "out-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	failed := cmd.Run()
	out, err := os.ReadFile(file.Name())
	return out, cmp.Or(failed, err)
}

// close ends what runs in the prefix and removes the folder.
func (p *prefix) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if server, err := exec.LookPath("wineserver"); err == nil {
		end := exec.CommandContext(ctx, server, "--kill", "--wait")
		end.Env = p.command(ctx, p.dir, "").Env
		_ = end.Run() // a server that has ended is what this wants
	}
	_ = filepath.WalkDir(p.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // a test may have closed it
		}
		return nil
	})
	if err := os.RemoveAll(p.dir); err != nil {
		fmt.Fprintln(os.Stderr, "wine:", err)
	}
}

// build builds a program or a test for Windows.
func (p *prefix) build(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append(args[:1:1], append([]string{"-overlay", p.overlay}, args[1:]...)...)...)
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// test builds a suite and runs it in the package's folder.
func (p *prefix) test(ctx context.Context, s suite) error {
	program := p.at(strings.ReplaceAll(s.name, "/", "-") + ".exe")
	defer os.Remove(program)
	if err := p.build(ctx, "test", "-c", "-o", program, "./"+s.folder()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit())
	defer cancel()
	args := []string{"-test.timeout=" + s.limit().String(), "-test.count=1"}
	if skip := s.skipped(); skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	cmd := p.command(ctx, s.folder(), program, args...)
	out, err := p.run(cmd)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("it did not end in %s\n%s", s.limit(), lastOf(out))
	case err != nil:
		return fmt.Errorf("%w\n%s", err, failures(out))
	}
	return nil
}

// failures returns the output of the failed tests, or its last lines.
func failures(out []byte) string {
	failed := regexp.MustCompile(`(?m)^( *--- FAIL.*|\s+\S+\.go:\d+: .*)$`).FindAll(out, 60)
	if len(failed) == 0 {
		return lastOf(out)
	}
	return string(bytes.Join(failed, []byte("\n")))
}

// lastOf returns the last lines of an output.
func lastOf(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
