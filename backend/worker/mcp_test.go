package worker

import (
	"strings"
	"testing"
)

func TestCHT_03_TheChannelCountsAsOpenOnlyWhenAFlagNamesIt(t *testing.T) {
	for line, want := range map[string]bool{
		"claude":                          false,
		"claude --channels server:bridge": true,
		"claude --channels=plugin:x@y,server:bridge":                            true,
		"claude --dangerously-load-development-channels server:a server:bridge": true,
		"claude --channels server:bridges":                                      false,
		"claude --channels server:a -p server:bridge":                           false,
		"claude server:bridge":                                                  false,
	} {
		if got := namesChannel(strings.Fields(line)); got != want {
			t.Errorf("namesChannel(%q) = %v, want %v", line, got, want)
		}
	}
}
