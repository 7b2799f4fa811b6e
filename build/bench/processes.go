package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// running is a broker process on a home of its own.
type running struct {
	lab    *lab
	home   config.Home
	cmd    *exec.Cmd
	launch string
	target ipc.Target
	open   []*ipc.Client
}

func noEnv(string) string { return "" }

// start runs `bridge serve` and waits for its ready line.
func (l *lab) start(ctx context.Context, name string) (*running, error) {
	home, err := config.ResolveHome(filepath.Join(l.dir, name), noEnv)
	if err != nil {
		return nil, err
	}
	b := &running{lab: l, home: home}
	b.cmd = exec.CommandContext(ctx, l.binary, "serve", "--port", "0", "--home", home.Dir())
	b.cmd.Stderr = os.Stderr
	output, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bridge serve did not get ready: %w", err), b.stop())
	}
	b.launch = strings.TrimSpace(strings.TrimPrefix(line, "bridge: ready "))
	token, err := home.Token()
	if err != nil {
		return nil, errors.Join(err, b.stop())
	}
	b.target = ipc.Target{Socket: home.Socket(), Token: string(token)}
	return b, nil
}

func (b *running) stop() error {
	for _, client := range b.open {
		_ = client.Close() // the broker ends next
	}
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return b.cmd.Wait()
}

// owner is a connection of the owner's.
func (b *running) owner(ctx context.Context) (*ipc.Client, error) {
	client, err := ipc.Dial(ctx, b.target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: "bench"})
	if err == nil {
		b.open = append(b.open, client)
	}
	return client, err
}

// session registers one session per name on connections of their own.
func (b *running) session(ctx context.Context, names ...string) ([]*ipc.Client, error) {
	var clients []*ipc.Client
	for _, name := range names {
		client, err := ipc.Dial(ctx, b.target, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "bench"})
		if err != nil {
			return nil, err
		}
		b.open = append(b.open, client)
		if _, err := client.Register(ctx, api.Register{Kind: bridge.Codex, Name: name, Cwd: "/bench"}); err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// rpc is an MCP server process and the pipe to it.
type rpc struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Reader
	id    int
}

// mcp starts `bridge mcp` and initializes it.
func (b *running) mcp(ctx context.Context, name string) (*rpc, error) {
	r := &rpc{cmd: exec.CommandContext(ctx, b.lab.binary, "mcp", "--agent", "claude", "--name", name, "--cwd", b.lab.dir, "--home", b.home.Dir())}
	r.cmd.Stderr = os.Stderr
	var err error
	if r.input, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.lines = bufio.NewReaderSize(output, 1<<20)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = r.request("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"},
	})
	return r, err
}

func (r *rpc) close() {
	_ = r.input.Close() // ends the server
	_ = r.cmd.Wait()    // its exit code says nothing here
}

func (r *rpc) request(method string, params any) (json.RawMessage, error) {
	r.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": r.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := r.input.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for {
		answer, err := r.lines.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var head struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(answer, &head); err != nil {
			return nil, err
		}
		if head.ID == r.id && head.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, head.Error)
		}
		if head.ID == r.id {
			return head.Result, nil
		}
	}
}

// send sends a message by the tool.
func (r *rpc) send(recipient string) error {
	return r.call("send", map[string]any{"to": recipient, "message": body})
}

// call runs a tool and fails when the tool does.
func (r *rpc) call(tool string, args map[string]any) error {
	raw, err := r.request("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return err
	}
	var result struct {
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("%s: %s", tool, raw)
	}
	return nil
}

// page opens the dashboard as a browser does: the client holds its cookie.
func (b *running) page(ctx context.Context) (client *http.Client, base string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, "", err
	}
	client = &http.Client{Jar: jar, Timeout: 10 * time.Second}
	base, _, _ = strings.Cut(b.launch, "/launch")
	return client, base, fetch(ctx, client, b.launch)
}

func fetch(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// browser opens the dashboard and reads from it.
func (b *running) browser(ctx context.Context) (get func(path string) error, err error) {
	client, base, err := b.page(ctx)
	return func(path string) error { return fetch(ctx, client, base+path) }, err
}

// resident is the memory of a process in MiB, where the system tells it.
func resident(pid int) float64 {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	_, rest, found := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0
	}
	return kib / 1024
}
