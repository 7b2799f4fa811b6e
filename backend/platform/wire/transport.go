package wire

import (
	"bufio"
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

// Whole is an encoded frame between two PCs, as every transport sends it: its head,
// and the unchanged body.
type Whole struct {
	Head []byte // everything before the body
	Body []byte
}

// EncodeWhole encodes a frame for sending. It fails with TooLarge over the limit.
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

// ReadWhole reads the next frame with its body. It fails as [ReadFrame] does.
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
		err = bridge.Errorf(bridge.Invalid, "a frame's body has %s instead of %d", bridge.Counted(len(frame.Body), "byte"), frame.BodyBytes)
	}
	return frame, err
}
