package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Command is a program of the home in a folder, not yet started.
func (h *Home) Command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(name) {
		name = filepath.Join(h.Bin, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(h.Env(), "PWD="+dir)
	return cmd
}

// Run runs a program of the home to its end with text on its standard input and
// returns its standard output. The error holds the rest.
func (h *Home) Run(ctx context.Context, dir, stdin, name string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := h.Command(ctx, dir, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s\n%s", name, strings.Join(args, " "), err, errs.String(), out.String())
	}
	return out.String(), nil
}

// Claude runs one headless turn of claude.
func (h *Home) Claude(ctx context.Context, dir, prompt string, args ...string) (string, error) {
	return h.Run(ctx, dir, prompt, "claude", append([]string{"-p", "--output-format", "stream-json", "--verbose"}, args...)...)
}

// ClaudeCommand is an interactive claude that may use the shell, children and
// every tool of the MCP servers named. Its own default mode sends tool calls to
// a check on the vendor's server, which no fake can stand in for.
func ClaudeCommand(mcpServers ...string) []string {
	allowed := []string{"Bash", "Task"}
	for _, name := range mcpServers {
		allowed = append(allowed, "mcp__"+name)
	}
	return []string{"claude", "--permission-mode", "acceptEdits", "--allowedTools", strings.Join(allowed, ",")}
}

// CodexCommand is an interactive codex without a background server: that one
// would copy the whole package into the home.
func CodexCommand(args ...string) []string { return append([]string{"codex", "--no-daemon"}, args...) }

// Codex runs one headless turn of codex. args stand behind `exec`, `resume ID`
// among them.
func (h *Home) Codex(ctx context.Context, dir, prompt string, args ...string) (string, error) {
	return h.Run(ctx, dir, prompt, "codex", append(append([]string{"exec", "--json", "--skip-git-repo-check"}, args...), "-")...)
}

// OpenCode runs one headless turn of opencode.
func (h *Home) OpenCode(ctx context.Context, dir, prompt string, args ...string) (string, error) {
	return h.Run(ctx, dir, prompt, "opencode", append([]string{"run", "--format", "json"}, args...)...)
}

// openCode is an opencode by its HTTP interface.
type openCode struct {
	home *Home
	url  string
}

// pollEvery is the interval at which a state without events is polled.
const pollEvery = 100 * time.Millisecond

// OpenCodeServer is a session of an opencode without a terminal.
type OpenCodeServer struct {
	openCode
	Session string
	server  *exec.Cmd
}

// ServeOpenCode starts `opencode serve` in a folder, with one session. Close of
// the home ends it if nothing else does.
func (h *Home) ServeOpenCode(ctx context.Context, dir string) (*OpenCodeServer, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := h.Command(context.WithoutCancel(ctx), dir, "opencode", "serve", "--hostname", "127.0.0.1", "--port", strconv.Itoa(address.Port))
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting opencode: %w", err)
	}
	served := &OpenCodeServer{openCode{h, "http://" + address.String()}, "", cmd}
	if err := served.up(ctx); err != nil {
		return nil, err
	}
	var made struct{ ID string }
	err = served.ask(ctx, "/session", "{}", &made)
	served.Session = made.ID
	return served, err
}

// up waits until the server answers. One that is starting may take a connection
// and never answer on it, so each is given up soon.
func (o openCode) up(ctx context.Context) error {
	client := http.Client{Timeout: time.Second}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		answer, err := client.Get(o.url + "/global/health")
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for opencode to serve: %w", err)
		}
	}
}

// Prompt gives the session one line.
func (o *OpenCodeServer) Prompt(ctx context.Context, line string) error {
	parts := []object{{"type": "text", "text": line}}
	if err := o.post(ctx, "/session/"+o.Session+"/prompt_async", mustJSON(object{"parts": parts})); err != nil {
		return err
	}
	return o.prompted(ctx, line)
}

// Close ends the server, which was seen to outlive an interrupt.
func (o *OpenCodeServer) Close(context.Context) error {
	if err := o.server.Process.Kill(); err != nil {
		return fmt.Errorf("ending opencode: %w", err)
	}
	o.server.Wait() //nolint:errcheck // it was killed, and says so
	return nil
}

// prompted waits until the model is asked.
func (o openCode) prompted(ctx context.Context, line string) error {
	_, err := o.home.model.Wait(ctx, "the prompt "+line, func(r Request) bool { return !r.Aux && strings.Contains(r.Text(), line) })
	return err
}

// freeAddress returns an unused port of 127.0.0.1.
func freeAddress() (*net.TCPAddr, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a port for opencode: %w", err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	return address, listener.Close()
}

func (o openCode) post(ctx context.Context, path, body string) error {
	return o.ask(ctx, path, body, nil)
}

// ask posts and reads the answer's JSON into a value, unless that is nil.
func (o openCode) ask(ctx context.Context, path, body string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking opencode: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("asking opencode: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("opencode answered %s with %s", path, answer.Status)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("reading opencode's answer to %s: %w", path, err)
	}
	return nil
}
