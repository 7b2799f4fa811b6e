package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/server"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// teamName is that of the team that is measured.
const teamName = "crew"

// hubProcess is a bridge-hub process on a home of its own, and who administers it.
type hubProcess struct {
	cmd    *exec.Cmd
	home   server.Home
	admin  *server.Client
	joinAt string
}

// startHub runs `bridge-hub serve` and waits until PCs can join.
func (l *lab) startHub(ctx context.Context, name string) (*hubProcess, error) {
	home, err := server.At(filepath.Join(l.dir, name))
	if err != nil {
		return nil, err
	}
	h := &hubProcess{home: home}
	program := filepath.Join(filepath.Dir(l.binary), "bridge-hub")
	h.cmd = exec.CommandContext(ctx, program, "serve", "--home", home.Dir(), "--team", teamName, "--listen", "127.0.0.1", "--port", "0", "--nats-port", "0")
	h.cmd.Stderr = os.Stderr
	output, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	_, at, found := strings.Cut(strings.TrimSpace(line), "PCs join at ")
	if err != nil || !found {
		return nil, errors.Join(fmt.Errorf("bridge-hub serve said %q: %w", line, err), h.stop())
	}
	h.joinAt = at
	go func() { _, _ = io.Copy(io.Discard, output) }()
	if h.admin, err = server.Dial(home); err != nil {
		return nil, errors.Join(err, h.stop())
	}
	return h, nil
}

func (h *hubProcess) stop() error {
	if h.admin != nil {
		h.admin.Close()
	}
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return h.cmd.Wait()
}

// take makes a broker's PC one of the team.
func (h *hubProcess) take(ctx context.Context, owner *ipc.Client) error {
	invited, err := h.admin.Invite(ctx)
	if err == nil {
		_, err = owner.JoinTeam(ctx, api.LinkArgs{Address: h.joinAt, Code: invited.Code})
	}
	return err
}

// hub measures what two PCs of a team send each other by its hub, all on this machine.
func (l *lab) hub(ctx context.Context) (err error) {
	desk, deskOwner, err := l.networked(ctx, "by-hub/desk")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, desk.stop()) }()
	laptop, owner, err := l.networked(ctx, "by-hub/laptop")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, laptop.stop()) }()
	peers, err := desk.session(ctx, "far")
	if err != nil {
		return err
	}
	h, err := l.startHub(ctx, "hub")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	if err := errors.Join(h.take(ctx, owner), h.take(ctx, deskOwner), linked(ctx, owner), linked(ctx, deskOwner)); err != nil {
		return fmt.Errorf("join the team: %w", err)
	}
	if err := l.allow("by-hub/desk"); err != nil { // joining takes what a name was allowed before
		return err
	}
	raw, err := l.rawHub(ctx, h)
	if err != nil {
		return fmt.Errorf("the hub's own rate: %w", err)
	}
	if err := l.byHub(ctx, laptop, peers[0], raw); err != nil {
		return err
	}
	return l.manyByHub(ctx, laptop, peers[0], deskOwner, raw)
}

// pace lies between two messages that are measured one by one. What they are compared
// with is measured with such pauses, too: a machine that has just done the same is quicker.
const pace = 30 * time.Millisecond

func paced(ctx context.Context, elapsed times, n int, do func() error) (_ times, err error) {
	for range n {
		if !ipc.Pause(ctx, pace) {
			return nil, ctx.Err()
		}
		if elapsed, err = repeat(elapsed, 1, do); err != nil {
			return nil, err
		}
	}
	return elapsed, nil
}

// published is what the hub itself does with what it syncs.
type published struct {
	plain times   // of one publisher
	paced times   // the same, with pauses
	rate  float64 // of 16 at once
}

