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
	for _, name := range []string{toolsSource, configPage, dashboardFolder + "/routes.go", dashboardFolder + "/params.go"} {
		copied(name)
	}
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
	for _, name := range []string{commandsFile, toolsFile, doctorFile, httpFile, schemaFile, agentsFile, manFolder + "/bridge/bridge-send.1"} {
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

func TestDOC_03_AManPageOfNoCommandIsNamed(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"bridge", "bridge-hub"} {
		if err := os.MkdirAll(filepath.Join(root, manFolder, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(root, manFolder, "bridge", "bridge-gone.1")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkLeft(root, nil, true); err == nil || !strings.Contains(err.Error(), "bridge-gone.1") {
		t.Error(err)
	}
	if err := checkLeft(root, nil, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("it is still there")
	}
}

// What the schema says of each setting is not empty, and it knows no other settings.
func TestDOC_03_TheSchemaHasEachSetting(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(checkout, schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"maxAccess"`, `"enum": [`, `"everyHours"`, `"maximum": 65535`, `"description": "so many jobs run at once, 1 to 50"`, `"default": 4777`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the schema has no %s", want)
		}
	}
}

// What is written for people is in the packages.
func TestDOC_06_ThePackagesHaveTheDocumentation(t *testing.T) {
	for name, parts := range map[string][]string{
		"bridge.yaml": {
			"docs/*.md", "docs/llms.txt", "docs/guide/*.md", "docs/reference/*", "docs/teams/*.md", "docs/man/bridge/*.1", "/usr/share/man/man1/bridgectl.1",
			completionFolder + "/bridge.bash", completionFolder + "/_bridgectl", completionFolder + "/bridge.fish",
		},
		"bridge-hub.yaml": {"docs/teams/*.md", "docs/man/bridge-hub/*.1"},
	} {
		data, err := os.ReadFile(filepath.Join(checkout, "installer", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(data), part+"\n") {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}

func TestDOC_06_TheIndexForModelsHasEachPage(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(checkout, llmsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"(guide/start.md)", "(storage.md)", "(reference/doctor.md)", "(teams/hub.md)"} {
		if !strings.Contains(string(index), page) {
			t.Errorf("it has no %s", page)
		}
	}
}
