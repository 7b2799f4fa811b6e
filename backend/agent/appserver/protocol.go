// Package appserver is the part of codex's app-server protocol that Bridge uses: JSON-RPC
// without the version. It runs by lines to Bridge's own server (package driver), or by the
// control socket of the background server that codex's terminals share (Dial).
package appserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"bridge/backend/agent/driver/run"
)

// The server's requests that a person decides.
const (
	AsksCommand  = "item/commandExecution/requestApproval"
	AsksChange   = "item/fileChange/requestApproval"
	AsksServer   = "mcpServer/elicitation/request"
	AsksQuestion = "item/tool/requestUserInput"
)

// Line is a response, a notification or a request.
type Line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *run.Refusal    `json:"error"`
}

// Item is a part of a turn.
type Item struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Client  string `json:"clientId"`
	Text    string `json:"text"`
	Command string `json:"command"`
	Status  string `json:"status"`
	Output  string `json:"aggregatedOutput"`
	Exit    *int   `json:"exitCode"`
	Changes []struct {
		Path string `json:"path"`
		Diff string `json:"diff"`
		Kind struct {
			Type    string `json:"type"`
			MovedTo string `json:"move_path"`
		} `json:"kind"`
	} `json:"changes"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Query     string          `json:"query"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"` // output of a server's tool; null if it never ran
}

// Subject returns the tool of a step and its subject, or "" for an item that is not
// a step.
func (i Item) Subject() (tool, subject string) {
	switch i.Type {
	case "commandExecution":
		return "shell", i.Command
	case "fileChange":
		return "apply_patch", strings.Join(i.Paths(), "\n")
	case "mcpToolCall":
		return i.Server + "/" + i.Tool, ""
	case "dynamicToolCall", "collabAgentToolCall":
		return i.Tool, ""
	case "webSearch":
		return "web_search", i.Query
	}
	return "", ""
}

// Paths returns the files of a patch, including the new names of moved ones.
func (i Item) Paths() []string {
	var paths []string
	for _, change := range i.Changes {
		paths = append(paths, change.Path)
		if change.Kind.MovedTo != "" {
			paths = append(paths, change.Kind.MovedTo)
		}
	}
	return paths
}

// Diff returns the changes of a patch, file by file.
func (i Item) Diff() string {
	var b strings.Builder
	for _, change := range i.Changes {
		fmt.Fprintf(&b, "%s\n%s\n", change.Path, change.Diff)
	}
	return b.String()
}

// Ask holds the parameters of requests that Bridge reads.
type Ask struct {
	Thread  string          `json:"threadId"`
	Turn    string          `json:"turnId"`
	Item    string          `json:"itemId"`
	Command string          `json:"command"`
	Folder  string          `json:"cwd"`
	Reason  string          `json:"reason"`
	Server  string          `json:"serverName"`
	Message string          `json:"message"`
	Meta    json.RawMessage `json:"_meta"`
}

// Decision returns the answer to AsksCommand and AsksChange, for this request only.
func Decision(allow bool) any {
	if allow {
		return map[string]any{"decision": "accept"}
	}
	return map[string]any{"decision": "decline"}
}

// Elicited returns the answer to AsksServer, for this request only.
func Elicited(allow bool) any {
	if allow {
		return map[string]any{"action": "accept", "content": map[string]any{}}
	}
	return map[string]any{"action": "decline"}
}

// Words returns a user's text in the form of a turn's input.
func Words(text string) []map[string]any {
	return []map[string]any{{"type": "text", "text": text, "text_elements": []any{}}}
}

// Steer returns the parameters that add text to the running turn. id identifies the
// text for its sender; "" without one.
func Steer(thread, turn, id, text string) map[string]any {
	return map[string]any{"threadId": thread, "expectedTurnId": turn, "clientUserMessageId": id, "input": Words(text)}
}

// Refused returns the text that adds a refusal's reason to a turn, because an
// answer has no field for it.
func Refused(reason string) string { return "Refused: " + reason }

// Hello returns the parameters of initialize. mutes are the notifications to suppress.
func Hello(name string, mutes ...string) map[string]any {
	capabilities := map[string]any{"experimentalApi": true}
	if len(mutes) > 0 {
		capabilities["optOutNotificationMethods"] = mutes
	}
	return map[string]any{
		"clientInfo": map[string]any{"name": name, "title": "Bridge", "version": "1"}, "capabilities": capabilities,
	}
}
