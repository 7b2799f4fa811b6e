package ipc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/wire"
)

// helloLimitBytes bounds the first frame, which is read before the token check.
const helloLimitBytes = 16 << 10

// envelope is the JSON of every frame. A request has an op, a response an id with a
// result or an error, and an event a name.
type envelope struct {
	ID     uint64          `json:"id,omitempty"` // request number
	Op     string          `json:"op,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *bridge.Error   `json:"error,omitempty"`
	Event  string          `json:"event,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// appendFrame encodes e as one frame and appends it to buf.
func appendFrame(buf []byte, e envelope) ([]byte, error) {
	const around = 64 // the member names, an id and an operation
	buf = slices.Grow(buf, around+len(e.Args)+len(e.Result)+len(e.Data))
	return wire.AppendFrame(buf, bridge.MaxFrameBytes, e.appendTo)
}

// appendTo appends e as JSON. It copies the raw members unchanged: this process
// encoded them, and a second check would cost as much as encoding.
func (e envelope) appendTo(buf []byte) (_ []byte, err error) {
	buf = append(buf, '{')
	if e.ID != 0 {
		buf = strconv.AppendUint(appendName(buf, "id"), e.ID, 10)
	}
	for _, member := range []struct{ name, text string }{{"op", e.Op}, {"event", e.Event}} {
		if member.text != "" {
			buf, err = jsontext.AppendQuote(appendName(buf, member.name), member.text)
			if err != nil {
				return nil, fmt.Errorf("encode the name of an operation or an event: %w", err)
			}
		}
	}
	buf = appendMember(buf, "args", e.Args)
	buf = appendMember(buf, "result", e.Result)
	buf = appendMember(buf, "data", e.Data)
	if e.Error != nil {
		encoded, err := json.Marshal(e.Error)
		if err != nil {
			return nil, fmt.Errorf("encode an error: %w", err)
		}
		buf = appendMember(buf, "error", encoded)
	}
	return append(buf, '}'), nil
}

// appendMember appends a member that is already JSON; it omits an empty one.
func appendMember(buf []byte, name string, value json.RawMessage) []byte {
	if len(value) == 0 {
		return buf
	}
	return append(appendName(buf, name), value...)
}

func appendName(buf []byte, name string) []byte {
	if buf[len(buf)-1] != '{' {
		buf = append(buf, ',')
	}
	buf = append(append(buf, '"'), name...)
	return append(buf, `":`...)
}
