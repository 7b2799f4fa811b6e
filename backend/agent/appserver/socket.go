package appserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

const (
	// maxFrameBytes bounds one frame, which can contain a command's output.
	maxFrameBytes = 16 << 20
	// writeTime is the timeout of a server for reading one frame.
	writeTime = 5 * time.Second
	// dialTime is the timeout of a connection to a server that does not answer.
	dialTime = 5 * time.Second
)

// Socket returns the control socket of the background server whose codex keeps its
// state in that folder.
func Socket(folder string) string {
	return filepath.Join(folder, "app-server-control", "app-server-control.sock")
}

// Client is a client of a background server, in addition to the terminals that it
// serves. It never answers a request automatically: codex treats an error as a
// denial, and silence leaves the request to the terminal.
type Client struct {
	run.Calls
	conn *websocket.Conn

	mu sync.Mutex // serializes frames
}

// Dial connects to the server at that socket. It fails if no server answers in time.
func Dial(ctx context.Context, socket string) (*Client, error) {
	dialer := websocket.Dialer{
		HandshakeTimeout: dialTime,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", socket)
		},
	}
	conn, answer, err := dialer.DialContext(ctx, "ws://localhost/", http.Header{})
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close() // of a refusal; a connection's is empty
	}
	if err != nil {
		return nil, bridge.Errorf(bridge.Unavailable, "codex's background server cannot be reached: %w", err)
	}
	conn.SetReadLimit(maxFrameBytes)
	return &Client{conn: conn}, nil
}

// Serve reads until the connection ends. It calls take with each notification and request
// in order, and passes answers to their waiting callers. take must not wait for an answer.
func (c *Client) Serve(take func(Line)) {
	defer c.End()
	for {
		kind, frame, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		var line Line
		if kind != websocket.TextMessage || json.Unmarshal(frame, &line) != nil {
			continue // Bridge does not answer what it does not understand
		}
		if line.Method == "" {
			c.Settle(run.Text(line.ID), run.Reply{Result: line.Result, Refusal: line.Error})
			continue
		}
		take(line)
	}
}

// Close ends the connection; the server's open requests continue without it.
func (c *Client) Close() { _ = c.conn.Close() }

// Request sends the server a request and waits for its answer. A *run.Refusal is
// the server's own refusal.
func (c *Client) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.Call(ctx, c, func(id string) any {
		return map[string]any{"id": id, "method": method, "params": params}
	})
}

// Open sends the client's name and the notifications to suppress.
func (c *Client) Open(ctx context.Context, mutes ...string) error {
	if _, err := c.Request(ctx, "initialize", Hello("bridge", mutes...)); err != nil {
		return err
	}
	return c.Send(ctx, []byte(run.AsJSON(map[string]any{"method": "initialized"})))
}

// Answer answers a request of the server. An answer cannot be revoked.
func (c *Client) Answer(ctx context.Context, id json.RawMessage, result any) error {
	return c.Send(ctx, []byte(run.AsJSON(map[string]any{"id": id, "result": result})))
}

// Send writes one frame.
func (c *Client) Send(ctx context.Context, line []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil { //nolint:forbidigo // of a connection, which has no other clock
		return job.ErrEnded
	}
	if err := c.conn.WriteMessage(websocket.TextMessage, line); err != nil {
		return fmt.Errorf("%w: %w", job.ErrUnconfirmed, err)
	}
	return nil
}
