package ipc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/wire"
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

// TestAFrameSaysWhatItsEnvelopeHolds compares the frames with what the standard
// encoder makes of the same envelope.
func TestAFrameSaysWhatItsEnvelopeHolds(t *testing.T) {
	raw := json.RawMessage(`{"to":"a","body":"one \"two\" <three> \u2028"}`)
	for _, tt := range []struct {
		name string
		e    envelope
	}{
		{"nothing", envelope{}},
		{"a request", envelope{ID: 1, Op: "send", Args: raw}},
		{"a request without arguments", envelope{ID: 18446744073709551615, Op: "status"}},
		{"an answer", envelope{ID: 7, Result: raw}},
		{"a null answer", envelope{ID: 7, Result: json.RawMessage("null")}},
		{"an error", envelope{ID: 7, Error: bridge.Errorf(bridge.NotFound, "no %q", "x")}},
		{"an event", envelope{Event: "mail", Data: raw}},
		{"an event without data", envelope{Event: EventLagged}},
		{"an operation that nobody has", envelope{ID: 7, Op: "a \"b\" \\ \x01 é"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got, want any
			frame, err := appendFrame(nil, tt.e)
			if err != nil || json.Unmarshal(frame[4:], &got) != nil {
				t.Fatalf("frame %q, %v", frame, err)
			}
			encoded, err := json.Marshal(tt.e)
			if err != nil || json.Unmarshal(encoded, &want) != nil {
				t.Fatalf("encoder: %q, %v", encoded, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the frame says something else:\n%s", diff)
			}
			read, err := wire.Parse[envelope](frame[4:])
			if diff := cmp.Diff(tt.e, read, cmpopts.IgnoreUnexported(bridge.Error{})); err != nil || diff != "" {
				t.Errorf("read back: %v\n%s", err, diff)
			}
		})
	}
	if _, err := appendFrame(nil, envelope{ID: 1, Op: "not \xff UTF-8"}); err == nil {
		t.Error("the name of an operation that is not UTF-8 was written")
	}
}
