package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/testing/testkit"
)

var errFault = errors.New("the disk said no")

// failAt returns Files whose given step fails.
func failAt(step Step) Files {
	return Files{Before: func(s Step, _ string) error {
		if s == step {
			return errFault
		}
		return nil
	}}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "(missing)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func TestWriteAtomicReplacesTheFileAndItsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteAtomic(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := text(t, path); got != "new" {
		t.Errorf("content = %q, want new", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != testkit.Mode(0o600) {
		t.Errorf("mode = %v, %v; want 0600", info.Mode(), err)
	}
}

func TestWriteAtomicKeepsTheOldBytesWhenAStepFails(t *testing.T) {
	for _, step := range []Step{StepCreate, StepWrite, StepSync, StepPublish} {
		t.Run(string(step), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			put(t, path, "old")
			if err := failAt(step).WriteAtomic(path, []byte("new"), 0o600); !errors.Is(err, errFault) {
				t.Fatalf("error = %v, want the fault", err)
			}
			if got := text(t, path); got != "old" {
				t.Errorf("content = %q, want old", got)
			}
			if diff := cmp.Diff([]string{"f"}, names(t, dir)); diff != "" {
				t.Errorf("a failed write left something behind:\n%s", diff)
			}
		})
	}
}

func TestWriteAtomicReportsAFolderThatWasNotFlushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := failAt(StepSyncDir).WriteAtomic(path, []byte("new"), 0o600); !errors.Is(err, errFault) {
		t.Errorf("error = %v, want the fault: the name may not survive a power cut", err)
	}
}

func TestWriteNewHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() { errs[i] = WriteNew(path, []byte{byte('a' + i)}, 0o600) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("writers %d and %d both won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("writer %d: %v, want fs.ErrExist", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	if got, want := text(t, path), string(rune('a'+winner)); got != want {
		t.Errorf("content = %q, want the winner's %q", got, want)
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("folder holds %v, want the secret alone", got)
	}
}

func TestAppendSync(t *testing.T) {
	tests := []struct{ name, before, line, want string }{
		{name: "a new file", before: "", line: "a", want: "a\n"},
		{name: "one more line", before: "a\n", line: "b", want: "a\nb\n"},
		{name: "a torn last line spoils only itself", before: "a\n{\"id\":", line: "b", want: "a\n{\"id\":\nb\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if tt.before != "" {
				put(t, path, tt.before)
			}
			if err := (Files{}).AppendSync(path, []byte(tt.line), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := text(t, path); got != tt.want {
				t.Errorf("content = %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("a newline inside the line is refused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log")
		if err := (Files{}).AppendSync(path, []byte("a\nb"), 0o600); err == nil {
			t.Error("error = nil")
		}
	})
}

func TestMoveNeverOverwritesAndNeverFollows(t *testing.T) {
	dir := t.TempDir()
	src, taken, link := filepath.Join(dir, "src"), filepath.Join(dir, "taken"), filepath.Join(dir, "link")
	put(t, src, "mine")
	put(t, taken, "theirs")
	if err := os.Symlink(src, link); err != nil {
		t.Fatal(err)
	}
	if err := Move(src, taken); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Move onto a file = %v, want fs.ErrExist", err)
	}
	if err := Move(link, filepath.Join(dir, "new")); err == nil {
		t.Error("Move of a symlink = nil, want an error")
	}
	if text(t, src) != "mine" || text(t, taken) != "theirs" {
		t.Error("a refused move changed a file")
	}
	moved := filepath.Join(dir, "moved")
	if err := Move(src, moved); err != nil {
		t.Fatal(err)
	}
	if text(t, moved) != "mine" || text(t, src) != "(missing)" {
		t.Errorf("after Move: moved=%q src=%q", text(t, moved), text(t, src))
	}
}

// TestSTO_14_MoveKeepsACopyWhereverItStops kills a process at every step of a
// move, with and without a hard link, and looks for the bytes.
func TestSTO_14_MoveKeepsACopyWhereverItStops(t *testing.T) {
	if at := os.Getenv("BRIDGE_TEST_CRASH_AT"); at != "" {
		crashingMove(at, os.Getenv("BRIDGE_TEST_CRASH_DIR"), os.Getenv("BRIDGE_TEST_CRASH_COPY") != "")
		return
	}
	steps := []Step{StepCreate, StepWrite, StepSync, StepPublish, StepSyncDir, StepRemove}
	for _, copies := range []string{"", "yes"} {
		for _, step := range steps {
			t.Run(string(step)+" copy="+copies, func(t *testing.T) {
				dir := t.TempDir()
				put(t, filepath.Join(dir, "src"), "precious")
				cmd := exec.Command(os.Args[0], "-test.run=^TestSTO_14_MoveKeepsACopyWhereverItStops$")
				cmd.Env = append(os.Environ(), "BRIDGE_TEST_CRASH_AT="+string(step),
					"BRIDGE_TEST_CRASH_DIR="+dir, "BRIDGE_TEST_CRASH_COPY="+copies)
				output, _ := cmd.CombinedOutput()
				want := 7
				if !usesStep(step, copies) {
					want = 0
				}
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Fatalf("the process ended with %d, want %d:\n%s", got, want, output)
				}
				src, dst := text(t, filepath.Join(dir, "src")), text(t, filepath.Join(dir, "dst"))
				if src != "precious" && dst != "precious" {
					t.Errorf("neither copy is left: src=%q dst=%q", src, dst)
				}
			})
		}
	}
}

