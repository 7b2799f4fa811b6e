package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/wire"
	"bridge/backend/testing/testkit"
)

func TestRMT_02_FramesCrossALink(t *testing.T) {
	a, b := newPC(t, "laptop").listen(), newPC(t, "desk").listen()
	pairUp(t, a, b)
	a.links.Refresh()
	if got := a.await(b, true); got.Release != "1.0" || !got.Can("messages-v1") || got.Can("remote-jobs-v1") {
		t.Errorf("laptop knows of desk: %+v", got)
	}
	b.await(a, true)
	body := bytes.Repeat([]byte("x"), 256<<10)
	for _, frame := range []remote.Frame{
		{Type: "remote-job", Payload: json.RawMessage(`{"n":1}`)},
		{Type: "file-stream", Payload: json.RawMessage(`{"n":2}`), Body: body},
	} {
		if err := a.links.Send(t.Context(), b.identity.ID, frame); err != nil {
			t.Fatal(err)
		}
		got := next(t, "the frame", b.frames)
		frame.BodyBytes = len(frame.Body)
		if diff := cmp.Diff(heard{remote.PC{ID: a.identity.ID, Name: "laptop"}, frame}, got, cmp.AllowUnexported(heard{})); diff != "" {
			t.Error(diff)
		}
	}
	if err := b.links.Send(t.Context(), a.identity.ID, remote.Frame{Type: "back"}); err != nil {
		t.Fatal(err)
	}
	if got := next(t, "the frame back", a.frames); got.from != (remote.PC{ID: b.identity.ID, Name: "desk"}) || got.frame.Type != "back" {
		t.Errorf("back came %+v", got)
	}
	tooLarge := remote.Frame{Type: "x", Body: make([]byte, 1<<20)}
	if err := a.links.Send(t.Context(), b.identity.ID, tooLarge); bridge.CodeOf(err) != bridge.TooLarge {
		t.Errorf("a frame over 1 MiB: %v", err)
	}
	if status, _ := a.links.Of(b.identity.ID); !status.Up {
		t.Error("a frame that was refused has ended the link")
	}
}

func TestRMT_15_WithoutALinkNothingIsKept(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	pairUp(t, a, b)
	err := a.links.Send(t.Context(), b.identity.ID, remote.Frame{Type: "x"})
	if bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), "no link to desk") {
		t.Errorf("no link: %v", err)
	}
	if err := a.links.Send(t.Context(), "somebody", remote.Frame{Type: "x"}); bridge.CodeOf(err) != bridge.Unauthorized {
		t.Errorf("no pair: %v", err)
	}
	a.links.Refresh()
	a.await(b, true)
	b.await(a, true)
	if len(b.frames) != 0 {
		t.Error("what was refused came later")
	}
}

func TestRMT_02_WhoCallsFirstDoesNotMatter(t *testing.T) {
	a, b := newPC(t, "laptop").listen(), newPC(t, "desk").listen()
	pairUp(t, a, b)
	if err := b.book.Update(a.identity.ID, func(p *Pair) { p.Address = a.address() }); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		a.links.Refresh()
		b.links.Refresh()
		// Both know of one link, and it is the same one, once each has said so.
		ours, conn := a.links.link(b.identity.ID), b.links.link(a.identity.ID)
		for ours == nil || conn == nil || ours.tls.LocalAddr().String() != conn.tls.RemoteAddr().String() {
			nextChange(a, b, "one and the same link on both sides")
			ours, conn = a.links.link(b.identity.ID), b.links.link(a.identity.ID)
		}
		if ours.dialed == conn.dialed {
			t.Errorf("of one link both say that they dialed: %v", ours.dialed)
		}
		// The next one may be up before anybody looks: what counts is that this one is gone.
		ours.close(errEnding)
		for a.links.link(b.identity.ID) == ours || b.links.link(a.identity.ID) == conn {
			nextChange(a, b, "the end of the link")
		}
	}
}

// nextChange waits until something changes on either side.
func nextChange(a, b *pc, what string) {
	a.t.Helper()
	select {
	case <-a.changed:
	case <-b.changed:
	case <-time.After(testkit.Patience):
		a.t.Fatalf("waited for %s, and nothing changed", what)
	}
}

