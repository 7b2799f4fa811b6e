package ipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func TestMSG_02_HelloComesFirst(t *testing.T) {
	secretOp := envelope{ID: 2, Op: "echo", Args: json.RawMessage(`"secret"`)}
	for _, tt := range []struct {
		name  string
		first envelope
		code  bridge.Code // "" when the connection just ends
	}{
		{"another operation", secretOp, bridge.Unauthorized},
		{"no operation", envelope{ID: 1}, bridge.Unauthorized},
		{"an event", envelope{Event: "mail"}, bridge.Unauthorized},
		{"a wrong token", helloFrame("wrong", Protocol), bridge.Unauthorized},
		{"no token", helloFrame("", Protocol), bridge.Unauthorized},
		{"part of the token", helloFrame(secret[:len(secret)-1], Protocol), bridge.Unauthorized},
		{"more than the token", helloFrame(secret+"x", Protocol), bridge.Unauthorized},
		{"another case of the token", helloFrame(strings.ToUpper(secret), Protocol), bridge.Unauthorized},
		{"a wrong token and a wrong protocol", helloFrame("wrong", Protocol+1), bridge.Unauthorized},
		{"a newer protocol", helloFrame(secret, Protocol+1), bridge.Unsupported},
		{"an older protocol", helloFrame(secret, Protocol-1), bridge.Unsupported},
		{"arguments of another shape", envelope{ID: 1, Op: opHello, Args: json.RawMessage(`["x"]`)}, bridge.Invalid},
		{"no arguments", envelope{ID: 1, Op: opHello}, bridge.Invalid},
		{"too large a hello", helloFrame(strings.Repeat("x", helloLimitBytes), Protocol), ""},
	} {
		t.Run("MSG-02 "+tt.name, func(t *testing.T) {
			r := serve(t, newSocket(t), newFake())
			l := r.raw(t)
			l.send(tt.first, secretOp, secretOp) // what follows must not be looked at
			answer, err := l.receive()
			if tt.code != "" {
				if err != nil || answer.Error == nil || answer.Error.Code != tt.code {
					t.Fatalf("answer %+v, %v; want code %q", answer, err, tt.code)
				}
				if answer.ID != tt.first.ID || answer.Result != nil || strings.Contains(answer.Error.Message, secret) {
					t.Errorf("answer %+v", answer)
				}
				_, err = l.receive()
			}
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection goes on: %v", err)
			}
			r.stop()
			if n := r.count(); n != 0 || len(r.connected) != 0 || len(r.disconnected) != 0 {
				t.Errorf("%d operations, %d connections, %d ends reached the broker", n, len(r.connected), len(r.disconnected))
			}
		})
	}
	t.Run("MSG-02 garbage", func(t *testing.T) {
		r := serve(t, newSocket(t), newFake())
		for _, data := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x04nope", "\x00\x00\x00\x00", "\xff\xff\xff\xff"} {
			l := r.raw(t)
			l.write([]byte(data))
			if e, err := l.receive(); err == nil && e.Error == nil {
				t.Errorf("%q was answered with %+v", data, e)
			}
		}
		if n := r.count(); n != 0 {
			t.Errorf("%d operations reached the broker", n)
		}
	})
}

func TestMSG_02_DialTellsWhy(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	for range 200 { // the refusal and the end of the connection come together
		_, err := Dial(t.Context(), Target{Socket: r.target.Socket, Token: "wrong"}, Hello{})
		if bridge.CodeOf(err) != bridge.Unauthorized {
			t.Fatalf("a wrong token: %s %v", bridge.CodeOf(err), err)
		}
	}
	_, err := Dial(t.Context(), Target{Socket: r.target.Socket + "x", Token: secret}, Hello{})
	if bridge.CodeOf(err) != bridge.Unavailable || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nobody listens: %v", err)
	}
	r.mu.Lock()
	r.refuse = bridge.Errorf(bridge.Busy, "full")
	r.mu.Unlock()
	if _, err := Dial(t.Context(), r.target, Hello{}); bridge.CodeOf(err) != bridge.Busy || err.Error() != "full" {
		t.Errorf("the broker's own refusal: %v", err)
	}
	r.stop()
	if len(r.disconnected) != 0 {
		t.Error("a refused connection was reported as ended")
	}
}

