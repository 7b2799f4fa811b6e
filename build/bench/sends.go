package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the raw baseline

	"bridge/backend/core/bridge"
	"bridge/backend/doors/hook"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

var body = strings.Repeat("sixteen bytes ..", 32) // 512 bytes

// raw commits single rows with synchronous=FULL: the floor that every durable
// send stands on. It returns one commit's time and the rate.
func (l *lab) raw(ctx context.Context, n int) (times, float64, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.dir, fmt.Sprintf("raw-%d.db", time.Now().UnixNano()))+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "CREATE TABLE m (id TEXT PRIMARY KEY, body TEXT NOT NULL)"); err != nil {
		return nil, 0, err
	}
	insert, err := db.PrepareContext(ctx, "INSERT INTO m VALUES (?, ?)")
	if err != nil {
		return nil, 0, err
	}
	defer insert.Close()
	var elapsed times
	start := time.Now()
	for i := range n {
		before := time.Now()
		if _, err := insert.ExecContext(ctx, fmt.Sprintf("%016d", i), body); err != nil {
			return nil, 0, err
		}
		elapsed = append(elapsed, time.Since(before))
	}
	return elapsed, float64(n) / time.Since(start).Seconds(), nil
}

// sends measures a durable send: at the local API, through the MCP tool, and
// with 16 clients at once. Raw commits are taken in turns with it, so that both
// see the same disk.
func (l *lab) sends(ctx context.Context) (err error) {
	b, err := l.start(ctx, "sends")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	rawRate, err := l.oneSends(ctx, b)
	if err != nil {
		return err
	}
	if err := l.together(ctx, b, rawRate); err != nil {
		return err
	}
	return l.toolsTogether(ctx, b, rawRate)
}

// oneSends measures one client. The recipients are a connection of this process, a session
// as it is, with a server process of its own, and one whose wake hook waits.
func (l *lab) oneSends(ctx context.Context, b *running) (rawRate float64, err error) {
	clients, err := b.session(ctx, "api", "target")
	if err != nil {
		return 0, err
	}
	tool, err := b.mcp(ctx, "tool")
	if err != nil {
		return 0, err
	}
	defer tool.close()
	live, err := b.mcp(ctx, "live")
	if err != nil {
		return 0, err
	}
	defer live.close()
	rounds, per := 8, 250
	if l.quick {
		rounds = 3
	}
	var raw, atAPI, byTool, toLive, pings times
	for range rounds {
		elapsed, rate, err := l.raw(ctx, per)
		if err != nil {
			return 0, err
		}
		raw, rawRate = append(raw, elapsed...), max(rawRate, rate)
		for _, row := range []struct {
			elapsed *times
			work    func() error
		}{
			{&atAPI, func() error { return sendTo(ctx, clients[0], "target") }},
			{&byTool, func() error { return tool.send("target") }},
			{&toLive, func() error { return tool.send("live") }},
			{&pings, func() error { _, err := tool.request("ping", map[string]any{}); return err }},
		} {
			if *row.elapsed, err = repeat(*row.elapsed, per, row.work); err != nil {
				return 0, err
			}
		}
	}
	waking, err := b.sendsThatWake(ctx, tool, rounds*4)
	if err != nil {
		return 0, err
	}
	rawP50, ping := raw.at(0.5), pings.at(0.5)
	l.add(row{what: "raw single-row FULL commit", measured: rawP50.String() + " p50", value: 1})
	l.add(row{what: "durable send, local API, 1 client", measured: atAPI.at(0.5).String() + " p50", value: ratio(atAPI.at(0.5), rawP50), goal: "<= 1.3 x raw", bound: 1.3})
	l.add(row{what: "durable send, MCP tool call", measured: byTool.at(0.5).String() + " p50", value: ratio(byTool.at(0.5), rawP50), goal: "<= 2 x raw", bound: 2})
	l.add(row{what: "a ping of a session's MCP server", measured: ping.String() + " p50", value: ratio(ping, rawP50)})
	l.add(row{
		what: "durable send, MCP tool call, to a live server", measured: toLive.at(0.5).String() + " p50",
		value: ratio(toLive.at(0.5)-ping, rawP50), goal: "<= 1.5 x raw, and a ping", bound: 1.5,
	})
	l.add(row{what: "the same, p99", measured: toLive.at(0.99).String(), value: millis(toLive.at(0.99)), goal: "< 3 ms", bound: 3})
	l.add(row{what: "the same, to a session whose wake hook waits", measured: waking.at(0.5).String() + " p50", value: ratio(waking.at(0.5)-ping, rawP50)})
	return rawRate, nil
}

