package ipc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

func ackOf(recipient string, messages ...string) api.Ack {
	return api.Ack{Lease: session.Lease{ID: "l", Recipient: recipient, Messages: messages}, Stage: bridge.StageHanded, Evidence: "hook Stop"}
}

// memory is a store of acks: a set, as the real one is.
type memory struct {
	mu   sync.Mutex
	rows map[JournalLine]int
}

func (m *memory) record(lines []JournalLine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[JournalLine]int{}
	}
	for _, line := range lines {
		m.rows[line]++
	}
	return nil
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestMSG_06_JournalKeepsReceiptsUntilTheyAreRecorded(t *testing.T) {
	j := Journal{Dir: filepath.Join(t.TempDir(), "home", "read-journal")}
	var m memory
	if err := j.Import(m.record); err != nil || len(m.rows) != 0 {
		t.Fatalf("a home without a journal: %v", err)
	}
	if err := j.Keep(ackOf("p1", "m1", "m2"), 1000); err != nil {
		t.Fatal(err)
	}
	if err := j.Keep(ackOf("p2", "m1"), 2000); err != nil {
		t.Fatal(err)
	}
	if err := j.Keep(ackOf("p3"), 3000); err != nil {
		t.Fatal(err)
	}
	if names := filesIn(t, j.Dir); len(names) != 2 {
		t.Errorf("the journal holds %v, want a file for each ack that says something", names)
	}

	failure := errors.New("the disk is full")
	if err := j.Import(func([]JournalLine) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("a failing store: %v", err)
	}
	if names := filesIn(t, j.Dir); len(names) != 2 {
		t.Fatalf("after a failing store the journal holds %v", names)
	}

	if err := j.Import(m.record); err != nil {
		t.Fatal(err)
	}
	line := func(id, recipient string, at int64) JournalLine {
		return JournalLine{Stage: bridge.StageHanded, MessageID: id, Recipient: recipient, At: at, Evidence: "hook Stop"}
	}
	want := map[JournalLine]int{line("m1", "p1", 1000): 1, line("m2", "p1", 1000): 1, line("m1", "p2", 2000): 1}
	if diff := cmp.Diff(want, m.rows); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if err := j.Import(m.record); err != nil || len(filesIn(t, j.Dir)) != 0 {
		t.Errorf("imported again: %v, left %v", err, filesIn(t, j.Dir))
	}
	if diff := cmp.Diff(want, m.rows); diff != "" {
		t.Errorf("recorded twice (-want +got):\n%s", diff)
	}
}

func TestMSG_06_JournalSurvivesACrashBetweenRecordAndRemove(t *testing.T) {
	j := Journal{Dir: filepath.Join(t.TempDir(), "j")}
	if err := j.Keep(ackOf("p1", "m1"), 1); err != nil {
		t.Fatal(err)
	}
	var m memory
	func() {
		defer func() { _ = recover() }() // the crash
		_ = j.Import(func(lines []JournalLine) error {
			_ = m.record(lines)
			panic("crash")
		})
	}()
	if names := filesIn(t, j.Dir); len(names) != 1 {
		t.Fatalf("after the crash the journal holds %v", names)
	}
	if err := j.Import(m.record); err != nil {
		t.Fatal(err)
	}
	if len(m.rows) != 1 || len(filesIn(t, j.Dir)) != 0 {
		t.Errorf("recorded %v, left %v", m.rows, filesIn(t, j.Dir))
	}
}

func TestMSG_06_JournalLeavesWhatItCannotRead(t *testing.T) {
	j := Journal{Dir: filepath.Join(t.TempDir(), "j")}
	if err := j.Keep(ackOf("p1", "m1"), 1); err != nil {
		t.Fatal(err)
	}
	junk := map[string]string{
		"00-garbage.json":   "not json",
		"00-null.json":      "null",
		"00-empty.json":     "",
		"00-cut.json":       `[{"stage":"handed","id":"m`,
		"00-unknown.json":   `[{"stage":"handed","id":"m1","recipient":"p1","at":1,"evidence":"x","more":1}]`,
		"00-object.json":    `{"stage":"handed"}`,
		"00-two.json":       `[] []`,
		"00-too-large.json": "[" + strings.Repeat(" ", journalLimitBytes) + "]",
	}
	other := map[string]string{"readme.txt": "hello", ".hidden": "x", "no-suffix": "y"}
	for _, files := range []map[string]string{junk, other} {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(j.Dir, "00-folder.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	junk["00-folder.json"] = ""
	for range 2 { // and it is the same at every broker's start
		var m memory
		err := j.Import(m.record)
		if err == nil {
			t.Fatal("junk was not reported")
		}
		for name := range junk {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("the report does not name %s", name)
			}
		}
		for name := range other {
			if strings.Contains(err.Error(), name) {
				t.Errorf("the report names %s, which is none of ours", name)
			}
		}
		if names := filesIn(t, j.Dir); len(names) != len(junk)+len(other) {
			t.Errorf("left %v", names)
		}
		wantFiles(t, j.Dir, junk, other)
	}
	if slices.ContainsFunc(filesIn(t, j.Dir), func(name string) bool { return len(name) > 30 }) {
		t.Error("the good ack was not imported")
	}
}

// wantFiles checks that files hold what they did; a folder holds nothing.
func wantFiles(t *testing.T, dir string, all ...map[string]string) {
	t.Helper()
	for _, files := range all {
		for name, text := range files {
			if name == "00-folder.json" {
				continue
			}
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
				t.Errorf("%s was changed: %v", name, err)
			}
		}
	}
}

func TestMSG_06_JournalWithManyWritersAndBrokers(t *testing.T) {
	j := Journal{Dir: filepath.Join(t.TempDir(), "j")}
	const writers, each = 8, 25
	var m memory
	var writing, importing sync.WaitGroup
	written := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := j.Keep(ackOf("p", strings.Repeat("w", w+1)), int64(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		importing.Go(func() {
			for last := false; !last; {
				select {
				case <-written:
					last = true
				default:
				}
				if err := j.Import(m.record); err != nil {
					t.Errorf("import: %v", err)
				}
			}
		})
	}
	writing.Wait()
	close(written)
	importing.Wait()
	if len(m.rows) != writers*each || len(filesIn(t, j.Dir)) != 0 {
		t.Errorf("%d acks are recorded, want %d; left %v", len(m.rows), writers*each, filesIn(t, j.Dir))
	}
}
