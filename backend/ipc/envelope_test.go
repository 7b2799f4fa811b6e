package ipc

import (
	"encoding/json"
	"strings"
	"testing"

	"bridge/backend/bridge"
)

// TestMSG_10_AFrameHoldsFourMebibytes is also the size beyond which the other end
// refuses to read.
func TestMSG_10_AFrameHoldsFourMebibytes(t *testing.T) {
	const most = 4 << 20
	frameOf := func(size int) ([]byte, error) {
		around := len(`{"id":1,"args":""}`)
		return appendFrame([]byte("before"), envelope{ID: 1, Args: json.RawMessage(`"` + strings.Repeat("x", size-around) + `"`)})
	}
	if got, err := frameOf(most); err != nil || len(got) != len("before")+4+most {
		t.Errorf("as large as allowed: %d bytes, %v", len(got), err)
	}
	if got, err := frameOf(most + 1); bridge.CodeOf(err) != bridge.TooLarge || got != nil {
		t.Errorf("one over: %d bytes, %v", len(got), err)
	}
}
