// Package wire sends JSON documents over a byte stream, each after its length and
// none larger than the reader allows (MSG-10). It does not know the peer or the
// meaning of the documents. The local socket uses it, as do other links between
// programs of Bridge.
package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"bridge/backend/core/bridge"
)

// headBytes is the size of a frame's big-endian length, which precedes the payload.
const headBytes = 4

// ReadFrame reads the payload of one frame. It fails with TooLarge, before any
// allocation, if the length is 0 or over limitBytes; the stream is then unusable.
// It returns io.EOF only between frames.
func ReadFrame(r *bufio.Reader, limitBytes int) ([]byte, error) {
	var head [headBytes]byte
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

// AppendFrame appends one frame to buf, ready for a single write; encode appends
// the payload. It fails with TooLarge if the payload is longer than limitBytes.
func AppendFrame(buf []byte, limitBytes int, encode func([]byte) ([]byte, error)) ([]byte, error) {
	var head [headBytes]byte
	start := len(buf) + headBytes
	frame, err := encode(append(buf, head[:]...))
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	// The head goes into the space reserved for it.
	if _, err := AppendHead(frame[:start-headBytes], limitBytes, len(frame)-start); err != nil {
		return nil, err
	}
	return frame, nil
}

// AppendHead appends the head of a payload of size bytes, for a caller that writes
// the payload itself. It fails with TooLarge over limitBytes.
func AppendHead(buf []byte, limitBytes, size int) ([]byte, error) {
	if size > limitBytes {
		return nil, bridge.Errorf(bridge.TooLarge, "a frame needs %d bytes: at most %d fit", size, limitBytes)
	}
	return binary.BigEndian.AppendUint32(buf, uint32(size)), nil
}

// Parse decodes a frame's JSON. It fails with Invalid for malformed JSON. It checks
// only the outer shape: the consumer strictly decodes the raw parts of T. It
// ignores unknown members.
func Parse[T any](payload []byte) (T, error) {
	var value T
	if err := json.Unmarshal(payload, &value); err != nil {
		var none T // part of value may be filled
		return none, bridge.Errorf(bridge.Invalid, "a frame is not valid JSON: %v", err)
	}
	return value, nil
}
