package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// protocol is one of the three ways in which a CLI talks to its model.
type protocol struct {
	read  func(http.Header, []byte) (Request, error)
	write func(stream, answer)
}

// protocols by path.
var protocols = map[string]protocol{
	"/v1/responses":        {readResponses, writeResponses},
	"/v1/messages":         {readMessages, writeMessages},
	"/v1/chat/completions": {readChat, writeChat},
}

// answer is one answer of the model: text, or a call of tool with args.
type answer struct {
	number          int // of the request, for ids
	text            string
	namespace, tool string
	args            string // a JSON object
	stop            string // why it stopped, in the protocol's own word; "" as usual
	fail            *Failed
}

func splitTool(name string) (namespace, tool string) {
	if namespace, tool, ok := strings.Cut(name, "/"); ok {
		return namespace, tool
	}
	return "", name
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a script holds what JSON cannot say: %v", err))
	}
	return string(raw)
}

// object is a JSON object.
type object = map[string]any

// stream writes server-sent events. A CLI that has gone ends the request by
// itself, so a failed write needs no answer.
type stream struct{ w io.Writer }

func (s stream) event(name string, data object) {
	data["type"] = name
	fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, mustJSON(data))
}

func (s stream) data(data string) { fmt.Fprintf(s.w, "data: %s\n\n", data) }

// content is text that a protocol writes either as one string or as a list of
// blocks.
type content []block

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`    // of a tool that is used
	Input   json.RawMessage `json:"input"`   // its arguments
	Content content         `json:"content"` // of a tool's result
}

func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	var blocks []block
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return fmt.Errorf("content is neither text nor a list of blocks: %w", err)
	}
	*c = blocks
	return nil
}

// text joins what the blocks say.
func (c content) text() string {
	var parts []string
	for _, b := range c {
		if b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// ---- OpenAI Responses, as codex speaks it.

func readResponses(h http.Header, body []byte) (Request, error) {
	var in struct {
		Instructions string `json:"instructions"`
		Input        []struct {
			Type, Role, Name, Namespace, Arguments string
			Content, Output                        content
		} `json:"input"`
		Tools []struct {
			Type, Name string
			Tools      []struct{ Name string }
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("reading a responses request: %w", err)
	}
	r := Request{API: "responses", Session: h.Get("session-id"), Thread: h.Get("thread-id")}
	r.Items = append(r.Items, Item{Role: "system", Text: in.Instructions})
	for _, item := range in.Input {
		switch {
		case strings.HasSuffix(item.Type, "_call"):
			r.Items = append(r.Items, Item{Role: "assistant", Tool: joinTool(item.Namespace, item.Name), Text: item.Arguments})
		case strings.HasSuffix(item.Type, "_output"):
			r.Items = append(r.Items, Item{Role: "tool", Text: item.Output.text()})
		case item.Role != "":
			r.Items = append(r.Items, Item{Role: item.Role, Text: item.Content.text()})
		}
	}
	for _, tool := range in.Tools {
		if tool.Type != "namespace" {
			r.Tools = append(r.Tools, tool.Name)
		}
		for _, inner := range tool.Tools {
			r.Tools = append(r.Tools, joinTool(tool.Name, inner.Name))
		}
	}
	var turn struct {
		Source string `json:"thread_source"`
	}
	json.Unmarshal([]byte(h.Get("x-codex-turn-metadata")), &turn) //nolint:errcheck // an absent header is an ordinary turn
	r.Aux = turn.Source == "thread_title"
	return r, nil
}

func joinTool(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func writeResponses(s stream, a answer) {
	id := fmt.Sprintf("resp_%d", a.number)
	item := object{
		"type": "message", "role": "assistant", "id": fmt.Sprintf("msg_%d", a.number),
		"content": []object{{"type": "output_text", "text": a.text}},
	}
	if a.tool != "" {
		item = object{
			"type": "function_call", "id": fmt.Sprintf("fc_%d", a.number), "call_id": fmt.Sprintf("call_%d", a.number),
			"name": a.tool, "arguments": a.args,
		}
		if a.namespace != "" {
			item["namespace"] = a.namespace
		}
	}
	s.event("response.created", object{"response": object{"id": id}})
	if a.stop != "" {
		s.event("response.incomplete", object{"response": object{"id": id, "incomplete_details": object{"reason": a.stop}}})
		return
	}
	s.event("response.output_item.done", object{"output_index": 0, "item": item})
	s.event("response.completed", object{"response": object{"id": id, "output": []object{item}, "usage": object{
		"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15,
	}}})
}

// ---- Anthropic Messages, as claude speaks it.

func readMessages(h http.Header, body []byte) (Request, error) {
	var in struct {
		System   content `json:"system"`
		Messages []struct {
			Role    string  `json:"role"`
			Content content `json:"content"`
		} `json:"messages"`
		Tools []struct{ Name string } `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("reading a messages request: %w", err)
	}
	r := Request{API: "messages", Session: h.Get("x-claude-code-session-id"), Thread: h.Get("x-claude-code-agent-id")}
	if r.Thread == "" {
		r.Thread = r.Session
	}
	r.Items = append(r.Items, Item{Role: "system", Text: in.System.text()})
	for _, message := range in.Messages {
		for _, b := range message.Content {
			switch b.Type {
			case "text":
				r.Items = append(r.Items, Item{Role: message.Role, Text: b.Text})
			case "tool_use":
				r.Items = append(r.Items, Item{Role: "assistant", Tool: b.Name, Text: string(b.Input)})
			case "tool_result":
				r.Items = append(r.Items, Item{Role: "tool", Text: b.Content.text()})
			}
		}
	}
	for _, tool := range in.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r, nil
}

