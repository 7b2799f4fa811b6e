package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// legacy is auto-wake.json as programs of the field write it.
const legacy = `{"peers":{"claude-x":true,"n":12345678901234567890}}`

type object = map[string]any

func sharedIn(t *testing.T, hold bool) Shared {
	t.Helper()
	home, err := ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	if err != nil {
		t.Fatal(err)
	}
	return Shared{Home: home, Now: time.Now, Hold: hold}
}

func (s Shared) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Home.Dir(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (s Shared) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.Home.Dir(), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (s Shared) mustWrite(t *testing.T, patches ...any) {
	t.Helper()
	for _, patch := range patches {
		if err := s.Write("auto-wake.json", patch); err != nil {
			t.Fatal(err)
		}
	}
}

func (s Shared) pending(t *testing.T) int {
	t.Helper()
	pending, err := s.Pending()
	if err != nil {
		t.Fatal(err)
	}
	return len(pending)
}

func sameJSON(t *testing.T, what, want, got string) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(want), &a), json.Unmarshal([]byte(got), &b)); err != nil {
		t.Fatalf("%s: %v in %q", what, err, got)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestVER_05_OlderBytesStayUntilItIsSafe(t *testing.T) {
	s := sharedIn(t, true)
	s.put(t, "auto-wake.json", legacy)
	s.mustWrite(t, object{"version": 1, "sessions": object{"a": true}}, object{"sessions": object{"a": false, "b": true}})
	if got := s.file(t, "auto-wake.json"); got != legacy {
		t.Errorf("the bytes changed: %s", got)
	}
	var now object
	if err := s.Read("auto-wake.json", &now); err != nil {
		t.Fatal(err)
	}
	want := object{"version": 1.0, "peers": object{"claude-x": true, "n": 12345678901234567890.0}, "sessions": object{"a": false, "b": true}}
	if diff := cmp.Diff(want, now); diff != "" {
		t.Errorf("what is read:\n%s", diff)
	}

	t.Run("VER-05 and a write after them waits too, also when the older ones have left", func(t *testing.T) {
		s.Hold = false
		s.mustWrite(t, object{"sessions": object{"b": nil}})
		if s.file(t, "auto-wake.json") != legacy || s.pending(t) != 3 {
			t.Errorf("%d wait, the file is %s", s.pending(t), s.file(t, "auto-wake.json"))
		}
	})
	t.Run("VER-05 then all is written in order, and kept", func(t *testing.T) {
		if done, err := s.Apply(); err != nil || done != 3 {
			t.Fatalf("Apply = %d, %v", done, err)
		}
		sameJSON(t, "the file", `{"version":1,"peers":{"claude-x":true,"n":12345678901234567890},"sessions":{"a":false}}`, s.file(t, "auto-wake.json"))
		kept, err := filepath.Glob(filepath.Join(s.Home.ArchiveDir(), "pending-job-writes", "*.json"))
		if err != nil || len(kept) != 3 || s.pending(t) != 0 {
			t.Errorf("kept %v, %d wait, %v", kept, s.pending(t), err)
		}
		if done, err := s.Apply(); err != nil || done != 0 {
			t.Errorf("Apply again = %d, %v", done, err)
		}
	})
	t.Run("VER-05 numbers stay as they were written", func(t *testing.T) {
		if got := s.file(t, "auto-wake.json"); !strings.Contains(got, "12345678901234567890") {
			t.Errorf("the file is %s", got)
		}
	})
	t.Run("VER-05 without older programs a write is done at once and keeps what it does not know", func(t *testing.T) {
		s.mustWrite(t, object{"sessions": object{"c": true}})
		sameJSON(t, "the file", `{"version":1,"peers":{"claude-x":true,"n":12345678901234567890},"sessions":{"a":false,"c":true}}`, s.file(t, "auto-wake.json"))
	})
}

func TestVER_05_ACrashAtAnyStepLosesAndDoublesNothing(t *testing.T) {
	want := `{"version":1,"peers":{"claude-x":true,"n":12345678901234567890},"sessions":{"a":false,"b":true},"jobs":[2]}`
	crashed := errors.New("the process ended")
	for n := 1; ; n++ {
		s := sharedIn(t, true)
		s.put(t, "auto-wake.json", legacy)
		s.mustWrite(t, object{"version": 1, "sessions": object{"a": true}, "jobs": []int{1}}, object{"sessions": object{"a": false, "b": true}}, object{"jobs": []int{2}})
		count, broken := 0, s
		broken.Files = disk.Files{Before: func(disk.Step, string) error {
			if count++; count >= n { // nothing after it happens either
				return crashed
			}
			return nil
		}}
		_, err := broken.Apply()
		if _, again := s.Apply(); again != nil {
			t.Fatalf("after a crash at step %d: %v", n, again)
		}
		sameJSON(t, "after a crash at step "+strconv.Itoa(n), want, s.file(t, "auto-wake.json"))
		if s.pending(t) != 0 {
			t.Errorf("step %d: %d wait", n, s.pending(t))
		}
		if err == nil {
			if n < 15 {
				t.Errorf("only %d steps", n-1)
			}
			return
		}
	}
}

func TestVER_05_WhatCannotBeReadStopsAllAndChangesNothing(t *testing.T) {
	const name = "pending-job-writes/v1/000000000001-0b5f0b5f-0b5f-4b5f-8b5f-0b5f0b5f0b5f.json"
	for text, code := range map[string]bridge.Code{
		`{"version":1,"store"`:                                     bridge.Storage,
		`{"version":2,"store":"auto-wake.json","patch":{}}`:        bridge.Storage,
		`{"version":1,"store":"../elsewhere.json","patch":{}}`:     bridge.Storage,
		`{"version":1,"store":"auto-wake.json","patch":[]}`:        bridge.Storage,
		`{"version":1,"store":"auto-wake.json","patch":null}`:      bridge.Storage,
		`{"version":1,"store":"config.json","patch":{"a":"b"}}`:    bridge.Storage,
		`{"version":1,"store":"auto-wake.json","patch":{"a":"b"}}`: "",
	} {
		s := sharedIn(t, true)
		s.put(t, "auto-wake.json", legacy)
		s.put(t, name, text)
		s.put(t, "pending-job-writes/v1/0b5f/receipt.json", `{"of": "another program"}`)
		s.put(t, "pending-job-writes/v1/notes.txt", "another program's")
		_, err := s.Apply()
		if bridge.CodeOf(err) != code {
			t.Errorf("%s: Apply = %v", text, err)
		}
		if code != "" && (s.file(t, "auto-wake.json") != legacy || s.file(t, name) != text) {
			t.Errorf("%s: files changed", text)
		}
		if s.file(t, "pending-job-writes/v1/0b5f/receipt.json") == "" {
			t.Error("another program's receipt was touched")
		}
	}
	t.Run("VER-05 a damaged store is left as it is", func(t *testing.T) {
		s := sharedIn(t, false)
		s.put(t, "auto-wake.json", "{ not JSON")
		if err := s.Write("auto-wake.json", object{"a": 1}); bridge.CodeOf(err) != bridge.Storage || s.file(t, "auto-wake.json") != "{ not JSON" {
			t.Errorf("Write = %v", err)
		}
	})
	t.Run("VER-05 nothing there is nothing", func(t *testing.T) {
		s := sharedIn(t, false)
		var into object
		if err := s.Read("auto-wake.json", &into); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Read = %v", err)
		}
	})
}

