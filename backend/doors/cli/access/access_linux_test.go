package access

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/network/link"
	"bridge/backend/platform/config"
)

// asked is a run of the program on a terminal where a person types.
func asked(t *testing.T, settings, typed string) (command.Run, config.Home, *bytes.Buffer) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = slave.Close(), master.Close() })
	if _, err := io.WriteString(master, typed); err != nil {
		t.Fatal(err)
	}
	folder, asJSON, out := t.TempDir(), false, &bytes.Buffer{}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r := command.Run{Stdin: slave, Stdout: out, Stderr: out, Getenv: func(string) string { return "" }, Now: time.Now, HomeFlag: &folder, JSON: &asJSON}
	home, err := r.Home()
	if err != nil {
		t.Fatal(err)
	}
	return r, home, out
}

func network(t *testing.T, home config.Home) config.Network {
	t.Helper()
	settings, err := readSettings(home)
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

func TestDOC_12_APairingAsksForLinksAndTheAddress(t *testing.T) {
	own := link.OwnAddresses()
	if len(own) == 0 {
		t.Skip("this machine has no address in a network")
	}
	for _, tt := range []struct {
		name, settings, typed string
		enabled               bool
		listen                []string
		said                  string
	}{
		{"both", `{}`, "y\n1\n", true, own[:1], "1) " + own[0]},
		{"links only", `{}`, "yes\n\n", true, nil, "Links are on."},
		{"neither", `{}`, "n\n\n", false, nil, "bridge network on --home"},
		{"links are on already", `{"network":{"enabled":true}}`, "1\n", true, own[:1], "Number"},
		{"both are there already", `{"network":{"enabled":true,"listen":["127.0.0.1"]}}`, "", true, []string{"127.0.0.1"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, home, out := asked(t, tt.settings, tt.typed)
			if err := AskToReach(r, home); err != nil {
				t.Fatal(err)
			}
			if got := network(t, home); got.Enabled != tt.enabled || !slices.Equal(got.Listen, tt.listen) || !strings.Contains(out.String(), tt.said) {
				t.Errorf("enabled %v, listen %v, said %q", got.Enabled, got.Listen, out)
			}
		})
	}
}

func TestDOC_12_AWrongNumberChangesNothing(t *testing.T) {
	if len(link.OwnAddresses()) == 0 {
		t.Skip("this machine has no address in a network")
	}
	for _, typed := range []string{"0\n", "99\n", "eth0\n"} {
		r, home, _ := asked(t, `{"network":{"enabled":true}}`, typed)
		if err := AskToReach(r, home); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "is no number from 1 to") {
			t.Errorf("%q: %v", typed, err)
		}
		if got := network(t, home); len(got.Listen) > 0 {
			t.Errorf("%q: listen %v", typed, got.Listen)
		}
	}
}

func TestDOC_12_WithoutATerminalThePairingAsksNothing(t *testing.T) {
	r, home, out := asked(t, `{}`, "y\n1\n")
	r.Stdin = strings.NewReader("y\n1\n")
	if err := AskToReach(r, home); err != nil || out.Len() > 0 {
		t.Errorf("said %q, %v", out, err)
	}
	if err := AskToLink(r, home); err != nil || !strings.Contains(out.String(), "Turn them on: bridge network on --home") {
		t.Errorf("said %q, %v", out, err)
	}
	if got := network(t, home); got.Enabled || len(got.Listen) > 0 {
		t.Errorf("enabled %v, listen %v", got.Enabled, got.Listen)
	}
}
