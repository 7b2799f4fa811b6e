package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestPRF_06_TheSoakTaskTakesHours(t *testing.T) {
	p := project{root: t.TempDir()}
	for _, tt := range []struct {
		args string
		want string // arguments of go test, within which these must be
		env  string // a part of its environment
		bad  bool
	}{
		{args: "", want: "-timeout 2h -v ./backend/testing/soak ./backend/testing/faults", env: "BRIDGE_TEST_LONG=1"},
		{args: "-run Kills", want: "./backend/testing/soak ./backend/testing/faults -run Kills", env: "BRIDGE_TEST_LONG=1"},
		{args: "-hours 24", want: "-timeout 25h0m0s -v -run=^TestPRF_06_ADay$ ./backend/testing/soak", env: "BRIDGE_SOAK_HOURS=24"},
		{args: "-race -hours=0.5 -json", want: "-timeout 1h30m0s -v -run=^TestPRF_06_ADay$ ./backend/testing/soak -race -json", env: "BRIDGE_SOAK_HOURS=0.5"},
		{args: "-hours", bad: true},
		{args: "-hours much", bad: true},
		{args: "-hours 0", bad: true},
		{args: "-hours -3", bad: true},
		{args: "-hours NaN", bad: true},
		{args: "-hours 100000", bad: true},
	} {
		call, figure, err := p.soakCall(strings.Fields(tt.args))
		if tt.bad {
			if !errors.As(err, new(badArgument)) || !strings.Contains(err.Error(), "-hours takes a number of hours") {
				t.Errorf("soak %s: %v", tt.args, err)
			}
			continue
		}
		if got := strings.Join(call.args, " "); err != nil || !strings.HasSuffix(got, tt.want) || !slices.Contains(call.env, tt.env) {
			t.Errorf("soak %s: go %s with %v, %v; want %s with %s", tt.args, got, call.env, err, tt.want, tt.env)
		}
		if draws := slices.Contains(call.env, "BRIDGE_SOAK_FIGURE="+figure); draws != strings.Contains(tt.args, "-hours") {
			t.Errorf("soak %s draws: %t", tt.args, draws)
		}
	}
}
