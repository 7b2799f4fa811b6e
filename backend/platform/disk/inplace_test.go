package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/testing/testkit"
)

// hardLinked is a file with two names, and a folder for copies.
func hardLinked(t *testing.T, content string) (path, other, copies string) {
	t.Helper()
	dir := t.TempDir()
	path, other, copies = filepath.Join(dir, "settings.json"), filepath.Join(dir, "dotfile"), filepath.Join(dir, "copies")
	put(t, path, content)
	if err := os.Link(path, other); err != nil {
		t.Skip("no hard links here")
	}
	return path, other, copies
}

func TestRWM_13_AHardLinkIsWrittenInPlace(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"longer":  {"old", "new and longer"},
		"shorter": {"old and longer", "new"},
		"empty":   {"old", ""},
		"filled":  {"", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			path, other, copies := hardLinked(t, test.before)
			if err := (Files{}).Overwrite(path, []byte(test.after), 0o644, copies); err != nil {
				t.Fatal(err)
			}
			if text(t, path) != test.after || text(t, other) != test.after {
				t.Errorf("got %q, and by its other name %q", text(t, path), text(t, other))
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != testkit.Mode(0o600) {
				t.Errorf("its mode is %v (%v)", info.Mode(), err)
			}
			if left := names(t, copies); len(left) != 0 {
				t.Errorf("copies that nobody needs: %v", left)
			}
		})
	}
}

func TestRWM_13_OtherFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "settings.json")
	for _, content := range []string{"first", "second"} {
		before, _ := os.Stat(path)
		if err := (Files{}).Overwrite(path, []byte(content), 0o640, filepath.Join(dir, "copies")); err != nil || text(t, path) != content {
			t.Fatalf("got %q, %v", text(t, path), err)
		}
		after, err := os.Stat(path)
		if err != nil || before != nil && os.SameFile(before, after) || after.Mode().Perm() != testkit.Mode(0o640) {
			t.Errorf("it is the same file, or of mode %v (%v)", after.Mode(), err)
		}
	}
	if diff := cmp.Diff([]string{"settings.json"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
	if err := os.Symlink(path, path+".link"); err == nil {
		if err := (Files{}).Overwrite(path+".link", nil, 0o600, dir); err == nil || text(t, path) != "second" {
			t.Errorf("through a link: %v", err)
		}
	}
}

// Each step of writing in place fails once: the file holds what it held. While its bytes
// change, its earlier ones are in a copy.
func TestRWM_13_AFailureInPlacePutsTheEarlierContentBack(t *testing.T) {
	for _, step := range []Step{StepCreate, StepWrite, StepSync, StepSyncDir} {
		for nth := 1; nth <= 2; nth++ {
			path, other, copies := hardLinked(t, "as it was")
			if err := MakeDir(copies); err != nil {
				t.Fatal(err)
			}
			seen, failed := 0, false
			files := Files{Before: func(s Step, at string) error {
				if at == path && (s == StepWrite || s == StepSync) && len(names(t, copies)) != 1 {
					t.Errorf("%s: the file is written without a copy: %v", s, names(t, copies))
				}
				if s == step {
					if seen++; seen == nth {
						failed = true
						return errFault
					}
				}
				return nil
			}}
			err := files.Overwrite(path, []byte("what is new"), 0o600, copies)
			if failed != (err != nil) || failed && !errors.Is(err, errFault) {
				t.Fatalf("%s %d: got %v", step, nth, err)
			}
			if failed && (text(t, path) != "as it was" || text(t, other) != "as it was") {
				t.Errorf("%s %d: it holds %q", step, nth, text(t, path))
			}
			if left := names(t, copies); len(left) != 0 {
				t.Errorf("%s %d: left behind: %v", step, nth, left)
			}
		}
	}
}

func TestRWM_13_WhatCannotBePutBackIsNamed(t *testing.T) {
	path, _, copies := hardLinked(t, "as it was")
	files := Files{Before: func(s Step, at string) error {
		if s == StepSync && at == path {
			return errFault
		}
		return nil
	}}
	err := files.Overwrite(path, []byte("what is new"), 0o600, copies)
	var torn *TornError
	if !errors.As(err, &torn) || !errors.Is(err, errFault) || text(t, torn.Copy) != "as it was" {
		t.Fatalf("got %v", err)
	}
	if said := WhyNotWritten(err); !strings.Contains(said, torn.Copy) {
		t.Errorf("it says %s", said)
	}
}

func TestRWM_13_WhyAFileWasNotWritten(t *testing.T) {
	for want, err := range map[string]error{
		"you may not write it. Change its owner or its mode, and try again": &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission},
		"the disk said no": &os.LinkError{Op: "rename", Old: "/x", New: "/y", Err: errFault},
	} {
		if got := WhyNotWritten(err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