// rawHub measures what the hub acknowledges, each on its disk: the floor for all that
// lies there.
func (l *lab) rawHub(ctx context.Context, h *hubProcess) (p published, err error) {
	from, to, err := h.publisher(ctx, filepath.Join(l.dir, "publisher"))
	if err != nil {
		return p, err
	}
	defer from.Close()
	put := func() error {
		answer, err := from.RequestWithContext(ctx, to, []byte(body))
		if err == nil && !strings.Contains(string(answer.Data), `"seq"`) {
			err = fmt.Errorf("the hub answers %s", answer.Data)
		}
		return err
	}
	per := 200
	if l.quick {
		per = 50
	}
	if p.plain, err = repeat(nil, per, put); err != nil {
		return p, err
	}
	if p.paced, err = paced(ctx, nil, 50, put); err != nil {
		return p, err
	}
	problems := make([]error, senders)
	var running sync.WaitGroup
	start := time.Now()
	for i := range senders {
		running.Go(func() { _, problems[i] = repeat(nil, per, put) })
	}
	running.Wait()
	p.rate = float64(senders*per) / time.Since(start).Seconds()
	return p, errors.Join(problems...)
}

// publisher is a connection of another PC of the team, and where what it says to itself
// lies.
func (h *hubProcess) publisher(ctx context.Context, folder string) (*nats.Conn, string, error) {
	m, err := enrolled(ctx, h.admin, h.joinAt, folder, "publisher")
	if err != nil {
		return nil, "", err
	}
	conn, err := nats.Connect(strings.Join(m.URLs, ","), append(m.login, nats.CustomInboxPrefix(subject.InboxPrefix(m.identity.ID)))...)
	at := subject.Subject{Team: teamName, From: m.identity.ID, To: m.identity.ID, Sort: subject.Message}
	return conn, at.String(), err
}

// enrolledPC is a PC of the team that is no broker.
type enrolledPC struct {
	join.Membership
	identity link.Identity
	login    []nats.Option
}

func enrolled(ctx context.Context, admin *server.Client, address, folder, name string) (pc enrolledPC, err error) {
	if pc.identity, err = link.OpenIdentity(folder); err != nil {
		return pc, err
	}
	invited, err := admin.Invite(ctx)
	if err != nil {
		return pc, err
	}
	err = join.Join(ctx, pc.identity, name, address, invited.Code, func(m join.Membership) error { pc.Membership = m; return nil })
	if err != nil {
		return pc, err
	}
	key, err := nkeys.FromSeed([]byte(pc.Seed))
	if err != nil {
		return pc, err
	}
	public, err := key.PublicKey()
	pc.login = []nats.Option{nats.Nkey(public, key.Sign), nats.Secure(link.Pinned(pc.Hub)), nats.TLSHandshakeFirst()}
	return pc, err
}

// byHub measures a message to a session of another PC of the team, from the call of send
// to the signal there, which follows when it is durable there; in turns with a durable
// send on the same PC.
func (l *lab) byHub(ctx context.Context, laptop *running, far *ipc.Client, raw published) error {
	here, err := laptop.session(ctx, "planner", "near")
	if err != nil {
		return err
	}
	rounds := 8
	if l.quick {
		rounds = 3
	}
	const each = 50
	var local, slow, across times
	near := func() error { return sendTo(ctx, here[0], "near") }
	for range rounds {
		if local, err = repeat(local, each, near); err != nil {
			return fmt.Errorf("the baseline of messages: %w", err)
		}
		if slow, err = paced(ctx, slow, each, near); err != nil {
			return fmt.Errorf("the baseline of messages with pauses: %w", err)
		}
		elapsed, err := pushLane(ctx, here[0], far, "desk/far", each, pace)
		if err != nil {
			return fmt.Errorf("a message to a PC of the team: %w", err)
		}
		across = append(across, elapsed...)
	}
	for _, against := range []struct {
		what       string
		here, sync time.Duration
	}{{"one right after the other", local.at(0.5), raw.plain.at(0.5)}, {"with the same pauses", slow.at(0.5), raw.paced.at(0.5)}} {
		l.add(row{
			what:     "a message by the hub, send to durable there, against a durable send here and the hub's sync, " + against.what,
			measured: fmt.Sprintf("%s p50, %s p99; here %s, sync %s", across.at(0.5), across.at(0.99), against.here, against.sync),
			value:    ratio(across.at(0.5), against.here+against.sync), goal: "<= 3 x both", bound: 3,
		})
	}
	return nil
}

