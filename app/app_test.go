package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/doors/daemon"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/testing/testkit"
)

func noEnv(string) string { return "" }

func daemonOptions(t *testing.T) daemon.Options {
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
	port := 0
	return daemon.Options{
		Home: home, Getenv: noEnv, Port: &port, Version: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Page: fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}},
	}
}

func TestDSK_02_OneAppPerHome(t *testing.T) {
	opts := daemonOptions(t)
	shown := lifecycle.NewSignal()
	first, err := claim(t.Context(), opts, false, shown)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []bool{true, false} {
		if second, err := claim(t.Context(), opts, hidden, nil); !errors.Is(err, errShown) || second != nil {
			t.Errorf("a second app, hidden %v: %v, %v", hidden, second, err)
		}
		select {
		case <-shown:
			if hidden {
				t.Error("a hidden start asked for the window")
			}
		default:
			if !hidden {
				t.Error("a second start did not ask for the window")
			}
		}
	}
	other, err := claim(t.Context(), daemonOptions(t), false, nil)
	if err != nil {
		t.Errorf("an app of another home: %v", err)
	} else if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	next, err := claim(t.Context(), opts, false, nil)
	if err != nil {
		t.Fatalf("the next app: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

func TestDSK_02_AnAppServesOneOperationAndNeverWaitsForItsWindow(t *testing.T) {
	shown := lifecycle.NewSignal()
	i := &instance{restarted: shown}
	for range 2 { // the second while the first is not seen yet
		if _, err := i.Handle(t.Context(), nil, api.OpShow.Name, nil); err != nil || len(shown) != 1 {
			t.Errorf("show: %d signals, %v", len(shown), err)
		}
	}
	if _, err := i.Handle(t.Context(), nil, "status", nil); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("another operation: %v", err)
	}
}

func TestJOB_11_OnlyTheOwnersSecondStartShowsTheWindow(t *testing.T) {
	opts := daemonOptions(t)
	first, err := claim(t.Context(), opts, false, make(chan struct{}, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	token, err := opts.Home.ExistingToken()
	if err != nil {
		t.Fatal(err)
	}
	target := ipc.Target{Socket: opts.Home.Window().Socket, Token: string(token)}
	for _, role := range []api.Role{"session", "plugin", "hook", "dashboard", ""} {
		client, err := ipc.Dial(t.Context(), target, ipc.Hello{Role: role, PID: 1, Version: "test"})
		if err == nil {
			client.Close()
		}
		if bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("as %q: %v; want denied", role, err)
		}
	}
}

func TestDSK_01_AnotherProgramsPortDoesNotKeepBridgeFromWorking(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	opts := daemonOptions(t)
	opts.Port = &taken.Addr().(*net.TCPAddr).Port
	ctx, stop := context.WithCancel(t.Context())
	var said []string
	ended, err := newLink(opts, func() {}, func(err error) { said = append(said, err.Error()) }).startBroker(ctx)
	stop()
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	if len(said) != 1 || !strings.Contains(said[0], "in use by another program: the dashboard is at http://127.0.0.1:") {
		t.Errorf("it said %q", said)
	}
}

// The ticket opens the dashboard of the broker that this process carries.
func TestAUT_04_TheTicketComesOverTheLocalSocket(t *testing.T) {
	opts := daemonOptions(t)
	l := newLink(opts, func() {}, func(error) {})
	ended := make(chan struct{})
	ctx, stop := contextOf(t)
	go func() {
		defer close(ended)
		l.run(ctx)
	}()
	ticket, err := l.ticket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var f Facts
	l.look(t.Context(), &f)
	if f.Problem != "" || !strings.HasPrefix(ticket, f.URL+"/launch?key=") {
		t.Errorf("ticket %q of the broker at %q (%s)", ticket, f.URL, f.Problem)
	}
	again, err := l.ticket(t.Context())
	if err != nil || again == ticket {
		t.Errorf("the same ticket twice: %v", err)
	}
	stop()
	<-ended
	d, err := daemon.Start(t.Context(), hosted(opts))
	if err != nil {
		t.Fatalf("the home is not free after the end: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// The tray hears of jobs over the local link, of those that were given too where no
// more may be.
func TestDSK_07_TheAppHearsOfJobs(t *testing.T) {
	want := []Job{{Name: "codex-job-0a1b2c3d", State: job.Finished, EndedAt: time.UnixMilli(1_800_000_000_000)}}
	for name, config := range map[string]string{"enabled": `{"jobs":{"enabled":true}}`, "not enabled": `{"jobs":{"enabled":false}}`} {
		t.Run("DSK-07 "+name, func(t *testing.T) {
			opts := daemonOptions(t)
			opts.RunJob = func(string) (int, error) { return 0, errors.New("nothing is to be started here") }
			if err := opts.Home.Ensure(); err != nil {
				t.Fatal(err)
			}
			registry := `{"version":4,"jobs":[{"name":"codex-job-0a1b2c3d","agent":"codex","prompt":"Count.","owner":"api","status":"done","run":1,"finishedAt":1800000000000,"delivered":true}]}`
			for file, content := range map[string]string{"config.json": config, "jobs.json": registry} {
				if err := os.WriteFile(filepath.Join(opts.Home.Dir(), file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			l := newLink(opts, func() {}, func(error) {})
			ctx, stop := contextOf(t)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				l.run(ctx)
			}()
			if _, err := l.reach(t.Context()); err != nil {
				t.Fatal(err)
			}
			var f Facts
			l.look(t.Context(), &f)
			if diff := cmp.Diff(want, f.Jobs); diff != "" || f.Problem != "" {
				t.Errorf("%s %s", f.Problem, diff)
			}
			stop()
			<-ended
		})
	}
}

// A home that cannot be used is said in a sentence, and used once it can be.
func TestDSK_01_AnUnusableHomeIsSaidAndTriedAgain(t *testing.T) {
	opts := daemonOptions(t)
	if err := os.WriteFile(opts.Home.Dir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLink(opts, func() {}, func(error) {})
	ctx, stop := contextOf(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx)
	}()
	if _, err := l.ticket(t.Context()); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("ticket of a home that is a file: %v", err)
	}
	if err := os.Remove(opts.Home.Dir()); err != nil {
		t.Fatal(err)
	}
	l.retry()
	deadline := time.Now().Add(testkit.Patience)
	for {
		if _, err := l.ticket(t.Context()); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("never connected: %v", err)
		}
	}
	stop()
	<-ended
}

func TestDSK_04_AnEntryThatCanNotBeWrittenSafelyIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the entry is a shortcut there")
	}
	for _, path := range []string{`/opt/a"b`, "/opt/a`b", "/opt/$HOME/b", `/opt/a\b`, "/opt/100%/b", "/opt/a\nb"} {
		a := Autostart{name: "bridge-test", command: []string{path, "--hidden"}}
		if a.Unavailable() == "" { // not tried then: it would be written into the real home
			t.Errorf("%q is taken", path)
		} else if err := a.Set(true); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("%q: %v", path, err)
		}
	}
	a := Autostart{name: "bridge-test", command: []string{"/opt/a b/bridge-desktop", "--hidden", "--home", "/home/zoë"}}
	if why := a.Unavailable(); why != "" {
		t.Errorf("%v: %s", a.command, why)
	}
}

func TestDSK_04_AnEntryThatWasSwitchedOffIsNotOn(t *testing.T) {
	for text, off := range map[string]bool{
		"[Desktop Entry]\nX-GNOME-Autostart-enabled=true\n":   false,
		"[Desktop Entry]\nHidden=true\n":                      true,
		"[Desktop Entry]\n X-GNOME-Autostart-enabled=false\n": true,
	} {
		if switchedOff([]byte(text)) != off {
			t.Errorf("%q: want %v", text, off)
		}
	}
}

// Mail writes to the home all day: only what may change a look's answer counts.
func TestDSK_02_MailWakesNoLook(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"bridge.db", fsnotify.Write, false},
		{"bridge.db", fsnotify.Remove, true},
		{"bridge.db-wal", fsnotify.Create, false},
		{"bridge.sock", fsnotify.Create, false},
		{"jobs.json", fsnotify.Write, true},
		{"token", fsnotify.Chmod, true},
		{"20261121T120000Z", fsnotify.Create, true},
	} {
		if got := telling(fsnotify.Event{Name: "/home/" + tt.name, Op: tt.op}); got != tt.want {
			t.Errorf("%s of %s: %v, want %v", tt.op, tt.name, got, tt.want)
		}
	}
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	return ctx, stop
}

func hosted(opts daemon.Options) daemon.Options {
	opts.Host = "desktop"
	return opts
}
