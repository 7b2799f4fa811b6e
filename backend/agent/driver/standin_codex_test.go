package driver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// codexStand speaks as `codex app-server` does.
type codexStand struct {
	*agent
	lines *bufio.Reader

	mu       sync.Mutex // guards what follows
	turns    int
	steers   int
	turn     string // that runs
	asked    int
	commands map[string]string // command of each step
}

const codexThread = "01a201cf-2f34-74f1-97de-5f6a357728f4"

func codexFront(a *agent, _ []string) front {
	a.goesOn = true
	return &codexStand{agent: a, lines: bufio.NewReader(os.Stdin), commands: map[string]string{}}
}

type codexSaid struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ThreadID, TurnID, ExpectedTurnID, ClientUserMessageID string
		Input                                                 []struct{ Text string }
		Command                                               []string
	}
	Result struct{ Decision, Action string }
}

func (c *codexStand) listen() {
	for {
		raw, err := c.lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var line codexSaid
		if err := json.Unmarshal(raw, &line); err != nil {
			panic(err)
		}
		if line.Method == "" {
			c.answered(line)
			continue
		}
		result, refused := c.handle(line)
		switch {
		case line.ID == nil:
		case refused != "":
			say(object{"id": line.ID, "error": object{"code": -32600, "message": refused}})
		default:
			say(object{"id": line.ID, "result": result})
		}
	}
}

func (c *codexStand) answered(line codexSaid) {
	c.verdicts <- verdict{allow: line.Result.Decision == "accept" || line.Result.Action == "accept"}
	say(object{"method": "serverRequest/resolved", "params": object{"threadId": codexThread, "requestId": line.ID}})
}

func (c *codexStand) handle(line codexSaid) (result object, refused string) {
	c.mu.Lock()
	turn := c.turn
	c.mu.Unlock()
	p := line.Params
	switch line.Method {
	case "initialize":
		return object{"userAgent": "bridge-job/0.169.0 (stand-in)"}, ""
	case "command/exec":
		return object{"exitCode": 7}, ""
	case "thread/start":
		c.session = codexThread
		return object{"model": "fake", "thread": object{"id": codexThread}}, ""
	case "thread/resume":
		if p.ThreadID == "in-use" {
			return nil, "thread already has an active writer"
		}
		if !c.load(p.ThreadID) {
			return nil, "no rollout found for thread id " + p.ThreadID
		}
		return object{"model": "fake", "thread": object{"id": p.ThreadID}}, ""
	case "turn/start":
		if turn == "" {
			turn = c.nextTurn()
		}
		c.messages <- message{p.ClientUserMessageID, p.Input[0].Text}
		return object{"turn": object{"id": turn}}, ""
	case "turn/steer":
		c.steers++
		switch {
		case c.steers == 1 && os.Getenv("STANDIN_LATE") != "", turn == "":
			return nil, "no active turn to steer"
		case turn != p.ExpectedTurnID:
			return nil, fmt.Sprintf("expected active turn id `%s` but found `%s`", p.ExpectedTurnID, turn)
		}
		c.messages <- message{p.ClientUserMessageID, p.Input[0].Text}
		return object{"turnId": turn}, ""
	case "turn/interrupt":
		c.interrupt <- struct{}{}
	}
	return object{}, ""
}

func (c *codexStand) nextTurn() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
	c.turn = "turn" + strconv.Itoa(c.turns)
	return c.turn
}

func (c *codexStand) tell(method string, params object) {
	params["threadId"] = codexThread
	say(object{"method": method, "params": params})
}

func (c *codexStand) turnBegan() {
	c.mu.Lock()
	turn := c.turn
	c.mu.Unlock()
	c.tell("turn/started", object{"turn": object{"id": turn, "status": "inProgress"}})
}

func (c *codexStand) inserted(m message) {
	c.tell("item/completed", object{"item": object{"type": "userMessage", "clientId": m.id}})
}

func (c *codexStand) text(words string) {
	c.tell("item/completed", object{"item": object{"type": "agentMessage", "id": "m", "text": words}})
}

func (c *codexStand) stepBegan(id, command string) {
	c.mu.Lock()
	c.commands[id] = command
	c.mu.Unlock()
	item := object{"type": "commandExecution", "id": id, "command": command, "status": "inProgress"}
	if changes := patchOf(command); changes != nil {
		item = object{"type": "fileChange", "id": id, "changes": changes, "status": "inProgress"}
	}
	c.tell("item/started", object{"item": item})
}

