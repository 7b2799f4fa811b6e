package dashboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/testing/testkit"
)

// openEvents opens a stream and returns its lines as they come.
func openEvents(t *testing.T, w *world) (<-chan string, *http.Response) {
	t.Helper()
	response, err := w.server.Client().Do(w.request(http.MethodGet, "/api/events", ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := make(chan string, 1000) // more than any test reads
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			if text := scanner.Text(); text != "" {
				lines <- text
			}
		}
	}()
	return lines, response
}

// awaitLine reads until the wanted line comes.
func awaitLine(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	for {
		select {
		case line, open := <-lines:
			if !open {
				t.Fatalf("the stream ended before %q", want)
			}
			if line == want {
				return
			}
		case <-deadline:
			t.Fatalf("no %q in time", want)
		}
	}
}

// realTime gives deadlines on real connections a real present.
func realTime(o *Options) { o.Now = time.Now }

func TestEventsTellEveryNewRevision(t *testing.T) {
	w := newWorld(t, realTime)
	lines, response := openEvents(t, w)
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	awaitLine(t, lines, "event: state")
	awaitLine(t, lines, `data: {"revision":7}`)
	w.broker.changed()
	awaitLine(t, lines, `data: {"revision":8}`)
	if !w.board.Watched() {
		t.Error("an open page is not seen")
	}
	_ = response.Body.Close()
	eventually(t, "the page is seen to be closed", func() bool { return !w.board.Watched() })
}

func TestTheFirstEventOfAPageIsThePresentRevision(t *testing.T) {
	w := newWorld(t, realTime)
	for _, want := range []string{`data: {"revision":7}`, `data: {"revision":8}`} {
		lines, response := openEvents(t, w)
		if event, data := <-lines, <-lines; event != "event: state" || data != want {
			t.Errorf("the first event is %q %q, want %q", event, data, want)
		}
		_ = response.Body.Close()
		eventually(t, "the page is seen to be closed", func() bool { return !w.board.Watched() })
		w.broker.changed() // unheard: nobody listens
	}
}

func TestEventsTellThatTheBrokerWentAndCame(t *testing.T) {
	w := newWorld(t, realTime)
	lines, _ := openEvents(t, w)
	awaitLine(t, lines, `data: {"revision":7}`)
	w.broker.mu.Lock()
	w.broker.fail = bridge.Errorf(bridge.Unavailable, "gone")
	w.broker.mu.Unlock()
	w.broker.changed()
	awaitLine(t, lines, `data: {"revision":0}`)
	w.broker.mu.Lock()
	w.broker.fail = nil
	w.broker.mu.Unlock()
	w.broker.changed()
	awaitLine(t, lines, `data: {"revision":9}`)
}

func TestEventsWorkWithoutABroker(t *testing.T) {
	w := newWorld(t, realTime, offline)
	lines, _ := openEvents(t, w)
	awaitLine(t, lines, `data: {"revision":0}`)
}

