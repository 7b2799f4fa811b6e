package wire

import (
	"bufio"
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

// Whole is a frame between two PCs as every transport carries it: its head, and the
// body behind it as it is.
type Whole struct {
	Head []byte // with all that stands before the body
	Body []byte
}

// EncodeWhole makes a frame ready to be written, or says that it is too large.
func EncodeWhole(frame remote.Frame) (Whole, error) {
	frame.BodyBytes = len(frame.Body)
	head, err := AppendFrame(nil, remote.MaxFrameBytes-len(frame.Body), func(buf []byte) ([]byte, error) {
		text, err := json.Marshal(frame)
		return append(buf, text...), err
	})
	if err == nil && len(frame.Body) > 0 {
		head, err = AppendHead(head, remote.MaxFrameBytes, len(frame.Body))
	}
	return Whole{Head: head, Body: frame.Body}, err
}

// ReadWhole takes the next frame, with what follows it.
func ReadWhole(r *bufio.Reader, limitBytes int) (remote.Frame, error) {
	payload, err := ReadFrame(r, limitBytes)
	if err != nil {
		return remote.Frame{}, err
	}
	frame, err := Parse[remote.Frame](payload)
	if err != nil || frame.BodyBytes == 0 {
		return frame, err
	}
	if frame.BodyBytes < 0 || frame.BodyBytes > limitBytes-len(payload) {
		return remote.Frame{}, bridge.Errorf(bridge.TooLarge, "a frame's body of %d bytes does not fit", frame.BodyBytes)
	}
	if frame.Body, err = ReadFrame(r, frame.BodyBytes); err == nil && len(frame.Body) != frame.BodyBytes {
		err = bridge.Errorf(bridge.Invalid, "a frame's body has %d bytes instead of %d", len(frame.Body), frame.BodyBytes)
	}
	return frame, err
}
