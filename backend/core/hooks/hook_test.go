package hooks

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/session"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// hookSample is one line of testdata/hooks-KIND.jsonl.
type hookSample struct {
	Event string          `json:"event"`
	Stdin json.RawMessage `json:"stdin"`
}

// hookGolden is what a sample must come to.
type hookGolden struct {
	Call   session.HookCall `json:"call"`
	Answer json.RawMessage  `json:"answer"` // to the text "MAIL"
}

func hookSamples(t testing.TB, kind bridge.AgentKind) []hookSample {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hooks-"+string(kind)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []hookSample
	for line := range bytes.Lines(data) {
		var sample hookSample
		if err := json.Unmarshal(line, &sample); err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample)
	}
	return samples
}

// TestHookGolden compares every recorded hook call with what it must mean and
// with the answer that the host gets.
func TestHookGolden(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			var got []hookGolden
			for _, sample := range hookSamples(t, kind) {
				call, err := For(kind).ParseHook(sample.Event, sample.Stdin)
				if err != nil {
					t.Fatalf("%s: %v", sample.Event, err)
				}
				got = append(got, hookGolden{Call: call, Answer: For(kind).FormatHook(call, "MAIL")})
			}
			compareGolden(t, filepath.Join("testdata", "hooks-"+string(kind)+".golden.json"), got)
		})
	}
}

func compareGolden(t *testing.T, path string, got []hookGolden) {
	t.Helper()
	if *update {
		data, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []hookGolden
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Answer = compact(t, want[i].Answer)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func compact(t *testing.T, data []byte) json.RawMessage {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestHookConformance holds every kind to the same promises.
func TestHookConformance(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			adapter := For(kind)
			if adapter.Kind() != kind {
				t.Errorf("For(%s).Kind() = %s", kind, adapter.Kind())
			}
			for _, sample := range hookSamples(t, kind) {
				checkConformance(t, adapter, sample)
			}
			if _, err := adapter.ParseHook("NoSuchEvent", []byte(`{}`)); bridge.CodeOf(err) != bridge.Invalid {
				t.Errorf("an unknown event: %v", err)
			}
			if got := adapter.FormatHook(session.HookCall{}, "MAIL"); string(got) != "{}" {
				t.Errorf("a call that could not be read is answered %s", got)
			}
		})
	}
	if For(bridge.Owner) != nil {
		t.Error("the owner is no agent CLI")
	}
}

func checkConformance(t *testing.T, adapter *Adapter, sample hookSample) {
	t.Helper()
	call, err := adapter.ParseHook(sample.Event, sample.Stdin)
	if err != nil {
		t.Fatalf("%s: %v", sample.Event, err)
	}
	if call.Kind != adapter.Kind() || call.HostEvent != sample.Event || call.SessionID == "" {
		t.Errorf("%s: incomplete call %+v", sample.Event, call)
	}
	if got := adapter.FormatHook(call, ""); string(got) != "{}" {
		t.Errorf("%s: no text is answered %s", sample.Event, got)
	}
	const mail = "line one\n\"quoted\" <tag> \u2028 \\ end"
	answer := adapter.FormatHook(call, mail)
	if carries := bytes.Contains(answer, []byte("line one")); carries && call.ChildID != "" {
		t.Errorf("%s: a native child gets the main session's mail: %s", sample.Event, answer)
	} else if !carries && call.AcceptsMail() {
		t.Errorf("%s: mail is lost: %s", sample.Event, answer)
	}
	if bytes.Contains(answer, []byte("line one")) && !holdsString(t, answer, mail) {
		t.Errorf("%s: the text arrives changed: %s", sample.Event, answer)
	}
	if _, err := adapter.ParseHook(sample.Event, []byte(`{}`)); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("%s without a session id: %v", sample.Event, err)
	}
	grown := append([]byte(`{"a_member_of_tomorrow":{"x":[1]},`), bytes.TrimLeft(sample.Stdin, "{")...)
	if again, err := adapter.ParseHook(sample.Event, grown); err != nil || !cmp.Equal(again, call) {
		t.Errorf("%s with an unknown member: %v", sample.Event, err)
	}
}

