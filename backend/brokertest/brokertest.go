// Package brokertest runs a real broker, on a real store and a real socket, for
// the tests of the doors that lead to it.
package brokertest

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/broker"
	"bridge/backend/config"
	"bridge/backend/ipc"
	"bridge/backend/jobs"
	"bridge/backend/store"
)

// Running is a broker that serves.
type Running struct {
	Home   config.Home // of its own, in a temporary folder
	DB     *store.DB
	Target ipc.Target // where clients reach it
	Jobs   *jobs.Jobs // of ServeJobs
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
		Version: "test", URL: func() string { return "" }, Ticket: func() string { return "" }, Retire: func() {},
		Queue: func() (agent.Queue, error) { return agent.Queue{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	delegated := serveJobs(t, home, b, start)
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
	return Running{Home: home, DB: db, Target: target, Jobs: delegated}
}

func serveJobs(t testing.TB, home config.Home, b *broker.Broker, start func(string) (int, error)) *jobs.Jobs {
	t.Helper()
	if start == nil {
		return nil
	}
	served, err := jobs.Open(jobs.Options{
		Home: home, Broker: b, Start: start, Now: time.Now, Log: slog.New(slog.DiscardHandler), Pace: jobs.Pace{Look: 5 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Delegate(served)
	served.Run()
	return served
}
