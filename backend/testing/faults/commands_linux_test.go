//go:build amd64 || arm64

package faults

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/testing/testkit"
)

// work is one of the doctor's, or what the daemon has done by itself.
type work struct {
	name string
	args []string
	// done reports whether the work's effect is there.
	done func(t *testing.T, home string) bool
	// spoil makes the home one for this work; nil where it is already.
	spoil func(t *testing.T, home string)
}

var works = []work{
	{name: "STO-04 STO-05 backup", args: []string{"doctor", "--backup"}, done: func(t *testing.T, home string) bool {
		return len(sets(t, home, "backups", "snapshot-")) > 1
	}},
	{name: "STO-08 drill", args: []string{"doctor", "--drill"}, done: proven},
	{name: "STO-06 fix", args: []string{"doctor", "--fix", "--yes"}, done: func(t *testing.T, home string) bool {
		_, err := os.Lstat(filepath.Join(home, abandoned))
		return os.IsNotExist(err)
	}},
	{name: "STO-07 archive", args: []string{"doctor", "--archive", "--yes"}, done: func(t *testing.T, home string) bool {
		return rowsOf(t, home, "archive.db", "archived_messages") == oldOnes && rowsOf(t, home, "bridge.db", "messages") == newOnes+laterOnes
	}},
	{name: "STO-08 restore", args: []string{"doctor", "--restore", "latest", "--yes"}, done: func(t *testing.T, home string) bool {
		return maps.Equal(stored(t, home), messages(oldOnes+newOnes))
	}},
	{name: "STO-10 backup of messages", args: []string{"backup-worker"}, done: func(t *testing.T, home string) bool {
		return proven(t, home) && len(sets(t, home, "message-backups", "messages-")) > 0
	}},
	{name: "STO-16 merge", args: []string{"doctor", "--merge", "latest", "--yes"}, spoil: loseMessages, done: func(t *testing.T, home string) bool {
		return len(stored(t, home)) == oldOnes+newOnes+2*laterOnes
	}},
}

func proven(t *testing.T, home string) bool {
	_, proven := inventory.LastPassed(homeAt(t, home).Backups())
	return proven
}

// loseMessages backs the messages up, loses the store and begins another by its
// owner's word.
func loseMessages(t *testing.T, home string) {
	t.Helper()
	c := maintenance(t, home)
	if _, err := c.Snapshots().BackupMessages(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.Home.DB()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restores().Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	addMessages(t, c, 500, laterOnes, time.Now())
}

// TestSTO_04_STO_10_FaultsUnderMaintenance lets each write and each sync of each
// work fail in each way. Whatever happens, no message is lost, what the home
// says of itself is true, and the same work succeeds when the disk does again.
func TestSTO_04_STO_10_FaultsUnderMaintenance(t *testing.T) {
	made := makeHome(t)
	every := stride(t, 83)
	for _, w := range works {
		t.Run(w.name, func(t *testing.T) {
			made := made
			if w.spoil != nil {
				made = copyOf(t, made)
				w.spoil(t, made)
			}
			for i, p := range plans() {
				ran := 0
				for p.n = 1 + i%every; w.meets(t, p, made); p.n += every {
					ran++
				}
				t.Logf("%s: %d times", p.name, ran)
				if every == 1 && ran == 0 {
					t.Errorf("%s: never", p.name)
				}
			}
		})
	}
}

// meets runs the work while the disk does as planned, and reports whether it met
// that at all.
func (w work) meets(t *testing.T, p *plan, made string) bool {
	t.Helper()
	home := copyOf(t, made)
	p.seen, p.touched = 0, nil
	before := stored(t, home)
	var text bytes.Buffer
	program := start(t, home, p.judge, &text, &text, append(w.args, "--home", home)...)
	select {
	case <-program.ended:
	case <-time.After(testkit.Patience):
		t.Fatalf("%s at %d: it hangs", p.name, p.n)
	}
	if len(p.touched) == 0 {
		if code := program.status.ExitStatus(); code != 0 {
			t.Errorf("without a fault: exit code %d: %s", code, &text)
		}
		return false
	}
	r := ran{program.status.ExitStatus(), text.String()}
	broken := t.Failed()
	w.checkAnswer(t, p, home, r)
	w.checkHome(t, p, home, before, r)
	if t.Failed() && !broken {
		t.Logf("%s at %d, %s: exit %d, %q", p.name, p.n, p.touched[0], r.code, r.text)
	}
	return true
}

// checkAnswer: done and said so, or failed with one sentence that names a file
// that the disk failed for, or its folder.
func (w work) checkAnswer(t *testing.T, p *plan, home string, r ran) {
	t.Helper()
	switch r.code {
	case 0:
		if !w.done(t, home) {
			t.Errorf("it said that it was done, and it is not")
		}
	case 1:
		named := func(path string) bool { return strings.Contains(r.text, plainName(home, path)) }
		if !slices.ContainsFunc(p.touched, named) {
			t.Errorf("the answer names none of %v", p.touched)
		}
		if _, sentence, _ := strings.Cut(r.text, "bridge: "); strings.Count(sentence, "\n") > 1 {
			t.Errorf("more than one line")
		}
	default:
		t.Errorf("exit code %d", r.code)
	}
}

var (
	sideName = regexp.MustCompile(`-(wal|shm|journal)$`)
	tempName = regexp.MustCompile(`^\.+(.*?)(\.bridge-tmp-[A-Z0-9]+)+$`)
)

// plainName is the name that people know a touched file by: side files and
// unfinished ones belong to the file that they are for.
func plainName(home, path string) string {
	if path == home {
		return home
	}
	name := sideName.ReplaceAllString(filepath.Base(path), "")
	if temp := tempName.FindStringSubmatch(name); temp != nil {
		return temp[1]
	}
	return name
}

// checkHome: no message is lost, the doctor finds nothing wrong that the answer
// did not tell, and the work succeeds now.
func (w work) checkHome(t *testing.T, p *plan, home string, before map[string]int, r ran) {
	t.Helper()
	// A restore that ended but could not note it says so, and counts as unfinished.
	left := r.code == 1 && (p.lasting && strings.Contains(r.text, "recovery-") || strings.Contains(r.text, "could not be noted"))
	if !left {
		if now := stored(t, home); !maps.Equal(now, before) && !w.done(t, home) {
			t.Errorf("%d messages before, %d now", len(before), len(now))
		}
	}
	report, err := maintenance(t, home).Doctor().Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		told := left && finding.Code == check.RestoreUnfinished || r.code == 1 && finding.Code == check.TestFailed
		if finding.Severity == check.Error && !told {
			t.Errorf("afterwards the doctor says: %s: %s: %s", finding.Code, finding.Path, finding.Detail)
		}
	}
	if r.code == 0 {
		return
	}
	if again := command(t, append(w.args, "--home", home)...); again.code != 0 || !w.done(t, home) {
		t.Errorf("the work again: exit %d, %s", again.code, again.text)
	}
}
