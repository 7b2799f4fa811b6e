package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// acpProgram is the name under which this program is an agent of the Agent Client Protocol.
const acpProgram = "acp-attacker"

type object = map[string]any

// speaker writes lines to standard output, one at a time.
var speaker sync.Mutex

func say(line any) {
	speaker.Lock()
	defer speaker.Unlock()
	raw, err := json.Marshal(line)
	if err == nil {
		_, err = os.Stdout.Write(append(raw, '\n'))
	}
	if err != nil {
		os.Exit(1) // nobody reads any more
	}
}

func stageOf(text string) (s stage, err error) { return s, json.Unmarshal([]byte(text), &s) }

// runAgent is this program as the agent of a job; which one, its name says.
func runAgent(name string, args []string) {
	if strings.Contains(strings.Join(args, " "), "--version") {
		fmt.Println(map[string]string{"claude": "2.1.329 (Claude Code)", "codex": "codex-cli 0.169.0", "opencode": "1.18.33"}[name])
		return
	}
	switch name {
	case acpProgram:
		runACP()
	case string(bridge.Claude):
		runClaude(args)
	case string(bridge.Codex):
		runCodex()
	case string(bridge.OpenCode):
		if len(args) == 0 || args[0] != "serve" {
			return // it is asked for its models
		}
		runOpenCode()
	}
}

// obey does what a prompt orders. It returns the agent's answer, and the title of what the
// agent asks permission for, "" for nothing.
func obey(prompt string) (answer, title string) {
	o, err := readOrders(prompt)
	if err != nil {
		return err.Error(), ""
	}
	o.Stage.Runner = os.Getppid()
	if o.Stage.Work, err = os.Getwd(); err != nil {
		return err.Error(), ""
	}
	gained := attackAll(o)
	text, err := json.Marshal(gained)
	if err != nil {
		return err.Error(), ""
	}
	switch o.Then {
	case thenWait:
		select {} // until it is cancelled or killed
	case thenAsk:
		return string(text), o.Title
	}
	return string(text), ""
}

// outcome is what an attack came to.
type outcome struct{ Gained, Failed string }

// attackAll runs the attacks, three at once, each in a process of its own. Those that
// survive come last.
func attackAll(o orders) map[string]outcome {
	var mu sync.Mutex
	outcomes := map[string]outcome{}
	var last []attack
	var running sync.WaitGroup
	places := make(chan struct{}, 3)
	for _, name := range o.Attacks {
		a, err := find(name)
		if err == nil && (a.class == survive || a.flow == gitFlow) {
			last = append(last, a)
			continue
		}
		running.Go(func() {
			places <- struct{}{}
			result := attackOnce(o.Stage, name)
			<-places
			mu.Lock()
			defer mu.Unlock()
			outcomes[name] = result
		})
	}
	running.Wait()
	for _, a := range last {
		outcomes[a.name] = attackOnce(o.Stage, a.name)
	}
	return outcomes
}

func attackOnce(s stage, name string) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), attackTime+attackTime/2)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return outcome{Failed: err.Error()}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return outcome{Failed: err.Error()}
	}
	cmd := exec.CommandContext(ctx, self, helperArgument, "attack", name)
	cmd.Env = append(os.Environ(), stageVariable+"="+string(text))
	cmd.WaitDelay = attackTime
	var result outcome
	output, err := cmd.Output()
	if err != nil {
		return outcome{Failed: err.Error()}
	}
	if err := json.Unmarshal(output, &result); err != nil {
		return outcome{Failed: err.Error() + ": " + string(output)}
	}
	return result
}

// runAttack is the process of one attack.
func runAttack(name string) error {
	s, err := stageOf(os.Getenv(stageVariable))
	if err != nil {
		return err
	}
	if err := os.Unsetenv(stageVariable); err != nil {
		return err
	}
	a, err := find(name)
	if err != nil {
		return err
	}
	var result outcome
	gained, err := a.run(s)
	if err != nil {
		result.Failed = clip(err.Error())
	} else {
		result.Gained = gained
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 300)], "") }

func runGit(folder string, args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %w: %s", args, err, output)
	}
	return nil
}