func TestRMT_02_TheOtherSideComesBack(t *testing.T) {
	a, b := newPC(t, "laptop").listen(), newPC(t, "desk").listen()
	b.hello.Port = b.listener.listeners[0].Addr().(*net.TCPAddr).Port
	a.hello.Port = a.listener.listeners[0].Addr().(*net.TCPAddr).Port
	pairUp(t, a, b)
	a.links.Refresh()
	a.await(b, true)
	b.await(a, true)
	// desk never had laptop's address: the hello has told it.
	for {
		if pair, err := b.book.ByID(a.identity.ID); err != nil || pair.Address == a.address() {
			break
		}
		next(t, "laptop's address", b.changed)
	}
	if err := b.book.Remove(a.identity.ID); err != nil {
		t.Fatal(err)
	}
	b.links.Refresh()
	a.await(b, false)
}

func TestRMT_02_ASilentLinkEnds(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	pairUp(t, a, b)
	a.links.opts.Timing.Dead = 50 * time.Millisecond
	b.links.opts.Timing.Ping = time.Hour // and it answers no ping, for its reader is held
	held := make(chan struct{})
	b.links.opts.Handle = func(remote.PC, remote.Frame) { <-held }
	a.links.Refresh()
	c := a.links.link(b.identity.ID)
	for c == nil {
		next(t, "the link", a.changed)
		c = a.links.link(b.identity.ID)
	}
	// On a busy machine it may have been silent for so long already.
	if err := a.links.Send(t.Context(), b.identity.ID, remote.Frame{Type: "hold"}); err != nil && bridge.CodeOf(err) != bridge.Unavailable {
		t.Error(err)
	}
	next(t, "the end of the silent link", c.done)
	close(held)
	if c.why != errSilent { //nolint:errorlint // it is this very one
		t.Errorf("the link ended by %v", c.why)
	}
}

func TestRMT_02_CommandsGoBeforeFiles(t *testing.T) {
	c := &conn{
		commands: make(chan outgoing, queuedCommands), bulk: make(chan outgoing, queuedBulk),
		pong: make(chan struct{}, 1), doubt: make(chan struct{}, 1), done: make(chan struct{}),
	}
	for range 2 {
		c.bulk <- bare("file")
	}
	c.commands <- bare("command")
	var order []string
	for range 3 {
		order = append(order, string(c.next(make(chan time.Time)).Head[4:]))
	}
	if diff := cmp.Diff([]string{`{"type":"command"}`, `{"type":"file"}`, `{"type":"file"}`}, order); diff != "" {
		t.Error(diff)
	}
}

// stranger is somebody with a key of his own.
func stranger(t *testing.T) Identity {
	t.Helper()
	identity, err := OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func TestRMT_02_OnlyPairedKeysAreLetIn(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	pairUp(t, a, b)
	known := func(string) error { return nil }
	base := func() *tls.Config { return a.identity.config(linkProtocol, known) }
	foreign := stranger(t)
	for _, tt := range []struct {
		name   string
		config *tls.Config
		in     bool
	}{
		{"the paired one", base(), true},
		{"a foreign key", foreign.config(linkProtocol, known), false},
		{"no certificate", func() *tls.Config { c := base(); c.Certificates = nil; return c }(), false},
		{"TLS 1.2", func() *tls.Config {
			c := base()
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			return c
		}(), false},
		{"another protocol", foreign.config("h2", known), false},
		{"pairing without an invitation", a.identity.config(pairing.protocol, known), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
			tt.config.VerifyConnection = nil
			conn, err := tls.Dial("tcp", b.address(), tt.config)
			if err == nil { // the server's verdict on us comes after our handshake
				defer conn.Close()
				_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
				_, err = conn.Read(make([]byte, 1))
			}
			if (err == nil) != tt.in {
				t.Errorf("let in: %v (%v)", err == nil, err)
			}
		})
	}
}

