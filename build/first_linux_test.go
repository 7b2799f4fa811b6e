package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/testing/testkit"
)

func TestDOC_07_TheFirstCompilationIsAnnounced(t *testing.T) {
	var out bytes.Buffer
	p := project{root: t.TempDir(), output: &out}
	announceCompilation(p)
	if !strings.Contains(out.String(), "the first time takes a few minutes") {
		t.Errorf("said %q", out.String())
	}
	out.Reset()
	if err := os.MkdirAll(filepath.Dir(p.binary()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.binary(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if announceCompilation(p); out.Len() > 0 {
		t.Errorf("a later compilation: said %q", out.String())
	}
}

// npm would warn about a Node.js that is enough for the page, and advertise itself.
func TestDOC_07_TheInstallationOfThePagePrintsNoNotices(t *testing.T) {
	var out bytes.Buffer
	p := project{root: t.TempDir(), output: &out}
	programs := filepath.Join(p.root, "programs")
	for name, text := range map[string]string{
		filepath.Join(p.root, "frontend", "package-lock.json"): "{}",
		filepath.Join(programs, "npm"):                         "#!/bin/sh\necho \"npm was given $*\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := testkit.WriteProgram(name, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := installPage(t.Context(), p); err != nil || !strings.Contains(out.String(), "npm was given ci --no-fund --no-audit --loglevel=error\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}
