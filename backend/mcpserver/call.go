package mcpserver

import (
	"context"
	"encoding/json"
	"maps"

	"bridge/backend/agent"
	"bridge/backend/bridge"
	"bridge/backend/ipc"

	"github.com/mark3labs/mcp-go/mcp"
)

// call is one tool call: its arguments as JSON and who makes it.
type call struct {
	args   []byte
	caller ipc.Caller
}

// The arguments by which opencode's plugin says which session calls. It writes
// them over whatever the model gave, and no model is told of them.
const (
	pluginSession = "_bridge_session"
	pluginChild   = "_bridge_child"
)

// readCall takes a call apart. Who calls comes from the host, never from the
// model's own arguments.
func (s *Server) readCall(request mcp.CallToolRequest) (call, error) {
	args := request.GetArguments()
	c := call{}
	switch s.opts.Register.Kind {
	case bridge.Codex:
		if sessionID, childID, ok := agent.CodexIdentity(metaOf(request)); ok {
			c.caller.SessionID, c.caller.ChildID = sessionID, childID
		}
	case bridge.Claude:
		if toolUse, ok := agent.ClaudeToolUse(metaOf(request)); ok {
			c.caller.ToolUseID = toolUse
		}
	case bridge.OpenCode:
		args = maps.Clone(args)
		c.caller.SessionID, _ = args[pluginSession].(string)
		c.caller.ChildID, _ = args[pluginChild].(string)
		delete(args, pluginSession)
		delete(args, pluginChild)
	default: // the connection alone says who calls
	}
	if args == nil {
		args = map[string]any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return call{}, bridge.Errorf(bridge.Invalid, "the arguments cannot be read")
	}
	c.args = raw
	return c, nil
}

func metaOf(request mcp.CallToolRequest) map[string]any {
	if request.Params.Meta == nil {
		return nil
	}
	return request.Params.Meta.AdditionalFields
}

// decode reads a tool's arguments strictly: unknown ones are refused by name.
func decode[A any](c call) (A, error) {
	var args A
	err := bridge.DecodeStrict(c.args, bridge.MaxFrameBytes, &args)
	return args, err
}

// ask runs one request on the broker, again on the next broker when the first
// died under it. Every request that is asked this way is safe to repeat.
func ask[R any](ctx context.Context, s *Server, request func(context.Context, *ipc.Client) (R, error)) (R, error) {
	var answer R
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	err := s.keeper.Do(ctx, func(c *ipc.Client) error {
		var err error
		answer, err = request(ctx, c)
		return err
	})
	return answer, err
}
