package ipc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// keep runs k until the test ends or stop is called.
func keep(t *testing.T, link *Reconnector) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() { link.Run(ctx); close(gone) }()
	stop = sync.OnceFunc(func() {
		cancel()
		within(t, "the end of Run", gone)
	})
	t.Cleanup(stop)
	return stop
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

func TestMSG_01_WorkGoesOnWithTheNextBroker(t *testing.T) {
	socket := newSocket(t)
	first := serve(t, socket, newFake())
	began, _ := first.onBlock("work")
	var joins atomic.Int64
	link := &Reconnector{Target: first.target, Hello: Hello{Role: api.RoleSession}, Joined: func(ctx context.Context, c *Client) error {
		joins.Add(1)
		_, err := call[string](ctx, c, "echo", "joined")
		return err
	}}
	keep(t, link)
	answers := make(chan string, 1)
	go func() {
		var answer string
		err := link.Do(soon(t), func(c *Client) (err error) {
			answer, err = call[string](t.Context(), c, "work", nil)
			return err
		})
		if err != nil {
			answer = err.Error()
		}
		answers <- answer
	}()
	within(t, "the work at the first broker", began)
	first.stop() // with the work under way

	handler := newFake()
	handler.on("work", func(context.Context, *Conn, json.RawMessage) (any, error) { return "done by the second", nil })
	serve(t, socket, handler)
	if got := within(t, "the answer", answers); got != "done by the second" {
		t.Errorf("the work ended with %q", got)
	}
	if got := joins.Load(); got != 2 {
		t.Errorf("joined %d times, want once at each broker", got)
	}
}

func TestMSG_01_ManyWorkersOverManyBrokers(t *testing.T) {
	socket := newSocket(t)
	broker := serve(t, socket, newFake())
	link := &Reconnector{Target: broker.target, Hello: Hello{Role: api.RoleSession}}
	keep(t, link)
	ctx := soon(t)
	var all sync.WaitGroup
	var done atomic.Int64
	stopped := make(chan struct{})
	for range 8 {
		all.Go(func() {
			for {
				err := link.Do(ctx, func(c *Client) error {
					_, err := call[string](ctx, c, "echo", "x")
					return err
				})
				if err != nil {
					t.Errorf("work failed: %s %v", bridge.CodeOf(err), err)
					return
				}
				done.Add(1)
				select {
				case <-stopped:
					return
				default:
				}
			}
		})
	}
	for range 5 {
		within(t, "a connection", broker.connected)
		if _, err := link.Client(ctx); err != nil {
			t.Fatal(err)
		}
		broker.stop()
		broker = serve(t, socket, newFake())
	}
	within(t, "the last connection", broker.connected)
	close(stopped)
	all.Wait()
	if done.Load() == 0 {
		t.Error("nothing was done")
	}
}

