package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// drafts returns the file of a new home, its path, and a clock to move.
func drafts(t *testing.T) (*config.DraftsFile, string, *time.Time) {
	t.Helper()
	dir := t.TempDir()
	home, err := config.ResolveHome(dir, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_750_000_000_000)
	return &config.DraftsFile{Home: home, Now: func() time.Time { return now }}, filepath.Join(dir, "drafts.json"), &now
}

func keysOf(t *testing.T, file *config.DraftsFile) string {
	t.Helper()
	list, err := file.Drafts()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, draft := range list {
		var value bytes.Buffer
		if err := json.Compact(&value, draft.Value); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, draft.Key+"="+value.String())
	}
	return strings.Join(keys, " ")
}

func TestPGE_03_DraftsAreKeptUntilTheyAreSentOrOld(t *testing.T) {
	file, path, now := drafts(t)
	set := func(key, value string) {
		t.Helper()
		if err := file.SetDraft(key, json.RawMessage(value)); err != nil {
			t.Fatal(err)
		}
	}
	set("none", `""`)
	if _, err := os.Lstat(path); err == nil {
		t.Error("a file is made for no draft")
	}
	set("a", `"one"`)
	*now = now.Add(time.Hour)
	set("b", `["two","lines"]`)
	set("a", `"one and more"`)
	if diff := cmp.Diff(`b=["two","lines"] a="one and more"`, keysOf(t, file)); diff != "" {
		t.Error(diff)
	}
	set("b", "null")
	if diff := cmp.Diff(`a="one and more"`, keysOf(t, file)); diff != "" {
		t.Error(diff)
	}
	*now = now.Add(config.DraftLife)
	set("c", `"new"`)
	if diff := cmp.Diff(`a="one and more" c="new"`, keysOf(t, file)); diff != "" {
		t.Errorf("at its last moment: %s", diff)
	}
	*now = now.Add(time.Millisecond)
	if diff := cmp.Diff(`c="new"`, keysOf(t, file)); diff != "" {
		t.Errorf("after its last moment: %s", diff)
	}
	for i := range config.MaxDrafts {
		set(fmt.Sprint("d", i), `"x"`)
	}
	if keys := keysOf(t, file); strings.Count(keys, " ") != config.MaxDrafts-1 || strings.Contains(keys, "c=") {
		t.Errorf("of too many there are %d", strings.Count(keys, " ")+1)
	}
}

func TestPGE_03_ABadDraftChangesNothing(t *testing.T) {
	file, path, _ := drafts(t)
	if err := file.SetDraft("a", json.RawMessage(`"one"`)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key, value string
		code       bridge.Code
	}{
		"no key":       {"", `"x"`, bridge.Invalid},
		"a long key":   {strings.Repeat("k", 513), `"x"`, bridge.TooLarge},
		"a long value": {"b", `"` + strings.Repeat("x", config.MaxDraftBytes) + `"`, bridge.TooLarge},
	} {
		if err := file.SetDraft(tt.key, json.RawMessage(tt.value)); bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(`a="one"`, keysOf(t, file)); diff != "" {
		t.Error(diff)
	}
	for name, tt := range map[string]struct {
		text string
		code bridge.Code
	}{"damaged": {"{", bridge.Storage}, "newer": {`{"version":2,"drafts":[]}`, bridge.Unsupported}} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := file.SetDraft("b", json.RawMessage(`"x"`)); bridge.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != tt.text {
			t.Errorf("%s: the file is now %s, %v", name, data, err)
		}
	}
}
