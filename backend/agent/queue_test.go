package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/chat"
	"bridge/backend/testing/testkit"
)

// fakeCodex writes a program that behaves as the script says. It is a real
// process: what it was given is seen at its side.
func fakeCodex(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codex")
	if err := testkit.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
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

// noRollout is how the real codex refuses a thread that it does not know, with
// what else it may print before.
const noRollout = "WARNING: proceeding, even though we could not create PATH aliases: Refusing to create helper binaries\n" +
	"Error: failed to queue session message: thread/queue/add failed: failed to read thread: invalid thread-store request: " +
	"no rollout found for thread id thread-1 (code -32603)"

func TestCHT_05_CHT_06_CHT_19_HowTheQueueCommandEnds(t *testing.T) {
	ends := func(code int, words string) string {
		return fakeCodex(t, fmt.Sprintf("cat >&2 <<'END'\n%s\nEND\nexit %d", words, code))
	}
	queued := "echo 'Queued message 01a202cc-3977 for thread thread-1.'; "
	tests := []struct {
		name   string
		bin    string
		result chat.QueueResult
		reason string
	}{
		{"accepted", fakeCodex(t, queued+"exit 0"), chat.QueueAccepted, ""},
		{"accepted, its output held", fakeCodex(t, queued+"sleep 3 & exit 0"), chat.QueueAccepted, ""},

		// Each wording is the real CLI's.
		{"not there", filepath.Join(t.TempDir(), "none"), chat.QueueRefused, "could not be started"},
		{"too old", ends(2, "error: unrecognized subcommand 'queue'"), chat.QueueUnsupported, "too old"},
		{"too old, takes queue for a prompt", ends(2, "error: unexpected argument '--thread' found\n\n  tip: to pass '--thread' as a value, use '-- --thread'\n\nUsage: codex [OPTIONS] [PROMPT]"), chat.QueueUnsupported, "too old"},
		{"unknown thread", ends(1, noRollout), chat.QueueRefused, "knows no thread of this id"},
		{"unknown name", ends(1, "Error: No active session found matching 'thread-1'."), chat.QueueRefused, "knows no session of this id"},
		{"a child elsewhere", ends(1, "Error: failed to queue session message: thread/queue/add failed: direct app-server input is not allowed for unloaded spawned sub-agents (code -32600)"), chat.QueueRefused, "another codex process runs this child"},
		{"stale server", ends(1, "Error: the local app-server daemon does not support thread/queue/add; update or restart the local app-server daemon: failed to queue session message: thread/queue/add failed: Method not found (code -32601)"), chat.QueueUnsupported, "server is too old"},
		{"older server", ends(1, "Error: the local app-server daemon does not support thread/queue/add; update or restart the local app-server daemon: failed to queue session message: thread/queue/add failed: Invalid request: unknown variant `thread/queue/add`, expected one of `initialize` (code -32600)"), chat.QueueUnsupported, "server is too old"},

		{"killed after launch", fakeCodex(t, "kill -9 $$"), chat.QueueUnclear, "died"},
		{"hangs", fakeCodex(t, "exec sleep 600"), chat.QueueUnclear, "did not answer"},
		{"panic", ends(101, "thread 'main' (7) panicked at tui/src/queue.rs:12:5:\nconnection closed"), chat.QueueUnclear, "exited with 101"},
		{"success, then a failure", fakeCodex(t, queued+"exit 1"), chat.QueueUnclear, "exited with 1"},
		{"success, then a known refusal", fakeCodex(t, queued+"cat >&2 <<'END'\n"+noRollout+"\nEND\nexit 1"), chat.QueueUnclear, "exited with 1"},
		{"server timed out", ends(1, "Error: failed to queue session message: timed out waiting for the server"), chat.QueueUnclear, "timed out waiting"},
		{"connection lost", ends(1, "Error: failed to queue session message: thread/queue/add transport error: WebSocket protocol error: Connection reset without closing handshake"), chat.QueueUnclear, "transport error"},
		{"server's own failure", ends(1, "Error: failed to queue session message: thread/queue/add failed: database is locked (code -32603)"), chat.QueueUnclear, "database is locked"},
		{"silent", fakeCodex(t, "exit 1"), chat.QueueUnclear, "it said nothing"},
		{"silent, a parser's code", fakeCodex(t, "exit 2"), chat.QueueUnclear, "it said nothing"},
		{"a shell's not found", fakeCodex(t, "exec /nowhere/codex"), chat.QueueUnclear, "exited with 127"},
		{"another thread", ends(1, strings.ReplaceAll(noRollout, "thread-1", "thread-2")), chat.QueueUnclear, "exited with 1"},
		{"a refusal's words, another end", ends(101, noRollout), chat.QueueUnclear, "exited with 101"},
		{"a parser's words, another end", ends(1, "error: unexpected argument '--thread' found"), chat.QueueUnclear, "exited with 1"},
		{"a refusal quoted", ends(1, "Error: cannot queue \"error: unexpected argument; no rollout found for thread id thread-1\""), chat.QueueUnclear, "exited with 1"},
		{"two errors", ends(1, noRollout+"\nError: the connection was lost"), chat.QueueUnclear, "exited with 1"},
		{"two errors, the last a refusal", ends(1, "Error: the connection was lost\n"+noRollout), chat.QueueUnclear, "exited with 1"},
		{"panics with a refusal", ends(1, "thread 'main' (7) panicked at tui/src/queue.rs:12:5:\n"+noRollout), chat.QueueUnclear, "exited with 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			timeout := 10 * time.Second
			if tt.name == "hangs" {
				timeout = 200 * time.Millisecond
			}
			result, reason := Queue{Bin: tt.bin, Timeout: timeout}.Push(t.Context(), "thread-1", "m")
			if result != tt.result || !strings.Contains(reason, tt.reason) {
				t.Errorf("Push = %s, %q; want %s with %q", result, reason, tt.result, tt.reason)
			}
		})
	}
}
