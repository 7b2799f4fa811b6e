package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// call is one tool call: its arguments as JSON and its caller.
type call struct {
	args   []byte
	caller api.Caller
	// progress is the host's token for progress notifications, or nil without any.
	progress mcp.ProgressToken
}

// The arguments in which opencode's plugin names the calling session. It overwrites
// the model's values, and the model does not know of them.
const (
	pluginSession = "_bridge_session"
	pluginChild   = "_bridge_child"
)

// readCall parses a call. The caller's identity comes from the host, never from the
// model's own arguments. It fails with Invalid for malformed arguments.
func (s *Server) readCall(arguments json.RawMessage, requestMeta *mcp.Meta) (call, error) {
	c := call{args: bytes.TrimSpace(arguments)}
	if len(c.args) == 0 || string(c.args) == "null" {
		c.args = []byte("{}")
	}
	if c.args[0] != '{' {
		return call{}, bridge.Errorf(bridge.Invalid, "the arguments must be a JSON object")
	}
	var meta map[string]any
	if requestMeta != nil {
		meta, c.progress = requestMeta.AdditionalFields, requestMeta.ProgressToken
	}
	kind := s.opts.Register.Kind
	caller := agent.CallerOf(kind, meta) // without one, the connection alone identifies the caller
	c.caller.SessionID, c.caller.ChildID, c.caller.ToolUseID = caller.SessionID, caller.ChildID, caller.ToolUseID
	if bridge.TraitsOf(kind).SharedServer {
		if err := c.removePluginArguments(); err != nil {
			return call{}, err
		}
	}
	return c, nil
}

// removePluginArguments removes the plugin's arguments from the call and sets the caller from them.
func (c *call) removePluginArguments() error {
	args := map[string]json.RawMessage{}
	if err := json.Unmarshal(c.args, &args); err != nil {
		return bridge.Errorf(bridge.Invalid, "the arguments cannot be read")
	}
	for name, target := range map[string]*string{pluginSession: &c.caller.SessionID, pluginChild: &c.caller.ChildID} {
		if value, ok := args[name]; ok && json.Unmarshal(value, target) != nil {
			*target = "" // a value that is not a string is ignored
		}
		delete(args, name)
	}
	rest, err := json.Marshal(args)
	c.args = rest
	return err
}

// decode parses a tool's arguments strictly; the error names an unknown one.
func decode[A any](c call) (A, error) {
	var args A
	err := bridge.DecodeStrict(c.args, bridge.MaxFrameBytes, &args)
	return args, err
}

// ask runs one request on the broker, and again on the next broker if the first one
// died meanwhile. Every such request must be safe to repeat.
func ask[R any](ctx context.Context, s *Server, request func(context.Context, *ipc.Client) (R, error)) (R, error) {
	return askFor(ctx, s, askPatience, request)
}

// askFor is [ask] with a timeout for requests slower than the broker itself.
func askFor[R any](ctx context.Context, s *Server, patience time.Duration, request func(context.Context, *ipc.Client) (R, error)) (R, error) {
	var answer R
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.reconnector.Do(ctx, func(c *ipc.Client) error {
		var err error
		answer, err = request(ctx, c)
		return err
	})
	return answer, err
}
