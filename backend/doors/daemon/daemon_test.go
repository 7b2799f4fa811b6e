package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noEnv(string) string { return "" }

func newHome(t *testing.T) config.Home {
	t.Helper()
	dir, err := os.MkdirTemp("", "b") // t.TempDir is too long for a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home, err := config.ResolveHome(filepath.Join(dir, "h"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func options(home config.Home, host string) Options {
	port := 0
	return Options{
		Home: home, Getenv: noEnv, Host: host, Port: &port, Version: "test", Now: time.Now,
		Page: fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}},
		Log:  slog.New(slog.DiscardHandler),
	}
}

func start(t *testing.T, opts Options) *Daemon {
	t.Helper()
	d, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("start as %s: %v", opts.Host, err)
	}
	return d
}

func end(t *testing.T, d *Daemon) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func join(t *testing.T, home config.Home, name string) *ipc.Client {
	t.Helper()
	token, err := home.ExistingToken()
	if err != nil {
		t.Fatal(err)
	}
	client, err := ipc.Dial(t.Context(), ipc.Target{Socket: home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Register(t.Context(), api.Register{Kind: bridge.Claude, Name: name, SessionID: "host-" + name, Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	return client
}

// done waits for what a channel says within a test's patience.
func done(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(testkit.Patience):
		t.Fatalf("never: %s", what)
	}
}

// leaves reports whether the daemon wants to end. It serves on until it is closed.
func leaves(d *Daemon) bool {
	select {
	case <-d.Done():
		return true
	default:
		return false
	}
}

// Everything that a daemon began ends with it, also with sessions that wait and
// more requests under way than one connection may have. TestMain looks for what
// is left.
func TestMSG_01_CloseEndsEverything(t *testing.T) {
	home := newHome(t)
	d := start(t, options(home, "serve"))
	client := join(t, home, "alpha")
	const waits = 100 // more than a connection's requests at once
	ended := make(chan error, waits)
	for range waits {
		go func() {
			_, err := client.Wait(t.Context(), api.WaitArgs{TimeoutMillis: 110_000})
			ended <- err
		}()
	}
	other := join(t, home, "beta")
	for range 50 { // each round trip gives the waits time to arrive
		if _, err := other.Peers(t.Context(), api.Caller{}); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		end(t, d)
	}()
	done(t, "the daemon ends although sessions wait", closed)
	for range waits {
		if err := <-ended; bridge.CodeOf(err) != bridge.Unavailable {
			t.Errorf("a wait ended with %v, want %s", err, bridge.Unavailable)
		}
	}
	client.Close()
	other.Close()
}

func TestMSG_01_OneBrokerPerHome(t *testing.T) {
	home := newHome(t)
	first := start(t, options(home, "serve"))
	for _, host := range []string{"serve", broker.HostBackground, "desktop", "service"} {
		second, err := Start(t.Context(), options(home, host))
		if bridge.CodeOf(err) != bridge.Conflict || second != nil {
			t.Errorf("a second broker as %s: %v, %v, want none and %s", host, second, err, bridge.Conflict)
		}
	}
	client := join(t, home, "alpha") // the first is unharmed
	client.Close()
	end(t, first)
	end(t, start(t, options(home, "serve")))
}

// A person's broker takes the place of a background one, with its mail.
func TestMSG_01_TakeOver(t *testing.T) {
	home := newHome(t)
	background := start(t, options(home, broker.HostBackground))
	left := make(chan struct{})
	go func() { // as the command line does
		defer close(left)
		<-background.Done()
		end(t, background)
	}()
	client := join(t, home, "alpha")
	sent, err := client.Send(t.Context(), api.SendArgs{To: "alpha", Body: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, options(home, "serve"))
	done(t, "the background broker has left", left)
	done(t, "its connections have ended", client.Done())
	client.Close()
	again := join(t, home, "alpha")
	box, err := again.Inbox(t.Context(), api.InboxArgs{})
	if err != nil || len(box.Messages) != 1 || box.Messages[0].ID != sent.ID {
		t.Errorf("inbox after the change: %+v, %v", box, err)
	}
	again.Close()
	end(t, d)
}

// briefly holds the election for several background brokers, one after the other: each is
// there at once when the one before it leaves.
type briefly struct {
	server  *ipc.Server
	retired chan struct{}
}

func (briefly) Connected(*ipc.Conn) (ipc.Welcome, error) { return ipc.Welcome{Version: "test"}, nil }
func (briefly) Disconnected(*ipc.Conn)                   {}

func (b briefly) Handle(_ context.Context, _ *ipc.Conn, op string, _ json.RawMessage) (any, error) {
	if op == api.OpRetire.Name {
		b.retired <- struct{}{}
	}
	return api.Empty{}, nil
}

// Sessions start a background broker as soon as one has left: it is asked to leave, too,
// and so is the next.
func TestMSG_01_TheNextBackgroundBrokerIsAskedToLeaveToo(t *testing.T) {
	home := newHome(t)
	end(t, start(t, options(home, "serve"))) // which leaves the token
	token, err := home.ExistingToken()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := sqlitex.AcquireLock(t.Context(), home.BrokerLock())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		var failed error
		for range 3 {
			socket, err := ipc.Listen(home.Socket())
			if err != nil {
				failed = errors.Join(failed, err)
				break
			}
			session := briefly{retired: make(chan struct{}, 1)}
			session.server = ipc.NewServer(string(token), session, slog.New(slog.DiscardHandler))
			serving := make(chan error, 1)
			go func() { serving <- session.server.Serve(socket) }()
			select {
			case <-session.retired:
			case <-time.After(testkit.Patience):
				failed = errors.Join(failed, errors.New("nobody asked it to leave"))
			}
			failed = errors.Join(failed, socket.Close())
			session.server.Close()
			failed = errors.Join(failed, <-serving)
		}
		ended <- errors.Join(failed, lock.Release())
	}()
	end(t, start(t, options(home, "serve")))
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// A broker that holds the election and takes no calls any more, or none yet, is
// waited for.
func TestMSG_01_ABrokerThatIsEndingIsWaitedFor(t *testing.T) {
	home := newHome(t)
	end(t, start(t, options(home, "serve"))) // which leaves the token
	lock, err := sqlitex.AcquireLock(t.Context(), home.BrokerLock())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := ipc.Listen(home.Socket())
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { // it ends as the call comes
		call, err := socket.Accept()
		if err == nil {
			err = errors.Join(call.Close(), socket.Close())
		}
		released <- errors.Join(err, lock.Release())
	}()
	end(t, start(t, options(home, "serve")))
	if err := <-released; err != nil {
		t.Fatal(err)
	}
}

// A start that fails leaves nothing behind that keeps the next from starting.
func TestMSG_01_AFailedStartLeavesNothing(t *testing.T) {
	home := newHome(t)
	end(t, start(t, options(home, "serve")))
	secret, err := os.ReadFile(home.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	for name, hurt := range map[string]struct {
		path string
		text string
	}{
		"settings": {home.ConfigFile(), "{"},
		"token":    {home.TokenFile(), "x"},
		"store":    {home.DB(), strings.Repeat("no database ", 500)},
	} {
		t.Run(name, func(t *testing.T) {
			before, readErr := os.ReadFile(hurt.path)
			if err := os.WriteFile(hurt.path, []byte(hurt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := Start(t.Context(), options(home, "serve"))
			if err == nil || d != nil {
				t.Errorf("started with a damaged %s: %v, %v", name, d, err)
			}
			if err != nil && strings.Contains(err.Error(), strings.TrimSpace(string(secret))) {
				t.Errorf("the error tells the token: %v", err)
			}
			if readErr != nil {
				err = os.Remove(hurt.path)
			} else {
				err = os.WriteFile(hurt.path, before, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			end(t, start(t, options(home, "serve")))
		})
	}
}

// A background broker leaves when nothing needs it, and not before.
func TestMSG_01_ABackgroundBrokerLeavesWhenIdle(t *testing.T) {
	home := newHome(t)
	opts := options(home, broker.HostBackground)
	opts.IdleExit = 50 * time.Millisecond
	d := start(t, opts)
	client := join(t, home, "alpha")
	for leaves(d) { // it did before the session came: that took longer
		client.Close()
		end(t, d)
		if opts.IdleExit *= 2; opts.IdleExit > time.Minute {
			t.Fatal("it leaves at once")
		}
		d = start(t, opts)
		client = join(t, home, "alpha")
	}
	select {
	case <-d.Done():
		t.Error("it left although a session needs it")
	case <-time.After(10 * opts.IdleExit):
	}
	client.Close()
	done(t, "it leaves", d.Done())
	end(t, d)
	if _, err := os.Stat(home.Socket()); !os.IsNotExist(err) {
		t.Errorf("its socket is still there: %v", err)
	}
}

// A background broker whose port is taken serves on another; a person is told.
func TestMSG_01_APortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	home := newHome(t)
	opts := options(home, "serve")
	opts.Port = &port
	if d, err := Start(t.Context(), opts); bridge.CodeOf(err) != bridge.Conflict || d != nil {
		t.Errorf("serve on a taken port: %v, want %s", err, bridge.Conflict)
	}
	if _, err := os.Stat(home.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the home was made before the port was there: %v", err)
	}
	opts.Host = broker.HostBackground
	end(t, start(t, opts))
}

func TestMSG_12_AShortAgeIsLookedAtMoreOften(t *testing.T) {
	for _, tt := range []struct {
		name              string
		ttl, queued, want time.Duration
	}{
		{"the defaults", 7 * 24 * time.Hour, 24 * time.Hour, time.Minute},
		{"both off", 0, 0, time.Minute},
		{"a short queue age", 7 * 24 * time.Hour, 20 * time.Second, 5 * time.Second},
		{"a short time to live", 8 * time.Second, 0, 2 * time.Second},
		{"an age below what is worth a look", time.Millisecond, time.Hour, time.Second},
	} {
		if rest := expireRest(config.Settings{MessageTTL: tt.ttl, QueuedMailMaxAge: tt.queued}); rest != tt.want {
			t.Errorf("%s: a rest of %s, want %s", tt.name, rest, tt.want)
		}
	}
}