// manyByHub measures 16 sessions that send to another PC at once, until everything is
// durable there.
func (l *lab) manyByHub(ctx context.Context, laptop *running, far, owner *ipc.Client, raw published) error {
	per := 500
	if l.quick {
		per = 100
	}
	names := make([]string, senders)
	for i := range names {
		names[i] = fmt.Sprintf("across-%d", i)
	}
	clients, err := laptop.session(ctx, names...)
	if err != nil {
		return err
	}
	status, err := owner.Status(ctx)
	if err != nil {
		return err
	}
	before := int(status.Unread)
	problems := make([]error, senders+1)
	var running sync.WaitGroup
	start := time.Now()
	for i, client := range clients {
		running.Go(func() {
			_, problems[i] = repeat(nil, per, func() error { return sendTo(ctx, client, "desk/far") })
		})
	}
	running.Go(func() { problems[senders] = waitForSignals(ctx, far, owner, before+senders*per, senders*per) })
	running.Wait()
	rate := float64(senders*per) / time.Since(start).Seconds()
	l.add(row{
		what:     "16 senders by the hub, until durable there, against what the hub syncs",
		measured: fmt.Sprintf("%.0f messages/s, the hub %.0f/s", rate, raw.rate),
		value:    rate / raw.rate, goal: ">= 0.8 x the hub", bound: 0.8, atLeast: true,
	})
	return errors.Join(problems...)
}

// waitForSignals waits for the signals of so many messages. Where they come faster than they
// are read, and some are passed over, it asks until so many are unread.
func waitForSignals(ctx context.Context, far, owner *ipc.Client, unread, signals int) error {
	for received := 0; received < signals; {
		event, more := <-far.Events()
		if !more {
			return bridge.Errorf(bridge.Unavailable, "the connection ended before all messages came")
		}
		if event.Name == api.EventMail {
			received++
		}
		if event.Name != ipc.EventLagged {
			continue
		}
		for {
			status, err := owner.Status(ctx)
			if err != nil || int(status.Unread) >= unread {
				return err
			}
			if !ipc.Pause(ctx, 10*time.Millisecond) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// present waits until so many PCs are there, and asks seldom: what it asks for is large.
func present(ctx context.Context, owner *ipc.Client, pcs int) error {
	for {
		network, err := owner.Network(ctx)
		if err != nil {
			return err
		}
		up := 0
		for _, peer := range network.Peers {
			if peer.Up {
				up++
			}
		}
		if up == pcs {
			return nil
		}
		if !ipc.Pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%d of %d PCs are there: %w", up, pcs, ctx.Err())
		}
	}
}

// idling is what a process costs that has nothing to do.
type idling struct {
	share float64 // of a core, in percent
	mib   float64
}

// idle watches processes for a while, all of them at once.
func (l *lab) idle(ctx context.Context, pids ...int) ([]idling, error) {
	watched := 2 * time.Minute // each PC speaks once in that time
	if l.quick {
		watched = 20 * time.Second
	}
	before := make([]time.Duration, len(pids))
	for i, pid := range pids {
		before[i] = spent([]int{pid})
	}
	if !ipc.Pause(ctx, watched) {
		return nil, ctx.Err()
	}
	all := make([]idling, len(pids))
	for i, pid := range pids {
		all[i] = idling{100 * (spent([]int{pid}) - before[i]).Seconds() / watched.Seconds(), resident(pid)}
	}
	return all, nil
}

// team has a crowd come to a hub at once and measures what that is for the hub, and
// for a broker that has nothing to do, beside one that is in no team.
func (l *lab) team(ctx context.Context) (err error) {
	h, err := l.startHub(ctx, "hub-of-many")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	apart, _, err := l.networked(ctx, "apart")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, apart.stop()) }()
	quiet, owner, err := l.networked(ctx, "quiet")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, quiet.stop()) }()
	if err := errors.Join(h.take(ctx, owner)); err != nil {
		return err
	}
	others := l.pcs - 1
	c, err := l.startCrowd(ctx, h, others)
	if err != nil {
		return fmt.Errorf("the crowd: %w", err)
	}
	defer func() { _ = c.stop() }() // it has nothing more to say
	l.add(row{what: fmt.Sprintf("a PC joins a team that grows to %d", l.pcs), measured: c.joining.String() + " each", value: millis(c.joining)})
	if err := l.comeAtOnce(ctx, h, c, owner, others); err != nil {
		return err
	}
	ipc.Pause(ctx, l.rest/20)
	all, err := l.idle(ctx, apart.cmd.Process.Pid, quiet.cmd.Process.Pid, h.cmd.Process.Pid)
	if err != nil {
		return err
	}
	share, mib := all[1].share-all[0].share, all[1].mib-all[0].mib
	l.add(row{what: fmt.Sprintf("an idle PC in a team of %d: processor", l.pcs), measured: fmt.Sprintf("%.2f %% of a core more than in none", share), value: share, goal: "< 0.5 %", bound: 0.5})
	l.add(row{what: fmt.Sprintf("an idle PC in a team of %d: memory", l.pcs), measured: fmt.Sprintf("%.1f MiB more than in none (%.1f)", mib, all[0].mib), value: mib, goal: "<= 10 MiB", bound: 10})
	l.add(row{what: fmt.Sprintf("the hub of %d idle PCs", l.pcs), measured: fmt.Sprintf("%.1f %% of a core, %.0f MiB", all[2].share, all[2].mib), value: all[2].share})
	each := resident(c.cmd.Process.Pid) / float64(others)
	l.add(row{what: "one client of the hub, of all of the crowd's process", measured: fmt.Sprintf("%.2f MiB", each), value: each})
	return nil
}

