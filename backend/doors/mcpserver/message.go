package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/bridge"
)

// maxLineBytes bounds one message of the host: a tool call with the longest text
// and the host's additions.
const maxLineBytes = 2 * bridge.MaxFrameBytes

// message is one JSON-RPC message of a line.
type message struct {
	id     json.RawMessage // nil for none: a notification
	method string          // "" for an answer
	params json.RawMessage // nil for none
}

// parseMessage parses a line, or returns its refusal. The refusal's id is null
// unless the line has a valid one.
func parseMessage(line []byte) (message, *mcp.JSONRPCError) {
	refuse := func(id json.RawMessage, code int, why string) (message, *mcp.JSONRPCError) {
		refused := refusal(id, code, why)
		return message{}, &refused
	}
	const noRequest = "this is no JSON-RPC 2.0 request"
	if len(line) > maxLineBytes {
		return refuse(nil, mcp.INVALID_REQUEST, "the request is too long")
	}
	var members struct {
		JSONRPC jsontext.Value `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  jsontext.Value `json:"method"`
		Params  jsontext.Value `json:"params"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	if err := strict.Unmarshal(line, &members, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		switch {
		case errors.As(err, new(*jsontext.SyntacticError)):
			return refuse(nil, mcp.PARSE_ERROR, "the line is no JSON")
		case line[0] == '[':
			return refuse(nil, mcp.INVALID_REQUEST, "requests come one a line: the agreed version of the protocol has no batches")
		}
		return refuse(nil, mcp.INVALID_REQUEST, noRequest)
	}
	m := message{id: nonNull(members.ID), params: nonNull(members.Params)}
	if _, ok := readID(m.id); m.id != nil && !ok {
		return refuse(nil, mcp.INVALID_REQUEST, noRequest)
	}
	if string(members.JSONRPC) != `"2.0"` {
		return refuse(m.id, mcp.INVALID_REQUEST, noRequest)
	}
	called := members.Method != nil
	if called && json.Unmarshal(members.Method, &m.method) != nil || called && m.method == "" {
		return refuse(m.id, mcp.INVALID_REQUEST, noRequest)
	}
	if !called && members.Result == nil && members.Error == nil {
		return refuse(m.id, mcp.INVALID_REQUEST, noRequest)
	}
	return m, nil
}

// nonNull returns nil for a missing or null member.
func nonNull(member jsontext.Value) json.RawMessage {
	if string(member) == "null" {
		return nil
	}
	return json.RawMessage(member)
}

// forLibrary returns the message for the library: only the parsed parts, and with
// Bridge's own number if it is a request.
func (m message) forLibrary(number uint64) json.RawMessage {
	method, _ := json.Marshal(m.method) //nolint:errchkjson // a string always encodes
	framed := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s`, method)
	if number > 0 {
		framed = fmt.Appendf(framed, `,"id":%d`, number)
	}
	if m.params != nil {
		framed = fmt.Appendf(framed, `,"params":%s`, m.params)
	}
	return append(framed, '}')
}

// callParams are the params of a plain tool call.
type callParams struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Meta      *mcp.Meta      `json:"_meta"`
}

// plainCall parses a well-formed tool call with known members only. It returns nil
// for any other call, which the library parses and refuses.
func (m message) plainCall() *callParams {
	var params callParams
	if strict.Unmarshal(m.params, &params, strict.RejectUnknownMembers(true)) != nil {
		return nil
	}
	return &params
}

// removeArguments removes a tool call's arguments from the message for the library. The
// library would parse them several times, and less strictly than Bridge's decoder.
func (m *message) removeArguments() (arguments json.RawMessage) {
	var params map[string]json.RawMessage
	if json.Unmarshal(m.params, &params) != nil {
		return nil // the library reports its error
	}
	arguments = params["arguments"]
	delete(params, "arguments")
	m.params, _ = json.Marshal(params) //nolint:errchkjson // they were just read from JSON
	return arguments
}

// readID parses an id: a string or a number in any notation. It rejects invalid
// UTF-8, which could not be returned.
func readID(raw json.RawMessage) (id any, ok bool) {
	if !utf8.Valid(raw) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&id) != nil {
		return nil, false
	}
	switch id.(type) {
	case string, json.Number:
		return id, true
	}
	return nil, false
}

func sameID(a, b json.RawMessage) bool {
	item, ok := readID(a)
	other, okToo := readID(b)
	return ok && okToo && item == other
}

// refusal returns an error answer.
func refusal(id json.RawMessage, code int, why string) mcp.JSONRPCError {
	return mcp.NewJSONRPCError(hostID(id), code, why, nil)
}

// withID returns an answer of the library with the host's id.
func withID(answer mcp.JSONRPCMessage, id json.RawMessage) mcp.JSONRPCMessage {
	switch a := answer.(type) {
	case mcp.JSONRPCResponse:
		a.ID = hostID(id)
		return a
	case mcp.JSONRPCError:
		a.ID = hostID(id)
		return a
	}
	return refusal(id, mcp.INTERNAL_ERROR, fmt.Sprintf("there is no answer to this request (%T)", answer))
}

func hostID(id json.RawMessage) mcp.RequestId {
	if id == nil {
		return mcp.NewRequestId(nil)
	}
	return mcp.NewRequestId(id)
}
