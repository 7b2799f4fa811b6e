package mcpserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
)

// listed returns a session's tools as the answer to tools/list has them, with the agents
// that the broker said this PC has.
func listed(t *testing.T, options Options, installed ...bridge.AgentKind) (tools []map[string]any, bytes int) {
	t.Helper()
	s := &Server{opts: options}
	s.joined.set(api.Registered{ID: "p1", Kinds: installed})
	var all []any
	for _, tool := range s.tools() {
		all = append(all, tool.tool)
	}
	text, err := json.Marshal(map[string]any{"tools": all})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Tools []map[string]any `json:"tools"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Tools, len(text)
}

func TestCTX_01_CTX_04_TheToolsKeepTheirBudgets(t *testing.T) {
	for _, tt := range []struct {
		name      string
		options   Options
		installed []bridge.AgentKind
		most      int
	}{
		{"no jobs", Options{}, nil, 5_000},
		{"one agent", Options{Jobs: true}, []bridge.AgentKind{bridge.Codex}, 9_000},
		{"two agents", Options{Jobs: true}, []bridge.AgentKind{bridge.Claude, bridge.Codex}, 10_000},
		{"four agents, and other PCs", Options{Jobs: true, Remote: true}, nil, 12 << 10},
	} {
		t.Run("CTX-01 "+tt.name, func(t *testing.T) {
			if _, n := listed(t, tt.options, tt.installed...); n > tt.most {
				t.Errorf("the list of tools has %d bytes, at most %d", n, tt.most)
			}
		})
	}
}

func TestCTX_01_AToolIsOneSentence(t *testing.T) {
	tools, _ := listed(t, Options{Jobs: true, Remote: true, ACP: []string{"goose"}})
	for _, tool := range tools {
		words, _ := tool["description"].(string)
		if n := strings.Count(strings.TrimSuffix(words, "."), ". "); words == "" || n > 1 || !strings.HasSuffix(words, ".") {
			t.Errorf("%s is described as %q", tool["name"], words)
		}
		properties, _ := tool["inputSchema"].(map[string]any)["properties"].(map[string]any)
		for name, schema := range properties {
			if phrase, _ := schema.(map[string]any)["description"].(string); strings.HasSuffix(phrase, ".") || len(phrase) > 100 {
				t.Errorf("%s of %s is described as %q", name, tool["name"], phrase)
			}
		}
	}
}

// The tools that start jobs differ by their words alone.
func TestCTX_04_EachJobToolMeansTheSame(t *testing.T) {
	want := map[string]string{
		"prompt": "string", "title": "string", "model": "string", "effort": "string", "session_id": "string", "cwd": "string", "timeout_sec": "number",
		"access": "string", "worktree": "boolean", "send_to": "", "budget_usd": "number",
	}
	for _, remote := range []bool{false, true} {
		tools, _ := listed(t, Options{Jobs: true, Remote: remote, ACP: []string{"goose"}})
		described, seen := map[string]bool{}, 0
		for _, tool := range tools {
			name, _ := tool["name"].(string)
			_, kind, _ := strings.Cut(name, "_")
			if !slices.Contains(job.Kinds(), bridge.AgentKind(kind)) {
				continue
			}
			seen++
			schema, _ := tool["inputSchema"].(map[string]any)
			properties, _ := schema["properties"].(map[string]any)
			types := map[string]string{}
			for argument, value := range properties {
				declared, _ := value.(map[string]any)
				types[argument], _ = declared["type"].(string)
				described[argument] = described[argument] || declared["description"] != nil
			}
			expected, required := maps.Clone(want), []any{"prompt"}
			if remote && kind != string(job.ACP) {
				expected["host"] = "string"
			}
			if kind == string(job.ACP) {
				expected["agent"], required = "string", []any{"agent", "prompt"}
			}
			if diff := cmp.Diff(expected, types); diff != "" {
				t.Errorf("the arguments of %s (-want +got):\n%s", name, diff)
			}
			if !cmp.Equal(schema["required"], any(required)) || schema["additionalProperties"] != false {
				t.Errorf("%s requires %v, further ones: %v", name, schema["required"], schema["additionalProperties"])
			}
		}
		if seen != 2*len(job.Kinds()) {
			t.Errorf("%d tools start jobs, want two for each kind", seen)
		}
		for argument := range described {
			if !described[argument] && !slices.Contains([]string{"model", "effort"}, argument) {
				t.Errorf("nothing says what %s is", argument)
			}
		}
	}
}

func TestCTX_01_JobToolsAreOfferedForAgentsThatAreThere(t *testing.T) {
	all := []string{"claude", "codex", "opencode", "antigravity"}
	for _, tt := range []struct {
		name      string
		options   Options
		installed []bridge.AgentKind
		want      []string
	}{
		{"not known", Options{Jobs: true}, nil, all},
		{"two", Options{Jobs: true}, []bridge.AgentKind{bridge.OpenCode, bridge.Codex}, []string{"codex", "opencode"}},
		{"one, and an agent of the owner's", Options{Jobs: true, ACP: []string{"goose"}}, []bridge.AgentKind{bridge.Claude}, []string{"claude", "acp"}},
		{"other PCs may have more", Options{Jobs: true, Remote: true}, []bridge.AgentKind{bridge.Claude}, all},
		{"a job, whose agent was told of all", Options{Jobs: true, Job: "codex-job-00000001"}, []bridge.AgentKind{bridge.Claude}, all},
		{"no jobs", Options{}, []bridge.AgentKind{bridge.Claude}, nil},
	} {
		t.Run("CTX-01 "+tt.name, func(t *testing.T) {
			tools, _ := listed(t, tt.options, tt.installed...)
			var spawns, asks []string
			for _, tool := range tools {
				name, _ := tool["name"].(string)
				if kind, is := strings.CutPrefix(name, "spawn_"); is {
					spawns = append(spawns, kind)
				}
				if kind, is := strings.CutPrefix(name, "ask_"); is && kind != "owner" {
					asks = append(asks, kind)
				}
			}
			if !slices.Equal(spawns, tt.want) || !slices.Equal(asks, tt.want) {
				t.Errorf("jobs of %q, asked ones of %q; want %q", spawns, asks, tt.want)
			}
		})
	}
}

func TestCTX_01_HelpExplainsATopic(t *testing.T) {
	w := openOn(t, brokertest.Serve(t), Options{Register: api.Register{Kind: bridge.Claude}})
	w.begin()
	call := func(id int, topic string) map[string]any {
		arguments, err := json.Marshal(map[string]string{"topic": topic})
		if err != nil {
			t.Fatal(err)
		}
		w.say(`{"jsonrpc":"2.0","id":` + string(rune('0'+id)) + `,"method":"tools/call","params":{"name":"bridge_help","arguments":` + string(arguments) + `}}`)
		result, _ := w.answer(id)["result"].(map[string]any)
		return result
	}
	for i, topic := range helpTopics() {
		text := mustText(t, call(i+2, topic))
		var answer struct{ Topic, Text string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Topic != topic || answer.Text != helpTexts[topic] || len(answer.Text) < 200 {
			t.Errorf("%s is explained by %s (%v)", topic, text, err)
		}
	}
	refused := call(9, "weather")
	if text := mustText(t, refused); refused["isError"] != true || !strings.Contains(text, `no topic "weather": use decisions, jobs, messages, questions`) {
		t.Errorf("an unknown topic is answered with %v", refused)
	}
}

// mustText returns the text of a result's only block.
func mustText(t *testing.T, result map[string]any) string {
	t.Helper()
	content, _ := result["content"].([]any)
	if len(content) != 1 {
		t.Fatalf("the result is %v", result)
	}
	block, _ := content[0].(map[string]any)
	text, _ := block["text"].(string)
	return text
}
