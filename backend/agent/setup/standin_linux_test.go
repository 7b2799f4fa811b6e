package setup_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/session"
)

// standIn is this program in the role of `bridge`: it writes down what the CLIs
// tell it and gives each event one piece of mail.
//
//	mcp --agent KIND --home DIR     an MCP server with the tools inbox, peers and spawn_codex
//	hook KIND EVENT --home DIR      a hook call; as bridge-hook without the first word
//	plugin opencode --home DIR      the plugin's child
//
// Everything is appended to DIR/log, one JSON object a line.
func standIn(args []string) int {
	home := ""
	if n := len(args); n > 2 && args[n-2] == "--home" {
		home, args = args[n-1], args[:n-2]
	}
	log := &journal{path: filepath.Join(home, "log")}
	var err error
	switch args[0] {
	case "mcp":
		err = standInMCP(log, args[2])
	case "hook":
		err = standInHook(log, bridge.AgentKind(args[1]), args[2])
	case "plugin":
		err = standInPlugin(log, home)
	}
	if err != nil {
		log.add(map[string]any{"failed": err.Error()})
		return 1
	}
	return 0
}

type journal struct {
	mu   sync.Mutex
	path string
}

func (j *journal) add(entry map[string]any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line, err := json.Marshal(entry)
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(j.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

func standInMCP(log *journal, kind string) error {
	log.add(map[string]any{"mcp": "start", "kind": kind})
	s := server.NewMCPServer("bridge", "1")
	answer := func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		entry := map[string]any{"mcp": "call", "tool": r.Params.Name, "args": r.GetArguments()}
		if r.Params.Meta != nil {
			entry["meta"] = r.Params.Meta.AdditionalFields
		}
		log.add(entry)
		return mcp.NewToolResultText("inbox-says-hello"), nil
	}
	s.AddTool(mcp.NewTool("inbox", mcp.WithNumber("limit"), mcp.WithSchemaAdditionalProperties(false)), answer)
	for _, name := range []string{"peers", "spawn_codex"} { // with the hints of Bridge's own
		s.AddTool(mcp.NewTool(name, mcp.WithReadOnlyHintAnnotation(name == "peers"), mcp.WithDestructiveHintAnnotation(false),
			mcp.WithOpenWorldHintAnnotation(false), mcp.WithSchemaAdditionalProperties(false)), answer)
	}
	if err := server.ServeStdio(s); err != nil && !errors.Is(err, context.Canceled) { // codex and claude end it by a signal
		return err
	}
	return nil
}

func standInHook(log *journal, kind bridge.AgentKind, event string) error {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if event == hooks.WakeEvent || event == hooks.WakeStandbyEvent { // nothing wakes this session
		log.add(map[string]any{"hook": event})
		return nil
	}
	call, err := hooks.For(kind).ParseHook(event, stdin)
	if err != nil {
		return err
	}
	log.add(map[string]any{"hook": event, "call": call, "stdin": json.RawMessage(stdin)})
	mail := "MAIL-" + event + "-MAIL"
	var stop struct {
		Active hooks.Truth `json:"stop_hook_active"`
	}
	if json.Unmarshal(stdin, &stop) == nil && bool(stop.Active) { // the turn goes on because of our mail
		mail = ""
	}
	_, err = os.Stdout.Write(hooks.For(kind).FormatHook(call, mail))
	return err
}

// standInPlugin hands out each text of DIR/mail-EVENT once, and again when the
// plugin gives it back. DIR/push-EVENT makes it push news of mail, once, behind
// the answer to that event.
func standInPlugin(log *journal, home string) error {
	log.add(map[string]any{"plugin": "start"})
	leased := map[string]string{}
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, bridge.MaxFrameBytes)
	for lines.Scan() {
		var request hooks.PluginRequest
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		reply := hooks.PluginReply{ID: request.ID}
		switch {
		case request.Prompt != nil, request.Settled != nil: // its owner leaves it to the terminal
			log.add(map[string]any{"plugin": "prompt", "prompt": request.Prompt, "settled": request.Settled})
			continue
		case request.Ack != nil:
			log.add(map[string]any{"plugin": "confirm", "confirm": request.Ack})
		case request.Back != "":
			give(home, strings.TrimPrefix(request.Back, "loan-"), leased[request.Back])
		default:
			call, err := hooks.For(bridge.OpenCode).ParseHook(request.Event, request.Call)
			if err != nil {
				return err
			}
			log.add(map[string]any{"plugin": request.Event, "call": call})
			pushed, push := take(home, "push-"+request.Event)
			if text, given := take(home, "mail-"+request.Event); given && !push && call.ChildID == "" {
				reply.Text = text
				reply.Lease = &session.Lease{ID: "loan-mail-" + request.Event, Recipient: "peer", Messages: []string{"m"}}
				leased[reply.Lease.ID] = text
			} else if given {
				give(home, "mail-"+request.Event, text)
			}
			if push {
				if err := errors.Join(out.Encode(reply), out.Encode(hooks.PluginPush{Mail: call.SessionID, Wake: pushed == "wake"})); err != nil {
					return err
				}
				continue
			}
		}
		if err := out.Encode(reply); err != nil {
			return err
		}
	}
	log.add(map[string]any{"plugin": "end"})
	return lines.Err()
}

// take removes a file of the folder and returns what it held.
func take(dir, name string) (text string, ok bool) {
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		return "", false
	}
	return strings.TrimSpace(string(data)), true
}

// give puts a file into the folder in one step.
func give(dir, name, text string) {
	temp := filepath.Join(dir, "new-"+name)
	if err := errors.Join(os.WriteFile(temp, []byte(text), 0o600), os.Rename(temp, filepath.Join(dir, name))); err != nil {
		panic(err)
	}
}
