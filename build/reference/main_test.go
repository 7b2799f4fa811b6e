package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const checkout = "../.."

func TestDOC_03_TheReferenceIsWhatTheProgramsSay(t *testing.T) {
	if err := run(checkout, true); err != nil {
		t.Error(err)
	}
}

func TestDOC_03_AStalePageIsNamed(t *testing.T) {
	root := t.TempDir()
	copied := func(name string) {
		data, err := os.ReadFile(filepath.Join(checkout, name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copied(toolsSource)
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(toolsFile)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err == nil {
		t.Error("pages that are missing are no fault")
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Errorf("pages that were just written: %v", err)
	}
	for _, name := range []string{commandsFile, toolsFile} {
		file := filepath.Join(root, name)
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.ReplaceAll(page, []byte("\n"), []byte("\r\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(root, true); err != nil {
			t.Errorf("%s with the line ends of Windows: %v", name, err)
		}
		if err := os.WriteFile(file, append(page, '!'), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(root, true); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s was changed: %v", name, err)
		}
		if err := os.WriteFile(file, page, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDOC_03_ThePagesHoldEachCommandFlagAndArgument(t *testing.T) {
	pages, err := write(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		commandsFile: {"## bridge\n", "## bridge send\n", "## bridge service install\n", "## bridge-hub roster add\n", "--withdraw-all-from string", "bridge send TO TEXT [flags]"},
		toolsFile:    {"## send\n", "| **`to`** |", "## spawn_codex\n"},
	} {
		for _, text := range want {
			if !bytes.Contains(pages[name], []byte(text)) {
				t.Errorf("%s lacks %q", name, text)
			}
		}
	}
	for _, not := range []string{"SEE ALSO", "run-job", "inherited", "-h, --help", "/root"} {
		if bytes.Contains(pages[commandsFile], []byte(not)) {
			t.Errorf("%s has %q", commandsFile, not)
		}
	}
}
