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
	// maxFrameBytes bounds one frame: what a command has said is part of one.
	maxFrameBytes = 16 << 20
	// writeTime bounds how long a server may take to read one frame.
	writeTime = 5 * time.Second
	// dialTime bounds the way to a server that listens and does not answer.
	dialTime = 5 * time.Second
)

// Socket is the control socket of the background server whose codex keeps its state in
// that folder.
func Socket(folder string) string {
	return filepath.Join(folder, "app-server-control", "app-server-control.sock")
}

// Client is a client of a background server, beside the terminals that it serves. It
// answers no request by itself: an error for an answer is a denial to codex, and silence
// leaves it to the terminal.
type Client struct {
	run.Calls
	conn *websocket.Conn

	mu sync.Mutex // one frame at a time
}

// Dial connects to the server at that socket.
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

// Serve reads until the connection ends: take gets each notification and request in
// their order, and answers to our own go to who waits. take must not wait for one.
func (c *Client) Serve(take func(Line)) {
	defer c.End()
	for {
		kind, frame, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		var line Line
		if kind != websocket.TextMessage || json.Unmarshal(frame, &line) != nil {
			continue // what is not understood is not ours to answer
		}
		if line.Method == "" {
			c.Settle(run.Text(line.ID), run.Reply{Result: line.Result, Refusal: line.Error})
			continue
		}
		take(line)
	}
}

// Close ends the connection: what the server asks goes on without it.
func (c *Client) Close() { _ = c.conn.Close() }

// Request asks the server for something and waits for its answer. A *run.Refusal is the
// server's own no.
func (c *Client) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.Call(ctx, c, func(id string) any {
		return map[string]any{"id": id, "method": method, "params": params}
	})
}

// Open says who is there, and which notifications shall not come.
func (c *Client) Open(ctx context.Context, mutes ...string) error {
	if _, err := c.Request(ctx, "initialize", Hello("bridge", mutes...)); err != nil {
		return err
	}
	return c.Send(ctx, []byte(run.AsJSON(map[string]any{"method": "initialized"})))
}

// Answer answers a request of the server's. Nothing takes it back.
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
