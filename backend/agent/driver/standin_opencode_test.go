package driver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// opencodeStand speaks as `opencode serve` does. With STANDIN_HANGS it lets the
// first request after its start hang, as the real one was seen to.
type opencodeStand struct {
	*agent

	mu     sync.Mutex // guards what follows
	events []string   // for whoever listens
	more   chan struct{}
	hung   bool
	broken bool
	said   int
	calls  map[string]string // command of each step
}

const opencodeSession = "ses_dfe211c33ffemQ3SQUzy5JNvy8"

func opencodeFront(a *agent, _ []string) front {
	a.goesOn = true
	return &opencodeStand{agent: a, more: make(chan struct{}, 1), calls: map[string]string{}}
}

func (o *opencodeStand) listen() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /global/health", o.health)
	mux.HandleFunc("GET /event", o.listenTo)
	mux.HandleFunc("POST /session", func(w http.ResponseWriter, r *http.Request) {
		o.session = opencodeSession
		o.permit(r)
		answer(w, object{"id": opencodeSession, "title": "t"})
	})
	mux.HandleFunc("GET /session/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !o.load(r.PathValue("id")) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer(w, object{"id": o.session, "title": "t"})
	})
	mux.HandleFunc("PATCH /session/{id}", func(w http.ResponseWriter, r *http.Request) {
		o.permit(r)
		answer(w, object{})
	})
	mux.HandleFunc("POST /session/{id}/abort", func(w http.ResponseWriter, _ *http.Request) {
		o.interrupt <- struct{}{}
		answer(w, true)
	})
	mux.HandleFunc("POST /session/{id}/prompt_async", o.prompt)
	mux.HandleFunc("POST /permission/{id}/reply", o.reply)
	fmt.Println("opencode server listening on http://" + listener.Addr().String())
	panic(http.Serve(listener, guarded(mux))) //nolint:gosec // a test's own
}

func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password == "" || password != os.Getenv("OPENCODE_SERVER_PASSWORD") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, v any) { json.NewEncoder(w).Encode(v) } //nolint:errcheck // the driver may have gone

func (o *opencodeStand) health(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	first := !o.hung && os.Getenv("STANDIN_HANGS") != ""
	o.hung = true
	o.mu.Unlock()
	if first {
		<-r.Context().Done()
		return
	}
	answer(w, object{"healthy": true, "version": "1.18.33"})
}

func (o *opencodeStand) listenTo(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for sent := 0; ; {
		o.mu.Lock()
		events, broken := o.events, o.broken
		o.mu.Unlock()
		for ; sent < len(events); sent++ {
			fmt.Fprintf(w, "data: %s\n\n", events[sent])
		}
		w.(http.Flusher).Flush()
		if broken {
			return
		}
		select {
		case <-o.more:
		case <-r.Context().Done():
			return
		}
	}
}

func (o *opencodeStand) prompt(w http.ResponseWriter, r *http.Request) {
	var body struct{ Parts []struct{ Text string } }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.messages <- message{text: body.Parts[0].Text}
	w.WriteHeader(http.StatusNoContent)
}

