// Package wire carries JSON documents over a stream of bytes, each behind its
// length and none larger than the reader allows (MSG-10). It knows neither who is
// at the other end nor what the documents mean: the local socket uses it, and
// whatever else connects two programs of Bridge may.
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

// headBytes is a frame's length, big-endian, in front of its payload.
const headBytes = 4

// ReadFrame reads the payload of one frame. A length of 0 or over limitBytes is
// refused with code TooLarge before anything is allocated: nothing after it can be
// read. The error is io.EOF only between frames.
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

// AppendFrame appends one frame to buf, ready for a single write: encode appends
// its payload. A frame that its reader would refuse is not written: its code is
// TooLarge.
func AppendFrame(buf []byte, limitBytes int, encode func([]byte) ([]byte, error)) ([]byte, error) {
	var head [headBytes]byte
	start := len(buf) + headBytes
	frame, err := encode(append(buf, head[:]...))
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	// It goes into the room that was left for it.
	if _, err := AppendHead(frame[:start-headBytes], limitBytes, len(frame)-start); err != nil {
		return nil, err
	}
	return frame, nil
}

// AppendHead appends what stands before a payload of so many bytes, for whoever writes
// the payload itself.
func AppendHead(buf []byte, limitBytes, size int) ([]byte, error) {
	if size > limitBytes {
		return nil, bridge.Errorf(bridge.TooLarge, "a frame needs %d bytes: at most %d fit", size, limitBytes)
	}
	return binary.BigEndian.AppendUint32(buf, uint32(size)), nil
}

// Parse reads a frame's JSON. Only its outer shape is checked here: what a T keeps
// raw is decoded strictly by whoever knows its meaning. Members that T does not
// know are passed over.
func Parse[T any](payload []byte) (T, error) {
	var value T
	if err := json.Unmarshal(payload, &value); err != nil {
		var none T // part of value may be filled
		return none, bridge.Errorf(bridge.Invalid, "a frame is not valid JSON: %v", err)
	}
	return value, nil
}
