package ipc

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// piped serves one end of a pipe and returns the other: in a synctest bubble
// time limits pass at once. ended is closed with the connection.
func piped(t *testing.T, handler *fake) (l *line, ended chan struct{}) {
	t.Helper()
	server := NewServer(secret, handler, slog.New(slog.DiscardHandler))
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() }) // a test may have closed it
	ended = make(chan struct{})
	go func() {
		server.serve(newConn(far, job.Process{}))
		close(ended)
	}()
	return &line{t: t, conn: near, reader: bufio.NewReader(near)}, ended
}

func TestMSG_02_AnAnonymousConnectionIsCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"it says nothing", nil},
		{"it says half a length", []byte{0, 0}},
		{"it says half a hello", frame(100, "{")},
	} {
		t.Run("MSG-02 "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := newFake()
				l, ended := piped(t, handler)
				start := time.Now()
				if tt.data != nil {
					l.write(tt.data)
				}
				<-ended
				if took := time.Since(start); took != helloTimeout {
					t.Errorf("cut after %v, want %v", took, helloTimeout)
				}
				if len(handler.connected)+len(handler.disconnected) != 0 {
					t.Error("the broker heard of it")
				}
			})
		})
	}
	t.Run("MSG-02 one that said hello may be silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, ended := piped(t, newFake())
			l.send(helloFrame(secret, Protocol))
			if _, err := l.receive(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
				t.Error("cut")
			case <-time.After(24 * time.Hour):
			}
			if err := l.conn.Close(); err != nil {
				t.Fatal(err)
			}
			<-ended
		})
	})
}

func TestMSG_10_ASlowReaderIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newFake()
		l, ended := piped(t, handler)
		l.send(helloFrame(secret, Protocol))
		if _, err := l.receive(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		(<-handler.connected).Push("x", 1)
		<-ended
		if took := time.Since(start); took != writeTimeout {
			t.Errorf("cut after %v, want %v", took, writeTimeout)
		}
		<-handler.disconnected
	})
}

func TestMSG_10_AReaderWhoNeverTakesItsAnswerIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newFake()
		l, ended := piped(t, handler)
		l.send(helloFrame(secret, Protocol))
		if _, err := l.receive(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		l.send(envelope{ID: 2, Op: "echo", Args: json.RawMessage(`1`)})
		<-ended
		if took := time.Since(start); took != writeTimeout {
			t.Errorf("cut after %v, want %v", took, writeTimeout)
		}
	})
}

// TestMSG_03_AConnectionThatEndsBeforeItsWelcomeHasLeft: the broker heard of it,
// so it must hear of its end.
func TestMSG_03_AConnectionThatEndsBeforeItsWelcomeHasLeft(t *testing.T) {
	for name, leave := range map[string]func(l *line){
		"it closes":   func(l *line) { _ = l.conn.Close() },
		"it is stuck": func(*line) {},
	} {
		t.Run("MSG-03 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := newFake()
				l, ended := piped(t, handler)
				l.send(helloFrame(secret, Protocol))
				conn := <-handler.connected
				leave(l)
				<-ended
				select {
				case got := <-handler.disconnected:
					if got != conn {
						t.Error("another connection ended")
					}
				default:
					t.Error("the broker was not told of the end")
				}
			})
		})
	}
}

func TestMSG_10_DroppedEventsAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newFake()
		l, ended := piped(t, handler)
		l.send(helloFrame(secret, Protocol))
		if _, err := l.receive(); err != nil {
			t.Fatal(err)
		}
		conn := <-handler.connected
		conn.Push("n", 0)
		synctest.Wait() // it is being written, and the queue is empty
		const dropped = 50
		for i := range pushQueue + dropped {
			conn.Push("n", i+1)
		}
		for i := range pushQueue + 1 {
			e, err := l.receive()
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if err := json.Unmarshal(e.Data, &n); err != nil || e.Event != "n" || n != i {
				t.Fatalf("event %d is %s %s", i, e.Event, e.Data)
			}
		}
		if e, err := l.receive(); err != nil || e.Event != EventLagged {
			t.Fatalf("after the queue came %+v, %v", e, err)
		}
		conn.Push("n", -1)
		if e, err := l.receive(); err != nil || e.Event != "n" || string(e.Data) != "-1" {
			t.Errorf("after the marker came %+v, %v", e, err)
		}
		if err := l.conn.Close(); err != nil {
			t.Fatal(err)
		}
		<-ended
	})
}