func TestVER_06_AStoreOfANewerVersionIsLeftAsItIs(t *testing.T) {
	const newer = `{"version":2,"sessions":["a"]}`
	for name, hold := range map[string]bool{"beside older programs": true, "alone": false} {
		t.Run("VER-06 "+name, func(t *testing.T) {
			s := sharedIn(t, hold)
			s.put(t, "auto-wake.json", newer)
			err := s.Write("auto-wake.json", AutoWakeChoices{Version: 1, Sessions: map[string]bool{"a": true}})
			if hold {
				_, err = s.Apply()
			}
			if bridge.CodeOf(err) != bridge.Unsupported || s.file(t, "auto-wake.json") != newer {
				t.Errorf("%v, the file is %s", err, s.file(t, "auto-wake.json"))
			}
		})
	}
	tests := map[string]struct {
		stored string
		code   bridge.Code
	}{
		"a newer form":            {newer, bridge.Unsupported},
		"a newer form like ours":  {`{"version":2,"sessions":{"a":true}}`, bridge.Unsupported},
		"our form with strangers": {`{"version":1,"peers":{"x":1},"sessions":{"a":true}}`, ""},
		"another form":            {`{"version":1,"sessions":["a"]}`, bridge.Storage},
	}
	for name, tt := range tests {
		t.Run("VER-06 reading "+name, func(t *testing.T) {
			s := sharedIn(t, false)
			s.put(t, "auto-wake.json", tt.stored)
			choices, err := s.ReadAutoWake()
			if bridge.CodeOf(err) != tt.code || (err == nil) != choices.Sessions["a"] {
				t.Errorf("ReadAutoWake = %+v, %v", choices, err)
			}
		})
	}
}

func TestVER_05_WhatIsAFileOfTheJournal(t *testing.T) {
	const id = "0c6b3b1e-9a43-4b0f-8a55-1f0f6f1c2d3e"
	for name, want := range map[string]bool{
		"000000000001-" + id + ".json":       true,
		"999999999999-" + id + ".json":       true,
		"00000000001-" + id + ".json":        false,
		"0000000000001-" + id + ".json":      false,
		"00000000000x-" + id + ".json":       false,
		"000000000001-" + id + "0.json":      false,
		"000000000001-" + id[1:] + ".json":   false,
		"000000000001-X" + id[1:] + ".json":  false,
		"000000000001_" + id + ".json":       false,
		"000000000001-" + id + ".json.tmp":   false,
		"000000000001-" + id:                 false,
		"":                                   false,
		".json":                              false,
		"000000000001-" + id + ".json\n":     false,
		"x000000000001-" + id + ".json":      false,
		"/000000000001-" + id + ".json":      false,
		"000000000001-" + id[:35] + "G.json": false,
	} {
		if got := IsPendingWrite(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
