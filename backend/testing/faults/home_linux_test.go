//go:build amd64 || arm64

package faults

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/transfer"
)

// scratch is a folder in memory, where a sync costs nothing; the faults are
// injected and not the disk's.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "f")
	if err != nil {
		dir, err = os.MkdirTemp("", "f")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a process that was killed may still be ending
	return dir
}

func homeAt(t *testing.T, dir string) config.Home {
	t.Helper()
	home, err := config.ResolveHome(dir, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func maintenance(t *testing.T, dir string) maintain.Maintenance {
	return maintain.Maintenance{Home: homeAt(t, dir), Program: "a test", Now: time.Now}
}

// The messages of a made home: old ones that were read and may be archived, new
// ones that wait, and later ones that its snapshot does not have.
const oldOnes, newOnes, laterOnes = 30, 10, 5

// abandoned is what an unfinished write left.
const abandoned = ".jobs.json.bridge-tmp-ABCDEF"

func idOf(n int) string { return fmt.Sprintf("m%03d", n) }

// makeHome makes a home with messages, a snapshot, JSON files and what an
// unfinished write left.
func makeHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(scratch(t), "h")
	c := maintenance(t, dir)
	if err := c.Home.Ensure(); err != nil {
		t.Fatal(err)
	}
	addMessages(t, c, 0, oldOnes, time.UnixMilli(1_000))
	addMessages(t, c, oldOnes, newOnes, time.Now())
	put(t, dir, "jobs.json", `{"version": 4, "jobs": [{"name": "build"}]}`)
	put(t, dir, "config.json", `{"version": 1, "name": "desk"}`)
	if _, err := c.Snapshots().Backup(t.Context()); err != nil {
		t.Fatal(err)
	}
	addMessages(t, c, oldOnes+newOnes, laterOnes, time.Now())
	put(t, dir, abandoned, "half")
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addMessages stores count messages from the n-th on; those of long ago are read.
func addMessages(t *testing.T, c maintain.Maintenance, n, count int, at time.Time) {
	t.Helper()
	db, err := store.Open(t.Context(), c.Home.DB(), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := n; i < n+count; i++ {
		_, _, err := db.Append(t.Context(), []bridge.Message{{
			ID: idOf(i), Recipient: "bob", From: bridge.Address{ID: "alice", Name: "alice", Agent: bridge.Claude},
			To: "bob", ConversationID: "c", Body: fmt.Sprint("message ", i), CreatedAt: at.UnixMilli(),
		}})
		if err == nil && time.Since(at) > time.Hour {
			err = db.Record(t.Context(), bridge.StageConsumed, []mail.Mark{{MessageID: idOf(i), Recipient: "bob", At: at.UnixMilli(), Evidence: "read"}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyOf copies a home, rights and all.
func copyOf(t *testing.T, home string) string {
	t.Helper()
	to := filepath.Join(scratch(t), "h")
	if out, err := exec.Command("cp", "-a", home, to).CombinedOutput(); err != nil {
		t.Fatalf("copy the home: %v %s", err, out)
	}
	return to
}

// stored counts the deliveries of each message over the store and its archive.
func stored(t *testing.T, home string) map[string]int {
	t.Helper()
	reader, err := store.OpenReader(context.Background(), homeAt(t, home).DB())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	rows, err := reader.Recent(context.Background(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, row := range rows {
		found[row.ID] += len(row.Deliveries)
	}
	return found
}

// messages are the first count messages of a made home, each with one delivery.
func messages(count int) map[string]int {
	all := map[string]int{}
	for n := range count {
		all[idOf(n)] = 1
	}
	return all
}

func rowsOf(t *testing.T, home, database, table string) int {
	t.Helper()
	counts, err := transfer.Counts(context.Background(), filepath.Join(home, database), false)
	if err != nil {
		return -1
	}
	return counts[table]
}

// sets lists the published sets of a folder.
func sets(t *testing.T, home, folder, prefix string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(home, folder, prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// ran is what one command did.
type ran struct {
	code int
	text string // what it printed
}

// command runs a command without faults.
func command(t *testing.T, args ...string) ran {
	t.Helper()
	var text bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), text.String()}
}
