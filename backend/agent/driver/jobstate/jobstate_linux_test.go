package jobstate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSEC_05_AMirrorLinksWhatIsReadAndOwnsWhatIsWritten(t *testing.T) {
	root := t.TempDir()
	real, private := filepath.Join(root, "real"), filepath.Join(root, "job", "claude")
	write(t, filepath.Join(real, "settings.json"), "{}")
	write(t, filepath.Join(real, "projects", "p", "other.jsonl"), "another session")
	must(t, Mirror(real, private, "projects", "sessions"))
	if target, err := os.Readlink(filepath.Join(private, "settings.json")); err != nil || target != filepath.Join(real, "settings.json") {
		t.Errorf("settings.json leads to %q, %v", target, err)
	}
	for _, own := range []string{"projects", "sessions"} {
		entries, err := os.ReadDir(filepath.Join(private, own))
		if info, statErr := os.Lstat(filepath.Join(private, own)); err != nil || statErr != nil || !info.IsDir() || len(entries) > 0 {
			t.Errorf("%s is no empty folder of the job's: %v, %v", own, entries, err)
		}
	}
	// What the job made of its own stays, and what is new is linked.
	must(t, os.Remove(filepath.Join(private, "settings.json")))
	write(t, filepath.Join(private, "settings.json"), "the job's")
	write(t, filepath.Join(real, "later"), "")
	must(t, Mirror(real, private, "projects", "sessions"))
	if text, err := os.ReadFile(filepath.Join(private, "settings.json")); err != nil || string(text) != "the job's" {
		t.Errorf("the job's file is now %q, %v", text, err)
	}
	if !isLink(filepath.Join(private, "later")) {
		t.Error("a new entry has no link")
	}
	must(t, Mirror(filepath.Join(root, "missing"), filepath.Join(root, "job", "other"), "projects"))
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// A job that lays something else in its transcript's place has nothing published: neither
// another file of the owner's under the transcript's name, nor over one that is there.
func TestSEC_05_OnlyAPlainFileIsPublished(t *testing.T) {
	for name, lay := range map[string]struct {
		lay  func(t *testing.T, root, private string)
		want error
	}{
		"a file": {func(t *testing.T, _, private string) { write(t, private, "words") }, nil},
		"a link to a file": {func(t *testing.T, root, private string) {
			must(t, os.Symlink(filepath.Join(root, "secret"), private))
		}, ErrNotPlain},
		"a file with two names": {func(t *testing.T, root, private string) {
			must(t, os.Link(filepath.Join(root, "secret"), private))
		}, ErrNotPlain},
		"behind a link": {func(t *testing.T, root, private string) {
			write(t, filepath.Join(root, "elsewhere", "s.jsonl"), "words")
			must(t, os.Remove(filepath.Dir(private)))
			must(t, os.Symlink(filepath.Join(root, "elsewhere"), filepath.Dir(private)))
		}, ErrNotPlain},
		"a pipe":   {func(t *testing.T, _, private string) { must(t, unix.Mkfifo(private, 0o600)) }, ErrNotPlain},
		"a folder": {func(t *testing.T, _, private string) { must(t, os.Mkdir(private, 0o700)) }, ErrNotPlain},
		"nothing":  {func(*testing.T, string, string) {}, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			base := filepath.Join(root, "job")
			private, real := filepath.Join(base, "projects", "p", "s.jsonl"), filepath.Join(root, "real", "p", "s.jsonl")
			must(t, os.MkdirAll(filepath.Dir(private), 0o700))
			write(t, filepath.Join(root, "secret"), "secret")
			lay.lay(t, root, private)
			if err := Publish(base, private, real); !errors.Is(err, lay.want) {
				t.Errorf("it says %v, want %v", err, lay.want)
			}
			text, err := os.ReadFile(real)
			if (err == nil) != (lay.want == nil) || err == nil && string(text) != "words" {
				t.Errorf("the owner has %q, %v", text, err)
			}
		})
	}
	root := t.TempDir()
	if err := Publish(filepath.Join(root, "job"), filepath.Join(root, "other"), filepath.Join(root, "real")); !errors.Is(err, ErrNotPlain) {
		t.Errorf("a file outside of the job's folder: %v", err)
	}
}

func TestSEC_05_PublishingReplacesNothing(t *testing.T) {
	root := t.TempDir()
	private, real := filepath.Join(root, "job", "s.jsonl"), filepath.Join(root, "real", "s.jsonl")
	write(t, private, "the job's")
	write(t, real, "the owner's")
	must(t, Publish(filepath.Join(root, "job"), private, real))
	if text, err := os.ReadFile(real); err != nil || string(text) != "the owner's" {
		t.Errorf("the owner's is now %q, %v", text, err)
	}
	// What is said later stands in both.
	later := filepath.Join(root, "real", "later.jsonl")
	must(t, Publish(filepath.Join(root, "job"), private, later))
	file, err := os.OpenFile(private, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = file.WriteString(" and more")
	must(t, errors.Join(err, file.Close()))
	if text, err := os.ReadFile(later); err != nil || !slices.Equal(text, []byte("the job's and more")) {
		t.Errorf("the owner's is %q, %v", text, err)
	}
}
