package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// owner measures the owner's words to an idle session that is woken by a
// waiting hook: from the POST until the broker has stored that it was consumed.
// The host's own part is an answer at once, so what is left is Bridge's.
func (l *lab) owner(ctx context.Context) (err error) {
	b, err := l.start(ctx, "owner")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	post, err := b.poster(ctx)
	if err != nil {
		return err
	}
	host, err := b.idleHost(ctx)
	if err != nil {
		return err
	}
	rounds := 100 // the page allows 120 messages a minute
	if l.quick {
		rounds = 40
	}
	var elapsed times
	for range rounds {
		woken := host.wait(ctx)
		host.untilWaiting(ctx)
		before := time.Now()
		if err := post("/api/sessions/host/message", map[string]string{"body": "look here"}); err != nil {
			return err
		}
		if err := host.wake(ctx, <-woken); err != nil {
			return err
		}
		elapsed = append(elapsed, time.Since(before))
	}
	p99 := elapsed.at(0.99)
	l.add(row{what: "owner's POST until consumed, idle session by hooks", measured: fmt.Sprintf("%s p50, %s p99", elapsed.at(0.5), p99), value: p99.Seconds() * 1000, goal: "p99 < 50 ms", bound: 50})
	return l.waiting(ctx)
}

// poster is a page that may post.
func (b *running) poster(ctx context.Context) (func(path string, body any) error, error) {
	client, base, err := b.page(ctx)
	if err != nil {
		return nil, err
	}
	return func(path string, body any) error {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("x-bridge", "1")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answered %s: %s", path, response.Status, answer)
		}
		return err
	}, nil
}

// host is a scripted agent CLI that answers at once.
type host struct{ hooks, wakes *ipc.Client }

const hostSession = "host-session"

func (b *running) idleHost(ctx context.Context) (*host, error) {
	server, err := ipc.Dial(ctx, b.target, ipc.Hello{Role: api.RoleSession, PID: os.Getpid()})
	if err != nil {
		return nil, err
	}
	b.open = append(b.open, server)
	register := api.Register{Kind: bridge.Claude, Name: "host", Cwd: "/bench", SessionID: hostSession}
	if _, err := server.Register(ctx, register); err != nil {
		return nil, err
	}
	h := &host{}
	for _, client := range []**ipc.Client{&h.hooks, &h.wakes} {
		if *client, err = ipc.Dial(ctx, b.target, ipc.Hello{Role: api.RoleHook, PID: os.Getpid()}); err != nil {
			return nil, err
		}
		b.open = append(b.open, *client)
	}
	_, err = h.hooks.Hook(ctx, hookCall(session.EventStop, "Stop"))
	return h, err
}

func hookCall(event session.Event, name string) session.HookCall {
	return session.HookCall{Kind: bridge.Claude, Event: event, HostEvent: name, SessionID: hostSession}
}

// wait is a wake hook in the background.
func (h *host) wait(ctx context.Context) <-chan api.WakeReply {
	replies := make(chan api.WakeReply, 1)
	go func() {
		reply, err := h.wakes.WakeWait(ctx, api.WakeWait{Call: hookCall(session.EventStop, "Stop")})
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench: the wake hook:", err)
		}
		replies <- reply
	}()
	return replies
}

// untilWaiting gives the background hook its place before the clock starts.
func (h *host) untilWaiting(ctx context.Context) {
	ipc.Pause(ctx, 20*time.Millisecond)
}

// wake does what a host does with a wake: the hook's text is out, a turn begins
// and ends.
func (h *host) wake(ctx context.Context, reply api.WakeReply) error {
	if reply.Lease == nil {
		return errors.New("the wake hook got no mail")
	}
	if err := h.hooks.Ack(ctx, api.Ack{Lease: *reply.Lease, Stage: bridge.StageHanded, Via: mail.ViaWakeHook}); err != nil {
		return err
	}
	return h.turn(ctx)
}

// turn begins and ends.
func (h *host) turn(ctx context.Context) error {
	for _, call := range []session.HookCall{hookCall(session.EventPrompt, "UserPromptSubmit"), hookCall(session.EventStop, "Stop")} {
		if _, err := h.hooks.Hook(ctx, call); err != nil {
			return err
		}
	}
	return nil
}

// waiting measures what a thousand idle sessions with mail cost: nothing should
// poll.
func (l *lab) waiting(ctx context.Context) (err error) {
	b, err := l.start(ctx, "waiting")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	const sessions = 1000
	names := make([]string, sessions)
	for i := range names {
		names[i] = fmt.Sprintf("idle-%d", i)
	}
	clients, err := b.session(ctx, names...)
	if err != nil {
		return err
	}
	if err := sendTo(ctx, clients[0], "*"); err != nil {
		return err
	}
	seconds := 10
	if l.quick {
		seconds = 5
	}
	ipc.Pause(ctx, 2*time.Second) // what the sends began comes to rest
	before, err := cpuTicks(b.cmd.Process.Pid)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: the idle processor time is not measured here:", err)
		return nil // only Linux tells
	}
	ipc.Pause(ctx, time.Duration(seconds)*time.Second)
	after, err := cpuTicks(b.cmd.Process.Pid)
	if err != nil {
		return err
	}
	share := float64(after-before) / float64(seconds) // ticks of 1/100 s: percent of a core
	l.add(row{what: "1,000 idle sessions with mail waiting", measured: fmt.Sprintf("%.2f %% of a core", share), value: share, goal: "< 1 %", bound: 1})
	return nil
}

// cpuTicks is the processor time of a process in hundredths of a second.
func cpuTicks(pid int) (int, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0, fmt.Errorf("process %d: its stat line is not understood", pid)
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return user + system, err
}
