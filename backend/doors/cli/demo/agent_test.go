package demo

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/platform/config"
)

// heard is a line from the stand-in.
type heard struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Update struct {
			SessionUpdate, Status string
			Content               json.RawMessage
			RawOutput             struct{ ExitCode int }
		}
	}
	Result struct{ StopReason, SessionID string }
}

// talker talks with a stand-in that works in a folder.
type talker struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	ended chan error

	session string
}

func talk(t *testing.T, folder string) *talker {
	t.Helper()
	toAgent, in := io.Pipe()
	out, fromAgent := io.Pipe()
	c := &talker{t: t, in: in, lines: bufio.NewScanner(out), ended: make(chan error, 1)}
	go func() {
		c.ended <- agent(t.Context(), toAgent, fromAgent, 0)
		_ = fromAgent.Close()
	}()
	c.say(object{"id": 1, "method": "initialize"})
	c.until(func(h heard) bool { return string(h.ID) == "1" })
	c.say(object{"id": 2, "method": "session/new", "params": object{"cwd": folder, "mcpServers": []object{}}})
	c.until(func(h heard) bool { c.session = h.Result.SessionID; return strings.HasPrefix(c.session, "script-") })
	return c
}

func (c *talker) say(line object) {
	c.t.Helper()
	if err := json.NewEncoder(c.in).Encode(line); err != nil {
		c.t.Fatal(err)
	}
}

// until reads up to the line that fits; the steps that ended before it are counted by
// how they ended.
func (c *talker) until(fits func(heard) bool) (ended map[string]int) {
	c.t.Helper()
	ended = map[string]int{}
	for c.lines.Scan() {
		var line heard
		if err := json.Unmarshal(c.lines.Bytes(), &line); err != nil {
			c.t.Fatalf("%s: %v", c.lines.Bytes(), err)
		}
		if update := line.Params.Update; update.SessionUpdate == "tool_call_update" {
			ended[update.Status]++
		}
		if fits(line) {
			return ended
		}
	}
	c.t.Fatalf("the stand-in ended: %v", c.lines.Err())
	return nil
}

func (c *talker) prompt(task string) {
	c.t.Helper()
	c.say(object{"id": 3, "method": "session/prompt", "params": object{"prompt": []object{{"text": "a note"}, {"text": task}}}})
}

func stopped(reason string) func(heard) bool {
	return func(h heard) bool { return h.Result.StopReason == reason }
}

func asks(h heard) bool { return h.Method == "session/request_permission" }

func (c *talker) leave() {
	c.t.Helper()
	go func() { // what it still says is read away
		for c.lines.Scan() {
			continue
		}
	}()
	_ = c.in.Close()
	if err := <-c.ended; err != nil {
		c.t.Error(err)
	}
}

func prepared(t *testing.T) string {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(t.TempDir(), "shop")
	if err := Prepare(home); err != nil {
		t.Fatal(err)
	}
	if jobs, err := PrepareJobs(t.Context(), home, project); err != nil || !jobs {
		t.Fatalf("PrepareJobs: %v, %v", jobs, err)
	}
	settings, err := home.Settings(func(string) string { return "" })
	if err != nil || !settings.Jobs.Enabled || settings.ACP["script"].Command == "" {
		t.Fatalf("the demo's settings: %+v, %v", settings, err)
	}
	return project
}

func commits(t *testing.T, project string) int {
	t.Helper()
	log, err := gitIn(t.Context(), project, "log", "--oneline")
	if err != nil {
		t.Fatal(err)
	}
	return len(strings.Split(strings.TrimSpace(log), "\n"))
}

func TestDSK_06_TheDemosAgentDoesWhatItAsksForOnceItMay(t *testing.T) {
	for name, tt := range map[string]struct {
		option  string
		commits int
		failed  int
	}{"allowed": {"yes", 2, 0}, "refused": {"no", 1, 1}, "taken back": {"", 1, 1}} {
		t.Run(name, func(t *testing.T) {
			project := prepared(t)
			c := talk(t, project)
			c.prompt(cartTask)
			var question json.RawMessage
			before := c.until(func(h heard) bool {
				question = h.ID
				return asks(h)
			})
			if before["completed"] != 3 {
				t.Errorf("before it asks it ended %v, want three steps", before)
			}
			if text, err := os.ReadFile(filepath.Join(project, "src", "cart.js")); err != nil || string(text) != cartAfter {
				t.Errorf("src/cart.js is %q, %v", text, err)
			}
			if n := commits(t, project); n != 1 {
				t.Errorf("%d commits before it was allowed", n)
			}
			c.say(object{"id": question, "result": object{"outcome": object{"optionId": tt.option}}})
			after := c.until(stopped("end_turn"))
			if n := commits(t, project); n != tt.commits || after["failed"] != tt.failed {
				t.Errorf("%d commits, ended %v; want %d and %d failed", n, after, tt.commits, tt.failed)
			}
			c.leave()
		})
	}
}

func TestDSK_06_TheDemosAgentStops(t *testing.T) {
	c := talk(t, prepared(t))
	c.prompt(cartTask)
	c.until(asks)
	c.say(object{"method": "session/cancel"})
	c.until(stopped("cancelled"))
	c.prompt("something else")
	c.until(stopped("end_turn"))
	c.leave()
}

// A job is continued in its own session, as after the owner's review comments.
func TestPGE_05_TheDemosAgentContinuesASession(t *testing.T) {
	project := prepared(t)
	first, other := talk(t, project), talk(t, project)
	if first.session == other.session {
		t.Errorf("two sessions are named %s", first.session)
	}
	first.leave()
	other.say(object{"id": 4, "method": "session/resume", "params": object{"sessionId": first.session, "cwd": project, "mcpServers": []object{}}})
	other.until(func(h heard) bool { return h.Result.SessionID == first.session })
	other.prompt("src/cart.js:3: use a Map")
	other.until(func(h heard) bool { return strings.Contains(string(h.Params.Update.Content), "I read your words") })
	other.until(stopped("end_turn"))
	other.leave()
}
