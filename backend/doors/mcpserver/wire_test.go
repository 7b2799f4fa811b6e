package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/testing/brokertest"
	"bridge/backend/testing/testkit"
)

// wire is a host that speaks to one session's server line by line, with a real
// broker behind it.
type wire struct {
	t      *testing.T
	target ipc.Target
	db     *store.DB
	owner  *ipc.Client
	in     io.WriteCloser
	lines  chan map[string]any // what the server wrote
	ended  chan error
}

func open(t *testing.T, register api.Register) *wire {
	t.Helper()
	return openUnder(t, register, nil)
}

// openUnder is open below a host whose life the test decides about.
func openUnder(t *testing.T, register api.Register, hostLives func() bool) *wire {
	t.Helper()
	return openOn(t, brokertest.Serve(t), Options{Register: register, HostLives: hostLives})
}

// openOn is open on that broker; of opts it takes who the session is.
func openOn(t *testing.T, b brokertest.Running, opts Options) *wire {
	t.Helper()
	register := opts.Register
	owner, err := ipc.Dial(t.Context(), b.Target, ipc.Hello{Role: api.RoleOwner, PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close() })

	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	w := &wire{t: t, target: b.Target, db: b.DB, owner: owner, in: inWrite, lines: make(chan map[string]any, 100), ended: make(chan error, 1)}
	register.Name, register.Cwd = "me", "/work/shop"
	go func() {
		w.ended <- Run(context.WithoutCancel(t.Context()), Options{
			Register: register, Target: b.Target, Journal: ipc.Journal{Dir: b.Home.ReadJournal()}, Version: "test", Now: time.Now,
			Log: slog.New(slog.DiscardHandler), HostLives: opts.HostLives, Job: opts.Job, JobToken: opts.JobToken, Jobs: opts.Jobs, ACP: opts.ACP, PollInterval: opts.PollInterval,
		}, inRead, outWrite)
		outWrite.Close()
	}()
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(outRead); lines.Scan(); {
			var line map[string]any
			var batch []any
			switch {
			case json.Unmarshal(lines.Bytes(), &line) == nil:
				w.lines <- line
			case json.Unmarshal(lines.Bytes(), &batch) == nil:
				w.lines <- map[string]any{"batch": batch}
			}
		}
	}()
	t.Cleanup(func() { w.close() })
	return w
}

// close ends the host's side and waits for the server to end.
func (w *wire) close() {
	w.in.Close()
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Errorf("the server ended with %v", err)
		}
		w.ended <- nil
	case <-time.After(testkit.Patience):
		w.t.Fatal("the server did not end with its input")
	}
}

func (w *wire) say(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// next waits for the next line that fits.
func (w *wire) next(what string, fits func(map[string]any) bool) map[string]any {
	w.t.Helper()
	late := time.After(testkit.Patience)
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				w.t.Fatalf("the server ended before %s", what)
			}
			if fits(line) {
				return line
			}
		case <-late:
			w.t.Fatalf("no %s came", what)
		}
	}
}

func (w *wire) answer(id int) map[string]any {
	w.t.Helper()
	return w.next(fmt.Sprint("answer ", id), func(line map[string]any) bool { return line["id"] == float64(id) })
}

// begin opens the session as claude does: it asks for a newer protocol first.
func (w *wire) begin() (result map[string]any) {
	w.t.Helper()
	w.say(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if w.answer(1)["error"] == nil {
		w.t.Error("a protocol that nobody here has seen is accepted")
	}
	w.say(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	result, _ = w.answer(2)["result"].(map[string]any)
	w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return result
}

func (w *wire) call(id int, tool, arguments string) {
	w.t.Helper()
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments))
}

// text is the one text block of a tool's answer.
func (w *wire) text(id int) string {
	w.t.Helper()
	result, _ := w.answer(id)["result"].(map[string]any)
	content, _ := result["content"].([]any)
	if len(content) != 1 {
		w.t.Fatalf("the answer has %d blocks: %v", len(content), result)
	}
	block, _ := content[0].(map[string]any)
	words, _ := block["text"].(string)
	return words
}

