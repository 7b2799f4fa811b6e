package ipc

import (
	"encoding/json"

	"bridge/backend/bridge"
	"bridge/backend/wire"
)

// helloLimitBytes bounds the first frame, before the token was checked.
const helloLimitBytes = 16 << 10

// envelope is every frame's JSON: a request has an op, a response an id and a
// result or an error, an event a name.
type envelope struct {
	ID     uint64          `json:"id,omitempty"`
	Op     string          `json:"op,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *bridge.Error   `json:"error,omitempty"`
	Event  string          `json:"event,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// appendFrame encodes e as one frame behind buf.
func appendFrame(buf []byte, e envelope) ([]byte, error) {
	return wire.AppendFrame(buf, e, bridge.MaxFrameBytes)
}
