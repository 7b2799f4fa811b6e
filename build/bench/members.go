package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/server"
)

// membersName is under which name this program is a crowd of PCs of a team: each a
// client as a broker has it, on a connection of its own, with nothing to say.
const membersName = "bridge-bench-members"

// members is that process.
type members struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	joining time.Duration // of one PC
	used    time.Duration // of the processor, before they come
}

// startCrowd makes so many PCs members of the team; they come when they are told.
func (l *lab) startCrowd(ctx context.Context, h *hubProcess, pcs int) (*members, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &members{cmd: exec.CommandContext(ctx, self)}
	m.cmd.Args = []string{membersName, h.home.Dir(), h.joinAt, filepath.Join(l.dir, "members"), strconv.Itoa(pcs)}
	m.cmd.Stderr = os.Stderr
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.out = bufio.NewReader(out)
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := m.heard("joined"); err != nil {
		_ = m.stop() // it has failed
		return nil, err
	}
	m.joining, m.used = (time.Since(start) / time.Duration(pcs)).Round(time.Microsecond), spent([]int{m.cmd.Process.Pid})
	return m, nil
}

func (m *members) tell(command string) error {
	_, err := fmt.Fprintln(m.in, command)
	return err
}

// heard waits for a word.
func (m *members) heard(event string) error {
	line, err := m.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != event {
		err = fmt.Errorf("the crowd said %q", line)
	}
	return err
}

func (m *members) stop() error {
	_ = m.in.Close() // it ends by that
	return m.cmd.Wait()
}

// isMembers reports whether this process was such a crowd.
func isMembers() bool {
	if filepath.Base(os.Args[0]) != membersName {
		return false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := beMembers(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench: the crowd:", err)
		os.Exit(1)
	}
	return true
}

func beMembers(ctx context.Context, args []string) error {
	home, err := server.At(args[0])
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	admin, err := server.Dial(home)
	if err != nil {
		return err
	}
	pcs := make([]enrolledPC, count)
	for i := range pcs {
		// A hundred owners, of ten PCs each in a team of a thousand.
		name := fmt.Sprintf("owner-%d-%d", i%100, i/100)
		if pcs[i], err = enrolled(ctx, admin, args[1], filepath.Join(args[2], name), name); err != nil {
			return fmt.Errorf("%s joins: %w", name, err)
		}
	}
	admin.Close()
	fmt.Println("joined")
	commands := bufio.NewReader(os.Stdin)
	if _, err := commands.ReadString('\n'); err != nil {
		return err
	}
	hubs, err := openAll(pcs, args[2])
	if err != nil {
		return err
	}
	fmt.Println("started")
	for _, h := range hubs {
		for up(h) < count { // the others, and the broker
			time.Sleep(100 * time.Millisecond)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	fmt.Println("all")
	_, err = commands.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return nil // the process ends without leaving each session
	}
	return err
}

// openAll starts them as fast as one process can: each by itself would not wait for the
// others.
func openAll(pcs []enrolledPC, folder string) ([]*hub.Hub, error) {
	hubs, problems := make([]*hub.Hub, len(pcs)), make([]error, senders)
	var running sync.WaitGroup
	var next atomic.Int64
	for worker := range problems {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(pcs) && problems[worker] == nil; i = int(next.Add(1)) - 1 {
				hubs[i], problems[worker] = pcs[i].open(filepath.Join(folder, pcs[i].Name, "said.json"))
			}
		})
	}
	running.Wait()
	return hubs, errors.Join(problems...)
}

func up(h *hub.Hub) (n int) {
	for _, status := range h.Status() {
		if status.Up {
			n++
		}
	}
	return n
}

func (pc enrolledPC) open(numbers string) (*hub.Hub, error) {
	return hub.Open(hub.Options{
		Team: teamName, Self: pc.identity.ID, Hub: pc.Hub, URLs: pc.URLs, Login: pc.login, Sign: pc.identity.Sign, Numbers: numbers,
		Word: func() hub.Announcement {
			return hub.Announcement{Release: "bench", Capabilities: []string{remote.MessagesCapability}}
		},
		Stored: func(context.Context, remote.PC, remote.Frame, time.Time) error { return nil },
		Handle: func(remote.PC, remote.Frame) {}, Changed: func(remote.PC) {}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}