// passOn opens a connection, sends its descriptor to who holds the other end of descriptor
// 3, and ends.
func passOn(how, address string) error {
	var fd int
	var err error
	if how == "connect-page" {
		fd, err = dialPage(address)
	} else {
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: address})
		}
	}
	if err != nil {
		return err
	}
	return unix.Sendmsg(3, []byte("x"), unix.UnixRights(fd), nil, 0)
}

// eachLine calls take with each line of standard input.
func eachLine(take func(raw []byte)) {
	lines := bufio.NewReader(os.Stdin)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		take(raw)
	}
}

// runACP speaks the Agent Client Protocol.
func runACP() {
	type said struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Value, ConfigID string
			Prompt          []struct{ Text string }
		}
	}
	mode := "auto"
	settings := func(to object) object {
		var modes []object
		for _, name := range []string{"auto", "ask", "plan", "acceptEdits"} {
			modes = append(modes, object{"value": name})
		}
		to["configOptions"] = []object{{"id": "mode", "category": "mode", "type": "select", "currentValue": mode, "options": modes}}
		return to
	}
	eachLine(func(raw []byte) {
		var line said
		if json.Unmarshal(raw, &line) != nil || line.ID == nil {
			return
		}
		reply := func(result object) { say(object{"jsonrpc": "2.0", "id": line.ID, "result": result}) }
		switch line.Method {
		case "initialize":
			reply(object{"protocolVersion": 1, "agentCapabilities": object{}, "agentInfo": object{"name": "attacker", "version": "1"}})
		case "session/new":
			reply(settings(object{"sessionId": "s1"}))
		case "session/set_config_option":
			mode = line.Params.Value
			reply(settings(object{}))
		case "session/prompt":
			var words strings.Builder
			for _, part := range line.Params.Prompt {
				words.WriteString(part.Text)
			}
			go func() {
				answer, title := obey(words.String())
				if title != "" {
					askPermission(title)
					return // nobody answers: the job is cancelled
				}
				say(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": "s1", "update": object{
					"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": answer},
				}}})
				reply(object{"stopReason": "end_turn"})
			}()
		}
	})
}

// approval is the file in the job's folder into which the test writes the request's id, and
// verdict the file that says what `bridge approve` came to.
const (
	approval = ".approval"
	verdict  = ".verdict"
)

// askPermission asks for permission, and then approves the request itself.
func askPermission(title string) {
	say(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": "s1", "update": object{
		"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": title},
	}}})
	say(object{"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": object{
		"sessionId": "s1", "options": []object{{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}},
		"toolCall": object{"toolCallId": "t1", "title": title, "kind": "execute", "rawInput": object{"command": title}},
	}})
	var text []byte
	err := waitFor(func() bool {
		var err error
		text, err = os.ReadFile(approval)
		return err == nil && len(text) > 0
	})
	said := ""
	if id, rest, found := strings.Cut(string(text), "\n"); err == nil && found {
		var s stage
		if s, err = stageOf(rest); err == nil {
			said, err = runBridge(s, bare(s), "approve", id)
		}
	}
	_ = os.WriteFile(verdict+".new", fmt.Append(nil, said, err), 0o600)
	_ = os.Rename(verdict+".new", verdict)
}

// runClaude speaks as `claude -p` with JSON lines does.
func runClaude(args []string) {
	session := ""
	for _, arg := range args {
		if id, found := strings.CutPrefix(arg, "--session-id="); found {
			session = id
		}
	}
	eachLine(func(raw []byte) {
		var line struct {
			Type, UUID string
			ID         string `json:"request_id"`
			Message    struct{ Content string }
		}
		if json.Unmarshal(raw, &line) != nil {
			return
		}
		switch line.Type {
		case "control_request":
			say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": line.ID, "response": object{}}})
		case "user":
			say(object{"type": "system", "subtype": "init", "session_id": session, "model": "fake", "claude_code_version": "2.1.329"})
			say(object{"type": "user", "uuid": line.UUID, "isReplay": true, "message": object{"role": "user", "content": line.Message.Content}})
			go func() {
				answer, _ := obey(line.Message.Content)
				say(object{"type": "assistant", "message": object{"role": "assistant", "content": []object{{"type": "text", "text": answer}}}, "parent_tool_use_id": nil})
				say(object{"type": "result", "subtype": "success", "is_error": false, "result": answer, "stop_reason": "end_turn", "terminal_reason": "completed"})
			}()
		}
	})
}