func TestTheWelcomeAndTheIdentity(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	client := r.dial(t)
	if got := client.Welcome(); got != (Welcome{Version: "v1", PID: 42, URL: "http://here"}) {
		t.Errorf("welcome %+v", got)
	}
	conn := within(t, "the connection", r.connected)
	if conn.Hello().Token != "" {
		t.Error("the token is kept")
	}
	if conn.Hello().Role != api.RoleSession || conn.Hello().Version != "test" {
		t.Errorf("hello %+v", conn.Hello())
	}
	if runtime.GOOS != "windows" && conn.PeerPID() != os.Getpid() {
		t.Errorf("the peer is process %d, not %d", conn.PeerPID(), os.Getpid())
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if within(t, "the end", r.disconnected) != conn {
		t.Error("another connection ended")
	}
	if err := client.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := call[string](t.Context(), client, "echo", "x"); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("a call after the end: %v", err)
	}
	if _, open := <-client.Events(); open {
		t.Error("events go on after the end")
	}
}

func TestAnswersComeInAnyOrder(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	second := make(chan struct{})
	r.on("first", func(ctx context.Context, _ *Conn, _ json.RawMessage) (any, error) {
		select {
		case <-second:
			return "first", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	client := r.dial(t)
	answers := make(chan string, 1)
	go func() {
		answer, err := call[string](t.Context(), client, "first", nil)
		answers <- fmt.Sprint(answer, err)
	}()
	if answer, err := call[string](t.Context(), client, "echo", "second"); err != nil || answer != "second" {
		t.Fatalf("the second: %q, %v", answer, err)
	}
	close(second)
	if got := within(t, "the first answer", answers); got != "first<nil>" {
		t.Errorf("the first: %s", got)
	}
}

// TestQuickCallsThatComeTogetherAreServedTogether: only a request that is alone is
// served where the connection is read, or it would hold up what came with it.
func TestQuickCallsThatComeTogetherAreServedTogether(t *testing.T) {
	handler := newFake()
	second := make(chan struct{})
	handler.on(api.OpSend.Name, func(ctx context.Context, _ *Conn, _ json.RawMessage) (any, error) {
		select {
		case <-second:
			return "first", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	handler.on(api.OpAck.Name, func(context.Context, *Conn, json.RawMessage) (any, error) {
		close(second)
		return "second", nil
	})
	l := serve(t, newSocket(t), handler).greeted(t)
	l.send(envelope{ID: 1, Op: api.OpSend.Name, Args: json.RawMessage("{}")}, envelope{ID: 2, Op: api.OpAck.Name, Args: json.RawMessage("{}")})
	for range 2 {
		if e, err := l.receive(); err != nil || e.Error != nil {
			t.Errorf("answer %+v, %v", e, err)
		}
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	var all sync.WaitGroup
	for c := range 4 {
		client := r.dial(t)
		for g := range 100 { // more than one connection may have under way
			all.Go(func() {
				for i := range 10 {
					want := fmt.Sprintf("%d-%d-%d", c, g, i)
					if got, err := call[string](t.Context(), client, "echo", want); err != nil || got != want {
						t.Errorf("got %q, %v; want %q", got, err, want)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

func TestErrorsOnTheWay(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	r.on("fails", func(context.Context, *Conn, json.RawMessage) (any, error) {
		return nil, errors.New("/home/me/secret is broken")
	})
	r.on("refuses", func(context.Context, *Conn, json.RawMessage) (any, error) {
		return nil, fmt.Errorf("inside: %w", bridge.WithCause(bridge.Conflict, io.EOF, "taken"))
	})
	r.on("panics", func(context.Context, *Conn, json.RawMessage) (any, error) { panic("oh") })
	r.on("unwritable", func(context.Context, *Conn, json.RawMessage) (any, error) { return func() {}, nil })
	r.on("huge", func(context.Context, *Conn, json.RawMessage) (any, error) {
		return strings.Repeat("x", bridge.MaxFrameBytes), nil
	})
	client := r.dial(t)
	for _, tt := range []struct {
		op, says string
		args     any
		code     bridge.Code
	}{
		{"fails", "the broker could not do it; its log says why", nil, bridge.Internal},
		{"refuses", "taken", nil, bridge.Conflict},
		{"panics", "panics failed inside the broker; its log says why", nil, bridge.Internal},
		{"unwritable", "the answer could not be encoded", nil, bridge.Internal},
		{"huge", "a frame needs", nil, bridge.TooLarge},
		{"unknown", `unknown operation "unknown"`, nil, bridge.Invalid},
		{opHello, `unknown operation "hello"`, Hello{Token: secret, Protocol: Protocol}, bridge.Invalid},
		{"echo", "a frame needs", strings.Repeat("x", bridge.MaxFrameBytes), bridge.TooLarge},
	} {
		_, err := call[any](t.Context(), client, tt.op, tt.args)
		if bridge.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %s %v, want %s %q", tt.op, bridge.CodeOf(err), err, tt.code, tt.says)
		}
		if got, err := call[string](t.Context(), client, "echo", "on"); err != nil || got != "on" {
			t.Fatalf("after %s the connection is at its end: %v", tt.op, err)
		}
	}
}

func TestMSG_10_AnOversizedFrameEndsItsConnectionAlone(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	other := r.dial(t)
	l := r.greeted(t)
	l.write(binary.BigEndian.AppendUint32(nil, bridge.MaxFrameBytes+1))
	if e, err := l.receive(); err != nil || e.Error == nil || e.Error.Code != bridge.TooLarge {
		t.Errorf("answer %+v, %v", e, err)
	}
	if _, err := l.receive(); err == nil {
		t.Error("the connection goes on")
	}
	if _, err := call[string](t.Context(), other, "echo", "x"); err != nil {
		t.Errorf("the other connection: %v", err)
	}
}

func TestAMalformedFrameIsAnswered(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	l := r.greeted(t)
	l.write(frame(4, "nope"))
	if e, err := l.receive(); err != nil || e.Error == nil || e.Error.Code != bridge.Invalid {
		t.Fatalf("answer %+v, %v", e, err)
	}
	l.send(envelope{ID: 5, Op: "echo", Args: json.RawMessage(`1`)})
	if e, err := l.receive(); err != nil || e.ID != 5 || string(e.Result) != "1" {
		t.Errorf("answer %+v, %v", e, err)
	}
}

func TestAGivenUpCallEndsInTheBroker(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	began, ended := r.onBlock("block")
	client := r.dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := call[string](ctx, client, "block", nil)
		failed <- err
	}()
	within(t, "the request", began)
	cancel()
	if err := within(t, "the call's end", failed); bridge.CodeOf(err) != bridge.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	within(t, "the request's end", ended)
	if _, err := call[string](t.Context(), client, "echo", "x"); err != nil {
		t.Errorf("the connection is at its end: %v", err)
	}
}

// A call may be given up in the very moment in which the broker leases mail to it.
func TestMSG_06_MailOfAGivenUpCallIsGivenBack(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	began, back := make(chan struct{}, 1), make(chan api.Nack, 1)
	r.on(api.OpWait.Name, func(ctx context.Context, _ *Conn, _ json.RawMessage) (any, error) {
		began <- struct{}{}
		<-ctx.Done()
		return api.WaitResult{Lease: &session.Lease{ID: "leased"}}, nil
	})
	r.on(api.OpNack.Name, func(_ context.Context, _ *Conn, raw json.RawMessage) (any, error) {
		var args api.Nack
		err := json.Unmarshal(raw, &args)
		back <- args
		return api.Empty{}, err
	})
	client := r.dial(t)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := client.Wait(ctx, api.WaitArgs{TimeoutMillis: 100_000})
		ended <- err
	}()
	within(t, "the request", began)
	giveUp()
	if err := within(t, "the call's end", ended); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("the call that was given up ended with %v", err)
	}
	if got := within(t, "the mail", back); got.Lease != "leased" {
		t.Errorf("given back was %q", got.Lease)
	}
}

// TestMSG_10_AFloodIsBounded sends far more requests than may be under way on
// one connection, none of which ends by itself.
func TestMSG_10_AFloodIsBounded(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	var now, most atomic.Int64
	began := make(chan struct{}, 10_000)
	r.on("block", func(ctx context.Context, _ *Conn, _ json.RawMessage) (any, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	flood := r.greeted(t)
	var frames []byte
	for i := range 1000 {
		var err error
		if frames, err = appendFrame(frames, envelope{ID: uint64(i + 2), Op: "block"}); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = flood.conn.Write(frames) }() // it may well block
	for range requestsPerConn {
		within(t, "a request of the flood", began)
	}
	other := r.dial(t)
	for range 200 {
		if _, err := call[string](t.Context(), other, "echo", "x"); err != nil {
			t.Fatalf("another client: %v", err)
		}
	}
	if got := most.Load(); got != requestsPerConn {
		t.Errorf("%d requests of one connection were under way, want %d", got, requestsPerConn)
	}
	r.stop() // ends although every place is taken
	if got := now.Load(); got != 0 {
		t.Errorf("%d requests go on after the end", got)
	}
}

func TestMSG_10_ASlowReaderStallsNobody(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	slow := r.greeted(t) // and it never reads again
	slowConn := within(t, "the slow connection", r.connected)
	pushed := make(chan bool, 1)
	go func() {
		for range 10_000 {
			slowConn.Push("big", strings.Repeat("x", 10_000))
		}
		pushed <- true
	}()
	within(t, "the end of pushes that nobody takes", pushed)
	var frames []byte
	for i := range 100 {
		var err error
		if frames, err = appendFrame(frames, envelope{ID: uint64(i + 2), Op: "echo", Args: json.RawMessage(`"` + strings.Repeat("y", 100) + `"`)}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = slow.conn.Write(frames) // where the machine is slow, its time is over by now
	other := r.dial(t)
	for range 100 {
		if _, err := call[string](t.Context(), other, "echo", "x"); err != nil {
			t.Fatalf("another client: %v", err)
		}
	}
}

func TestTheServersEndEndsEverything(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	began, ended := r.onBlock("block")
	client := r.dial(t)
	failed := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := call[string](t.Context(), client, "block", nil)
			failed <- err
		}()
		within(t, "a request", began)
	}
	anonymous := r.raw(t) // says nothing
	r.stop()
	for range 10 {
		if err := within(t, "a call's end", failed); bridge.CodeOf(err) != bridge.Unavailable {
			t.Errorf("a call ended with %v", err)
		}
		within(t, "a request's end", ended)
	}
	within(t, "the client's end", client.Done())
	if _, err := anonymous.receive(); err == nil {
		t.Error("the anonymous connection goes on")
	}
	if got := len(r.disconnected); got != 1 {
		t.Errorf("%d ends were reported, want 1", got)
	}
	if _, err := Dial(t.Context(), r.target, Hello{}); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("dialled after the end: %v", err)
	}
}

func TestDisconnectedComesAfterTheLastRequest(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	var open atomic.Int64
	began := make(chan struct{}, 10)
	release := make(chan struct{})
	r.on("work", func(ctx context.Context, _ *Conn, _ json.RawMessage) (any, error) {
		open.Add(1)
		defer open.Add(-1)
		began <- struct{}{}
		<-ctx.Done()
		<-release // tidying up takes its time
		return nil, ctx.Err()
	})
	l := r.greeted(t)
	l.send(envelope{ID: 2, Op: "work"}, envelope{ID: 3, Op: "work"})
	within(t, "the first", began)
	within(t, "the second", began)
	if err := l.conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.disconnected:
		t.Error("reported as ended with requests under way")
	default:
	}
	close(release)
	within(t, "the end", r.disconnected)
	if n := open.Load(); n != 0 {
		t.Errorf("%d requests were under way at the end", n)
	}
}

func TestTheSocketIsForItsOwnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a pipe has a security descriptor instead of a mode")
	}
	socket := newSocket(t)
	if err := os.WriteFile(socket, []byte("left behind"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := serve(t, socket, newFake())
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("the socket's mode is %v", info.Mode())
	}
	r.dial(t)
}

func TestEventsReachTheClient(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	client := r.dial(t)
	conn := within(t, "the connection", r.connected)
	for i := range 10 {
		conn.Push(api.EventRevision, api.RevisionEvent{Revision: int64(i)})
	}
	for i := range 10 {
		event := within(t, "an event", client.Events())
		if want := fmt.Sprintf(`{"revision":%d}`, i); event.Name != api.EventRevision || !bytes.Equal(event.Data, []byte(want)) {
			t.Errorf("event %s %s, want %s", event.Name, event.Data, want)
		}
	}
}

var hookCall = session.HookCall{Kind: bridge.Codex, HostEvent: "Stop", SessionID: "h1"}

// A hook's one call leaves together with its hello, and is heard only when the
// hello was.
func TestMSG_02_AHooksCallComesWithItsHello(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		fails       error
		client      bool
		code        bridge.Code
	}{
		{name: "heard", token: secret, client: true},
		{name: "a wrong token", token: "wrong", code: bridge.Unauthorized},
		{name: "a call that fails", token: secret, fails: bridge.Errorf(bridge.Storage, "no"), client: true, code: bridge.Storage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.on(api.OpHook.Name, func(_ context.Context, _ *Conn, args json.RawMessage) (any, error) {
				var got session.HookCall
				if err := json.Unmarshal(args, &got); err != nil || got.SessionID != "h1" || got.Kind != bridge.Codex {
					t.Errorf("the broker heard %s, %v", args, err)
				}
				return session.HookReply{Text: "mail"}, tt.fails
			})
			r := serve(t, newSocket(t), f)
			client, reply, err := DialHook(t.Context(), Target{Socket: r.target.Socket, Token: tt.token}, Hello{Role: api.RoleHook, PID: 1}, hookCall)
			if (client != nil) != tt.client || tt.code == "" && err != nil || tt.code != "" && bridge.CodeOf(err) != tt.code {
				t.Fatalf("client %v, %+v, %v; want code %q", client != nil, reply, err, tt.code)
			}
			if client == nil {
				if f.count() != 0 {
					t.Error("the call was looked at without a good hello")
				}
				return
			}
			defer client.Close()
			if tt.fails == nil && (reply.Text != "mail" || client.Welcome().PID != 42) {
				t.Errorf("%+v, %+v", reply, client.Welcome())
			}
			if _, err := call[string](t.Context(), client, "echo", "again"); err != nil { // the connection goes on
				t.Error(err)
			}
		})
	}
}

func TestMSG_02_AHooksCallOfABrokerThatDoesNotAnswer(t *testing.T) {
	f := newFake()
	began, _ := f.onBlock(api.OpHook.Name)
	r := serve(t, newSocket(t), f)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	client, _, err := DialHook(ctx, r.target, Hello{Role: api.RoleHook}, hookCall)
	if bridge.CodeOf(err) != bridge.Unavailable || errors.Is(err, ErrSilent) {
		t.Errorf("given up: %v", err)
	}
	if client != nil { // the hello's answer may have been read, or not yet
		client.Close()
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if client, _, err = DialHook(ctx, r.target, Hello{Role: api.RoleHook}, hookCall); client != nil || bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("too late from the start: %v", err)
	}
}

func TestMSG_02_AHooksCallWhereNobodyListens(t *testing.T) {
	client, _, err := DialHook(t.Context(), Target{Socket: newSocket(t)}, Hello{Role: api.RoleHook}, hookCall)
	if client != nil || bridge.CodeOf(err) != bridge.Unavailable || errors.Is(err, ErrSilent) {
		t.Errorf("%v, %v", client, err)
	}
}
