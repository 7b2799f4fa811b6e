package faults

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/testing/testkit"
)

// leftLog is what is left of a lost store, and nowhere else.
const leftLog = "commits of the lost store"

// lostHome is a home with a snapshot that has lost its store.
func lostHome(t *testing.T, made string) string {
	t.Helper()
	home := copyOf(t, made)
	if err := os.Remove(filepath.Join(home, "bridge.db")); err != nil {
		t.Fatal(err)
	}
	put(t, home, "bridge.db-wal", leftLog)
	return home
}

// TestSTO_17_FaultsWhileALostStoreIsReplaced lets writes and syncs fail while an
// empty store takes the place of a lost one: it serves or ends with one sentence,
// what was left is kept, and the owner's next word is carried out.
func TestSTO_17_FaultsWhileALostStoreIsReplaced(t *testing.T) {
	made := makeHome(t)
	every := stride(t, 101)
	for i, p := range plans() {
		ran := 0
		for n := 1 + i%every; replaceUnder(t, p, n, lostHome(t, made)); n += every {
			ran++
		}
		t.Logf("%s: %d times", p.name, ran)
	}
}

// replaceUnder begins anew while the plan's n-th call fails and reports whether
// one did.
func replaceUnder(t *testing.T, p *plan, n int, home string) bool {
	t.Helper()
	p.arm(n)
	text, serves := serveAnew(t, home, p.judge)
	if p.met() == 0 {
		return false
	}
	said := text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]
	if !serves && (!strings.HasPrefix(said, "bridge: ") || !strings.Contains(said, home)) {
		t.Errorf("%s at %d (%v): %q", p.name, n, p.touched, text)
	}
	if !holds(t, home, leftLog) {
		t.Errorf("%s at %d (%v): the log of the lost store is nowhere", p.name, n, p.touched)
	}
	p.arm(0)
	plain := command(t, "doctor", "--home", home)
	lost := strings.Contains(plain.text, "[store-lost]")
	if lost {
		if again := command(t, "serve", "--port", "0", "--home", home); again.code != 3 || !strings.Contains(again.text, " is lost: ") {
			t.Errorf("%s at %d (%v): a plain serve: %+v", p.name, n, p.touched, again)
		}
		if text, serves := serveAnew(t, home, p.judge); !serves {
			t.Errorf("%s at %d (%v): the same again: %s", p.name, n, p.touched, text)
		}
	}
	after := serve(t, home, p.judge)
	if !after.send("afterwards") {
		t.Errorf("%s at %d (%v): the new store takes nothing", p.name, n, p.touched)
	}
	after.terminate()
	if !holds(t, home, leftLog) {
		t.Errorf("%s at %d (%v): the log of the lost store is gone in the end", p.name, n, p.touched)
	}
	return true
}

// serveAnew runs `serve --new-store` until it is ready, and ends it.
func serveAnew(t *testing.T, home string, judge func(call) verdict) (text string, serves bool) {
	t.Helper()
	output := &ready{said: make(chan struct{})}
	program := start(t, home, judge, output, output, "serve", "--new-store", "--yes", "--port", "0", "--home", home)
	select {
	case <-output.said:
		serves = true
		program.signal(unix.SIGTERM)
	case <-program.ended:
	case <-time.After(testkit.Patience):
		t.Fatal("it neither serves nor ends")
	}
	select {
	case <-program.ended:
	case <-time.After(testkit.Patience):
		t.Fatal("it does not end")
	}
	return output.text.String(), serves
}

// holds reports whether a file below the home has exactly these bytes.
func holds(t *testing.T, home, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Equal(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
