package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bridge/backend/platform/ipc"
)

// crowd measures a busy day: 56 MCP servers, 8,000 stored messages, two sends a
// second each, and a page that asks for the state.
func (l *lab) crowd(ctx context.Context) (err error) {
	b, err := l.start(ctx, "crowd")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	const members, stored = 56, 8000
	servers := make([]*rpc, members)
	for i := range servers {
		if servers[i], err = b.mcp(ctx, fmt.Sprintf("member-%d", i)); err != nil {
			return err
		}
		defer servers[i].close()
	}
	if err := b.fill(ctx, stored); err != nil {
		return err
	}
	seconds := 20
	if l.quick {
		seconds = 5
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	var sending sync.WaitGroup
	problems := make([]error, members)
	for i, server := range servers {
		late := time.Second / 2 * time.Duration(i) / members // sessions do not send in step
		sending.Go(func() { problems[i] = chatter(ctx, server, fmt.Sprintf("member-%d", (i+1)%members), late) })
	}
	states, stateErr := b.states(ctx)
	sending.Wait()
	if err := errors.Join(append(problems, stateErr)...); err != nil {
		return err
	}
	largest := 0.0
	for _, server := range servers {
		largest = max(largest, resident(server.cmd.Process.Pid))
	}
	broker := resident(b.cmd.Process.Pid)
	l.add(row{what: "56 sessions: broker resident", measured: fmt.Sprintf("%.1f MiB", broker), value: broker, goal: "<= 38 MiB", bound: 38})
	l.add(row{what: "56 sessions: largest bridge mcp", measured: fmt.Sprintf("%.1f MiB", largest), value: largest, goal: "<= 12 MiB", bound: 12})
	ipc.Pause(context.WithoutCancel(ctx), l.rest)
	later := resident(b.cmd.Process.Pid)
	l.add(row{what: "56 sessions: broker resident, left alone", measured: fmt.Sprintf("%.1f MiB after %s", later, l.rest), value: later, goal: "<= 38 MiB", bound: 38})
	p95 := states.at(0.95)
	l.add(row{what: "56 sessions: GET /api/state", measured: fmt.Sprintf("%s p50, %s p95", states.at(0.5), p95), value: p95.Seconds() * 1000, goal: "p95 < 5 ms", bound: 5})
	return nil
}

// fill stores n messages through the broker.
func (b *running) fill(ctx context.Context, n int) error {
	const lanes = 8
	var names []string
	for i := range lanes {
		names = append(names, fmt.Sprintf("filler-%d", i))
	}
	clients, err := b.session(ctx, names...)
	if err != nil {
		return err
	}
	problems := make([]error, lanes)
	var filling sync.WaitGroup
	for i, client := range clients {
		filling.Go(func() {
			_, problems[i] = repeat(nil, n/lanes, func() error { return sendTo(ctx, client, names[(i+1)%lanes]) })
		})
	}
	filling.Wait()
	for _, client := range clients {
		_ = client.Close() // only the members stay connected
	}
	return errors.Join(problems...)
}

// chatter sends twice a second until ctx ends, beginning a little late.
func chatter(ctx context.Context, server *rpc, recipient string, late time.Duration) error {
	ipc.Pause(ctx, late)
	ticker := time.NewTicker(time.Second / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := server.send(recipient); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// states asks for the state ten times a second, as several open pages would.
func (b *running) states(ctx context.Context) (times, error) {
	get, err := b.browser(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	var elapsed times
	ticker := time.NewTicker(time.Second / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return elapsed, nil
		}
		if elapsed, err = repeat(elapsed, 1, func() error { return get("/api/state") }); err != nil {
			return nil, err
		}
	}
}