// TestRMT_02_AResumedSessionOpensNothing: a key that was paired is unlinked, and
// comes again with what it kept of its last session.
func TestRMT_02_AResumedSessionOpensNothing(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	pairUp(t, a, b)
	config := a.identity.config(linkProtocol, func(string) error { return nil })
	config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	read := func() (bool, error) {
		conn, err := tls.Dial("tcp", b.address(), config)
		if err != nil {
			return false, err
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
		_, err = conn.Read(make([]byte, 1)) // takes any ticket in, too
		return conn.ConnectionState().DidResume, err
	}
	if resumed, err := read(); resumed || err != nil {
		t.Fatalf("the first time: resumed %v, %v", resumed, err)
	}
	if resumed, err := read(); resumed || err != nil {
		t.Errorf("a session was resumed: %v, %v", resumed, err)
	}
	if err := b.book.Remove(a.identity.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); err == nil {
		t.Error("a key that is not paired any more was let in")
	}
}

func TestRMT_02_AnotherKeyAtThePairsAddress(t *testing.T) {
	a, b, other := newPC(t, "laptop"), newPC(t, "desk").listen(), newPC(t, "desk").listen()
	pairUp(t, a, b)
	if err := a.book.Update(b.identity.ID, func(p *Pair) { p.Address = other.address() }); err != nil {
		t.Fatal(err)
	}
	err := a.links.dial(t.Context(), b.identity.ID)
	if bridge.CodeOf(err) != bridge.Unauthorized || !strings.Contains(err.Error(), "another PC answers") {
		t.Errorf("it was taken: %v", err)
	}
}

func TestRMT_03_Hellos(t *testing.T) {
	for _, tt := range []struct {
		name, frame string
		code        bridge.Code
	}{
		{"as it should be", `{"type":"hello","payload":{"protocol":1,"name":"x","release":"1","capabilities":["a"]}}`, ""},
		{"of a later release", `{"type":"hello","payload":{"protocol":1,"name":"x","release":"9","capabilities":["a","holograms-v1"],"colour":"red"},"more":1}`, ""},
		{"another version", `{"type":"hello","payload":{"protocol":2,"release":"9"}}`, bridge.Unsupported},
		{"no hello", `{"type":"remote-job","payload":{}}`, bridge.Invalid},
		{"no JSON", `hello`, bridge.Invalid},
		{"65 capabilities", `{"type":"hello","payload":{"protocol":1,"capabilities":[` + strings.Repeat(`"a",`, 64) + `"a"]}}`, bridge.TooLarge},
	} {
		frame, err := wire.Parse[remote.Frame]([]byte(tt.frame))
		if err == nil {
			_, err = parseHello(frame)
		}
		if bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	err := remote.ErrUpdate(remote.Status{PC: remote.PC{Name: "desk"}, Release: "0.9"}, "remote-jobs-v1")
	if want := "desk runs Bridge 0.9, which does not know remote-jobs-v1: update Bridge there"; err.Error() != want {
		t.Errorf("it says %q", err)
	}
}

// TestRMT_02_HostileBytes: a paired PC that sends what it should not ends its own link
// and nothing else.
func TestRMT_02_HostileBytes(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	pairUp(t, a, b)
	hello := `{"type":"hello","payload":{"protocol":1,"name":"x","release":"1","capabilities":[]}}`
	framed := func(text string) string { return string([]byte{0, 0, byte(len(text) >> 8), byte(len(text))}) + text }
	for name, data := range map[string]string{
		"a frame of 4 GiB":        framed(hello) + "\xff\xff\xff\xff",
		"a frame of nothing":      framed(hello) + "\x00\x00\x00\x00",
		"no JSON":                 framed(hello) + framed("nonsense"),
		"a body of 1 GiB":         framed(hello) + framed(`{"type":"x","body":1073741824}`),
		"a body below nothing":    framed(hello) + framed(`{"type":"x","body":-1}`),
		"a body of another size":  framed(hello) + framed(`{"type":"x","body":5}`) + framed("four"),
		"a hello of 1 MiB":        "\x00\x0f\xff\xff",
		"nothing of a hello":      "",
		"half a frame, then none": framed(hello) + "\x00\x00\x01\x00abc",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", b.address(), a.identity.config(linkProtocol, func(string) error { return nil }))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, data); err != nil {
				t.Fatal(err)
			}
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // until the other side has ended it
		})
	}
	if len(b.frames) != 0 {
		t.Errorf("%d frames came through", len(b.frames))
	}
	a.links.Refresh()
	a.await(b, true)
}

func TestListenSaysWhichPort(t *testing.T) {
	b := newPC(t, "desk").listen()
	port := b.listener.listeners[0].Addr().(*net.TCPAddr).Port
	_, err := Listen(context.Background(), b.identity, []string{"127.0.0.1"}, port, Doors{}, nil)
	if bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("a port that is taken: %v", err)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0c{\"type\":\"x\"}"))
	f.Add([]byte("\x00\x00\x00\x15{\"type\":\"x\",\"body\":4}\x00\x00\x00\x04four"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &conn{in: bufioReader(data)}
		for {
			frame, err := c.read(remote.MaxFrameBytes)
			if err != nil {
				return
			}
			if len(frame.Body) != frame.BodyBytes {
				t.Fatalf("a body of %d bytes that says %d", len(frame.Body), frame.BodyBytes)
			}
			_, _ = parseHello(frame)
		}
	})
}