func TestCloseEndsTheStreamsAndRefusesNewOnes(t *testing.T) {
	w := newWorld(t, realTime)
	lines, _ := openEvents(t, w)
	awaitLine(t, lines, "event: state")
	if err := w.board.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(testkit.Patience)
	for open := true; open; {
		select {
		case _, open = <-lines:
		case <-deadline:
			t.Fatal("the stream did not end")
		}
	}
	refused(t, "a stream after Close", w.get("/api/events"), http.StatusServiceUnavailable)
	if a := w.get("/api/state"); a.status != http.StatusOK {
		t.Errorf("a read after Close: status %d, want 200", a.status)
	}
	if err := w.board.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestTheNumberOfStreamsIsBounded(t *testing.T) {
	w := newWorld(t, realTime)
	var last *http.Response
	for range maxStreams {
		_, last = openEvents(t, w)
	}
	refused(t, "one stream too many", w.get("/api/events"), http.StatusTooManyRequests)
	_ = last.Body.Close()
	eventually(t, "a place for another stream", func() bool {
		w.board.events.mu.Lock()
		defer w.board.events.mu.Unlock()
		return len(w.board.events.streams) < maxStreams
	})
}

func TestAStreamAfterAnotherRequestHasNoOldDeadline(t *testing.T) {
	w := newWorld(t, realTime)
	_, response := openEvents(t, w)
	_ = response.Body.Close()
	if a := w.get("/api/state"); a.status != http.StatusOK {
		t.Errorf("status %d", a.status)
	}
}

// pipeBroker is a Broker whose revision a test counts up.
type pipeBroker struct {
	changes  lifecycle.Signal
	revision atomic.Int64
	asked    atomic.Int64
}

func (b *pipeBroker) Watch() (<-chan struct{}, func()) { return b.changes, func() {} }
func (b *pipeBroker) CheckChildren(string)             {}
func (b *pipeBroker) Work(int64) api.Work              { return api.Work{} }
func (b *pipeBroker) Costs() api.Costs                 { return api.Costs{} }
func (b *pipeBroker) Changed()                         {}
func (b *pipeBroker) DecideOwner(context.Context, string, api.DecideArgs) (api.DecideResult, error) {
	return api.DecideResult{}, errors.New("not in this test")
}

func (b *pipeBroker) WithdrawOwner(context.Context, api.WithdrawDecisionArgs) (api.DecideResult, error) {
	return api.DecideResult{}, errors.New("not in this test")
}

func (b *pipeBroker) SendOwner(context.Context, string, api.SendArgs) (api.SendResult, error) {
	return api.SendResult{}, errors.New("not in this test")
}

func (b *pipeBroker) Chat(context.Context, chat.Request) (chat.Outcome, error) {
	return chat.Outcome{}, errors.New("not in this test")
}

func (b *pipeBroker) Status(context.Context) (api.Status, error) {
	b.asked.Add(1)
	return api.Status{Revision: b.revision.Load()}, nil
}

func TestManyChangesInARowAreOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		broker := &pipeBroker{changes: lifecycle.NewSignal()}
		broker.revision.Store(1)
		e := newEvents(time.Now)
		stream, err := e.join()
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		go e.follow(ctx, broker)
		go e.pump(ctx, stream, func() string { return "{}" }, func(text string) error {
			written = append(written, text)
			return nil
		})
		synctest.Wait()
		<-time.After(2 * pace)
		synctest.Wait()
		written = nil
		for range 500 {
			broker.revision.Add(1)
			broker.changes.Notify()
			synctest.Wait()
		}
		<-time.After(3 * pace)
		synctest.Wait()
		last := fmt.Sprintf(`data: {"revision":%d}`, broker.revision.Load())
		if len(written) == 0 || len(written) > 2 || !strings.Contains(written[len(written)-1], last) {
			t.Errorf("500 changes at once wrote %d events, want 1 or 2, the last with %s: %q", len(written), last, written)
		}
		cancel()
		synctest.Wait()
	})
}

func TestAQuietStreamIsKeptAliveEvery15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e := newEvents(time.Now)
		stream, err := e.join()
		if err != nil {
			t.Fatal(err)
		}
		var comments int
		go e.pump(ctx, stream, func() string { return "{}" }, func(text string) error {
			if strings.HasPrefix(text, ":") {
				comments++
			}
			return nil
		})
		<-time.After(61 * time.Second)
		synctest.Wait()
		if comments != 4 {
			t.Errorf("%d comments in 61 s, want 4", comments)
		}
		cancel()
		synctest.Wait()
	})
}

func TestNobodyListeningTheBrokerIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		broker := &pipeBroker{changes: lifecycle.NewSignal()}
		e := newEvents(time.Now)
		go e.follow(ctx, broker)
		for range 10 {
			broker.changes.Notify()
			<-time.After(pace)
		}
		synctest.Wait()
		if asked := broker.asked.Load(); asked != 0 {
			t.Errorf("the broker was asked %d times", asked)
		}
		cancel()
		synctest.Wait()
	})
}

func TestALostBrokerIsWatchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		broker := &pipeBroker{changes: make(chan struct{})}
		close(broker.changes)
		e := newEvents(time.Now)
		if _, err := e.join(); err != nil {
			t.Fatal(err)
		}
		go e.follow(ctx, broker)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if asked := broker.asked.Load(); asked < 5 || asked > 20 {
			t.Errorf("in 10 s the broker was asked %d times, want about once a second", asked)
		}
		cancel()
		synctest.Wait()
	})
}

func TestASlowClientIsDropped(t *testing.T) {
	// The present that eventWriter is given lies so far back that each deadline
	// has passed: what a client that never reads comes to after 10 s.
	w := newWorld(t, func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(-2 * writeLimit) }
	})
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := w.request(http.MethodGet, "/api/events", "").Write(conn); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection was not closed: %v after %q", err, got)
	}
}

// bareWriter can neither flush nor take a deadline.
type bareWriter struct{ http.ResponseWriter }

func TestAWriterThatCannotFlushStillGetsTheText(t *testing.T) {
	recorder := httptest.NewRecorder()
	plain := bareWriter{recorder}
	out := eventWriter{w: plain, control: http.NewResponseController(plain), now: time.Now}
	if err := out.write("event: state\n\n"); err != nil {
		t.Errorf("write: %v", err)
	}
	out.release()
	if recorder.Body.String() != "event: state\n\n" {
		t.Errorf("wrote %q", recorder.Body.String())
	}
}
