package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

const (
	columns, rows = 160, 50
	scrolledOff   = 200 // lines that stay known above the screen
)

// Terminal is an interactive program at a terminal of its own.
type Terminal struct {
	home *Home
	name string
	cmd  *exec.Cmd
	tty  *os.File // the terminal's own end

	mu      sync.Mutex // guards below
	screen  *vt.Emulator
	changed chan struct{} // closed at the next change

	done chan struct{} // closed when the program has ended and all that it wrote is on the screen
	code int           // how it ended; valid after done
}

// Open starts the program in a terminal. The name is unique in the home.
func (h *Home) Open(ctx context.Context, name, dir string, argv ...string) (*Terminal, error) {
	t := &Terminal{
		home: h, name: name, cmd: h.Command(context.WithoutCancel(ctx), dir, argv[0], argv[1:]...),
		screen: vt.NewEmulator(columns, rows), changed: make(chan struct{}), done: make(chan struct{}),
	}
	t.screen.SetScrollbackSize(scrolledOff)
	tty, err := pty.StartWithSize(t.cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	t.tty = tty
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		t.show()
	}()
	go func() { _, _ = io.Copy(tty, t.screen) }() // what a terminal answers when a program asks it
	go t.end(shown)
	return t, nil
}

// show draws the output of the program until its end.
func (t *Terminal) show() {
	piece := make([]byte, 32<<10)
	var commands oscCommands
	for {
		n, err := t.tty.Read(piece)
		commands.asASCII(piece[:n])
		t.mu.Lock()
		_, _ = t.screen.Write(piece[:n])
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// oscCommands are what a program says to the terminal beside what is shown (OSC), such as
// its title. The emulator takes a byte of a title's "✳" for the command's end and shows the
// rest, so that they are given to it without such letters.
type oscCommands struct {
	inside bool
	escape bool // the byte before was one
}

// asASCII changes the next piece of what the program writes in place.
func (o *oscCommands) asASCII(piece []byte) {
	for i, b := range piece {
		switch {
		case o.escape && b == ']':
			o.inside = true
		case o.inside && (b == '\a' || o.escape && b == '\\'):
			o.inside = false
		case o.inside && b >= 0x80:
			piece[i] = '?'
		}
		o.escape = b == '\x1b'
	}
}

// end waits for the program's end. What it wrote last is shown first: only a process that
// it has left behind may keep the terminal open for longer.
func (t *Terminal) end(shown <-chan struct{}) {
	err := t.cmd.Wait()
	select {
	case <-shown:
	case <-time.After(time.Second):
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		t.code = exit.ExitCode()
	case err != nil:
		t.code = -1 // a signal ended it
	}
	close(t.done)
	_ = t.screen.Close()
}

// Name is the terminal's name in the home.
func (t *Terminal) Name() string { return t.name }

// Ended reports whether the program has ended.
func (t *Terminal) Ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Close hangs the terminal up, as closing its window does, and waits for the program's
// end; one that stays is killed.
func (t *Terminal) Close(ctx context.Context) error {
	_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGHUP)
	select {
	case <-t.done:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
	case <-ctx.Done():
		return fmt.Errorf("closing %s: %w", t.name, ctx.Err())
	}
	return t.tty.Close()
}

// Screen is what the terminal shows, with what scrolled off and without the empty lines.
func (t *Terminal) Screen() string {
	screen, _ := t.look()
	return screen
}

// look returns the screen, and a channel that is closed when the screen changes.
func (t *Terminal) look() (screen string, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, line := range t.screen.Scrollback().Lines() {
		addLine(&b, line.String())
	}
	for line := range strings.Lines(t.screen.String()) {
		addLine(&b, line)
	}
	return b.String(), t.changed
}

func addLine(b *strings.Builder, line string) {
	if line = strings.TrimRight(line, " \r\n"); line != "" {
		b.WriteString(line + "\n")
	}
}

// failure is an error with what the program said at its end, nil while it runs and after
// it ended well.
func (t *Terminal) failure() error {
	select {
	case <-t.done:
	default:
		return nil
	}
	if t.code == 0 {
		return nil
	}
	screen := t.Screen()
	if at := strings.Index(strings.ToLower(screen), "error: "); at >= 0 {
		screen = screen[at:]
	}
	return fmt.Errorf("%s has ended with exit code %d: %s", t.name, t.code, screen)
}

// Until waits for the screen to show something, or for the program to fail. fits is asked
// when the screen changes, and from time to time for what it asks besides.
func (t *Terminal) Until(ctx context.Context, what string, fits func(screen string) bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	done := t.done
	for {
		screen, changed := t.look()
		if fits(screen) {
			return nil
		}
		if err := t.failure(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-done:
			done = nil // it has ended well, and may have left a process that writes
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to show %s: %w\n%s", t.name, what, ctx.Err(), screen)
		}
	}
}

// Keys are what a terminal sends for a key.
const (
	Return   = "\r"
	Escape   = "\x1b"
	ShiftTab = "\x1b[Z"
	ControlU = "\x15"
)

// Type sends text and keys as if a person pressed them.
func (t *Terminal) Type(text string) error {
	if _, err := io.WriteString(t.tty, text); err != nil {
		return fmt.Errorf("typing into %s: %w", t.name, errors.Join(err, t.failure()))
	}
	return nil
}

const (
	// submitAfter is how long Prompt waits before Return: a CLI takes one that follows
	// typed text more closely as a part of a paste.
	submitAfter = 200 * time.Millisecond
	// submitEvery is how soon Return is pressed again: only long after a slow CLI would
	// have taken the first one, or it takes the line twice.
	submitEvery = 5 * time.Second
)

// Prompt types one line and submits it: it presses Return until the model is asked.
func (t *Terminal) Prompt(ctx context.Context, line string) error {
	if err := t.Type(line); err != nil {
		return err
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
	time.Sleep(submitAfter) // no screen shows that a paste is over
	again := time.NewTicker(submitEvery)
	defer again.Stop()
	for {
		if err := t.failure(); err != nil {
			return err
		}
		if err := t.Type(Return); err != nil {
			return err
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
