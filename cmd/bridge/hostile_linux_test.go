package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// prompt is how soon everything must say that a home cannot be served: hosts
// give a server half a minute to start.
const prompt = 30 * time.Second

// ran is what one command did.
type ran struct {
	code           int
	stdout, stderr string
}

func runBridge(t *testing.T, env []string, stdin string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bridge", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("bridge %v did not end", args)
	}
	return ran{exitCode(err), stdout.String(), stderr.String()}
}

// serving is a `bridge serve` in the foreground.
type serving struct {
	cmd  *exec.Cmd
	link string
	errs bytes.Buffer
}

func serve(t *testing.T, home string, flags ...string) *serving {
	t.Helper()
	s := &serving{cmd: exec.Command("bridge", append([]string{"serve", "--port", "0", "--home", home}, flags...)...)}
	s.cmd.Stderr = &s.errs
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("serve %s: %v; %s", home, err, s.errs.String())
	}
	s.link = strings.TrimSpace(strings.TrimPrefix(line, "bridge: ready "))
	return s
}

func (s *serving) end(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("serve after SIGTERM: %v; %s", err, s.errs.String())
	}
}

// usedHome makes a home in which a broker served and a message waits.
func usedHome(t *testing.T, home string) {
	t.Helper()
	s := serve(t, home)
	defer s.end(t)
	var answers bytes.Buffer
	err := errors.Join(
		session([]string{"--home", home, "--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", "/", "--", "peers", "{}"}, &answers),
		session([]string{"--home", home, "--agent", "codex", "--name", "beta", "--session", "h2", "--cwd", "/", "--", "send", `{"to":"alpha","message":"waits"}`}, &answers),
	)
	if err != nil || strings.Contains(answers.String(), "refused") {
		t.Fatalf("use the home: %v\n%s", err, answers.String())
	}
}