func writeMessages(s stream, a answer) {
	start, delta, reason := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.text}, "end_turn"
	if a.tool != "" {
		start = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", a.number), "name": a.tool, "input": object{}}
		delta, reason = object{"type": "input_json_delta", "partial_json": a.args}, "tool_use"
	}
	if a.stop != "" {
		reason = a.stop
	}
	s.event("message_start", object{"message": object{
		"id": fmt.Sprintf("msg_%d", a.number), "type": "message", "role": "assistant", "model": "fake-model", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
	}})
	s.event("content_block_start", object{"index": 0, "content_block": start})
	s.event("content_block_delta", object{"index": 0, "delta": delta})
	s.event("content_block_stop", object{"index": 0})
	s.event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	s.event("message_stop", object{})
}

// ---- OpenAI chat completions, as opencode speaks it.

func readChat(h http.Header, body []byte) (Request, error) {
	var in struct {
		Messages []struct {
			Role      string  `json:"role"`
			Content   content `json:"content"`
			ToolCalls []struct {
				Function struct{ Name, Arguments string } `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct{ Name string } `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("reading a chat request: %w", err)
	}
	r := Request{API: "chat", Session: h.Get("x-session-id"), Thread: h.Get("x-session-id")}
	if parent := h.Get("x-parent-session-id"); parent != "" {
		r.Session = parent
	}
	for _, message := range in.Messages {
		if text := message.Content.text(); text != "" {
			r.Items = append(r.Items, Item{Role: message.Role, Text: text})
		}
		for _, call := range message.ToolCalls {
			r.Items = append(r.Items, Item{Role: "assistant", Tool: call.Function.Name, Text: call.Function.Arguments})
		}
	}
	for _, tool := range in.Tools {
		r.Tools = append(r.Tools, tool.Function.Name)
	}
	return r, nil
}

func writeChat(s stream, a answer) {
	delta, reason := object{"role": "assistant", "content": a.text}, "stop"
	if a.tool != "" {
		delta, reason = object{"role": "assistant", "tool_calls": []object{{
			"index": 0, "id": fmt.Sprintf("call_%d", a.number), "type": "function",
			"function": object{"name": a.tool, "arguments": a.args},
		}}}, "tool_calls"
	}
	if a.stop != "" {
		reason = a.stop
	}
	chunk := func(choices []object, more object) {
		data := object{
			"id": fmt.Sprintf("chatcmpl-%d", a.number), "object": "chat.completion.chunk", "created": 1,
			"model": "fake-model", "choices": choices,
		}
		for k, v := range more {
			data[k] = v
		}
		s.data(mustJSON(data))
	}
	chunk([]object{{"index": 0, "delta": delta, "finish_reason": nil}}, nil)
	chunk([]object{{"index": 0, "delta": object{}, "finish_reason": reason}}, nil)
	chunk([]object{}, object{"usage": object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
	s.data("[DONE]")
}
