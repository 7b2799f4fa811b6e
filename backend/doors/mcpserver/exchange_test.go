package mcpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// TestMSG_03_EachHostIsAnsweredAsItAsks goes through what each real CLI says to
// a server, line by line, and compares all that it is answered.
func TestMSG_03_EachHostIsAnsweredAsItAsks(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode} {
		t.Run("MSG-03 "+string(kind), func(t *testing.T) {
			w := open(t, api.Register{Kind: kind})
			for _, line := range exchange(t, kind) {
				if line.Host != nil {
					w.say(string(line.Host))
					continue
				}
				got := w.next("answer", func(map[string]any) bool { return true })
				if diff := cmp.Diff(line.Server, withoutLongParts(t, got)); diff != "" {
					t.Fatalf("answer (-want +got):\n%s", diff)
				}
			}
			w.in.Close()
			for line := range w.lines {
				t.Errorf("nobody asked for %v", line)
			}
		})
	}
}

// said is one line of an exchange: of the host, as it wrote it, or of the server.
type said struct {
	Host   json.RawMessage `json:"host"`
	Server map[string]any  `json:"server"`
}

func exchange(t *testing.T, kind bridge.AgentKind) (lines []said) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "hosts", string(kind)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		var line said
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// withoutLongParts checks the instructions and the list of tools for themselves
// and puts in what stands for them in the exchanges.
func withoutLongParts(t *testing.T, answer map[string]any) map[string]any {
	t.Helper()
	result, _ := answer["result"].(map[string]any)
	if words, ok := result["instructions"].(string); ok {
		if !strings.HasPrefix(words, "Bridge connects you") {
			t.Errorf("the instructions are %q", words)
		}
		result["instructions"] = "…"
	}
	if tools, ok := result["tools"]; ok {
		checkTools(t, "tools-without-jobs.json", tools)
		result["tools"] = "tools-without-jobs.json"
	}
	return answer
}

// checkTools compares the tools with those on file: hosts ask their users again
// when a tool changes, so it changes on purpose only.
func checkTools(t *testing.T, file string, got any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestMSG_03_AVersionIsAgreedOn(t *testing.T) {
	const newest = "2025-11-25"
	for asked, want := range map[string]string{
		newest: newest, "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05",
		"2026-07-28": newest, "2031-01-01": newest, "soon": newest,
	} {
		t.Run("MSG-03 "+asked, func(t *testing.T) {
			w := open(t, api.Register{Kind: bridge.Codex})
			w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, asked))
			result, _ := w.answer(2)["result"].(map[string]any)
			if result["protocolVersion"] != want {
				t.Errorf("a host that asks for %s gets %v, want %s", asked, result["protocolVersion"], want)
			}
		})
	}
}

func TestMSG_03_ARequestOfANewerProtocolIsRefusedWithThoseThatAreSpoken(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2031-01-01"} {
		for _, method := range []string{"server/discover", "tools/list", "tools/call", "ping", "subscriptions/listen"} {
			t.Run("MSG-03 "+method+" "+version, func(t *testing.T) {
				w := open(t, api.Register{Kind: bridge.Claude})
				w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"name":"peers","_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, version))
				refused, _ := w.answer(2)["error"].(map[string]any)
				want := map[string]any{"requested": version, "supported": []any{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}}
				if refused["code"] != -32022.0 || !cmp.Equal(refused["data"], any(want)) {
					t.Errorf("it is answered with %v", refused)
				}
			})
		}
	}
}