func (o *opencodeStand) reply(w http.ResponseWriter, r *http.Request) {
	var body struct{ Reply, Message string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.tell("permission.replied", object{"requestID": r.PathValue("id"), "reply": body.Reply})
	o.verdicts <- verdict{allow: body.Reply == "once", reason: body.Message}
	answer(w, true)
}

func (o *opencodeStand) emit(line string) {
	o.mu.Lock()
	o.events = append(o.events, line)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

func (o *opencodeStand) tell(kind string, properties object) {
	properties["sessionID"] = o.session
	raw, _ := json.Marshal(object{"type": kind, "properties": properties})
	o.emit(string(raw))
}

func (o *opencodeStand) status(kind string) {
	o.tell("session.status", object{"status": object{"type": kind}})
}

func (o *opencodeStand) turnBegan() {
	o.said++
	o.status("busy")
}

func (o *opencodeStand) inserted(m message) {
	o.said++
	id := "msg_u" + strconv.Itoa(o.said)
	o.tell("message.updated", object{"info": object{"id": id, "role": "user"}})
	o.tell("message.part.updated", object{"part": object{"id": "p" + id, "type": "text", "messageID": id, "text": m.text}})
}

func (o *opencodeStand) update(finish string, failed any) {
	o.tell("message.updated", object{"info": object{
		"id": "msg_a" + strconv.Itoa(o.said), "role": "assistant", "finish": finish, "error": failed,
		"tokens": object{"input": 10, "output": 5, "cache": object{"read": 2}}, "cost": 0.01,
	}})
}

func (o *opencodeStand) text(words string) {
	o.update("", nil)
	id := "msg_a" + strconv.Itoa(o.said)
	o.tell("message.part.updated", object{"part": object{"id": "p" + id, "type": "text", "messageID": id, "text": words, "time": object{"end": 1}}})
}

func (o *opencodeStand) toolPart(id string, state object) {
	state["input"] = object{"command": o.calls[id]}
	o.tell("message.part.updated", object{"part": object{"id": "p" + id, "type": "tool", "tool": "bash", "callID": id, "state": state}})
}

func (o *opencodeStand) stepBegan(id, command string) {
	o.calls[id] = command
	o.update("tool-calls", nil)
	o.toolPart(id, object{"status": "pending"})
	o.toolPart(id, object{"status": "running"})
}

func (o *opencodeStand) asks(id, command string) {
	o.tell("permission.asked", object{"id": "per_" + id, "permission": "bash", "patterns": []string{command}, "tool": object{"callID": id}})
}

func (o *opencodeStand) withdraws(string) {} // a dead question stays where it is

func (o *opencodeStand) stepEnded(id string, end stepEnd) {
	if end.refused {
		o.toolPart(id, object{"status": "error", "error": "The user rejected permission to use this specific tool call with the following feedback: " + end.output})
		return
	}
	o.toolPart(id, object{"status": "completed", "output": end.output, "metadata": object{"exit": end.exit}})
}

func (o *opencodeStand) turnEnded(fault drivertest.Fault, _ string) {
	failed := func(name string, status int) {
		problem := object{"name": name, "data": object{"message": "it failed", "statusCode": status}}
		o.update("", problem)
		o.tell("session.error", object{"error": problem})
	}
	switch fault {
	case interrupted:
		failed("MessageAbortedError", 0)
		o.status("idle")
		o.tell("session.idle", object{})
	case drivertest.Unauthorized:
		failed("APIError", 401)
	case drivertest.UsageLimit:
		o.tell("session.status", object{"status": object{"type": "retry", "attempt": 1, "message": "You exceeded your current quota", "next": time.Now().Add(time.Hour).UnixMilli()}})
		failed("APIError", 429)
	case drivertest.ServerError:
		failed("APIError", 500)
	case drivertest.Refusal:
		o.update("content-filter", nil)
	case drivertest.Context:
		failed("ContextOverflowError", 0)
	default:
		o.update("stop", nil)
	}
	o.status("idle")
	o.tell("session.idle", object{})
}

func (o *opencodeStand) junk() {
	fmt.Println("warning: something is deprecated")
	o.emit(`{"half":`)
	o.emit(`{"type":"something.new","properties":[1]}`)
	o.emit(strings.Repeat("x", 1<<20))
}

// hangUp breaks the stream of events and leaves the process.
func (o *opencodeStand) hangUp() {
	o.mu.Lock()
	o.broken = true
	o.mu.Unlock()
	o.emit(`{"type":"server.connected","properties":{}}`)
}

// permit keeps what the session may do, as the real one does.
func (o *opencodeStand) permit(r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	os.WriteFile(filepath.Join(os.Getenv("HOME"), "permitted.json"), raw, 0o600) //nolint:errcheck // the test misses it
}

func (o *opencodeStand) child() {
	for _, event := range []string{
		`{"type":"message.updated","properties":{"sessionID":"ses_child","info":{"id":"msg_c","role":"assistant","finish":"stop"}}}`,
		`{"type":"message.part.updated","properties":{"sessionID":"ses_child","part":{"id":"pc","type":"text","messageID":"msg_c","text":"of-a-child","time":{"end":1}}}}`,
		`{"type":"session.idle","properties":{"sessionID":"ses_child"}}`,
	} {
		o.emit(event)
	}
}

// A session that is continued may do what its new job may, not what the old one could.
func TestJOB_13_AContinuedOpenCodeHasTheRulesOfItsNewJob(t *testing.T) {
	bench := newStage(bridge.OpenCode)(t)
	permitted := func(spec job.Spec) (rules []struct{ Permission, Action string }) {
		home, _ := strings.CutPrefix(spec.Env[0], "HOME=")
		raw, err := os.ReadFile(filepath.Join(home, "permitted.json"))
		var body struct {
			Permission []struct{ Permission, Action string }
		}
		if err := errors.Join(err, json.Unmarshal(raw, &body)); err != nil || len(body.Permission) == 0 {
			t.Fatalf("what it may is %q, %v", raw, err)
		}
		return body.Permission
	}
	j := drivertest.Begin(t, bench, "first")
	j.Drain()
	j.Close()
	if all := permitted(j.Spec)[0]; all.Permission != "*" || all.Action != "ask" {
		t.Errorf("who is to ask begins with %+v", all)
	}
	spec := j.Spec
	spec.Session, spec.Prompt = drivertest.Of[job.Opened](j)[0].Session, drivertest.Prompt("then")
	spec.Access, spec.ToolLevelOnly = job.AccessRead, true
	drivertest.Until[job.TurnEnded](drivertest.Start(t, bench, spec), nil)
	if all := permitted(spec)[0]; all.Permission != "*" || all.Action != "deny" {
		t.Errorf("who is to read goes on with %+v", all)
	}
}