// patchOf is what a command changes that says of itself to be a patch: "touch FILE #
// patch", or "... # patch NEW" for one that it moves too; nil for any other. "... #
// nameless" does not tell which files.
func patchOf(command string) []object {
	if strings.HasSuffix(command, " # nameless") {
		return []object{}
	}
	did, moved, is := strings.Cut(command, " # patch")
	if !is {
		return nil
	}
	kind := object{"type": "update", "move_path": nil}
	if moved != "" {
		kind["move_path"] = strings.TrimSpace(moved)
	}
	return []object{{"path": strings.Fields(did)[1], "diff": "+made", "kind": kind}}
}

func (c *codexStand) asks(id, command string) {
	c.mu.Lock()
	c.asked++
	request := c.asked
	c.mu.Unlock()
	if _, server, is := strings.Cut(command, " # server "); is {
		say(object{"id": request, "method": "mcpServer/elicitation/request", "params": object{"threadId": codexThread, "serverName": server, "message": "May I?"}})
		return
	}
	if patchOf(command) != nil {
		say(object{"id": request, "method": "item/fileChange/requestApproval", "params": object{"threadId": codexThread, "itemId": id}})
		return
	}
	say(object{"id": request, "method": "item/commandExecution/requestApproval", "params": object{
		"threadId": codexThread, "itemId": id, "command": command, "cwd": "/",
	}})
}

func (c *codexStand) withdraws(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell("serverRequest/resolved", object{"requestId": c.asked})
}

func (c *codexStand) stepEnded(id string, end stepEnd) {
	item := object{"type": "commandExecution", "id": id, "status": "completed", "exitCode": end.exit, "aggregatedOutput": end.output}
	if end.refused {
		item = object{"type": "commandExecution", "id": id, "status": "declined"}
	}
	c.tell("item/completed", object{"item": item})
}

func (c *codexStand) turnEnded(fault drivertest.Fault, words string) {
	turn := object{"id": c.turn, "status": "completed", "items": []object{{"type": "agentMessage", "text": words}}}
	failed := func(info any, message string) {
		turn["status"], turn["error"] = "failed", object{"message": message, "codexErrorInfo": info}
	}
	switch fault {
	case interrupted:
		turn["status"] = "interrupted"
	case drivertest.Unauthorized:
		failed(object{"httpConnectionFailed": object{"httpStatusCode": 401}}, "unexpected status 401")
	case drivertest.UsageLimit:
		failed("usageLimitExceeded", "You've hit your usage limit.")
	case drivertest.ServerError:
		c.tell("error", object{"error": object{"message": "Reconnecting... 1/5", "codexErrorInfo": "internalServerError"}, "willRetry": true})
		failed("internalServerError", "Internal server error")
	case drivertest.Refusal:
		failed("other", "Incomplete response returned, reason: content_filter")
	case drivertest.Context:
		failed("contextWindowExceeded", "too long")
	default: // no fault of the model
	}
	tokensOf := func(turns int) object {
		return object{"totalTokens": 15 * turns, "inputTokens": 10 * turns, "outputTokens": 5 * turns, "cachedInputTokens": 2 * turns}
	}
	c.tell("thread/tokenUsage/updated", object{"tokenUsage": object{"total": tokensOf(c.played), "last": tokensOf(1), "modelContextWindow": 1000}})
	c.mu.Lock()
	c.turn = ""
	c.mu.Unlock()
	c.tell("turn/completed", object{"turn": turn})
}

func (c *codexStand) junk() {
	fmt.Println("thread 'main' panicked at something")
	fmt.Println(`{"half":`)
	fmt.Println(`{"method":"something/new","params":[1]}`)
	fmt.Println(`{"id":"999","result":{}}`)
	fmt.Println(strings.Repeat("x", 1<<20))
}

// Codex writes a patch that was allowed past its sandbox: what is outside is refused
// before anybody is asked, and the model reads why.
func TestJOB_14_SEC_03_ACodexChangesFilesOfItsFolderOnly(t *testing.T) {
	for _, access := range []job.Access{job.AccessEdit, job.AccessAsk} {
		t.Run(string(access), func(t *testing.T) { codexChangesItsFolderOnly(t, access) })
	}
}

