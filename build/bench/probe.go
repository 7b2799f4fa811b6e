package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/network/link"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// probe is a paired PC that asks by itself, so that a request can be timed.
type probe struct {
	pc      string // that it asks
	links   *link.Links
	self    remote.Peer
	answers chan remote.Response
}

// askStates measures what a paired PC waits for the state of its job, in turns with the
// same question on that PC itself.
func (l *lab) askStates(ctx context.Context, desk *delegation, repository, gate string) error {
	owner, err := desk.owner(ctx)
	if err != nil {
		return err
	}
	p, err := l.probe(ctx, owner)
	if err != nil {
		return err
	}
	defer p.links.Close()
	name, startFile := "claude-job-0000beac", desk.file("begun")
	request, err := json.Marshal(job.SpawnArgs{Prompt: "do touch " + startFile + "\nwait " + gate + "\nsay done", Cwd: repository, Access: "ask"})
	if err != nil {
		return err
	}
	if err := p.ask(ctx, remote.Request{Operation: remote.Spawn, Job: name, Spawn: job.Request{Kind: "claude"}}, request); err != nil {
		return fmt.Errorf("spawn: %w", err)
	}
	if _, err := until(ctx, startFile); err != nil {
		return err
	}
	trips, err := roundTrips(ctx, 200)
	if err != nil {
		return err
	}
	// Ten each second is what a pair may ask (RMT-14).
	rounds := 300
	if l.quick {
		rounds = 100
	}
	var here, across times
	for range rounds {
		if here, err = repeat(here, 1, func() error { _, err := owner.Runs(ctx, api.RunsArgs{}); return err }); err != nil {
			return fmt.Errorf("the baseline of states: %w", err)
		}
		if across, err = repeat(across, 1, func() error { return p.ask(ctx, remote.Request{Operation: remote.State, Job: name}, nil) }); err != nil {
			return fmt.Errorf("state: %w", err)
		}
		ipc.Pause(ctx, 100*time.Millisecond)
	}
	l.add(row{
		what:     "the state of a job there, against the same question here and a round trip",
		measured: fmt.Sprintf("%s p50, %s p99; here %s, the trip %s", across.at(0.5), across.at(0.99), here.at(0.5), trips.at(0.5)),
		value:    ratio(across.at(0.5)-trips.at(0.5), here.at(0.5)), goal: "<= 3 x here, and a trip", bound: 3,
	})
	return nil
}

// probe pairs one more PC with the inviter's, and returns once their link is up.
func (l *lab) probe(ctx context.Context, inviter *ipc.Client) (*probe, error) {
	folder := filepath.Join(l.dir, "probe")
	identity, err := link.OpenIdentity(folder)
	if err != nil {
		return nil, err
	}
	book, err := link.OpenPairList(folder, time.Now)
	if err != nil {
		return nil, err
	}
	invitation, err := inviter.Invite(ctx)
	if err != nil {
		return nil, err
	}
	pair, err := link.Join(ctx, identity, book, "probe", invitation.Addresses[0], invitation.Code)
	if err != nil {
		return nil, err
	}
	p := &probe{pc: pair.ID, self: remote.Peer{ID: identity.ID, Name: "probe", Supervisor: "bench"}, answers: make(chan remote.Response, 1)}
	p.links = link.NewLinks(link.Options{
		Identity: identity, Pairs: book, Enabled: func() bool { return true },
		Hello: func() link.Hello {
			return link.Hello{Protocol: link.Protocol, Name: "probe", Release: "bench", Capabilities: []string{remote.Capability}}
		},
		Handle: p.take, Changed: func(remote.PC) {}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	p.links.Refresh()
	for {
		if status, err := p.links.Of(p.pc); err != nil || status.Up {
			return p, err
		}
		if !ipc.Pause(ctx, time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// take hands on what answers.
func (p *probe) take(from remote.PC, frame remote.Frame) {
	if _, response, err := remote.Parse(frame.Payload, remote.Peer{ID: from.ID, Name: from.Name}); err == nil && response != nil {
		p.answers <- *response
	}
}

func (p *probe) ask(ctx context.Context, request remote.Request, args json.RawMessage) error {
	request.Rid, request.Peer = uuid.NewString(), p.self
	payload, err := remote.EncodeRequest(request, args)
	if err == nil {
		err = p.links.Send(ctx, p.pc, remote.Frame{Type: remote.FrameType, Payload: payload})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case response := <-p.answers:
		return response.Err
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// roundTrips measures one byte there and back over TCP of loopback.
func roundTrips(ctx context.Context, rounds int) (elapsed times, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }() // there is one connection only
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn) // its end is the other side's
			_ = conn.Close()
		}
	}()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	data := []byte{1}
	return repeat(nil, rounds, func() error {
		if _, err := conn.Write(data); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, data)
		return err
	})
}