func TestMSG_01_StartsABrokerOnceWhereNoneRuns(t *testing.T) {
	socket := newSocket(t)
	var starts atomic.Int64
	var started *running
	link := &Reconnector{
		Target: Target{Socket: socket, Token: secret}, Hello: Hello{Role: api.RoleSession},
		Start: func(context.Context) (<-chan struct{}, error) {
			starts.Add(1)
			started = serve(t, socket, newFake())
			return make(chan struct{}), nil
		},
	}
	stop := keep(t, link)
	for range 5 {
		if err := link.Do(soon(t), func(c *Client) error {
			_, err := call[string](soon(t), c, "echo", "x")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := starts.Load(); got != 1 {
		t.Errorf("started %d times, want once", got)
	}
	stop()
	within(t, "the end at the broker", started.disconnected)
}

func TestTheReconnectorTellsWhyThereIsNoBroker(t *testing.T) {
	full := bridge.Errorf(bridge.Storage, "the disk is full")
	listening := serve(t, newSocket(t), newFake())
	for _, tt := range []struct {
		name string
		link *Reconnector
		code bridge.Code
	}{
		{"it cannot be started", &Reconnector{Target: Target{Socket: newSocket(t)}, Start: func(context.Context) (<-chan struct{}, error) { return nil, full }}, bridge.Storage},
		{"nobody starts one", &Reconnector{Target: Target{Socket: newSocket(t)}}, bridge.Unavailable},
		{"it belongs to another home", &Reconnector{
			Target: Target{Socket: listening.target.Socket, Token: "wrong"},
			Start: func(context.Context) (<-chan struct{}, error) {
				t.Error("a broker that refuses us is no reason to start one")
				return nil, full
			},
		}, bridge.Unauthorized},
		{"it does not let us join", &Reconnector{
			Target: listening.target,
			Joined: func(context.Context, *Client) error { return bridge.Errorf(bridge.Conflict, "the name is taken") },
		}, bridge.Conflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keep(t, tt.link)
			reason := func() error {
				tt.link.mu.Lock()
				defer tt.link.mu.Unlock()
				return tt.link.failure
			}
			for waiting := soon(t); reason() == nil; { // known after the first attempt
				if !Pause(waiting, time.Millisecond) {
					t.Fatal("no attempt failed")
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			client, err := tt.link.Client(ctx)
			if client != nil || bridge.CodeOf(err) != tt.code {
				t.Errorf("got %s %v, want code %s", bridge.CodeOf(err), err, tt.code)
			}
			worked := false
			if err := tt.link.Do(ctx, func(*Client) error { worked = true; return nil }); bridge.CodeOf(err) != tt.code || worked {
				t.Errorf("Do: %v, worked %t", err, worked)
			}
		})
	}
}

func TestTheReconnectorsEnd(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	link := &Reconnector{Target: r.target, Hello: Hello{Role: api.RoleSession}}
	stop := keep(t, link)
	client, err := link.Client(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	within(t, "the client's end", client.Done())
	within(t, "the end at the broker", r.disconnected)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := link.Client(ctx); bridge.CodeOf(err) != bridge.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %s %v", bridge.CodeOf(err), err)
	}
}

func TestTheReconnectorDoesNotRepeatWhatTheBrokerRefused(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	for code, op := range map[bridge.Code]string{bridge.Unavailable: "away", bridge.Conflict: "taken"} {
		r.on(op, func(context.Context, *Conn, json.RawMessage) (any, error) { return nil, bridge.Errorf(code, "no") })
	}
	link := &Reconnector{Target: r.target, Hello: Hello{Role: api.RoleSession}}
	keep(t, link)
	for op, code := range map[string]bridge.Code{"away": bridge.Unavailable, "taken": bridge.Conflict} {
		times := 0
		err := link.Do(soon(t), func(c *Client) error {
			times++
			_, err := call[string](soon(t), c, op, nil)
			return err
		})
		if bridge.CodeOf(err) != code || times != 1 {
			t.Errorf("%s: %v after %d times", op, err, times)
		}
	}
}

func TestTheReconnectorPassesEventsOn(t *testing.T) {
	r := serve(t, newSocket(t), newFake())
	events := make(chan Event, 10)
	link := &Reconnector{Target: r.target, Hello: Hello{Role: api.RoleSession}, Event: func(e Event) { events <- e }}
	keep(t, link)
	within(t, "the connection", r.connected).Push(api.EventMail, api.MailEvent{Session: "p"})
	if e := within(t, "the event", events); e.Name != api.EventMail {
		t.Errorf("event %+v", e)
	}
}

func TestDialPatientlyWaitsForABrokerThatStarts(t *testing.T) {
	socket := newSocket(t)
	target := Target{Socket: socket, Token: secret}
	if _, err := DialPatiently(t.Context(), target, Hello{}, 3*pollPause); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("nobody came: %v", err)
	}
	connected := make(chan error, 1)
	go func() {
		client, err := DialPatiently(t.Context(), target, Hello{}, testkit.Patience)
		if err == nil {
			err = client.Close()
		}
		connected <- err
	}()
	serve(t, socket, newFake())
	if err := within(t, "the connection", connected); err != nil {
		t.Error(err)
	}
}

func TestMSG_01_AStartedBrokerThatEndsIsStartedAgain(t *testing.T) {
	socket := newSocket(t)
	var starts atomic.Int64
	start := func(context.Context) (<-chan struct{}, error) {
		if starts.Add(1) > 1 {
			serve(t, socket, newFake())
			return make(chan struct{}), nil
		}
		ended := make(chan struct{})
		close(ended) // it lost an election that nobody won
		return ended, nil
	}
	client, err := DialOrStart(t.Context(), Target{Socket: socket, Token: secret}, Hello{}, start)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if got := starts.Load(); got != 2 {
		t.Errorf("started %d times, want 2", got)
	}
}
