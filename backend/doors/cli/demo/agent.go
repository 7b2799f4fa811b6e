package demo

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
)

// beat is the pause between two steps of a scripted job, slow enough to follow.
const beat = 1500 * time.Millisecond

// maxLine bounds one input line of the stand-in.
const maxLine = 1 << 20

// object is a JSON object to write.
type object map[string]any

// standIn plays an agent for the demo's jobs over the Agent Client Protocol. Its
// actions are scripted; its edits and commands are real, in the job's own checkout.
type standIn struct {
	out  io.Writer
	lock sync.Mutex // guards out
	beat time.Duration

	session  string
	cwd      string
	servers  []server
	requests int
	answers  chan bool
	stop     context.CancelFunc // of the running turn
	turns    sync.WaitGroup
}

// server is the MCP server of the job.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// said is a line from the client.
type said struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Session string   `json:"sessionId"`
		Cwd     string   `json:"cwd"`
		Servers []server `json:"mcpServers"`
		Prompt  []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	} `json:"params"`
	Result struct {
		Outcome struct {
			Option string `json:"optionId"`
		} `json:"outcome"`
	} `json:"result"`
}

// Agent runs the stand-in until its input ends.
func Agent(ctx context.Context, in io.Reader, out io.Writer) error { return agent(ctx, in, out, beat) }

func agent(ctx context.Context, in io.Reader, out io.Writer, beat time.Duration) error {
	a := &standIn{out: out, beat: beat, answers: make(chan bool, 1), stop: func() {}}
	defer a.turns.Wait()
	defer func() { a.stop() }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line said
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
		a.handle(ctx, line)
	}
	return lines.Err()
}

func (a *standIn) handle(ctx context.Context, line said) {
	switch line.Method {
	case "":
		select {
		case a.answers <- line.Result.Outcome.Option == "yes":
		default: // no waiter
		}
	case "initialize":
		can := object{"sessionCapabilities": object{"resume": object{}}}
		a.reply(line.ID, object{"protocolVersion": 1, "agentCapabilities": can, "agentInfo": object{"name": "script", "version": "1"}})
	case "session/new", "session/resume":
		a.cwd, a.servers = line.Params.Cwd, line.Params.Servers
		mode := object{"id": "mode", "category": "mode", "type": "select", "currentValue": "ask", "options": []object{{"value": "ask"}}}
		a.session = line.Params.Session
		if a.session == "" {
			a.session = "script-" + rand.Text()[:8]
		}
		a.reply(line.ID, object{"sessionId": a.session, "configOptions": []object{mode}})
	case "session/prompt":
		var prompt string
		for _, part := range line.Params.Prompt {
			prompt = part.Text // the task comes last
		}
		var turn context.Context
		turn, a.stop = context.WithCancel(ctx)
		a.turns.Go(func() { a.play(turn, line.ID, prompt) })
	case "session/cancel":
		a.stop()
	default:
		if line.ID != nil {
			a.reply(line.ID, object{})
		}
	}
}

// followUp is the answer to words for which there is no script, such as review comments.
const followUp = "I read your words. I am a script without a model, so I change nothing. A real agent would continue here, in the same session, and answer you."

// play executes the script of a task.
func (a *standIn) play(ctx context.Context, id json.RawMessage, prompt string) {
	acts, known := tasks[prompt]
	if !known {
		acts = []act{tell(followUp)}
	}
	for _, act := range acts {
		var err error
		if ipc.Pause(ctx, a.beat) {
			err = act(ctx, a)
		}
		if ctx.Err() != nil {
			a.reply(id, object{"stopReason": "cancelled"})
			return
		}
		if err != nil {
			a.write(object{"id": id, "error": object{"code": -32603, "message": err.Error()}})
			return
		}
	}
	a.reply(id, object{"stopReason": "end_turn"})
}

func (a *standIn) reply(id json.RawMessage, result object) {
	a.write(object{"id": id, "result": result})
}