// sendsThatWake measures sends to an idle session whose wake hook waits, each by a hook
// process of its own, which has to end as one that begins a turn.
func (b *running) sendsThatWake(ctx context.Context, tool *rpc, n int) (elapsed times, err error) {
	h, err := b.idleHost(ctx)
	if err != nil {
		return nil, err
	}
	for range n {
		cmd, _, err := b.wakeHook(ctx, filepath.Join(filepath.Dir(b.lab.binary), "bridge-hook"))
		if err != nil {
			return nil, err
		}
		if elapsed, err = repeat(elapsed, 1, func() error { return tool.send("host") }); err != nil {
			endHook(cmd)
			return nil, err
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != hook.ExitWake {
			return nil, errors.Join(err, fmt.Errorf("the wake hook ended with %d", cmd.ProcessState.ExitCode()))
		}
		if err := h.turn(ctx); err != nil {
			return nil, err
		}
	}
	return elapsed, nil
}

func repeat(elapsed times, n int, work func() error) (times, error) {
	for range n {
		before := time.Now()
		if err := work(); err != nil {
			return nil, err
		}
		elapsed = append(elapsed, time.Since(before))
	}
	return elapsed, nil
}

func sendTo(ctx context.Context, client *ipc.Client, recipient string) error {
	_, err := client.Send(ctx, api.SendArgs{To: recipient, Body: body})
	return err
}

const senders = 16

// together measures 16 clients that send at once.
func (l *lab) together(ctx context.Context, b *running, rawRate float64) error {
	per := 1000
	if l.quick {
		per = 300
	}
	names := make([]string, senders)
	for i := range names {
		names[i] = fmt.Sprintf("many-%d", i)
	}
	clients, err := b.session(ctx, names...)
	if err != nil {
		return err
	}
	all := make([]times, senders)
	problems := make([]error, senders)
	var running sync.WaitGroup
	start := time.Now()
	for i, client := range clients {
		running.Go(func() {
			all[i], problems[i] = repeat(nil, per, func() error { return sendTo(ctx, client, "target") })
		})
	}
	running.Wait()
	rate := float64(senders*per) / time.Since(start).Seconds()
	if err := errors.Join(problems...); err != nil {
		return err
	}
	var joined times
	for _, t := range all {
		joined = append(joined, t...)
	}
	l.add(row{what: "16 clients at the local API", measured: fmt.Sprintf("%.0f sends/s, raw %.0f commits/s", rate, rawRate), value: rate / rawRate, goal: ">= 4 x raw rate", bound: 4, atLeast: true})
	p99 := joined.at(0.99)
	l.add(row{what: "16 clients, p99", measured: p99.String(), value: p99.Seconds() * 1000, goal: "< 10 ms", bound: 10})
	return nil
}

// toolsTogether measures 16 sessions that call the tool at once, each by an MCP
// server of its own.
func (l *lab) toolsTogether(ctx context.Context, b *running, rawRate float64) error {
	per := 400
	if l.quick {
		per = 100
	}
	servers := make([]*rpc, senders)
	for i := range servers {
		var err error
		if servers[i], err = b.mcp(ctx, fmt.Sprintf("tool-%d", i)); err != nil {
			return err
		}
		defer servers[i].close()
	}
	problems := make([]error, senders)
	var running sync.WaitGroup
	start := time.Now()
	for i, server := range servers {
		running.Go(func() {
			_, problems[i] = repeat(nil, per, func() error {
				return server.send("target")
			})
		})
	}
	running.Wait()
	rate := float64(senders*per) / time.Since(start).Seconds()
	l.add(row{what: "16 clients by the MCP tool", measured: fmt.Sprintf("%.0f sends/s, raw %.0f commits/s", rate, rawRate), value: rate / rawRate, goal: ">= 2 x raw rate", bound: 2, atLeast: true})
	return errors.Join(problems...)
}

// pushes measures how long a live session waits for the signal of a message, from the
// moment it is sent, at 1,000 messages a second: one each millisecond, and eight at once.
func (l *lab) pushes(ctx context.Context) (err error) {
	b, err := l.start(ctx, "pushes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	var names []string
	for i := range 2 * pushLanes {
		names = append(names, fmt.Sprintf("push-%d", i))
	}
	clients, err := b.session(ctx, names...)
	if err != nil {
		return err
	}
	for _, item := range []struct {
		what  string
		apart time.Duration // a lane from the next
	}{
		{"push to a live session, 1,000/s", time.Second / pushRate},
		{"the same, eight at once", 0},
	} {
		joined, err := l.pushAll(ctx, clients, names, item.apart)
		if err != nil {
			return err
		}
		p50, p99 := joined.at(0.5), joined.at(0.99)
		l.add(row{what: item.what + ": the middle one", measured: p50.String(), value: millis(p50), goal: "p50 < 1 ms", bound: 1})
		l.add(row{what: item.what, measured: fmt.Sprintf("%s p50, %s p99", p50, p99), value: millis(p99), goal: "p99 < 10 ms", bound: 10})
	}
	return nil
}

const pushLanes, pushRate = 8, 1000

// pushAll has each client of an even number send to the next one.
func (l *lab) pushAll(ctx context.Context, clients []*ipc.Client, names []string, apart time.Duration) (joined times, err error) {
	seconds := 10
	if l.quick {
		seconds = 3
	}
	var all [pushLanes]times
	var problems [pushLanes]error
	var running sync.WaitGroup
	for i := range pushLanes {
		running.Go(func() {
			ipc.Pause(ctx, time.Duration(i)*apart)
			all[i], problems[i] = pushLane(ctx, clients[2*i], clients[2*i+1], names[2*i+1], pushRate*seconds/pushLanes, time.Second*pushLanes/pushRate)
		})
	}
	running.Wait()
	for _, lane := range all {
		joined = append(joined, lane...)
	}
	return joined, errors.Join(problems[:]...)
}

// pushLane sends n messages in a steady rhythm and times each until its signal
// arrived. A lane has one message under way at a time.
func pushLane(ctx context.Context, from, client *ipc.Client, name string, n int, every time.Duration) (times, error) {
	var elapsed times
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for range n {
		<-ticker.C
		before := time.Now()
		if err := sendTo(ctx, from, name); err != nil {
			return nil, err
		}
		if err := mailSignal(client); err != nil {
			return nil, err
		}
		elapsed = append(elapsed, time.Since(before))
	}
	return elapsed, nil
}

// mailSignal waits for the signal of a message; a session hears of other things,
// too.
func mailSignal(client *ipc.Client) error {
	for event := range client.Events() {
		if event.Name == api.EventMail {
			return nil
		}
	}
	return bridge.Errorf(bridge.Unavailable, "the connection ended before the signal of a message came")
}
