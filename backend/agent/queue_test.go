package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/chat"
)

// fakeCodex writes a program that behaves as the script says. It is a real
// process: what it was given is seen at its side.
func fakeCodex(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCHT_04_EveryCharacterReachesTheQueue(t *testing.T) {
	dir := t.TempDir()
	bin := fakeCodex(t, `printf '%s\0' "$@" > `+dir+`/args`)
	for name, text := range map[string]string{
		"shell":  "a 'b' \"c\" $(id) `id` ${HOME} \\ * ; & | < > \n second line\n",
		"emoji":  "🦫 ünïcødé \u200b",
		"option": "--message x --thread y",
		"long":   strings.Repeat("é", 32_000),
		"widest": strings.Repeat("🦫", 32_000),
	} {
		t.Run(name, func(t *testing.T) {
			result, reason := Queue{Bin: bin}.Push(t.Context(), "thread-1", chat.OwnerLabel+text)
			if result != chat.QueueAccepted {
				t.Fatalf("Push = %s, %q", result, reason)
			}
			got, err := os.ReadFile(filepath.Join(dir, "args"))
			if err != nil {
				t.Fatal(err)
			}
			want := "queue\x00--thread\x00thread-1\x00--message\x00" + chat.OwnerLabel + text + "\x00"
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCHT_05_CHT_06_CHT_19_HowTheQueueCommandEnds(t *testing.T) {
	tests := []struct {
		name   string
		bin    string
		result chat.QueueResult
		reason string
	}{
		{"accepted", fakeCodex(t, "exit 0"), chat.QueueAccepted, ""},
		{"refused", fakeCodex(t, "echo 'no rollout found' >&2; exit 1"), chat.QueueRefused, "no rollout found"},
		{"too old", fakeCodex(t, `echo "error: unrecognized subcommand 'queue'" >&2; exit 2`), chat.QueueUnsupported, "too old"},
		{"killed after launch", fakeCodex(t, "kill -9 $$"), chat.QueueUnclear, "died"},
		{"hangs", fakeCodex(t, "exec sleep 600"), chat.QueueUnclear, "did not answer"},
		{"not there", filepath.Join(t.TempDir(), "none"), chat.QueueRefused, "could not be started"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			timeout := 10 * time.Second
			if tt.name == "hangs" {
				timeout = 200 * time.Millisecond
			}
			result, reason := Queue{Bin: tt.bin, Timeout: timeout}.Push(t.Context(), "t", "m")
			if result != tt.result || !strings.Contains(reason, tt.reason) {
				t.Errorf("Push = %s, %q; want %s with %q", result, reason, tt.result, tt.reason)
			}
		})
	}
}
