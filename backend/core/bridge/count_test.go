package bridge

import (
	"encoding/json"
	"testing"
)

func TestSTO_18_AnUnknownCountIsNullAndNever0(t *testing.T) {
	for _, tt := range []struct {
		count            Count
		text, noun, wire string
	}{
		{0, "0", "0 messages", "0"},
		{1, "1", "1 message", "1"},
		{UnknownCount, "?", "? messages", "null"},
		{Count(1).Plus(2), "3", "3 messages", "3"},
		{Count(1).Plus(UnknownCount), "?", "? messages", "null"},
		{UnknownCount.Plus(1), "?", "? messages", "null"},
	} {
		data, err := json.Marshal(tt.count)
		var again Count
		if err == nil {
			err = json.Unmarshal(data, &again)
		}
		if err != nil || string(data) != tt.wire || again != tt.count || tt.count.String() != tt.text || tt.count.Of("message") != tt.noun {
			t.Errorf("%s: %q, %q, %s, read as %s, %v", tt.text, tt.count, tt.count.Of("message"), data, again, err)
		}
	}
	var plain int
	if err := json.Unmarshal([]byte("null"), &plain); err != nil {
		t.Errorf("a program that expects a number: %v", err)
	}
}
