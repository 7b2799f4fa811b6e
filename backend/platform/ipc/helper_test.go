package ipc

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/wire"
	"bridge/backend/testing/testkit"
)

// childDials makes the test binary a process that only dials (another user's).
const childDials = "IPC_TEST_DIAL"

func TestMain(m *testing.M) {
	if socket := os.Getenv(childDials); socket != "" {
		os.Exit(dialAsChild(socket))
	}
	goleak.VerifyTestMain(m)
}

const secret = "the-token-of-this-home"

// fake is a broker whose operations are functions.
type fake struct {
	mu           sync.Mutex
	ops          map[string]func(ctx context.Context, conn *Conn, args json.RawMessage) (any, error)
	handled      []string // ops asked for
	refuse       error    // what Connected answers
	connected    chan *Conn
	disconnected chan *Conn
}

func newFake() *fake {
	f := &fake{
		ops:          map[string]func(context.Context, *Conn, json.RawMessage) (any, error){},
		connected:    make(chan *Conn, 1000),
		disconnected: make(chan *Conn, 1000),
	}
	f.on("echo", func(_ context.Context, _ *Conn, args json.RawMessage) (any, error) { return args, nil })
	return f
}

func (f *fake) on(op string, do func(ctx context.Context, conn *Conn, args json.RawMessage) (any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops[op] = do
}

// onBlock makes op wait until its context ends; began tells of each start.
func (f *fake) onBlock(op string) (began chan struct{}, ended chan struct{}) {
	began, ended = make(chan struct{}, 1000), make(chan struct{}, 1000)
	f.on(op, func(ctx context.Context, _ *Conn, _ json.RawMessage) (any, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	})
	return began, ended
}

func (f *fake) Connected(conn *Conn) (Welcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return Welcome{}, f.refuse
	}
	f.connected <- conn
	return Welcome{Version: "v1", PID: 42, URL: "http://here"}, nil
}

func (f *fake) Handle(ctx context.Context, conn *Conn, op string, args json.RawMessage) (any, error) {
	f.mu.Lock()
	do := f.ops[op]
	f.handled = append(f.handled, op)
	f.mu.Unlock()
	if do == nil {
		return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
	}
	return do(ctx, conn, args)
}

func (f *fake) Disconnected(conn *Conn) { f.disconnected <- conn }

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.handled)
}

// running is a fake broker on a real socket.
type running struct {
	*fake
	target Target
	server *Server
	stop   func()
}

// newSocket is a path short enough for a socket's name, whatever the test's and
// that of the temporary folder.
func newSocket(t testing.TB) string {
	t.Helper()
	parent := "/tmp"
	if runtime.GOOS == "windows" {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "bridge.sock")
}

func serve(t testing.TB, socket string, handler *fake) *running {
	t.Helper()
	listener, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{fake: handler, target: Target{Socket: socket, Token: secret}, server: NewServer(secret, handler, slog.New(slog.DiscardHandler))}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(listener) }()
	r.stop = sync.OnceFunc(func() {
		if err := listener.Close(); err != nil {
			t.Errorf("close the listener: %v", err)
		}
		ended := make(chan struct{})
		go func() { r.server.Close(); close(ended) }()
		within(t, "the server's end", ended)
		if err := within(t, "the end of Serve", served); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *running) dial(t testing.TB) *Client {
	t.Helper()
	client, err := Dial(t.Context(), r.target, Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "test"})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close a client: %v", err)
		}
	})
	return client
}

// call has an operation carried out that may stand in no table.
func call[R any](ctx context.Context, c *Client, op string, args any) (R, error) {
	return api.Op[any, R]{Row: api.Row{Name: op}}.Call(ctx, c, args)
}

// within waits for one value of c.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case value := <-c:
		return value
	case <-time.After(testkit.Patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// line is a connection without a client: frames as one likes.
type line struct {
	t      testing.TB
	conn   net.Conn
	reader *bufio.Reader
}

func (r *running) raw(t testing.TB) *line {
	t.Helper()
	conn, err := dial(t.Context(), r.target.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return &line{t: t, conn: conn, reader: bufio.NewReader(conn)}
}

func (l *line) write(data []byte) {
	l.t.Helper()
	if _, err := l.conn.Write(data); err != nil {
		l.t.Fatalf("write: %v", err)
	}
}

func (l *line) send(frames ...envelope) {
	l.t.Helper()
	var data []byte
	for _, e := range frames {
		var err error
		if data, err = appendFrame(data, e); err != nil {
			l.t.Fatal(err)
		}
	}
	l.write(data)
}

func (l *line) receive() (envelope, error) {
	payload, err := wire.ReadFrame(l.reader, bridge.MaxFrameBytes)
	if err != nil {
		return envelope{}, err
	}
	return wire.Parse[envelope](payload)
}

// frame is a payload behind a length that may be a lie.
func frame(size uint32, payload string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, size), payload...)
}

func helloFrame(token string, protocol int) envelope {
	raw, err := json.Marshal(Hello{Protocol: protocol, Token: token, Role: api.RoleSession})
	if err != nil {
		panic(err)
	}
	return envelope{ID: 1, Op: opHello, Args: raw}
}

// greeted is a raw connection past its hello.
func (r *running) greeted(t testing.TB) *line {
	t.Helper()
	l := r.raw(t)
	l.send(helloFrame(secret, Protocol))
	if e, err := l.receive(); err != nil || e.Error != nil {
		t.Fatalf("hello: %v %v", err, e.Error)
	}
	return l
}
