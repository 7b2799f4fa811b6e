package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// newLibrary is the MCP library's server with this session's tools. Arguments
// are checked by our own decoder: the library's validation would tell the model
// of its schema's insides.
func (s *Server) newLibrary(initialized func()) *server.MCPServer {
	library := server.NewMCPServer("bridge", s.opts.Version,
		server.WithInstructions(s.instructions()),
		server.WithToolCapabilities(false),
		server.WithExperimental(experimental(s.opts.Register)),
	)
	for _, t := range s.tools() {
		library.AddTool(t.tool, s.handler(t))
	}
	var once sync.Once // a host may say it again
	library.AddNotificationHandler(string(mcp.MethodNotificationInitialized), func(context.Context, mcp.JSONRPCNotification) { once.Do(initialized) })
	return library
}

// versions are the protocol's versions with a session that is opened by
// initialize: what comes after is seen by nobody here yet.
var versions = mcp.LegacyProtocolVersions()

// answerWith hands a message to the library, which also speaks newer versions
// than ours: a request of one is refused with those that are spoken here, and
// its host then opens a session.
func answerWith(library *server.MCPServer) func(context.Context, json.RawMessage) mcp.JSONRPCMessage {
	return func(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
		var asked struct {
			Params struct {
				Meta *mcp.Meta `json:"_meta"`
			} `json:"params"`
		}
		_ = json.Unmarshal(message, &asked) // the library says what is wrong with it
		if version := asked.Params.Meta.ProtocolVersion(); mcp.IsModernProtocol(version) {
			return mcp.UnsupportedProtocolVersionError{Version: version, Supported: versions}.JSONRPCError()
		}
		return library.HandleMessage(ctx, message)
	}
}

// host is the one host at the other end, as the library knows its clients: it
// takes the notifications that the library sends by itself. They may get lost
// when the host does not read; mail never goes this way.
type host struct {
	notifications chan mcp.JSONRPCNotification
	initialized   atomic.Bool
}

// hostQueue is how many notifications wait for a host that does not read; the
// library drops what is beyond.
const hostQueue = 100

func newHost() *host { return &host{notifications: make(chan mcp.JSONRPCNotification, hostQueue)} }

// SessionID tells the library's clients apart: here is one.
func (h *host) SessionID() string { return "stdio" }

// Initialize notes that the host has opened its session.
func (h *host) Initialize() { h.initialized.Store(true) }

// Initialized reports whether notifications may be sent.
func (h *host) Initialized() bool { return h.initialized.Load() }

// NotificationChannel is where the library puts notifications.
func (h *host) NotificationChannel() chan<- mcp.JSONRPCNotification { return h.notifications }

// forward writes the library's notifications until ctx ends.
func (h *host) forward(ctx context.Context, output io.Writer) {
	for {
		select {
		case n := <-h.notifications:
			if frame, err := json.Marshal(n); err == nil {
				_, _ = output.Write(append(frame, '\n')) // who asks for an answer learns of it
			}
		case <-ctx.Done():
			return
		}
	}
}
