package ipc

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"bridge/backend/bridge"
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

// readFrame reads one frame: a 4-byte big-endian length, then that many bytes.
// A length over limitBytes is refused before anything is allocated. The error
// is io.EOF only between frames.
func readFrame(r *bufio.Reader, limitBytes int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("read a frame's length: %w", err)
		}
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || uint64(size) > uint64(limitBytes) {
		return nil, bridge.Errorf(bridge.TooLarge, "a frame of %d bytes is outside 1 to %d", size, limitBytes)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("read a frame: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return payload, nil
}

// appendFrame encodes e as one frame behind buf, ready for a single write.
func appendFrame(buf []byte, e envelope) ([]byte, error) {
	payload, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	if len(payload) > bridge.MaxFrameBytes {
		return nil, bridge.Errorf(bridge.TooLarge, "a frame needs %d bytes: at most %d fit", len(payload), bridge.MaxFrameBytes)
	}
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(payload)))
	return append(buf, payload...), nil
}

// parseEnvelope reads a frame's JSON. Only its outer shape is checked here;
// arguments are decoded strictly by whoever serves the operation.
func parseEnvelope(payload []byte) (envelope, error) {
	var e envelope
	if err := json.Unmarshal(payload, &e); err != nil {
		return envelope{}, bridge.Errorf(bridge.Invalid, "a frame is not valid JSON: %v", err)
	}
	return e, nil
}
