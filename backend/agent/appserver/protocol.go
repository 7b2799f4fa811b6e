// Package appserver is codex's app-server protocol as far as Bridge speaks it: JSON-RPC
// without the version, by lines to a server of our own (package driver), or by the
// control socket of the background server that codex's terminals share (Dial).
package appserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"bridge/backend/agent/driver/run"
)

// The requests of a server that a person decides about.
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

// Item is a piece of a turn.
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
	Result    json.RawMessage `json:"result"` // what a server's tool has said, null where it never ran
}

// Subject names the tool of a step and what it is about; "" for an item that is
// no step.
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

// Paths are the files of a patch, the new ones of those that it moves too.
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

// Diff is what a patch changes, file by file.
func (i Item) Diff() string {
	var b strings.Builder
	for _, change := range i.Changes {
		fmt.Fprintf(&b, "%s\n%s\n", change.Path, change.Diff)
	}
	return b.String()
}

// Ask is what requests carry, as far as it is read.
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

// Decision answers AsksCommand and AsksChange, for this once.
func Decision(allow bool) any {
	if allow {
		return map[string]any{"decision": "accept"}
	}
	return map[string]any{"decision": "decline"}
}

// Elicited answers AsksServer, for this once.
func Elicited(allow bool) any {
	if allow {
		return map[string]any{"action": "accept", "content": map[string]any{}}
	}
	return map[string]any{"action": "decline"}
}

// Words are a user's words, as a turn takes them.
func Words(text string) []map[string]any {
	return []map[string]any{{"type": "text", "text": text, "text_elements": []any{}}}
}

// Steer are the parameters of words into the turn that runs. id names them to whoever
// said them; "" where nobody asks.
func Steer(thread, turn, id, text string) map[string]any {
	return map[string]any{"threadId": thread, "expectedTurnId": turn, "clientUserMessageId": id, "input": Words(text)}
}

// Refused is how the reason of a refusal is put into a turn: an answer has no place for
// it.
func Refused(reason string) string { return "Refused: " + reason }

// Hello are the parameters of initialize. mutes are the notifications that shall not come.
func Hello(name string, mutes ...string) map[string]any {
	capabilities := map[string]any{"experimentalApi": true}
	if len(mutes) > 0 {
		capabilities["optOutNotificationMethods"] = mutes
	}
	return map[string]any{
		"clientInfo": map[string]any{"name": name, "title": "Bridge", "version": "1"}, "capabilities": capabilities,
	}
}
