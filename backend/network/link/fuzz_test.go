package link

import (
	"bytes"
	"encoding/json"
	"testing"

	"bridge/backend/core/remote"
	"bridge/backend/network/link/cpace"
	"bridge/backend/platform/wire"
)

func framed(f interface{ Fatal(...any) }, value any) []byte {
	data, err := wire.AppendFrame(nil, remote.MaxFrameBytes, func(buf []byte) ([]byte, error) {
		text, err := json.Marshal(value)
		return append(buf, text...), err
	})
	if err != nil {
		f.Fatal(err)
	}
	return data
}

// FuzzHello: what is taken as a hello is of our protocol and bounded, whatever came.
func FuzzHello(f *testing.F) {
	for _, hello := range []Hello{
		{Protocol: 1, Name: "desk", Release: "1.0", Capabilities: []string{"remote-jobs-v1"}, Port: 4778},
		{Protocol: 2, Name: "desk", Release: "2.0"},
		{Protocol: 1, Capabilities: make([]string, 65)},
	} {
		payload, err := json.Marshal(hello)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(framed(f, remote.Frame{Type: typeHello, Payload: payload}))
	}
	f.Add(framed(f, remote.Frame{Type: typeHello, Payload: json.RawMessage(`{"protocol":1,"later":{"unknown":[1,2,3]}}`)}))
	f.Add(framed(f, remote.Frame{Type: typePing}))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &conn{in: bufioReader(data)}
		frame, err := c.read(maxHelloBytes)
		if err != nil {
			return
		}
		hello, err := parseHello(frame)
		if err != nil {
			return
		}
		if frame.Type != "hello" || hello.Protocol != 1 || len(hello.Capabilities) > 64 || len(frame.Payload) > 16<<10 {
			t.Errorf("taken: %.200s", data)
		}
	})
}

// FuzzPairMessage: no message of a stranger ends the program, and none that is not the
// other side's share makes a key that anybody can know.
func FuzzPairMessage(f *testing.F) {
	setting := cpace.Setting{Code: []byte("7K3MQX9T"), Session: bytes.Repeat([]byte{1}, pairRandomBytes), Channel: []byte("c"), Initiator: []byte("i"), Responder: []byte("r")}
	other, err := cpace.New(setting, true)
	if err != nil {
		f.Fatal(err)
	}
	for _, message := range []pairMessage{
		{Version: 1, Invitation: "i", Name: "desk"},
		{Version: 1, Invitation: "i", Name: "laptop", Session: setting.Session, Share: other.Share()},
		{Share: make([]byte, 32)}, // the identity element
		{Share: bytes.Repeat([]byte{0xff}, 32)},
		{Proof: make([]byte, 64)},
		{Done: true},
		{Refused: "no"},
	} {
		f.Add(framed(f, message))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &exchange{in: bufioReader(data)}
		for {
			message, err := x.receive()
			if err != nil {
				return
			}
			if message.Refused != "" {
				t.Errorf("a refusal was taken for a message: %q", message.Refused)
			}
			side, err := cpace.New(setting, false)
			if err != nil {
				t.Fatal(err)
			}
			key, err := side.Key(message.Share)
			if err == nil && (len(message.Share) != 32 || bytes.Equal(message.Share, make([]byte, 32)) || len(key) == 0) {
				t.Errorf("the share %x makes the key %x", message.Share, key)
			}
			_, _ = CleanCode(message.Name)
		}
	})
}
