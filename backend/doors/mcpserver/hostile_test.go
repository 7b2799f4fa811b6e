package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

func TestMSG_03_AnIdComesBackAsItWasWritten(t *testing.T) {
	var lines, want strings.Builder
	for _, id := range []string{`1`, `"1"`, `""`, `"a b"`, `-7`, `1.5`, `9007199254740993`, `123456789012345678901234567890`} {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`+"\n", id)
		fmt.Fprintf(&want, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
	}
	var got strings.Builder
	l := newNDJSONTransport(strings.NewReader(lines.String()), &got, slog.New(slog.DiscardHandler), answerWith(server.NewMCPServer("x", "1")))
	if err := l.serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestMSG_03_OnlyALineOfOneMessageIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		id   any
	}{
		"two messages":  {`{"jsonrpc":"2.0","id":7,"method":"ping"} {"jsonrpc":"2.0","id":8,"method":"ping"}`, -32700, nil},
		"only an id":    {`{"jsonrpc":"2.0","id":7}`, -32600, 7.0},
		"no method":     {`{"jsonrpc":"2.0","id":7,"method":""}`, -32600, 7.0},
		"odd method":    {`{"jsonrpc":"2.0","id":7,"method":["ping"]}`, -32600, 7.0},
		"odd id":        {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, nil},
		"no UTF-8 id":   {"{\"jsonrpc\":\"2.0\",\"id\":\"a\xff\",\"method\":\"ping\"}", -32600, nil},
		"other version": {`{"jsonrpc":2.0,"id":7,"method":"ping"}`, -32600, 7.0},
		"nothing":       {`null`, -32600, nil},
	} {
		t.Run("MSG-03 "+name, func(t *testing.T) {
			w := open(t, api.Register{Kind: bridge.Codex})
			w.say(c.line)
			w.say(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
			got := w.next("refusal", func(map[string]any) bool { return true })
			if refused, _ := got["error"].(map[string]any); refused["code"] != float64(c.code) || got["id"] != c.id {
				t.Errorf("the line is answered with %v, want code %d and id %v", got, c.code, c.id)
			}
			if got := w.next("answer", func(map[string]any) bool { return true }); got["id"] != 9.0 {
				t.Errorf("then comes %v", got)
			}
		})
	}
}

func TestMSG_03_WhatNeedsNoAnswerGetsNone(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Codex})
	w.begin()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}`, `{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"jsonrpc":"2.0","method":"notifications/unknown"}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"peers"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized","params":5}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","ID":7,"method":"ping"}`,
	} {
		w.say(line)
	}
	w.say(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if got := w.next("answer", func(map[string]any) bool { return true }); got["id"] != 9.0 {
		t.Errorf("an answer that nobody asked for: %v", got)
	}
}

// TestMSG_06_ACallIsCancelledByItsIdAlone: the id is a string or a number, and
// the word may come right behind the call.
func TestMSG_06_ACallIsCancelledByItsIdAlone(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude})
	w.begin()
	w.call(3, "wait_for_message", `{"timeout_sec":110}`)
	w.say(`{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"wait_for_message","arguments":{"timeout_sec":110}}}`)
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3"}}`)
	w.call(4, "peers", `{}`)
	w.text(4)
	id := w.send("for the number")
	if got := w.text(3); !strings.Contains(got, "for the number") {
		t.Errorf("the call that nobody cancelled ends with %s", got)
	}
	w.reaches(id, bridge.StageConsumed)
}

func TestMSG_06_MailOfACancelledCallIsGivenBack(t *testing.T) {
	var sent, dropped, written atomic.Int32
	lease, leased := make(chan struct{}), make(chan struct{})
	input, host := io.Pipe()
	l := newNDJSONTransport(input, writerFunc(func([]byte) { written.Add(1) }), slog.New(slog.DiscardHandler), func(ctx context.Context, m json.RawMessage) mcp.JSONRPCMessage {
		if !strings.Contains(string(m), "tools/call") {
			return nil
		}
		afterwards(ctx, func() { sent.Add(1) }, func() { dropped.Add(1) })
		close(leased)
		<-lease
		return mcp.JSONRPCResponse{JSONRPC: "2.0"}
	})
	ended := make(chan error, 1)
	go func() { ended <- l.serve(t.Context()) }()
	fmt.Fprintln(host, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	<-leased // the mail is in the answer, and the answer is not written
	fmt.Fprintln(host, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	for range 2 { // the second is read when the line before both is done
		fmt.Fprintln(host, `{"jsonrpc":"2.0","method":"notifications/none"}`)
	}
	close(lease)
	host.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if sent.Load() != 0 || dropped.Load() != 1 || written.Load() != 0 {
		t.Errorf("acknowledged %d times, given back %d times, %d lines written; want 0, 1, 0", sent.Load(), dropped.Load(), written.Load())
	}
}

// TestMSG_10_ManyWaitsKeepNobodyWaiting: 32 waits go on at once, the next is
// refused by a sentence, and other calls and cancellations get through.
func TestMSG_10_ManyWaitsKeepNobodyWaiting(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude})
	w.begin()
	for id := 100; id < 132; id++ {
		w.call(id, "wait_for_message", `{"timeout_sec":110}`)
	}
	for id := 200; id < 300; id++ {
		w.call(id, "wait_for_message", `{"timeout_sec":110}`)
	}
	for range 100 {
		line := w.next("refusal", func(line map[string]any) bool { id, _ := line["id"].(float64); return id >= 100 })
		if !strings.Contains(fmt.Sprint(line["result"]), "32 waits") {
			t.Fatalf("a wait too many is answered with %v", line)
		}
	}
	w.call(4, "peers", `{}`)
	w.text(4)
	for id := 100; id < 300; id++ {
		w.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	}
	w.send("for the next wait")
	for id := 400; ; id++ {
		w.call(id, "wait_for_message", `{"timeout_sec":110}`)
		got := w.text(id)
		if strings.Contains(got, "for the next wait") {
			return
		}
		if !strings.Contains(got, "32 waits") { // some are still on their way out
			t.Fatalf("the wait after all that ends with %s", got)
		}
	}
}

