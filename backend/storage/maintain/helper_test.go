package maintain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/snapshot"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// The parts that this test binary plays in another process.
const partEnv = "BRIDGE_MAINTAIN_TEST_PART"

// scratch is what the test run takes away at its end.
var scratch []string

var parts = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if part, ok := parts[os.Getenv(partEnv)]; ok {
		if err := part(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The crashes wait for the disk, not for the processor.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	// A kill loses no written page, so that homes in memory prove the same; the
	// thousands of syncs take minutes on a busy disk.
	if dir, err := os.MkdirTemp("/dev/shm", "maintain-"); err == nil {
		scratch = append(scratch, dir)
		if err := os.Setenv("TMPDIR", dir); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	for _, dir := range scratch {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// someOf returns the steps of so many that a test disturbs: every third and the last three, in
// a long run each.
func someOf(t *testing.T, total int) (steps []int) {
	t.Helper()
	every := testkit.Stride(t, 3)
	for n := 1; n <= total; n++ {
		if n%every == 1%every || n > total-3 {
			steps = append(steps, n)
		}
	}
	return steps
}

// start is when the tests begin.
var start = time.UnixMilli(1_800_000_000_000)

// clock gives a later time at each look.
func clock() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return start.Add(time.Duration(looks.Add(1)) * time.Millisecond) }
}

func maintenanceOf(dir string) (Maintenance, error) {
	home, err := config.ResolveHome(dir, func(string) string { return "" })
	return Maintenance{Home: home, Program: "a test", Now: clock(), Retention: 7}, err
}

func write(t testing.TB, dir, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(inventory.JoinHome(dir, path)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inventory.JoinHome(dir, path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB, c Maintenance) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), c.Home.DB(), store.Options{Now: c.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func appendMessages(t testing.TB, db *store.DB, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		_, _, err := db.Append(context.Background(), []bridge.Message{{
			ID: fmt.Sprintf("m%d", n), Recipient: "bob", From: bridge.Address{ID: "alice", Name: "alice", Agent: bridge.Claude},
			To: "bob", ConversationID: "c", Body: fmt.Sprintf("message %d ✓", n), CreatedAt: int64(1000 + n),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

const (
	tokenText  = "TOKEN-THAT-MUST-NOT-LEAVE-1"
	secretText = "SECRET-THAT-MUST-NOT-LEAVE-2"
	logText    = "words of a run that stay in its log"
)

// template is a home that newHome copies: making one anew takes many syncs.
var template = struct {
	once sync.Once
	dir  string
}{}

// newHome gives a home as work leaves it, with no process alive.
func newHome(t testing.TB) Maintenance {
	t.Helper()
	template.once.Do(func() { template.dir = makeTemplate(t) })
	from, err := maintenanceOf(template.dir)
	if err != nil {
		t.Fatal(err)
	}
	return copied(t, from)
}

// copyHome copies a home and closes it to others, which os.CopyFS does not.
func copyHome(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			err = os.Chmod(path, 0o600)
		}
		return err
	})
	if err := errors.Join(err, os.Chmod(to, 0o700)); err != nil {
		t.Fatal(err)
	}
}

// copied gives another home with the same files.
func copied(t testing.TB, c Maintenance) Maintenance {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	copyHome(t, c.Home.Dir(), dir)
	other, err := maintenanceOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	other.Now = c.Now
	return other
}

func makeTemplate(t testing.TB) string {
	dir, err := os.MkdirTemp("", "maintain-home-")
	if err != nil {
		t.Fatal(err)
	}
	scratch = append(scratch, dir)
	c, err := maintenanceOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	dir = c.Home.Dir()
	db := openStore(t, c)
	appendMessages(t, db, 0, 40)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config.json", `{"version": 1, "name": "desk", "$schema": "kept"}`)
	write(t, dir, "jobs.json", `{"version": 4, "jobs": [{"name": "build"}]}`)
	write(t, dir, "remote-jobs.json", `{"jobs": []}`)
	write(t, dir, "install/install.json", `{"version": 1, "kinds": {}}`)
	write(t, dir, "install/claude/settings.json.0123", `{"of": "the user"}`)
	write(t, dir, "read-journal/0b5f.json", `[]`)
	write(t, dir, "archive/jobs/old.json", `{"name": "old"}`)
	write(t, dir, "runs/one.log", logText)
	write(t, dir, "runs/one.json", `{"run": "one"}`)
	write(t, dir, "token", tokenText+"\n")
	write(t, dir, "launch-secret", secretText+"\n")
	return dir
}

// listing describes every file below dir: mode, size, time and bytes.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		seen[name] = fmt.Sprint(info.Mode(), " ", info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			seen[name] += " " + hex.EncodeToString(sum[:8])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// managedBytes returns the bytes of every managed file and side file.
func managedBytes(t testing.TB, c Maintenance) map[string]string {
	t.Helper()
	paths, err := inventory.Present(context.Background(), c.Home.Dir())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(inventory.JoinHome(c.Home.Dir(), path))
		if err != nil {
			t.Fatal(err)
		}
		seen[path] = string(data)
	}
	return seen
}

func report(t testing.TB, c Maintenance) check.Report {
	t.Helper()
	r, err := c.Doctor().Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// findings lists "code path" of a report.
func findings(r check.Report) []string {
	found := []string{}
	for _, f := range r.Findings {
		found = append(found, string(f.Code)+" "+f.Path)
	}
	return found
}

func has(list []string, want string) bool {
	for _, text := range list {
		if text == want {
			return true
		}
	}
	return false
}

func mustBackup(t testing.TB, c Maintenance) snapshot.Made {
	t.Helper()
	made, err := c.Snapshots().Backup(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// noTemps fails when a temporary file is left outside of failed attempts.
func noTemps(t testing.TB, dir string) {
	t.Helper()
	for name := range listing(t, dir) {
		if disk.IsTemp(name) && !strings.Contains(name, inventory.PendingPrefix) {
			t.Errorf("left behind: %s", name)
		}
	}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sameFiles(t *testing.T, want, got map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s changed", path)
		}
	}
}
