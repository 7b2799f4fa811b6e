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

// newLibrary returns the MCP library's server with this session's tools. Bridge's
// own decoder checks the arguments: the library's errors would show the schema's
// internals to the model.
func (s *Server) newLibrary(initialized func()) *server.MCPServer {
	instructions := s.instructions()
	library := server.NewMCPServer("bridge", s.opts.Version,
		server.WithInstructions(instructions), server.WithHooks(s.spent.hooks(instructions)),
		server.WithToolCapabilities(false),
		server.WithExperimental(experimental(s.opts.Register)),
	)
	for _, t := range s.tools() {
		library.AddTool(t.tool, s.handler(t))
	}
	var once sync.Once // a host may repeat it
	library.AddNotificationHandler(string(mcp.MethodNotificationInitialized), func(context.Context, mcp.JSONRPCNotification) { once.Do(initialized) })
	return library
}

// versions are the protocol versions in which initialize opens a session. Newer
// versions are not supported yet.
var versions = mcp.LegacyProtocolVersions()

// answerWith returns a function that passes a message to the library. The library
// supports newer protocol versions: a request in one is refused with the supported
// versions, and its host then opens a session.
func answerWith(library *server.MCPServer) func(context.Context, json.RawMessage) mcp.JSONRPCMessage {
	return func(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
		var request struct {
			Params struct {
				Meta *mcp.Meta `json:"_meta"`
			} `json:"params"`
		}
		_ = json.Unmarshal(message, &request) // the library says what is wrong with it
		if version := request.Params.Meta.ProtocolVersion(); mcp.IsModernProtocol(version) {
			return mcp.UnsupportedProtocolVersionError{Version: version, Supported: versions}.JSONRPCError()
		}
		return library.HandleMessage(ctx, message)
	}
}

// host is the only host at the other end, as a client of the library. It receives
// the library's own notifications. They may get lost if the host does not read;
// mail never uses this way.
type host struct {
	notifications chan mcp.JSONRPCNotification
	initialized   atomic.Bool
}

// hostQueue bounds the notifications queued for a host that does not read; the
// library drops further ones.
const hostQueue = 100

func newHost() *host { return &host{notifications: make(chan mcp.JSONRPCNotification, hostQueue)} }

// SessionID returns the id of the library's only client.
func (h *host) SessionID() string { return "stdio" }

// Initialize records that the host has opened its session.
func (h *host) Initialize() { h.initialized.Store(true) }

// Initialized reports whether notifications may be sent.
func (h *host) Initialized() bool { return h.initialized.Load() }

// NotificationChannel returns the channel for the library's notifications.
func (h *host) NotificationChannel() chan<- mcp.JSONRPCNotification { return h.notifications }

// forward writes the library's notifications until ctx ends.
func (h *host) forward(ctx context.Context, output io.Writer) {
	for {
		select {
		case n := <-h.notifications:
			if frame, err := json.Marshal(n); err == nil {
				_, _ = output.Write(append(frame, '\n')) // a broken output also fails for the answers
			}
		case <-ctx.Done():
			return
		}
	}
}
