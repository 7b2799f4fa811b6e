package terminal

import (
	"errors"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

func TestDOC_07_ALineIsCutToTheTerminal(t *testing.T) {
	for _, c := range []struct {
		line    string
		letters int
		want    string
	}{
		{"50% copying", 20, "50% copying"},
		{"50% copying", 11, "50% copying"},
		{"50% copying", 5, "50% c"},
		{"öäü", 2, "öä"},
		{"as wide as nobody knows", 0, "as wide as nobody knows"},
		{"abc", -1, "abc"},
	} {
		if got := cut(c.line, c.letters); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.line, c.letters, got, c.want)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no more") }

func TestDOC_07_AnAnswerIsReadToItsEnd(t *testing.T) {
	if got, err := ReadText(strings.NewReader("yes,\ngo on\r\n"), nil, "?"); err != nil || got != "yes,\ngo on" {
		t.Errorf("it is %q, %v", got, err)
	}
	if _, err := ReadText(strings.NewReader(strings.Repeat("a", textBytes+1)), nil, "?"); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("a text that is too long: %v", err)
	}
	if got, err := ReadText(strings.NewReader(strings.Repeat("a", textBytes)), nil, "?"); err != nil || len(got) != textBytes {
		t.Errorf("the longest text: %d bytes, %v", len(got), err)
	}
	if _, err := ReadText(failing{}, nil, "?"); err == nil {
		t.Error("a failing input is an answer")
	}
}