// askMCP starts `bridge mcp` and asks for its peers. It returns the tool's
// answer, "" when the server ended before, and how the server ended.
func askMCP(t *testing.T, home string) (answer string, how ran) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bridge", "mcp", "--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", "/", "--home", home)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	input, inErr := cmd.StdinPipe()
	output, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	_, err := io.WriteString(input, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"peers","arguments":{}}}`+"\n")
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for answer == "" && lines.Scan() {
		var line struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.ID == 2 && len(line.Result.Content) == 1 {
			answer = line.Result.Content[0].Text
		}
	}
	_ = input.Close() // closed once
	err = cmd.Wait()
	if ctx.Err() != nil {
		t.Errorf("bridge mcp did not end; it said %q and %q", answer, stderr.String())
	}
	return answer, ran{exitCode(err), answer, stderr.String()}
}

const stopEvent = `{"session_id":"h1","hook_event_name":"Stop","cwd":"/"}`

func copyHome(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy the home: %v %s", err, out)
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mount mounts a small file system for the test.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("this system does not let us mount: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v %s", dir, err, out)
		}
	})
}

// hostile is a home in which no broker can serve.
type hostile struct {
	name string
	// hurt turns a used home into it and returns where it is then.
	hurt func(t *testing.T, home string) string
	// What `serve` and `mcp` exit with, and what their one sentence says. mcp 0
	// means that it serves, and each tool says the sentence.
	serve, mcp, status int
	says               string
	mcpSays            string // "" for says
	statusSays         string // "" for that no broker runs
}

var hostiles = []hostile{
	{
		name: "a newer schema (VER-06)",
		hurt: func(t *testing.T, home string) string {
			setUserVersion(t, filepath.Join(home, "bridge.db"), 99)
			return home
		},
		serve: 1, mcp: 0, status: 4, says: `bridge\.db has schema version 99 and this Bridge knows versions up to \d+: use a newer Bridge`,
	},
	{
		name: "a store that is no database",
		hurt: func(t *testing.T, home string) string {
			overwrite(t, filepath.Join(home, "bridge.db"), strings.Repeat("this is not a database\n", 1000))
			return home
		},
		serve: 1, mcp: 0, status: 4, says: `bridge\.db is not a SQLite database`,
	},
	{
		name: "a truncated store",
		hurt: func(t *testing.T, home string) string {
			if err := os.Truncate(filepath.Join(home, "bridge.db"), 4096+100); err != nil {
				t.Fatal(err)
			}
			return home
		},
		serve: 1, mcp: 0, status: 4, says: `bridge\.db is damaged: restore a backup`,
	},
	{
		name: "somebody else's database",
		hurt: func(t *testing.T, home string) string {
			overwrite(t, filepath.Join(home, "bridge.db"), "")
			if out, err := exec.Command("cp", filepath.Join("testdata", "foreign.db"), filepath.Join(home, "bridge.db")).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			return home
		},
		serve: 1, mcp: 0, status: 4, says: `bridge\.db is not a Bridge store`,
	},
	{
		name: "a newer config.json (VER-06)",
		hurt: func(t *testing.T, home string) string {
			overwrite(t, filepath.Join(home, "config.json"), `{"version": 7, "future": true}`)
			return home
		},
		serve: 1, mcp: 0, status: 4, says: `config\.json: it was written by a newer Bridge \(version 7, this one knows 1\)`,
	},
	{
		name: "a malformed config.json",
		hurt: func(t *testing.T, home string) string {
			overwrite(t, filepath.Join(home, "config.json"), `{"port": 4777,`)
			return home
		},
		serve: 2, mcp: 0, status: 4, says: `config\.json: line 1, column 15: in port, the file ends too early`,
	},
	{
		name: "a damaged token",
		hurt: func(t *testing.T, home string) string {
			overwrite(t, filepath.Join(home, "token"), "short\n")
			return home
		},
		serve: 1, mcp: 1, status: 1, says: `token is damaged`, statusSays: `token is damaged`,
	},
	{
		name: "a file in the home's place",
		hurt: func(t *testing.T, home string) string {
			overwrite(t, home+"-file", "mine")
			return home + "-file"
		},
		serve: 2, mcp: 2, status: 2, says: `is a file`, statusSays: `is a file`,
	},
	{
		name: "a home that belongs to somebody else",
		hurt: func(t *testing.T, home string) string {
			if err := os.Chown(home, 12345, 12345); err != nil {
				t.Skip("only root may give a folder away")
			}
			return home
		},
		serve: 3, mcp: 3, status: 4, says: `belongs to uid 12345, not to you`,
	},
	{
		name: "a read-only home",
		hurt: func(t *testing.T, home string) string {
			disk := t.TempDir()
			mount(t, disk, "size=8m,mode=700")
			copyHome(t, home, filepath.Join(disk, "h"))
			if out, err := exec.Command("mount", "-o", "remount,ro", disk).CombinedOutput(); err != nil {
				t.Fatalf("remount: %s", out)
			}
			return filepath.Join(disk, "h")
		},
		serve: 1, mcp: 1, status: 4, says: `is not writable: read-only file system`,
	},
	{
		name: "a full disk",
		hurt: func(t *testing.T, home string) string {
			disk := t.TempDir()
			mount(t, disk, "size=2m,mode=700")
			copyHome(t, home, filepath.Join(disk, "h"))
			fill(t, filepath.Join(disk, "filler"))
			return filepath.Join(disk, "h")
		},
		serve: 1, mcp: 0, status: 4, says: `the disk is full`,
	},
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// setUserVersion writes the header's user_version (SQLite file format, offset
// 60, big-endian).
func setUserVersion(t *testing.T, path string, version byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw[60:64], []byte{0, 0, 0, version})
	overwrite(t, path, string(raw))
}

// state is what must not change: everything but the logs, which are there to
// say what happened.
func state(home string) string {
	var kept []string
	for line := range strings.Lines(describe(home)) {
		if !regexp.MustCompile(`^\S+ logs`).MatchString(line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestVER_06_STO_01_HostileHomes(t *testing.T) {
	used := filepath.Join(shortDir(t), "used")
	usedHome(t, used)
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			home := filepath.Join(shortDir(t), "h")
			copyHome(t, used, home)
			home = h.hurt(t, home)
			before := state(home)
			check := func(what string, got ran, code int, says string) {
				t.Helper()
				if got.code != code {
					t.Errorf("%s: exit code %d, want %d", what, got.code, code)
				}
				text := got.stderr + got.stdout
				if !regexp.MustCompile(says).MatchString(text) {
					t.Errorf("%s says %q, want %s", what, text, says)
				}
				if lines := strings.Count(strings.TrimSpace(got.stderr), "\n"); lines > 0 {
					t.Errorf("%s says more than one sentence: %q", what, got.stderr)
				}
				if after := state(home); after != before {
					t.Errorf("%s changed the home:\n--- before\n%s--- after\n%s", what, before, after)
				}
			}
			check("serve", runBridge(t, nil, "", "serve", "--port", "0", "--home", home), h.serve, h.says)
			statusSays := h.statusSays
			if statusSays == "" {
				statusSays = "No broker runs for "
			}
			check("status", runBridge(t, nil, "", "status", "--home", home), h.status, statusSays)
			check("hook", runBridge(t, nil, stopEvent, "hook", "claude", "Stop", "--home", home), 0, `^\{\}\n$`)
			check("hook at a session's start", runBridge(t, nil, `{"session_id":"h1","hook_event_name":"SessionStart","cwd":"/"}`, "hook", "claude", "SessionStart", "--home", home), 0, `^\{\}\n$`)
			mcpSays := h.mcpSays
			if mcpSays == "" {
				mcpSays = h.says
			}
			began := time.Now()
			_, how := askMCP(t, home)
			check("mcp", how, h.mcp, mcpSays)
			testkit.Within(t, prompt, time.Since(began), "mcp answered")
		})
	}
}

// shortDir is a folder whose path leaves room for a Unix socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestMSG_01_HomesThatMustWork(t *testing.T) {
	for name, path := range map[string]string{
		"spaces and unicode":               "my bridge – Größe 会議 'quoted' %41?x#y",
		"longer than a socket's path":      strings.Repeat("long-name-of-a-folder/", 8) + "h",
		"long, with spaces and unicode":    strings.Repeat("Ordner mit Leerzeichen 会議/", 6) + "h",
		"a token that a group could read":  "grouped",
		"a home that others could look in": "open",
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(shortDir(t), path)
			usedHome(t, home)
			if err := errors.Join(os.Chmod(filepath.Join(home, "token"), 0o640), os.Chmod(home, 0o755)); err != nil {
				t.Fatal(err)
			}
			s := serve(t, home)
			defer s.end(t)
			got := runBridge(t, nil, "", "status", "--json", "--home", home)
			if got.code != 0 {
				t.Errorf("status: %+v", got)
			}
			var answers bytes.Buffer
			if err := session([]string{"--home", home, "--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", "/", "--", "inbox", "{}"}, &answers); err != nil {
				t.Error(err)
			}
			if !strings.Contains(answers.String(), `"body":"waits"`) {
				t.Errorf("the message is not there: %s", answers.String())
			}
			for file, want := range map[string]os.FileMode{"": 0o700, "token": 0o600, "launch-secret": 0o600, "bridge.db": 0o600} {
				info, err := os.Stat(filepath.Join(home, file))
				if err != nil || info.Mode().Perm() != want {
					t.Errorf("%q: mode %v (%v), want %v", file, info.Mode(), err, want)
				}
			}
		})
	}
}

func TestMSG_01_PortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	home := filepath.Join(shortDir(t), "h")
	got := runBridge(t, nil, "", "serve", "--port", port, "--home", home)
	if want := "bridge: port " + port + " on 127.0.0.1 is in use by another program: choose another with --port, or --port 0 for a free one\n"; got.code != 1 || got.stderr != want {
		t.Errorf("serve: %+v, want exit code 1 and %q", got, want)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("serve made the home before it had the port: %v", err)
	}

	// Sessions must not wait for a port: their background broker takes another.
	t.Setenv("BRIDGE_PORT", port)
	defer endBrokers(filepath.Dir(home))
	answer, how := askMCP(t, home)
	if how.code != 0 || !strings.Contains(answer, `"self":"alpha"`) {
		t.Errorf("mcp: %+v", how)
	}
}

// fixedPort is a free port below those that Linux hands out to whoever asks for
// any: nobody comes by it while nobody holds it.
func fixedPort(t *testing.T) string {
	t.Helper()
	const lowest, count = 15000, 15000
	for range 100 {
		port := strconv.Itoa(lowest + rand.IntN(count))
		if free, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			free.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// TestMSG_01_ServeTakesThePort lets a person's serve have the configured port
// that the background broker holds.
func TestMSG_01_ServeTakesThePort(t *testing.T) {
	port := fixedPort(t)
	t.Setenv("BRIDGE_PORT", port)
	home := filepath.Join(shortDir(t), "h")
	defer endBrokers(filepath.Dir(home))
	answer, how := askMCP(t, home)
	if how.code != 0 || !strings.Contains(answer, `"self":"alpha"`) {
		t.Fatalf("mcp: %+v", how)
	}
	if got := runBridge(t, nil, "", "url", "--home", home); !strings.HasPrefix(got.stdout, "http://127.0.0.1:"+port+"/") {
		t.Fatalf("the background broker does not have the port %s: %+v", port, got)
	}
	s := serve(t, home, "--port", port)
	defer s.end(t)
	if !strings.HasPrefix(s.link, "http://127.0.0.1:"+port+"/launch?key=") {
		t.Errorf("serve is at %s, want port %s", s.link, port)
	}
	second := runBridge(t, nil, "", "serve", "--port", port, "--home", home)
	if second.code != 1 || !strings.Contains(second.stderr, "already serves this home") {
		t.Errorf("a second serve on the same port: %+v", second)
	}
}

// A wait that is under way keeps no server alive once its host has gone.
func TestMSG_03_ServerEndsWithItsHost(t *testing.T) {
	home := filepath.Join(shortDir(t), "h")
	s := serve(t, home)
	defer s.end(t)
	cmd := exec.Command("bridge", "mcp", "--agent", "claude", "--name", "alpha", "--cwd", "/", "--home", home)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	_, err = io.WriteString(input, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_message","arguments":{"timeout_sec":110}}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	_ = input.Close() // closed once
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("mcp ended with %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Error("mcp waits on although its host has gone")
		_ = cmd.Process.Kill()
	}
}

// A broker that is stopped takes connections and holds the election. Nobody ends
// it by force: everyone who asks says who does not answer, and when it goes on
// all do.
func TestMSG_01_AStoppedBrokerIsNamed(t *testing.T) {
	home := filepath.Join(shortDir(t), "h")
	s := serve(t, home)
	defer s.end(t)
	pid := s.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }() // it goes on in any case
	sentence := fmt.Sprintf("the broker (process %d) does not answer", pid)
	said := func(what string, got ran, code int) {
		t.Helper()
		if got.code != code || !strings.Contains(got.stdout+got.stderr, sentence) || strings.Count(got.stderr, "\n") > 1 {
			t.Errorf("%s: exit %d, %q, %q", what, got.code, got.stdout, got.stderr)
		}
	}
	var asking sync.WaitGroup
	for code, commands := range map[int][][]string{4: {{"status"}, {"status", "--json"}, {"send", "alpha", "hello"}}, 1: {{"serve", "--port", "0"}}} {
		for _, command := range commands {
			asking.Go(func() {
				said(strings.Join(command, " "), runBridge(t, nil, "", append(command, "--home", home)...), code)
			})
		}
	}
	asking.Wait()
	if got := runBridge(t, nil, stopEvent, "hook", "claude", "Stop", "--home", home); got.code != 0 || got.stdout != "{}\n" {
		t.Errorf("hook: %+v", got)
	}
	began := time.Now()
	_, how := askMCP(t, home)
	said("mcp", how, 0)
	testkit.Within(t, prompt, time.Since(began), "mcp answered")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if answer, _ := askMCP(t, home); !strings.Contains(answer, `"self":"alpha"`) {
		t.Errorf("mcp once it goes on: %s", answer)
	}
}