// TestMSG_10_CallsAtWorkAreBounded: 48 calls work at once, the next ones wait
// for their turn, and beyond 1,000 without an answer one is refused.
func TestMSG_10_CallsAtWorkAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working, most, answered, refused atomic.Int32
		release := make(chan struct{})
		input, host := io.Pipe()
		out := writerFunc(func(frame []byte) {
			if strings.Contains(string(frame), `"code":-32000`) {
				refused.Add(1)
			} else {
				answered.Add(1)
			}
		})
		l := newNDJSONTransport(input, out, slog.New(slog.DiscardHandler), func(context.Context, json.RawMessage) mcp.JSONRPCMessage {
			most.Store(max(most.Load(), working.Add(1)))
			<-release
			working.Add(-1)
			return mcp.JSONRPCResponse{JSONRPC: "2.0"}
		})
		ended := make(chan error, 1)
		go func() { ended <- l.serve(t.Context()) }()
		for id := range 1003 {
			fmt.Fprintf(host, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", id)
		}
		synctest.Wait()
		if working.Load() != 48 || refused.Load() != 3 {
			t.Errorf("%d calls work and %d are refused, want 48 and 3", working.Load(), refused.Load())
		}
		close(release)
		synctest.Wait()
		host.Close()
		if err := <-ended; err != nil || answered.Load() != 1000 {
			t.Errorf("%d calls are answered, %v; want 1000", answered.Load(), err)
		}
	})
}

type writerFunc func(frame []byte)

func (f writerFunc) Write(frame []byte) (int, error) {
	f(frame)
	return len(frame), nil
}

func TestMSG_10_AHostThatReadsNothingKeepsNoProcess(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	input, host := io.Pipe()
	defer host.Close()
	stuck := make(chan struct{})
	hold := make(chan struct{})
	defer close(hold)
	out := writerFunc(func([]byte) { close(stuck); <-hold })
	l := newNDJSONTransport(input, newFrames(out, ctx.Done()), slog.New(slog.DiscardHandler), func(context.Context, json.RawMessage) mcp.JSONRPCMessage {
		return mcp.JSONRPCResponse{JSONRPC: "2.0"}
	})
	ended := make(chan error, 1)
	go func() { ended <- l.serve(ctx) }()
	fmt.Fprintln(host, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	<-stuck
	end()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the session does not end while its host does not read")
	}
}

func TestMSG_03_OutputThatFailsEndsTheSession(t *testing.T) {
	input, host := io.Pipe()
	defer host.Close()
	broken := errors.New("no more room")
	l := newNDJSONTransport(input, failing{broken}, slog.New(slog.DiscardHandler), func(ctx context.Context, _ json.RawMessage) mcp.JSONRPCMessage {
		afterwards(ctx, func() { t.Error("mail is acknowledged whose answer was not written") }, func() {})
		return mcp.JSONRPCResponse{JSONRPC: "2.0"}
	})
	go fmt.Fprintln(host, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := l.serve(t.Context()); !errors.Is(err, broken) {
		t.Errorf("serve: %v, want %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestMSG_03_APanicOfOneRequestLeavesTheSession(t *testing.T) {
	var frames strings.Builder
	returned := 0
	l := newNDJSONTransport(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}
{"jsonrpc":"2.0","id":2,"method":"ping"}`), &frames, slog.New(slog.DiscardHandler), func(ctx context.Context, m json.RawMessage) mcp.JSONRPCMessage {
		if strings.Contains(string(m), `"id":1`) {
			afterwards(ctx, func() { t.Error("mail that nobody saw is acknowledged") }, func() { returned++ })
			panic("a slip")
		}
		return mcp.JSONRPCResponse{JSONRPC: "2.0"}
	})
	if err := l.serve(t.Context()); err != nil {
		t.Error(err)
	}
	if got := frames.String(); !strings.Contains(got, `"id":1,"error":{"code":-32603`) || !strings.Contains(got, `"id":2,"result"`) || returned != 1 {
		t.Errorf("answered with %s", got)
	}
}

// TestMSG_06_NotificationsOfTheLibraryAreDroppedNotAwaited: 100 wait for a host
// that does not read. Mail goes another way, which is told of a failed write.
func TestMSG_06_NotificationsOfTheLibraryAreDroppedNotAwaited(t *testing.T) {
	library, end := server.NewMCPServer("x", "1"), newHost()
	if err := library.RegisterSession(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	end.Initialize()
	ctx := library.WithContext(t.Context(), end)
	for range 100 {
		if err := library.SendNotificationToClient(ctx, "notifications/x", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := library.SendNotificationToClient(ctx, "notifications/x", nil); !errors.Is(err, server.ErrNotificationChannelBlocked) {
		t.Errorf("the 101st: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var frames int
	end.forward(ctx, writerFunc(func(frame []byte) {
		if frames++; string(frame) != `{"jsonrpc":"2.0","method":"notifications/x"}`+"\n" {
			t.Errorf("frame %s", frame)
		}
		if frames == 100 {
			stop()
		}
	}))
	if frames != 100 {
		t.Errorf("%d notifications are written", frames)
	}
}
