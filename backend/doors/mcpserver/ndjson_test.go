package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

func TestMSG_03_ALineThatIsNoRequestLeavesTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code int
		id   any
	}{
		"words":          {"hello", -32700, nil},
		"half an object": {`{"jsonrpc":"2.0","id":7,`, -32700, nil},
		"no UTF-8":       {"\xff\xfe", -32700, nil},
		"too long":       {`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", maxLineBytes) + `"}`, -32600, nil},
		"a number":       {"5", -32600, nil},
		"empty list":     {"[]", -32600, nil},
		"a batch":        {`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, -32600, nil},
		"empty object":   {"{}", -32600, nil},
		"old version":    {`{"jsonrpc":"1.0","id":7,"method":"ping"}`, -32600, 7.0},
		"no such id":     {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, nil},
		"named by words": {`{"jsonrpc":"1.0","id":"a","method":"ping"}`, -32600, "a"},
	} {
		t.Run("MSG-03 "+name, func(t *testing.T) {
			w := open(t, api.Register{Kind: bridge.Codex})
			w.begin()
			w.say(c.line)
			got := w.next("refusal", func(line map[string]any) bool { return line["error"] != nil })
			refused, _ := got["error"].(map[string]any)
			if refused["code"] != float64(c.code) || got["id"] != c.id {
				t.Errorf("the line is answered with %v, want code %d and id %v", got, c.code, c.id)
			}
			w.call(3, "peers", `{}`)
			if got := w.text(3); !strings.Contains(got, `"self":"me"`) {
				t.Errorf("the next call answers %s", got)
			}
		})
	}
}

func TestMSG_03_RequestsThatEndWithTheInputAreAnswered(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Codex})
	go func() {
		_, _ = io.WriteString(w.in, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}

{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"peers","arguments":{}}}`)
		w.in.Close()
	}()
	w.answer(2)
	if got := w.text(3); !strings.Contains(got, `"self":"me"`) {
		t.Errorf("the call before the end answers %s", got)
	}
}

func TestLongLinesAreCutAtTheBound(t *testing.T) {
	input := bufio.NewReader(strings.NewReader(strings.Repeat("x", 3*maxLineBytes) + "\nnext\nlast"))
	var lengths []string
	for {
		line, err := readLine(input)
		lengths = append(lengths, fmt.Sprint(len(line)))
		if err != nil {
			break
		}
	}
	if got, want := strings.Join(lengths, " "), fmt.Sprintf("%d 5 4", maxLineBytes+1); got != want {
		t.Errorf("the lines have lengths %s, want %s", got, want)
	}
}

func TestMSG_03_TheEndComesWithTheLastAnswerThatIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		answered bool
		want     time.Duration
	}{
		"it is answered":         {true, 0},
		"nobody ever answers it": {false, 3 * time.Second},
	} {
		t.Run("MSG-03 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := newNDJSONTransport(strings.NewReader(`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`), io.Discard, slog.New(slog.DiscardHandler),
					func(ctx context.Context, _ json.RawMessage) mcp.JSONRPCMessage {
						if !tt.answered {
							<-ctx.Done()
						}
						return mcp.JSONRPCResponse{JSONRPC: "2.0"}
					})
				if err := l.serve(t.Context()); err != nil || time.Since(began) != tt.want {
					t.Errorf("serve = %v after %v, want the end after %v", err, time.Since(began), tt.want)
				}
			})
		})
	}
}