// runCodex speaks as `codex app-server` does. It has no sandbox, and says that it has one.
func runCodex() {
	const thread = "01a201cf-2f34-74f1-97de-5f6a357728f4"
	tell := func(method string, params object) {
		params["threadId"] = thread
		say(object{"method": method, "params": params})
	}
	eachLine(func(raw []byte) {
		var line struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ClientUserMessageID string
				Input               []struct{ Text string }
			}
		}
		if json.Unmarshal(raw, &line) != nil || line.ID == nil {
			return
		}
		result := object{}
		switch line.Method {
		case "initialize":
			result["userAgent"] = "bridge-job/0.169.0 (attacker)"
		case "command/exec":
			result["exitCode"] = 7
		case "thread/start":
			result["model"], result["thread"] = "fake", object{"id": thread}
		case "turn/start":
			result["turn"] = object{"id": "turn1"}
			go func() {
				tell("turn/started", object{"turn": object{"id": "turn1", "status": "inProgress"}})
				tell("item/completed", object{"item": object{"type": "userMessage", "clientId": line.Params.ClientUserMessageID}})
				answer, _ := obey(line.Params.Input[0].Text)
				tell("item/completed", object{"item": object{"type": "agentMessage", "id": "m", "text": answer}})
				tell("turn/completed", object{"turn": object{"id": "turn1", "status": "completed", "items": []object{{"type": "agentMessage", "text": answer}}}})
			}()
		}
		say(object{"id": line.ID, "result": result})
	})
}

// runOpenCode speaks as `opencode serve` does.
func runOpenCode() {
	const session = "ses_dfe211c33ffemQ3SQUzy5JNvy8"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	events := make(chan string, 100)
	tell := func(kind string, properties object) {
		properties["sessionID"] = session
		raw, _ := json.Marshal(object{"type": kind, "properties": properties}) // it can be
		events <- string(raw)
	}
	reply := func(w http.ResponseWriter, v any) { json.NewEncoder(w).Encode(v) } //nolint:errcheck // who asked may have gone
	mux := http.NewServeMux()
	mux.HandleFunc("GET /global/health", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, object{"healthy": true, "version": "1.18.33"})
	})
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w)
		_ = flush.Flush()
		for {
			select {
			case event := <-events:
				fmt.Fprintf(w, "data: %s\n\n", event)
				_ = flush.Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /session", func(w http.ResponseWriter, _ *http.Request) { reply(w, object{"id": session, "title": "t"}) })
	mux.HandleFunc("POST /session/{id}/prompt_async", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Parts []struct{ Text string } }
		if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Parts) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		prompt := body.Parts[0].Text
		go func() {
			part := func(id, message, text string) {
				tell("message.part.updated", object{"part": object{"id": id, "type": "text", "messageID": message, "text": text, "time": object{"end": 1}}})
			}
			tell("session.status", object{"status": object{"type": "busy"}})
			tell("message.updated", object{"info": object{"id": "msg_u1", "role": "user"}})
			part("p1", "msg_u1", prompt)
			answer, _ := obey(prompt)
			finished := func(finish string) {
				tell("message.updated", object{"info": object{"id": "msg_a1", "role": "assistant", "finish": finish, "tokens": object{"input": 10, "output": 5}}})
			}
			finished("")
			part("p2", "msg_a1", answer)
			finished("stop")
			tell("session.status", object{"status": object{"type": "idle"}})
			tell("session.idle", object{})
		}()
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { reply(w, object{}) })
	fmt.Println("opencode server listening on http://" + listener.Addr().String())
	panic(http.Serve(listener, mux)) //nolint:gosec // a test's own
}

// agentPrograms are the names under which this program is an agent.
var agentPrograms = map[bridge.AgentKind]string{job.ACP: acpProgram, bridge.Claude: "claude", bridge.Codex: "codex", bridge.OpenCode: "opencode"}

// linkAgents lays links to the attacker under the names of the agents.
func linkAgents(folder string) error {
	errs := []error{os.MkdirAll(folder, 0o700)}
	for _, name := range agentPrograms {
		errs = append(errs, os.Symlink(attacker, filepath.Join(folder, name)))
	}
	return errors.Join(errs...)
}