func codexChangesItsFolderOnly(t *testing.T, access job.Access) {
	bench := newStage(bridge.Codex)(t)
	spec, outside := bench.Spec(t), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(spec.Folder, "link")); err != nil {
		t.Fatal(err)
	}
	in, out := func(name string) string { return filepath.Join(spec.Folder, name) }, func(name string) string { return filepath.Join(outside, name) }
	bench.Script("patches", drivertest.Step{Run: "touch " + out("by-path") + " # patch"}, drivertest.Step{Run: "touch " + in("link/by-link") + " # patch"},
		drivertest.Step{Run: "touch " + in("../"+filepath.Base(outside)+"/by-dots") + " # patch"}, drivertest.Step{Run: "touch " + in("moved") + " # patch " + out("moved")},
		drivertest.Step{Run: "touch " + out("by-no-name") + " # nameless"}, drivertest.Step{Run: "touch " + in("made") + " # patch"}, drivertest.Step{Say: "done"})
	spec.Prompt, spec.Access = drivertest.Prompt("patches"), access
	j := drivertest.Start(t, bench, spec)
	question := drivertest.Until[job.Asked](j, nil).Question
	if question.Kind != job.QuestionEdit || question.Subject != in("made") || question.LeavesSandbox {
		t.Errorf("it asks about %+v", question)
	}
	if err := j.Run.Answer(t.Context(), job.Answer{Question: question.ID, Allow: true}); err != nil {
		t.Fatal(err)
	}
	drivertest.Until[job.TurnEnded](j, nil)
	left, err := os.ReadDir(outside)
	if err != nil || len(left) > 0 {
		t.Errorf("outside is %v, %v", left, err)
	}
	if _, err := os.Stat(in("made")); err != nil {
		t.Errorf("what was allowed was not written: %v", err)
	}
	if n := bench.Shown("Refused: this job may change files in its own folder only."); n != 5 {
		t.Errorf("the model reads %d times why, want 5", n)
	}
}

func TestJOB_14_SEC_03_ACommandOutsideOfCodexSandboxIsShownAsThat(t *testing.T) {
	for access, want := range map[job.Access]struct{ tool, reason string }{
		job.AccessEdit: {"shell, outside the sandbox", "It runs outside the sandbox"},
		job.AccessAsk:  {"shell", "Codex repeats it outside"},
	} {
		bench := newStage(bridge.Codex)(t)
		bench.Script("touch", drivertest.Step{Run: "true"}, drivertest.Step{Say: "done"})
		spec := bench.Spec(t)
		spec.Prompt, spec.Access = drivertest.Prompt("touch"), access
		question := drivertest.Until[job.Asked](drivertest.Start(t, bench, spec), nil).Question
		if question.Tool != want.tool || question.Subject != "true" || !strings.Contains(question.Reason, want.reason) || !question.LeavesSandbox {
			t.Errorf("%s: it asks %+v", access, question)
		}
	}
}

func (c *codexStand) child() {
	items := []object{{"type": "agentMessage", "id": "c", "text": "of-a-child"}}
	say(object{"method": "item/completed", "params": object{"threadId": "child", "item": items[0]}})
	say(object{"method": "turn/completed", "params": object{"threadId": "child", "turn": object{"id": "c", "status": "completed", "items": items}}})
}

// What codex asks for an MCP server is allowed unasked for Bridge's own alone.
func TestJOB_07_OnlyBridgesOwnServerGoesUnaskedInCodex(t *testing.T) {
	for server, asks := range map[string]bool{"bridge": false, "other": true, "bridge2": true, "": true} {
		t.Run(server, func(t *testing.T) {
			bench := newStage(bridge.Codex)(t)
			bench.Script("tool", drivertest.Step{Run: "touch made # server " + server}, drivertest.Step{Say: "done"})
			j := drivertest.Begin(t, bench, "tool")
			for ended := false; !ended; {
				switch event := drivertest.Until[job.Event](j, nil).(type) {
				case job.Asked:
					if question := event.Question; question.Kind != job.QuestionTool || question.Tool != server || question.Subject != "May I?" {
						t.Errorf("it asks %+v", question)
					}
					if err := j.Run.Answer(t.Context(), job.Answer{Question: event.Question.ID}); err != nil {
						t.Fatal(err)
					}
				case job.TurnEnded:
					ended = true
				}
			}
			if _, err := os.Stat(filepath.Join(j.Spec.Folder, "made")); (err == nil) == asks || len(drivertest.Of[job.Asked](j)) > 0 != asks {
				t.Errorf("it ran: %v; %s", err == nil, drivertest.Kinds(j.All))
			}
		})
	}
}
