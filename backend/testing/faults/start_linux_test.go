//go:build amd64 || arm64

package faults

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/storage/maintain/check"
	"bridge/backend/testing/testkit"
)

// TestMSG_01_VER_02_FaultsWhileABrokerStarts lets writes and syncs fail while a
// broker starts, in a new home and in one with messages: it serves, or ends with
// one sentence, and the next one finds everything there.
func TestMSG_01_VER_02_FaultsWhileABrokerStarts(t *testing.T) {
	made := makeHome(t)
	every := stride(t, 101)
	for name, home := range map[string]func(t *testing.T) string{
		"a new home":        func(t *testing.T) string { return filepath.Join(scratch(t), "h") },
		"one with messages": func(t *testing.T) string { return copyOf(t, made) },
	} {
		t.Run(name, func(t *testing.T) {
			for i, p := range plans() {
				ran := 0
				for n := 1 + i%every; startUnder(t, p, n, home(t)); n += every {
					ran++
				}
				t.Logf("%s: %d times", p.name, ran)
			}
		})
	}
}

// startUnder starts a broker while the plan's n-th call fails and reports whether
// one did.
func startUnder(t *testing.T, p *plan, n int, home string) bool {
	t.Helper()
	before := map[string]int{}
	_, err := os.Stat(home)
	if err == nil {
		before = stored(t, home)
	}
	p.arm(n)
	output := &ready{said: make(chan struct{})}
	program := start(t, home, p.judge, output, output, "serve", "--port", "0", "--home", home)
	serves := false
	select {
	case <-output.said:
		serves = true
		program.signal(unix.SIGTERM)
	case <-program.ended:
	case <-time.After(testkit.Patience):
		t.Errorf("%s at %d: it neither serves nor ends", p.name, n)
	}
	select {
	case <-program.ended:
	case <-time.After(testkit.Patience):
		t.Fatalf("%s at %d: it does not end", p.name, n)
	}
	if p.met() == 0 {
		return false
	}
	text := output.text.String()
	if code := program.status.ExitStatus(); !serves && (code != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, home)) {
		t.Errorf("%s at %d (%v): exit %d, %q", p.name, n, p.touched, code, text)
	}
	p.arm(0)
	if err != nil && !serves {
		sound(t, home, check.StoreUnmade) // a new home whose first start failed
	} else {
		sound(t, home)
	}
	after := serve(t, home, func(call) verdict { return verdict{} })
	if !after.send("afterwards") {
		t.Errorf("%s at %d: the next broker stores nothing", p.name, n)
	}
	after.terminate()
	before["afterwards"] = 1
	if now := stored(t, home); !maps.Equal(now, before) {
		t.Errorf("%s at %d: %d messages before, %d now", p.name, n, len(before), len(now))
	}
	return true
}