func (a *standIn) write(line object) {
	line["jsonrpc"] = "2.0"
	raw, err := json.Marshal(line)
	if err != nil {
		raw = []byte("{}") // its values always encode
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	_, _ = a.out.Write(append(raw, '\n')) // a client that has ended also ends the input
}

func (a *standIn) update(update object) {
	a.write(object{"method": "session/update", "params": object{"sessionId": a.session, "update": update}})
}

// step is a tool call from its start to its end.
func (a *standIn) step(kind, title string, input object, do func(id string) (output string, exit int, err error)) error {
	a.requests++
	id := fmt.Sprint("step", a.requests)
	a.update(object{"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress", "rawInput": input})
	output, exit, err := do(id)
	if err != nil {
		return err
	}
	status := "completed"
	if exit != 0 {
		status = "failed"
	}
	a.update(object{
		"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "rawOutput": object{"exitCode": exit},
		"content": []object{{"type": "content", "content": object{"type": "text", "text": output}}},
	})
	return nil
}

// act is one action of a scripted job.
type act func(context.Context, *standIn) error

func tell(text string) act {
	return func(_ context.Context, a *standIn) error {
		a.update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": text}})
		return nil
	}
}

func read(path string) act {
	return func(_ context.Context, a *standIn) error {
		return a.step("read", "Read "+path, object{"path": path}, func(string) (string, int, error) {
			text, err := os.ReadFile(filepath.Join(a.cwd, path))
			return string(text), 0, err
		})
	}
}

func edit(path, text string) act {
	return func(_ context.Context, a *standIn) error {
		return a.step("edit", "Edit "+path, object{"path": path}, func(string) (string, int, error) {
			return "", 0, disk.WriteAtomic(filepath.Join(a.cwd, path), []byte(text), 0o600)
		})
	}
}

func git(args ...string) act {
	return func(ctx context.Context, a *standIn) error {
		command := commandLine(args)
		return a.step("execute", command, object{"command": command}, func(string) (string, int, error) { return a.git(ctx, args) })
	}
}

func (a *standIn) git(ctx context.Context, args []string) (output string, exit int, err error) {
	text, err := gitIn(ctx, a.cwd, args...)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return text, failed.ExitCode(), nil
	}
	return text, 0, err
}

// commandLine returns git's command line as a person types it.
func commandLine(args []string) string {
	command := []string{"git"}
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		command = append(command, arg)
	}
	return strings.Join(command, " ")
}

// askGit runs git after permission.
func askGit(args ...string) act {
	return func(ctx context.Context, a *standIn) error {
		command := commandLine(args)
		return a.step("execute", command, object{"command": command}, func(id string) (string, int, error) {
			call := object{"toolCallId": id, "title": command, "kind": "execute", "rawInput": object{"command": command}}
			options := []object{{"optionId": "yes", "kind": "allow_once", "name": "Allow"}, {"optionId": "no", "kind": "reject_once", "name": "Refuse"}}
			a.write(object{"id": id, "method": "session/request_permission", "params": object{"sessionId": a.session, "options": options, "toolCall": call}})
			select {
			case allowed := <-a.answers:
				if allowed {
					return a.git(ctx, args)
				}
				return "", 1, nil
			case <-ctx.Done():
				return "", 1, nil
			}
		})
	}
}

// progress calls the tool of the job's own MCP server.
func progress(percent, minutes int, note string) act {
	return func(ctx context.Context, a *standIn) error {
		if len(a.servers) == 0 {
			return nil
		}
		own := a.servers[0]
		env := os.Environ()
		for _, pair := range own.Env {
			env = append(env, pair.Name+"="+pair.Value)
		}
		process := transport.NewStdio(own.Command, env, own.Args...)
		if err := process.Start(ctx); err != nil {
			return err
		}
		tools, err := connect(ctx, process)
		if err != nil {
			return err
		}
		_, err = tools.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{
			Name: "report_progress", Arguments: object{"percent": percent, "eta_minutes": minutes, "note": note},
		}})
		return errors.Join(err, tools.Close())
	}
}

// gitIn runs git in a folder, with a neutral identity.
func gitIn(ctx context.Context, folder string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=Bridge demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = folder
	text, err := cmd.CombinedOutput()
	return string(text), err
}
