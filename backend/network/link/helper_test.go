package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/core/remote"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pc is one PC of a test: its own folder, book and door, on loopback.
type pc struct {
	t        *testing.T
	name     string
	identity Identity
	book     *PairList
	listener *Listener
	links    *Links

	invitation chan *Invitation // capacity 1: what is open
	paired     chan error       // what came of each who joined
	changed    lifecycle.Signal // look again
	frames     chan heard
	hello      Hello
	enabled    bool
}

type heard struct {
	from  remote.PC
	frame remote.Frame
}

func newPC(t *testing.T, name string) *pc {
	t.Helper()
	folder := t.TempDir()
	p := &pc{
		t: t, name: name, invitation: make(chan *Invitation, 1), paired: make(chan error, 2000), changed: lifecycle.NewSignal(), frames: make(chan heard, 1000),
		hello: Hello{Protocol: Protocol, Name: name, Release: "1.0", Capabilities: []string{"messages-v1"}}, enabled: true,
	}
	p.invitation <- nil
	var err error
	if p.identity, err = OpenIdentity(folder); err != nil {
		t.Fatal(err)
	}
	if p.book, err = OpenPairList(folder, time.Now); err != nil {
		t.Fatal(err)
	}
	p.links = NewLinks(Options{
		Identity: p.identity, Pairs: p.book, Enabled: func() bool { return p.enabled }, Hello: func() Hello { return p.hello },
		Handle:  func(from remote.PC, frame remote.Frame) { p.frames <- heard{from, frame} },
		Changed: func(remote.PC) { p.changed.Notify() },
		Now:     time.Now, Log: slog.New(slog.DiscardHandler),
		Timing: Timing{Ping: 20 * time.Millisecond, Dead: 5 * time.Second, Doubt: time.Second, Retry: 2 * time.Millisecond, MaxRetry: 20 * time.Millisecond},
	})
	t.Cleanup(p.links.Close)
	return p
}

// listen opens the PC's port.
func (p *pc) listen() *pc {
	p.t.Helper()
	var err error
	p.listener, err = Listen(p.t.Context(), p.identity, []string{"127.0.0.1"}, 0, Doors{
		Known:      func(id string) error { _, err := p.book.ByID(id); return err },
		Linked:     p.links.Take,
		Invitation: p.open,
		Joining: func(conn *tls.Conn, invitation *Invitation) {
			_, err := invitation.Admit(conn, p.identity, p.book, p.name)
			p.paired <- err
		},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.listener.Close)
	return p
}

func (p *pc) open() *Invitation {
	invitation := <-p.invitation
	p.invitation <- invitation
	return invitation
}

// invite opens an invitation.
func (p *pc) invite(now func() time.Time) *Invitation {
	<-p.invitation
	invitation := NewInvitation(now)
	p.invitation <- invitation
	return invitation
}

func (p *pc) address() string { return p.listener.Addresses()[0] }

func (p *pc) join(other *pc, code string) (Pair, error) {
	return Join(context.Background(), p.identity, p.book, p.name, other.address(), code)
}

// pairUp makes a pair of two, of which the second listens.
func pairUp(t *testing.T, a, b *pc) {
	t.Helper()
	if _, err := a.join(b, b.invite(time.Now).Code); err != nil {
		t.Fatal(err)
	}
	if err := next(t, "the end of the pairing", b.paired); err != nil {
		t.Fatal(err)
	}
}

// await waits until the link to another PC is up, or is down.
func (p *pc) await(other *pc, up bool) remote.Status {
	p.t.Helper()
	for {
		status, err := p.links.Of(other.identity.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		if status.Up == up {
			return status
		}
		next(p.t, fmt.Sprintf("%s's link with up = %v", p.name, up), p.changed)
	}
}

// next waits for what comes next; what names it where nothing does.
func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case came := <-from:
		return came
	case <-time.After(testkit.Patience):
		t.Fatalf("waited for %s, and nothing came", what)
		panic("unreachable")
	}
}

func bufioReader(data []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(data)) }
