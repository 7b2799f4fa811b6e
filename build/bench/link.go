package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/build/bench/slowlink"
)

// links measures two paired homes on this machine's loopback: how long pairing takes
// without the people, when the link is there, and how fast files go over it.
func (l *lab) links(ctx context.Context) (err error) {
	desk, deskOwner, err := l.networked(ctx, "desk")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, desk.stop()) }()
	laptop, owner, err := l.networked(ctx, "laptop")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, laptop.stop()) }()
	rounds := 10
	if l.quick {
		rounds = 3
	}
	var pairings, ups times
	for round := range rounds {
		if round > 0 {
			if err := errors.Join(owner.Unlink(ctx, "desk"), deskOwner.Unlink(ctx, "laptop")); err != nil {
				return err
			}
		}
		if pairings, err = repeat(pairings, 1, func() error { return pair(ctx, deskOwner, owner) }); err != nil {
			return fmt.Errorf("pair: %w", err)
		}
		if ups, err = repeat(ups, 1, func() error { return errors.Join(linked(ctx, owner), linked(ctx, deskOwner)) }); err != nil {
			return fmt.Errorf("link: %w", err)
		}
	}
	l.add(row{what: "pairing, without the people", measured: pairings.at(0.5).String() + " p50", value: pairings.at(0.5).Seconds(), goal: "< 2 s", bound: 2})
	l.add(row{what: "the link is up after the pairing", measured: ups.at(0.5).String() + " p50", value: millis(ups.at(0.5)), goal: "<= 300 ms", bound: 300})
	// The end of a pair takes what it was allowed: the last one is allowed anew.
	if err := l.allow("desk"); err != nil {
		return err
	}
	if err := errors.Join(l.crossings(ctx, laptop, desk), l.files(ctx, owner)); err != nil {
		return err
	}
	return l.slowFiles(ctx, deskOwner, owner)
}

// slowFiles pairs the two anew over a wire of 60 ms there and back, and measures a file
// over it, in turns with a stream over TLS on a wire of the same kind.
func (l *lab) slowFiles(ctx context.Context, inviter, owner *ipc.Client) error {
	const size = 128 << 20
	if err := errors.Join(owner.Unlink(ctx, "desk"), inviter.Unlink(ctx, "laptop"), l.allow("desk")); err != nil {
		return err
	}
	invitation, err := inviter.Invite(ctx)
	if err != nil {
		return err
	}
	wire, err := slowlink.Listen(invitation.Addresses[0], 30*time.Millisecond)
	if err != nil {
		return err
	}
	defer func() { _ = wire.Close() }() // there is one connection only
	if _, err := owner.Link(ctx, api.LinkArgs{Address: wire.Address(), Code: invitation.Code}); err != nil {
		return fmt.Errorf("pair over 60 ms: %w", err)
	}
	if err := linked(ctx, owner); err != nil {
		return err
	}
	path, err := l.large(size)
	if err != nil {
		return err
	}
	var sent, plain times
	for range 3 {
		if plain, err = repeat(plain, 1, func() error { return streamed(ctx, path, "", wire) }); err != nil {
			return fmt.Errorf("the baseline of files over 60 ms: %w", err)
		}
		if sent, err = repeat(sent, 1, func() error { return send(ctx, owner, path) }); err != nil {
			return fmt.Errorf("send a file over 60 ms: %w", err)
		}
	}
	if wire.Carried() < 3*size {
		return errors.New("the file took another way than the slow one")
	}
	l.add(row{
		what: "the same at 60 ms there and back", measured: fmt.Sprintf("%s, the stream %s", rate(size, sent), rate(size, plain)),
		value: ratio(plain.at(0.5), sent.at(0.5)), goal: ">= 0.8 x the stream", bound: 0.8, atLeast: true,
	})
	return nil
}

// large makes a file of random bytes.
func (l *lab) large(size int64) (path string, err error) {
	path = filepath.Join(l.dir, "large")
	data := make([]byte, size)
	_, _ = mathrand.NewChaCha8([32]byte{1}).Read(data) // it never fails
	return path, os.WriteFile(path, data, 0o600)
}

func rate(size int64, t times) string {
	return fmt.Sprintf("%.0f MB/s", float64(size)/1e6/t.at(0.5).Seconds())
}

// crossings measures a message to a session of the paired PC, from the call of send to
// the signal there, in turns with one to a session of the same PC.
func (l *lab) crossings(ctx context.Context, laptop, desk *running) error {
	here, err := laptop.session(ctx, "planner", "near")
	if err != nil {
		return err
	}
	peers, err := desk.session(ctx, "far")
	if err != nil {
		return err
	}
	rounds := 8
	if l.quick {
		rounds = 3
	}
	const each = 50
	var local, across times
	for range rounds {
		near, err := pushLane(ctx, here[0], here[1], "near", each, 30*time.Millisecond)
		if err != nil {
			return fmt.Errorf("the baseline of messages: %w", err)
		}
		far, err := pushLane(ctx, here[0], peers[0], "desk/far", each, 30*time.Millisecond)
		if err != nil {
			return fmt.Errorf("a message to a paired PC: %w", err)
		}
		local, across = append(local, near...), append(across, far...)
	}
	l.add(row{
		what: "a message to a paired PC, send to signal, against one here", measured: fmt.Sprintf("%s p50, %s p99; here %s", across.at(0.5), across.at(0.99), local.at(0.5)),
		value: ratio(across.at(0.5), local.at(0.5)), goal: "<= 2.5 x here", bound: 2.5,
	})
	return nil
}

