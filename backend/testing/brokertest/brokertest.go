// Package brokertest runs a real broker, on a real store and a real socket, for
// the tests of the doors that lead to it.
package brokertest

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/agent/clidata"
	"bridge/backend/broker"
	"bridge/backend/jobs"
	"bridge/backend/owner/prompts"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// Running is a broker that serves.
type Running struct {
	Home   config.Home // of its own, in a temporary folder
	DB     *store.DB
	Target ipc.Target // where clients reach it
	Jobs   *jobs.Jobs // of ServeJobs
	// Prompts are those of sessions; Page says whether a page is open.
	Prompts *prompts.Prompts
	Page    *atomic.Bool
	Dialogs *atomic.Int64 // how often a dialog of claude's was seen on the screen
}

// Serve runs a broker until the test ends.
func Serve(t testing.TB) Running {
	t.Helper()
	return ServeJobs(t, nil)
}

// ServeJobs runs a broker that also has delegated jobs, whose runners start starts;
// nil has none.
func ServeJobs(t testing.TB, start func(folder string) (pid int, err error)) Running {
	t.Helper()
	noEnv := func(string) string { return "" }
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	db, err := store.Open(t.Context(), home.DB(), store.Options{Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(t.Context(), broker.Options{
		Home: home, Settings: func() (config.Settings, error) { return home.Settings(noEnv) }, DB: db, Now: time.Now, Log: log, Host: "serve",
		Version: "test", URL: func() string { return "" }, Retire: func() {},
		Queue: func() (agent.Queue, error) { return agent.Queue{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	delegated := serveJobs(t, home, b, start)
	page, dialogs := &atomic.Bool{}, &atomic.Int64{}
	waits := func(folder string, pid int, sessionID string) (waits, known bool) {
		waits, known = clidata.ClaudeWaits(folder, pid, sessionID)
		if waits {
			dialogs.Add(1)
		}
		return waits, known
	}
	asking := prompts.New(prompts.Options{
		Broker: b, Settings: func() (config.Settings, error) { return home.Settings(noEnv) }, Watched: page.Load, Waits: waits,
		Answers: filepath.Join(home.Dir(), "approvals"), Open: filepath.Join(home.Dir(), config.PromptsOpen), Timing: prompts.Timing{PollInterval: 5 * time.Millisecond, Visible: 100 * time.Millisecond}, Now: time.Now, Log: log,
		SetAway: func(on bool) error {
			_, err := home.UpdateConfig(func(c *config.Config) error { c.Away = on; return nil })
			return err
		},
	})
	b.Prompt(asking)
	socket, err := ipc.Listen(home.Socket())
	if err != nil {
		t.Fatal(err)
	}
	target := ipc.Target{Socket: home.Socket(), Token: "a-token-of-sufficient-length"}
	server := ipc.NewServer(target.Token, b, log)
	go server.Serve(socket) //nolint:errcheck // ends with the listener
	t.Cleanup(func() {
		_ = socket.Close()
		server.Close()
		if delegated != nil {
			delegated.Close()
		}
		b.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return Running{Home: home, DB: db, Target: target, Jobs: delegated, Prompts: asking, Page: page, Dialogs: dialogs}
}

func serveJobs(t testing.TB, home config.Home, b *broker.Broker, start func(string) (int, error)) *jobs.Jobs {
	t.Helper()
	if start == nil {
		return nil
	}
	served, err := jobs.Open(jobs.Options{
		Home: home, Broker: b, Start: start, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Settings: func() (config.Jobs, error) { return config.Jobs{Enabled: true}, nil }, Timing: jobs.Timing{PollInterval: 5 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Delegate(served)
	served.Run()
	return served
}

// Dial connects to the broker there until the test ends.
func Dial(t testing.TB, target ipc.Target, role api.Role) *ipc.Client {
	t.Helper()
	client, err := ipc.Dial(t.Context(), target, ipc.Hello{Role: role, PID: os.Getpid(), Version: "test"})
	if err != nil {
		t.Fatalf("dial as %s: %v", role, err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
