package realcli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent/prove/scripted"
)

type (
	obj = map[string]any
	arr = []any
)

func startModel(t *testing.T) *scripted.FakeModel {
	t.Helper()
	model, err := scripted.StartFakeModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

// ask posts a request and returns the status and the whole answer.
func ask(t *testing.T, model *scripted.FakeModel, path string, header, body obj) (int, string) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, model.URL()+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		r.Header.Set(k, v.(string))
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// conversations is the same dialogue in the three protocols: a prompt, one tool
// call that the model made, its result.
var conversations = []struct {
	api, path string
	header    obj
	body      obj
	tool      string // as a script names it
	called    string // what the answer to a call holds
	said      string // what the answer with text holds
}{
	{
		api: "responses", path: "/v1/responses",
		header: obj{"session-id": "s", "thread-id": "s"},
		body: obj{
			"instructions": "be good",
			"input": arr{
				obj{"type": "message", "role": "user", "content": arr{obj{"type": "input_text", "text": "play script:two"}}},
				obj{"type": "function_call", "namespace": "mcp__x", "name": "look", "arguments": `{"n":1}`, "call_id": "c"},
				obj{"type": "function_call_output", "call_id": "c", "output": "seen"},
				obj{"type": "message", "role": "developer", "content": arr{obj{"type": "input_text", "text": "from a hook"}}},
			},
			"tools": arr{obj{"type": "function", "name": "shell"}, obj{"type": "namespace", "name": "mcp__x", "tools": arr{obj{"name": "look"}}}},
		},
		tool:   "mcp__x/look",
		called: `"arguments":"{\"n\":2}","call_id":"call_2","id":"fc_2","name":"look","namespace":"mcp__x","type":"function_call"`,
		said:   `"content":[{"text":"bye","type":"output_text"}]`,
	},
	{
		api: "messages", path: "/v1/messages",
		header: obj{"x-claude-code-session-id": "s"},
		body: obj{
			"system": arr{obj{"type": "text", "text": "be good"}},
			"messages": arr{
				obj{"role": "user", "content": "play script:two"},
				obj{"role": "assistant", "content": arr{obj{"type": "tool_use", "name": "look", "input": obj{"n": 1}, "id": "c"}}},
				obj{"role": "user", "content": arr{obj{"type": "tool_result", "tool_use_id": "c", "content": arr{obj{"type": "text", "text": "seen"}}}}},
				obj{"role": "system", "content": "from a hook"},
			},
			"tools": arr{obj{"name": "look"}},
		},
		tool:   "look",
		called: `{"id":"toolu_2","input":{},"name":"look","type":"tool_use"}`,
		said:   `{"text":"bye","type":"text_delta"}`,
	},
	{
		api: "chat", path: "/v1/chat/completions",
		header: obj{"x-session-id": "s"},
		body: obj{
			"messages": arr{
				obj{"role": "system", "content": "be good"},
				obj{"role": "user", "content": arr{obj{"type": "text", "text": "play script:two"}}},
				obj{"role": "assistant", "content": nil, "tool_calls": arr{obj{"function": obj{"name": "look", "arguments": `{"n":1}`}}}},
				obj{"role": "tool", "content": "seen"},
				obj{"role": "user", "content": "from a hook"},
			},
			"tools": arr{obj{"function": obj{"name": "look"}}},
		},
		tool:   "look",
		called: `"function":{"arguments":"{\"n\":2}","name":"look"},"id":"call_2"`,
		said:   `{"content":"bye","role":"assistant"}`,
	},
}

// The same script plays in every protocol; the step is read off the
// conversation, and what the model was shown can be counted.
func TestModelPlaysScripts(t *testing.T) {
	for _, c := range conversations {
		t.Run(c.api, func(t *testing.T) {
			model := startModel(t)
			model.Script("two", scripted.Call(c.tool, obj{"n": 1}), scripted.Say("bye"))
			if _, text := ask(t, model, c.path, c.header, c.body); !strings.Contains(text, c.said) {
				t.Errorf("second step: %s does not hold %s", text, c.said)
			}
			model.Script("two", scripted.Say("unused"), scripted.CallWith(c.tool, func(r scripted.Request) any { return obj{"n": r.Count("seen") + 1} }))
			if _, text := ask(t, model, c.path, c.header, c.body); !strings.Contains(text, c.called) {
				t.Errorf("second step: %s does not hold %s", text, c.called)
			}
			model.Script("two")
			if _, text := ask(t, model, c.path, c.header, c.body); !strings.Contains(text, "done") {
				t.Errorf("behind the last step: %s", text)
			}
			r := model.Requests()[0]
			type facts struct {
				API, Session, Script string
				Step                 int
				Aux, Child           bool
				Shown, Hook, Prompt  int
			}
			got := facts{r.API, r.Session, r.Script, r.Step, r.Aux, r.Child(), r.Count("seen"), r.Count("from a hook"), r.Count("be good")}
			if diff := cmp.Diff(facts{c.api, "s", "two", 1, false, false, 1, 1, 1}, got); diff != "" {
				t.Error(diff)
			}
			if want := []string{c.tool}; r.Tools[len(r.Tools)-1] != want[0] {
				t.Errorf("tools %v, want %v last", r.Tools, want)
			}
		})
	}
}

// A gate holds its answer, and only that one, until it is opened.
func TestModelWaitsAtAGate(t *testing.T) {
	model := startModel(t)
	c := conversations[1]
	model.Script("two", scripted.Say("first"), scripted.Say("bye").After("door"))
	answered := make(chan string)
	go func() {
		_, text := ask(t, model, c.path, c.header, c.body)
		answered <- text
	}()
	if err := model.AtGate(soon(t), "door"); err != nil {
		t.Fatal(err)
	}
	if _, text := ask(t, model, c.path, nil, obj{"messages": arr{obj{"role": "user", "content": "script:two"}}, "tools": c.body["tools"]}); !strings.Contains(text, "first") {
		t.Errorf("the step before the gate was held: %s", text)
	}
	select {
	case text := <-answered:
		t.Fatalf("answered before the gate was open: %s", text)
	default:
	}
	model.Open("door")
	if text := <-answered; !strings.Contains(text, "bye") {
		t.Errorf("behind the gate: %s", text)
	}
}

// What stands beside the conversation plays no script and opens no gate.
func TestModelToleratesOtherRequests(t *testing.T) {
	model := startModel(t)
	model.Script("two", scripted.Say("first").After("shut"))
	prompt := obj{"messages": arr{obj{"role": "user", "content": "a title for: play script:two"}}}
	codexTitle := obj{"x-codex-turn-metadata": `{"thread_source":"thread_title"}`}
	cases := []struct {
		name, path   string
		header, body obj
		status       int
		holds        string
	}{
		{"a title without tools", "/v1/chat/completions", nil, prompt, 200, "A title"},
		{"a codex title", "/v1/responses", codexTitle, obj{"input": arr{}, "tools": arr{obj{"name": "shell"}}}, 200, "A title"},
		{"a token count", "/v1/messages/count_tokens", nil, prompt, 200, "input_tokens"},
		{"an unknown path", "/v1/other", nil, prompt, 404, "error"},
	}
	for _, c := range cases {
		if status, text := ask(t, model, c.path, c.header, c.body); status != c.status || !strings.Contains(text, c.holds) {
			t.Errorf("%s: %d %s", c.name, status, text)
		}
	}
	answer, err := http.Get(model.URL() + "/v1/models")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("models: %v %v", answer, err)
	}
}
