package runs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

func TestSEC_11_ALineOfATranscriptIsBounded(t *testing.T) {
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		said  Said
		isCut bool
	}{
		"a few words":     {Said{Kind: SaidText, Text: "hello"}, false},
		"many":            {Said{Kind: SaidText, Text: strings.Repeat("x", mib-200)}, false},
		"too many":        {Said{Kind: SaidText, Text: strings.Repeat("x", mib)}, true},
		"far too many":    {Said{Kind: SaidText, Text: strings.Repeat("é", 5*mib)}, true},
		"all escaped":     {Said{Kind: SaidText, Text: strings.Repeat("<", mib/2)}, true},
		"escaped at last": {Said{Kind: SaidMessage, Text: strings.Repeat("x", mib-300) + strings.Repeat("\x01", 1000)}, true},
		"a long command":  {Said{Kind: SaidCall, Tool: "shell", Text: strings.Repeat("x", 3*mib)}, true},
		"a long name":     {Said{Kind: SaidCall, Tool: strings.Repeat("t", 2*mib), ID: strings.Repeat("i", 2*mib), Text: "x"}, true},
		"escaped input":   {Said{Kind: SaidCall, Text: "x", Input: json.RawMessage(`"` + strings.Repeat("<", MaxSaidBytes-10) + `"`)}, true},
	} {
		line, err := tt.said.Encode()
		if err != nil || len(line) > MaxLineBytes || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Errorf("%s: a line of %d bytes, %v", name, len(line), err)
			continue
		}
		got, ok := DecodeSaid(line)
		if !ok || got.Cut != tt.isCut || got.Kind != tt.said.Kind || !tt.isCut && got.Text != tt.said.Text {
			t.Errorf("%s: cut %t, %.40q", name, got.Cut, got.Text)
		}
		if tt.isCut && len(tt.said.Text) > 10 && (!strings.HasSuffix(got.Text, bridge.Size(int64(len(tt.said.Text)))+".]") || len(got.Text) < 100_000) {
			t.Errorf("%s: %d bytes are kept, which end %q", name, len(got.Text), got.Text[max(0, len(got.Text)-80):])
		}
	}
}

// TestSEC_11_AnEnvelopeIsWrittenBitByBit: its bytes are the same.
func TestSEC_11_AnEnvelopeIsWrittenBitByBit(t *testing.T) {
	for name, result := range map[string]string{
		"none": "", "short": "words", "quoted": `"result":"" \ <a> & "` + "\u2028\x00\n", "long": strings.Repeat("é<\"\\x", 100_000), "at a bound": strings.Repeat("x", pieceBytes-1) + "é" + strings.Repeat("日本", pieceBytes),
	} {
		envelope := Envelope{Version: 1, Job: "claude-job-0a1b2c3d", Run: 1, State: job.Finished, Error: `"result":""`, Title: "t", Result: result, Evidence: Evidence{Commands: []Command{{Command: `"result":""`}}}}
		want, err := envelope.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := envelope.EncodeTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: %d bytes, want %d, %v", name, got.Len(), len(want), err)
		}
	}
}
