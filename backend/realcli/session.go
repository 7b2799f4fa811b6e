package realcli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
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

// pollEvery is how often a screen is looked at: a terminal has no event for it, and each
// look is a process.
const pollEvery = 100 * time.Millisecond

// Terminal is an interactive program in a tmux session of its own server.
type Terminal struct {
	home   *Home
	name   string
	socket string
}

// Open starts the program in a terminal. The name is unique in the home.
func (h *Home) Open(ctx context.Context, name, dir string, argv ...string) (*Terminal, error) {
	t := &Terminal{home: h, name: name, socket: filepath.Join(h.Root, "tmux-"+name)}
	args := []string{"new-session", "-d", "-x", "160", "-y", "50", "-c", dir, "--", filepath.Join(h.Bin, argv[0])}
	if _, err := t.tmux(ctx, append(args, argv[1:]...)...); err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	if _, err := t.tmux(ctx, "set-option", "-g", "remain-on-exit", "on"); err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	return t, nil
}

// Name is the terminal's name in the home.
func (t *Terminal) Name() string { return t.name }

// tmux runs one tmux command on the terminal's own server.
func (t *Terminal) tmux(ctx context.Context, args ...string) (string, error) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		return "", fmt.Errorf("terminals need tmux: %w", err)
	}
	return t.home.Run(ctx, t.home.Dir, "", tmux, append([]string{"-S", t.socket, "-f", "/dev/null"}, args...)...)
}

// Close ends the terminal and the program in it.
func (t *Terminal) Close(ctx context.Context) error {
	_, err := t.tmux(ctx, "kill-server")
	return err
}

// Screen is what the terminal shows, with what scrolled off and without the
// empty lines.
func (t *Terminal) Screen(ctx context.Context) (string, error) {
	screen, _, err := t.look(ctx)
	return screen, err
}

// look tells what the terminal shows and, when the program in it has ended, with which
// exit code: "" while it runs, or while tmux does not know.
func (t *Terminal) look(ctx context.Context) (screen, code string, err error) {
	raw, err := t.tmux(ctx, "capture-pane", "-p", "-J", "-S", "-200", ";", "display-message", "-p", "#{pane_dead} #{pane_dead_status}")
	if err != nil {
		return "", "", err
	}
	lines := slices.Collect(strings.Lines(raw))
	dead, code, _ := strings.Cut(strings.TrimSpace(lines[len(lines)-1]), " ")
	var b strings.Builder
	for _, line := range lines[:len(lines)-1] {
		if line = strings.TrimRight(line, " \n"); line != "" {
			b.WriteString(line + "\n")
		}
	}
	if dead == "1" && code == "" { // tmux missed how it ended: the end of another child has it look
		_, _ = t.tmux(ctx, "run-shell", "true") // and if not, so does the next one
	}
	return b.String(), code, nil
}

// ended is an error with what the program said at its end, nil while it runs and
// after it ended well.
func (t *Terminal) ended(ctx context.Context) error {
	screen, code, err := t.look(ctx)
	if err != nil {
		return nil //nolint:nilerr // nobody knows that it has ended
	}
	return t.failure(screen, code)
}

func (t *Terminal) failure(screen, code string) error {
	if code == "" || code == "0" {
		return nil
	}
	if at := strings.Index(strings.ToLower(screen), "error: "); at >= 0 {
		screen = screen[at:]
	}
	return fmt.Errorf("%s has ended with exit code %s: %s", t.name, code, screen)
}

// Until waits for the screen to show something, or for the program to fail.
func (t *Terminal) Until(ctx context.Context, what string, fits func(screen string) bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		screen, code, err := t.look(ctx)
		if err == nil && fits(screen) {
			return nil
		}
		if failed := t.failure(screen, code); failed != nil {
			return failed
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to show %s: %w\n%s", t.name, what, ctx.Err(), screen)
		}
	}
}

// Keys presses keys by tmux's names: Enter, Escape, C-c.
func (t *Terminal) Keys(ctx context.Context, keys ...string) error {
	_, err := t.tmux(ctx, append([]string{"send-keys"}, keys...)...)
	return err
}

// Prompt types one line and submits it. A CLI may take an Enter that follows
// typed text too closely as a part of a paste, so it is pressed until the model
// is asked: that is when the prompt counts.
func (t *Terminal) Prompt(ctx context.Context, line string) error {
	if _, err := t.tmux(ctx, "send-keys", "-l", line); err != nil {
		return fmt.Errorf("typing into %s: %w", t.name, err)
	}
	if err := t.Until(ctx, "what was typed", func(screen string) bool { return strings.Contains(screen, line) }); err != nil {
		return err
	}
	asked := make(chan error, 1)
	go func() {
		_, err := t.home.model.Wait(ctx, "the prompt "+line, func(r Request) bool {
			return !r.Aux && strings.Contains(r.Text(), line)
		})
		asked <- err
	}()
	again := time.NewTicker(5 * pollEvery)
	defer again.Stop()
	for {
		if err := t.ended(ctx); err != nil {
			return err
		}
		if err := t.Keys(ctx, "Enter"); err != nil {
			return fmt.Errorf("submitting to %s: %w", t.name, err)
		}
		select {
		case err := <-asked:
			return err
		case <-again.C:
		}
	}
}

// OpenCodeTerminal is an interactive opencode. What is typed into it may open a
// popup, so prompts go through the HTTP interface of the same live session.
type OpenCodeTerminal struct {
	*Terminal
	openCode
}

// openCode is an opencode by its HTTP interface.
type openCode struct {
	home *Home
	url  string
}

// OpenCodeServer is one session of an opencode that nobody looks at.
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

// OpenOpenCode starts an interactive opencode that serves its interface on a
// free port of 127.0.0.1.
func (h *Home) OpenOpenCode(ctx context.Context, name, dir string, args ...string) (*OpenCodeTerminal, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	argv := append([]string{"opencode", "--hostname", "127.0.0.1", "--port", strconv.Itoa(address.Port)}, args...)
	terminal, err := h.Open(ctx, name, dir, argv...)
	if err != nil {
		return nil, err
	}
	return &OpenCodeTerminal{terminal, openCode{h, "http://" + address.String()}}, nil
}

// freeAddress is a port of 127.0.0.1 that nobody has at the moment.
func freeAddress() (*net.TCPAddr, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a port for opencode: %w", err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	return address, listener.Close()
}

// Prompt puts one line into the composer and submits it.
func (o *OpenCodeTerminal) Prompt(ctx context.Context, line string) error {
	if err := o.post(ctx, "/tui/append-prompt", mustJSON(object{"text": line})); err != nil {
		return err
	}
	if err := o.Until(ctx, "what was typed", func(screen string) bool { return strings.Contains(screen, line) }); err != nil {
		return err
	}
	if err := o.post(ctx, "/tui/submit-prompt", "{}"); err != nil {
		return err
	}
	return o.prompted(ctx, line)
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