// allow writes the settings of a home that takes files and messages of laptop.
func (l *lab) allow(name string) error {
	settings := fmt.Sprintf(`{"network": {"enabled": true, "name": %q, "port": 0, "files": {"allowPeers": ["laptop"]}, "messages": {"allowPeers": ["laptop"]}}}`, filepath.Base(name))
	return os.WriteFile(filepath.Join(l.dir, name, "config.json"), []byte(settings), 0o600)
}

// networked starts a broker that links with others and takes files of the other one.
func (l *lab) networked(ctx context.Context, name string) (*running, *ipc.Client, error) {
	home := filepath.Join(l.dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, nil, err
	}
	if err := l.allow(name); err != nil {
		return nil, nil, err
	}
	b, err := l.start(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	client, err := b.owner(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, b.stop())
	}
	return b, client, nil
}

func pair(ctx context.Context, inviter, joiner *ipc.Client) error {
	invitation, err := inviter.Invite(ctx)
	if err != nil {
		return err
	}
	_, err = joiner.Link(ctx, api.LinkArgs{Address: invitation.Addresses[0], Code: invitation.Code})
	return err
}

// linked waits until the one link is up.
func linked(ctx context.Context, owner *ipc.Client) error {
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
		if up == 1 {
			return nil
		}
		if !ipc.Pause(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
}

// files measures one large file, in turns with a stream over TLS of the same bytes:
// once as it is, and once with all that a transfer has to do besides.
func (l *lab) files(ctx context.Context, owner *ipc.Client) error {
	size := int64(512 << 20)
	if l.quick {
		size = 128 << 20
	}
	path, err := l.large(size)
	if err != nil {
		return err
	}
	var sent, plain, complete times
	for range 3 {
		if plain, err = repeat(plain, 1, func() error { return streamed(ctx, path, "", nil) }); err != nil {
			return fmt.Errorf("the baseline of files: %w", err)
		}
		if complete, err = repeat(complete, 1, func() error { return streamed(ctx, path, filepath.Join(l.dir, "copy"), nil) }); err != nil {
			return fmt.Errorf("the second baseline of files: %w", err)
		}
		if sent, err = repeat(sent, 1, func() error { return send(ctx, owner, path) }); err != nil {
			return fmt.Errorf("send a file: %w", err)
		}
	}
	l.add(row{
		what: "a file to a paired PC, against a TLS stream", measured: fmt.Sprintf("%s, the stream %s", rate(size, sent), rate(size, plain)),
		value: ratio(plain.at(0.5), sent.at(0.5)), goal: ">= 0.8 x the stream", bound: 0.8, atLeast: true,
	})
	l.add(row{
		what: "the same, the stream hashed before and after, and synced", measured: fmt.Sprintf("%s, the stream %s", rate(size, sent), rate(size, complete)),
		value: ratio(complete.at(0.5), sent.at(0.5)),
	})
	return nil
}

func send(ctx context.Context, owner *ipc.Client, path string) error {
	transfer, err := owner.SendFiles(ctx, api.SendFilesArgs{Host: "desk", Paths: []string{path}})
	for err == nil && !transfer.HasEnded() {
		transfer, err = owner.Transfer(ctx, api.TransferArgs{ID: transfer.ID, Seen: transfer.Revision})
	}
	if err == nil && transfer.State != api.TransferDone {
		err = bridge.Errorf(bridge.Conflict, "%s", transfer.Error)
	}
	return err
}

// streamed sends a file over a TLS connection of loopback. Where target names a file, the
// source is hashed first, what arrives is hashed and written there, and synced. It goes
// as slow a way as the wire's; nil is none.
func streamed(ctx context.Context, path, target string, wire *slowlink.Link) error {
	config, err := tlsForBench()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // there is one connection only
	received := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = errors.Join(acceptStream(conn, target), conn.Close())
		}
		received <- err
	}()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if target != "" {
		if _, err := io.Copy(sha256.New(), file); err != nil {
			return err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	address, end, err := wire.Through(listener.Addr().String())
	if err != nil {
		return err
	}
	defer end()
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{file}, make([]byte, 256<<10))
	return errors.Join(err, conn.Close(), <-received)
}

func acceptStream(conn net.Conn, target string) error {
	buf := make([]byte, 256<<10)
	if target == "" {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, buf)
		return err
	}
	file, err := os.Create(target)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(io.MultiWriter(sha256.New(), file), struct{ io.Reader }{conn}, buf)
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(target))
}

// tlsForBench is TLS as the link has it, but for whose certificates are taken.
func tlsForBench() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		InsecureSkipVerify: true, // a stream of this very process to itself
	}, err
}