// lonely is a client on a pipe whose other end the test holds.
func lonely(t *testing.T) (*Client, *line) {
	t.Helper()
	near, far := net.Pipe()
	client := &Client{
		conn: near, reader: bufio.NewReader(near), events: make(chan Event, eventBuffer+1), done: make(chan struct{}), waiting: map[uint64]chan envelope{},
	}
	client.start()
	t.Cleanup(func() { _ = client.Close() }) // a test may have closed it
	return client, &line{t: t, conn: far, reader: bufio.NewReader(far)}
}

// TestMSG_10_AClientLearnsWhatItMissed: the marker comes although no event
// follows the ones that were dropped.
func TestMSG_10_AClientLearnsWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, broker := lonely(t)
		push := func(n int) {
			for i := range n {
				raw, _ := json.Marshal(i) // a number always encodes
				broker.send(envelope{Event: "n", Data: raw})
			}
			synctest.Wait()
		}
		take := func() (names []string) {
			for {
				select {
				case e := <-client.Events():
					names = append(names, e.Name)
				default:
					return names
				}
			}
		}
		check := func(what string, got []string, events int, lagged bool) {
			t.Helper()
			if lagged {
				if len(got) == 0 || got[len(got)-1] != EventLagged {
					t.Errorf("%s: no marker at the end of %d events", what, len(got))
					return
				}
				got = got[:len(got)-1]
			}
			for _, name := range got {
				if name != "n" {
					t.Errorf("%s: a marker among the events", what)
				}
			}
			if len(got) != events {
				t.Errorf("%s: %d events, want %d", what, len(got), events)
			}
		}
		push(eventBuffer)
		check("as many as fit", take(), eventBuffer, false)
		push(eventBuffer + 1)
		check("one more", take(), eventBuffer, true)
		push(eventBuffer + 1000)
		check("many more", take(), eventBuffer, true)
		push(3)
		check("few again", take(), 3, false)
	})
}

func TestAClientWhoseWriteFailsIsAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := lonely(t) // nobody reads
		start := time.Now()
		_, err := call[string](t.Context(), client, "echo", "x")
		if bridge.CodeOf(err) != bridge.Unavailable || time.Since(start) != writeTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if !ended(client) {
			t.Error("half a request may be out, and the connection goes on")
		}
	})
}

// late is a connection whose writer is told of its success only when gone is
// closed: by then the answer has come and the connection has ended.
type late struct {
	net.Conn
	gone <-chan struct{}
}

func (l late) Write(data []byte) (int, error) {
	n, err := l.Conn.Write(data)
	<-l.gone
	return n, err
}

// TestMSG_02_AnAnswerBeforeTheEndCounts: a refused hello is answered, and the
// connection ends at once. The refusal must not look like a broker that died.
func TestMSG_02_AnAnswerBeforeTheEndCounts(t *testing.T) {
	for range 50 { // of two things that are ready, either may be taken first
		near, far := net.Pipe()
		client := &Client{events: make(chan Event, eventBuffer+1), done: make(chan struct{}), waiting: map[uint64]chan envelope{}}
		client.conn = late{Conn: near, gone: client.done}
		client.reader = bufio.NewReader(client.conn)
		client.start()
		broker := &line{t: t, conn: far, reader: bufio.NewReader(far)}
		go func() {
			asked, err := broker.receive()
			if err == nil {
				broker.send(envelope{ID: asked.ID, Error: bridge.Errorf(bridge.Unauthorized, "no")})
			}
			_ = far.Close() // the end
		}()
		if _, err := call[string](t.Context(), client, opHello, nil); bridge.CodeOf(err) != bridge.Unauthorized {
			t.Fatalf("got %s %v", bridge.CodeOf(err), err)
		}
	}
}