// usesStep reports whether a move passes step; a linked one makes no file.
func usesStep(step Step, copies string) bool {
	return copies != "" || (step != StepCreate && step != StepWrite && step != StepSync)
}

func crashingMove(at, dir string, copies bool) {
	files := Files{Before: func(step Step, _ string) error {
		if string(step) == at {
			os.Exit(7) // no deferred call runs
		}
		return nil
	}}
	if copies {
		files.link = func(_, _ string) error { return errors.ErrUnsupported }
	}
	if err := files.Move(filepath.Join(dir, "src"), filepath.Join(dir, "dst")); err != nil {
		os.Exit(8)
	}
}

func TestCopyReportsWhatArrived(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	put(t, src, "abc")
	sum, size, err := Files{}.Copy(src, dst)
	if err != nil {
		t.Fatal(err)
	}
	again, sizeAgain, err := Checksum(dst)
	if err != nil || sum != again || size != sizeAgain || size != 3 {
		t.Errorf("Copy = %s, %d; Checksum = %s, %d, %v", sum, size, again, sizeAgain, err)
	}
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; sum != want {
		t.Errorf("sum = %s, want SHA-256 of abc", sum)
	}
	if _, _, err := (Files{}).Copy(src, dst); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Copy = %v, want fs.ErrExist", err)
	}
}

func TestStartSyncChangesNoByteAndTellsWhatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for range 3 {
		if _, err := file.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		want = append(want, "more"...)
		if err := StartSync(file); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the file holds %q, not %q: %v", got, want, err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := StartSync(file); runtime.GOOS == "linux" && err == nil {
		t.Error("a closed file was written")
	}
}

func TestPublishTakesAFreeNameOnly(t *testing.T) {
	dir := t.TempDir()
	pending, final := filepath.Join(dir, ".pending"), filepath.Join(dir, "final")
	for _, made := range []string{pending, final} {
		if err := MakeDir(made); err != nil {
			t.Fatal(err)
		}
	}
	if err := Publish(pending, final); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Publish onto a folder = %v, want fs.ErrExist", err)
	}
	other := filepath.Join(dir, "other")
	if err := Publish(pending, other); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"final", "other"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestIsTempKnowsWhatACrashLeaves(t *testing.T) {
	var temp string
	files := Files{Before: func(step Step, path string) error {
		if step == StepCreate {
			temp = path
		}
		return nil
	}}
	if err := files.WriteAtomic(filepath.Join(t.TempDir(), "config.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !IsTemp(temp) {
		t.Errorf("IsTemp(%q) = false", temp)
	}
	for _, name := range []string{"config.json", "bridge.db", ".pending-1", "a.tmp"} {
		if IsTemp(name) {
			t.Errorf("IsTemp(%q) = true", name)
		}
	}
}

func TestCanonicalFollowsEveryLink(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inside, outside := filepath.Join(root, "in"), filepath.Join(root, "out")
	for _, dir := range []string{inside, outside} {
		if err := MakeDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"escape": outside, "dangling": filepath.Join(root, "nowhere")} {
		if err := os.Symlink(target, filepath.Join(inside, name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, path, want string }{
		{name: "dots", path: inside + "/../out", want: outside},
		{name: "a link out", path: filepath.Join(inside, "escape"), want: outside},
		{name: "a missing file behind a link out", path: filepath.Join(inside, "escape", "a", "b"), want: filepath.Join(outside, "a", "b")},
		{name: "a missing file", path: filepath.Join(inside, "new"), want: filepath.Join(inside, "new")},
		{name: "a link to nowhere", path: filepath.Join(inside, "dangling"), want: ""},
		{name: "a file behind a link to nowhere", path: filepath.Join(inside, "dangling", "x"), want: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := CanonicalTarget(tt.path); got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("CanonicalTarget(%q) = %q, %v; want %q", tt.path, got, err, tt.want)
			}
		})
	}
	if _, err := Canonical(filepath.Join(inside, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Canonical of a missing file = %v, want fs.ErrNotExist", err)
	}
}

func TestReadLimitedRefusesWhatIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, strings.Repeat("x", 10))
	if data, err := ReadLimited(path, 10); err != nil || len(data) != 10 {
		t.Errorf("at the limit: %d bytes, %v", len(data), err)
	}
	if _, err := ReadLimited(path, 9); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v, want ErrTooLarge", err)
	}
}