// comeAtOnce measures how long after the last start it takes until a broker sees
// everybody, and everybody everybody. The hub, the broker and all the clients share this
// machine: what a client of a thousand costs by itself is its share of the crowd's.
func (l *lab) comeAtOnce(ctx context.Context, h *hubProcess, c *members, owner *ipc.Client, others int) error {
	before := spent([]int{h.cmd.Process.Pid})
	start := time.Now()
	if err := c.tell("come"); err != nil {
		return err
	}
	if err := c.heard("started"); err != nil {
		return err
	}
	started := time.Now()
	if err := present(ctx, owner, others); err != nil {
		return err
	}
	seen := time.Since(started)
	if err := c.heard("all"); err != nil {
		return err
	}
	all := time.Since(started)
	used := spent([]int{h.cmd.Process.Pid}) - before
	own := spent([]int{c.cmd.Process.Pid}) - c.used
	took := started.Sub(start).Round(100 * time.Millisecond)
	l.add(row{what: fmt.Sprintf("%d PCs come at once, in %s: a broker sees all after the last start", l.pcs, took), measured: seen.Round(time.Millisecond).String(), value: seen.Seconds(), goal: "<= 10 s", bound: 10})
	l.add(row{what: "the same: each sees each after the last start", measured: all.Round(time.Millisecond).String(), value: all.Seconds(), goal: "<= 10 s", bound: 10})
	l.add(row{what: "the same: processor of the hub", measured: used.Round(10 * time.Millisecond).String(), value: used.Seconds()})
	l.add(row{what: "the same: processor of all clients but the broker, on the same machine", measured: fmt.Sprintf("%s, %s each", own.Round(10*time.Millisecond), (own / time.Duration(others)).Round(100*time.Microsecond)), value: own.Seconds()})
	return nil
}