func (w *wire) send(body string) string {
	w.t.Helper()
	sent, err := w.owner.Send(w.t.Context(), api.SendArgs{To: "me", Body: body})
	if err != nil {
		w.t.Fatal(err)
	}
	return sent.ID
}

// reaches waits until a message is at a stage.
func (w *wire) reaches(id string, stage bridge.Stage) {
	w.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; <-time.After(5 * time.Millisecond) {
		row, err := w.db.Find(w.t.Context(), id)
		if err == nil && row.Stage() == stage {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the message is %s, %v; want %s", row.Stage(), err, stage)
		}
	}
}

func TestMSG_06_AToolsAnswerAcknowledgesTheMailInIt(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude})
	if got := w.begin(); got["protocolVersion"] != "2025-11-25" || !strings.HasPrefix(fmt.Sprint(got["instructions"]), "Bridge connects you") {
		t.Errorf("the session begins with %v", got)
	}
	id := w.send("read me")
	w.call(3, "inbox", `{"mark_read":false}`)
	if got := w.text(3); !strings.Contains(got, "read me") {
		t.Errorf("inbox answers %s", got)
	}
	w.call(4, "inbox", `{}`)
	if got := w.text(4); !strings.Contains(got, "read me") {
		t.Errorf("unread mail is not in the next answer: %s", got)
	}
	w.reaches(id, bridge.StageConsumed)
	w.call(5, "inbox", `{"limit":1,"other":1}`)
	if got := w.text(5); !strings.Contains(got, "other") {
		t.Errorf("an unknown argument is answered with %s", got)
	}
	w.call(6, "send", `{"to":"*","message":"half \ud800"}`)
	if got := w.text(6); !strings.Contains(got, "half of a character") {
		t.Errorf("an escaped half of a character is answered with %s", got)
	}
}

func TestMSG_06_ACancelledWaitLeavesTheMail(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude})
	w.begin()
	w.call(3, "wait_for_message", `{"timeout_sec":110}`)
	w.call(4, "peers", `{}`)
	w.text(4) // other calls go on meanwhile
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	w.call(5, "peers", `{}`)
	w.text(5)
	id := w.send("after the wait")
	w.call(6, "inbox", `{}`)
	if got := w.text(6); !strings.Contains(got, "after the wait") {
		t.Errorf("the inbox has %s", got)
	}
	w.reaches(id, bridge.StageConsumed)
	w.call(7, "wait_for_message", `{"timeout_sec":110}`)
	w.send("for the wait")
	if got := w.text(7); !strings.Contains(got, "for the wait") {
		t.Errorf("the wait ends with %s", got)
	}
	w.call(8, "wait_for_message", `{"timeout_sec":110}`)
	w.call(9, "peers", `{}`)
	w.text(9)
	w.close() // a wait under way does not keep the process
}

func TestCHT_03_TheChannelIsDeclaredAndFed(t *testing.T) {
	w := open(t, api.Register{Kind: bridge.Claude, Channel: true})
	result := w.begin()
	capabilities, _ := result["capabilities"].(map[string]any)
	extra, _ := capabilities["experimental"].(map[string]any)
	if _, declared := extra["claude/channel"]; !declared || capabilities["tools"] == nil {
		t.Errorf("capabilities %v, want the channel and tools", capabilities)
	}
	id := w.send("through the channel")
	pushed := w.next("channel notification", func(line map[string]any) bool { return line["method"] == "notifications/claude/channel" })
	if params, _ := pushed["params"].(map[string]any); !strings.Contains(fmt.Sprint(params["content"]), "through the channel") {
		t.Errorf("the channel was given %v", pushed)
	}
	w.reaches(id, bridge.StageHanded)
	w.call(3, "peers", `{}`)
	w.text(3)
	w.reaches(id, bridge.StageConsumed)
}