// holdsString reports whether some string of the JSON document is want.
func holdsString(t *testing.T, data []byte, want string) bool {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("not JSON: %s", data)
	}
	var walk func(any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case string:
			return v == want
		case []any:
			for _, inner := range v {
				if walk(inner) {
					return true
				}
			}
		case map[string]any:
			for _, inner := range v {
				if walk(inner) {
					return true
				}
			}
		}
		return false
	}
	return walk(value)
}

// The owner's longest words come back from codex's queue as a prompt, and are
// recognised by it only when they are whole.
func TestCHT_09_ThePromptHoldsTheOwnersLongestWords(t *testing.T) {
	prompt := chat.OwnerLabel + strings.Repeat("\U0001F642", 32_000)
	stdin, err := json.Marshal(map[string]string{"session_id": "thread-1", "prompt": prompt})
	if err != nil {
		t.Fatal(err)
	}
	call, err := For(bridge.Codex).ParseHook("UserPromptSubmit", stdin)
	if err != nil || call.Prompt != prompt {
		t.Errorf("of %d bytes %d are kept (%v)", len(prompt), len(call.Prompt), err)
	}
}

func TestTruth(t *testing.T) {
	for raw, want := range map[string]bool{`true`: true, `"true"`: true, `"True"`: true, `false`: false, `"false"`: false, `null`: false, `{}`: false} {
		var read struct{ Finished Truth }
		if err := json.Unmarshal([]byte(`{"finished":`+raw+`}`), &read); err != nil || bool(read.Finished) != want {
			t.Errorf("%s reads as %v, %v", raw, read.Finished, err)
		}
	}
}

func TestHookInputOfWrongTypes(t *testing.T) {
	call, err := For(bridge.Codex).ParseHook("PostToolUse", []byte("\ufeff"+`{"session_id":"s","cwd":7,"tool_name":["x"],"prompt":null}`))
	if err != nil || call.SessionID != "s" || call.Cwd != "" {
		t.Errorf("got %+v, %v", call, err)
	}
	for _, bad := range []string{"", "null", "[]", `"s"`, `{"session_id":"two words"}`, `{"session_id":"s","agent_id":"` + strings.Repeat("x", 200) + `"}`} {
		if _, err := For(bridge.Codex).ParseHook("Stop", []byte(bad)); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("input %.40q: %v", bad, err)
		}
	}
	huge := bytes.Repeat([]byte(" "), maxHookInput+1)
	if _, err := For(bridge.Codex).ParseHook("Stop", huge); bridge.CodeOf(err) != bridge.TooLarge {
		t.Errorf("a huge input: %v", err)
	}
}

// FuzzParseHook: whatever a host writes, nothing panics and the answer is valid
// JSON that the host understands.
func FuzzParseHook(f *testing.F) {
	for _, kind := range bridge.Kinds() {
		for _, sample := range hookSamples(f, kind) {
			f.Add(string(kind), sample.Event, []byte(sample.Stdin), "MAIL")
		}
	}
	f.Add("claude", "Stop", []byte(`{"session_id":"s","stop_hook_active":"true"}`), "\xff")
	f.Fuzz(func(t *testing.T, kind, event string, stdin []byte, mail string) {
		adapter := For(bridge.AgentKind(kind))
		if adapter == nil {
			return
		}
		call, err := adapter.ParseHook(event, stdin)
		if err != nil {
			call = session.HookCall{}
		}
		answer := adapter.FormatHook(call, mail)
		var object map[string]any
		if json.Unmarshal(answer, &object) != nil {
			t.Fatalf("not a JSON object: %q", answer)
		}
		if err != nil && len(object) != 0 {
			t.Fatalf("unreadable input is answered %s", answer)
		}
		if bytes.ContainsRune(answer, '\n') {
			t.Fatalf("more than one line: %q", answer)
		}
	})
}
