package driver_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// acpStand speaks the Agent Client Protocol. What it offers is in its environment:
//
//	STANDIN_VERSION  the version of the protocol that it answers, else 1
//	STANDIN_MODES    its modes as session/set_mode takes them, else a setting
//	STANDIN_DEAF     it says yes to a mode and does not take it
//	STANDIN_STRAYS   it leaves its mode in the middle of a turn
//	STANDIN_ALWAYS   it can allow something only for good
//	STANDIN_OLD      it cannot continue a session
//	STANDIN_CURT     a turn that is stopped at its question ends as if nothing was, without a word
type acpStand struct {
	*agent

	mu     sync.Mutex // guards what follows
	mode   string
	model  string
	prompt json.RawMessage // the request whose turn runs
	asked  int

	answered map[string]bool // by the listener alone
}

func acpFront(a *agent, _ []string) front {
	return &acpStand{agent: a, mode: "auto", model: "small", answered: map[string]bool{}}
}

func set(variable string) bool { return os.Getenv(variable) != "" }

type acpSaid struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID, ModeID, ConfigID, Value, Cwd string
		Prompt                                  []struct{ Text string }
	}
	Result struct {
		Outcome struct{ Outcome, OptionID string }
	}
}

func (a *acpStand) listen() {
	lines := bufio.NewReader(os.Stdin)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var line acpSaid
		if err := json.Unmarshal(raw, &line); err != nil {
			panic(err)
		}
		if line.Method == "" {
			if id := string(line.ID); a.answered[id] {
				panic("request " + id + " was answered before")
			}
			a.answered[string(line.ID)] = true
			if line.Result.Outcome.Outcome != "cancelled" {
				a.verdicts <- verdict{allow: line.Result.Outcome.OptionID == "yes"}
			}
			continue
		}
		result, refused := a.handle(line)
		switch {
		case refused != "":
			say(object{"jsonrpc": "2.0", "id": line.ID, "error": object{"code": -32002, "message": refused}})
		case line.ID != nil && result != nil:
			say(object{"jsonrpc": "2.0", "id": line.ID, "result": result})
		}
	}
}

func (a *acpStand) handle(line acpSaid) (result object, refused string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := line.Params
	switch line.Method {
	case "initialize":
		version := 1
		if set("STANDIN_VERSION") {
			version = 2
		}
		able := object{"resume": object{}}
		if set("STANDIN_OLD") {
			able = object{}
		}
		return object{"protocolVersion": version, "agentCapabilities": object{"loadSession": true, "sessionCapabilities": able}, "agentInfo": object{"name": "stand-in", "version": "1.2.3"}}, ""
	case "session/new":
		a.session = "acp-session"
		return a.settings(object{"sessionId": a.session}), ""
	case "session/resume":
		if !a.load(p.SessionID) {
			return nil, "session not found"
		}
		return a.settings(object{}), ""
	case "session/set_mode":
		if !set("STANDIN_DEAF") {
			a.mode = p.ModeID
			a.tell(object{"sessionUpdate": "current_mode_update", "currentModeId": a.mode})
		}
		return object{}, ""
	case "session/set_config_option":
		if !set("STANDIN_DEAF") {
			*map[string]*string{"mode": &a.mode, "model": &a.model}[p.ConfigID] = p.Value
		}
		return a.settings(object{}), ""
	case "session/prompt":
		a.prompt = line.ID
		var words []string
		for _, part := range p.Prompt {
			words = append(words, part.Text)
		}
		a.messages <- message{"", strings.Join(words, "\n")}
		return nil, ""
	case "session/cancel":
		a.interrupt <- struct{}{}
	}
	return nil, ""
}

// settings adds what the session offers.
func (a *acpStand) settings(to object) object {
	modes := []object{{"id": "auto", "value": "auto"}, {"id": "ask", "value": "ask"}, {"id": "plan", "value": "plan"}}
	to["configOptions"] = []object{{"id": "model", "category": "model", "type": "select", "currentValue": a.model, "options": []object{
		{"group": "g", "options": []object{{"value": "small"}, {"value": "large"}}},
	}}}
	if set("STANDIN_MODES") {
		to["modes"] = object{"currentModeId": a.mode, "availableModes": modes}
		return to
	}
	to["configOptions"] = append(to["configOptions"].([]object), object{"id": "mode", "category": "mode", "type": "select", "currentValue": a.mode, "options": modes})
	return to
}

func (a *acpStand) tell(update object) {
	say(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": "acp-session", "update": update}})
}

func (a *acpStand) inserted(message) {}

func (a *acpStand) turnBegan() {
	if set("STANDIN_STRAYS") {
		a.tell(object{"sessionUpdate": "current_mode_update", "currentModeId": "auto"})
	}
}

func (a *acpStand) text(words string) {
	half := len(words) / 2
	for _, part := range []string{words[:half], words[half:]} {
		a.tell(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": part}})
	}
}

func (a *acpStand) stepBegan(id, command string) {
	a.tell(object{"sessionUpdate": "tool_call", "toolCallId": id, "title": "shell", "kind": "execute", "status": "pending", "rawInput": object{"command": command}})
}

func (a *acpStand) asks(id, command string) {
	a.mu.Lock()
	a.asked++
	request := a.asked
	a.mu.Unlock()
	options := []object{{"optionId": "forever", "kind": "allow_always"}, {"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}}
	if set("STANDIN_ALWAYS") {
		options = append(options[:1], options[2])
	}
	say(object{"jsonrpc": "2.0", "id": request, "method": "session/request_permission", "params": object{
		"sessionId": "acp-session", "options": options,
		"toolCall": object{"toolCallId": id, "title": command, "rawInput": object{"command": command}},
	}})
}

func (a *acpStand) withdraws(string) {}

func (a *acpStand) stepEnded(id string, end stepEnd) {
	update := object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "rawOutput": object{"exitCode": end.exit}, "content": []object{
		{"type": "content", "content": object{"type": "text", "text": end.output}},
	}}
	if end.refused || end.exit != 0 {
		update["status"] = "failed"
	}
	a.tell(update)
}

func (a *acpStand) turnEnded(fault drivertest.Fault, words string) {
	a.mu.Lock()
	id := a.prompt
	a.mu.Unlock()
	failed := func(message string, data object) {
		say(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32603, "message": message, "data": data}})
	}
	reason := "end_turn"
	switch fault {
	case interrupted:
		if !set("STANDIN_CURT") {
			reason = "cancelled"
		}
	case drivertest.Unauthorized:
		say(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32000, "message": "Authentication required"}})
		return
	case drivertest.UsageLimit:
		failed("You have hit your usage limit", object{"statusCode": 429})
		return
	case drivertest.ServerError:
		failed("Internal error", object{"details": "unexpected status 500"})
		return
	case drivertest.Refusal:
		reason = "refusal"
	case drivertest.Context:
		failed("Internal error", object{"details": "prompt is too long"})
		return
	default: // no fault of the model
	}
	a.tell(object{"sessionUpdate": "usage_update", "used": 15, "size": 1000, "cost": object{"amount": 0.01 * float64(a.played), "currency": "USD"}})
	say(object{"jsonrpc": "2.0", "id": id, "result": object{"stopReason": reason, "usage": object{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}}})
}

func (a *acpStand) junk() {
	fmt.Println("debug: something")
	fmt.Println(`{"half":`)
	fmt.Println(`{"jsonrpc":"2.0","method":"something/new","params":[1]}`)
	fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"acp-session","update":{"sessionUpdate":"agent_message_chunk","content":[1]}}}`)
	fmt.Println(`{"jsonrpc":"2.0","id":"999","result":{}}`)
	fmt.Println(`{"jsonrpc":"2.0","id":77,"method":"fs/read_text_file","params":{}}`)
	fmt.Println(strings.Repeat("x", 1<<20))
}

// An ACP agent's mode is set and read back, what cannot be had is refused in one
// sentence, and nothing is said to the model then.
func TestJOB_24_WhatAnACPAgentIsAskedFor(t *testing.T) {
	tests := []struct {
		name  string
		env   string
		spec  func(*job.Spec)
		why   job.EndReason
		words string
	}{
		{name: "a mode as a setting", why: job.EndAnswer},
		{name: "a mode of its own", env: "STANDIN_MODES", why: job.EndAnswer},
		{name: "a mode that is not taken", env: "STANDIN_DEAF", why: job.EndFailed, words: "did not confirm"},
		{name: "the owner's mode", spec: func(s *job.Spec) { s.ACP.Modes = map[job.Access]string{job.AccessAsk: "auto"} }, why: job.EndAnswer},
		{
			name: "a mode that is not there", spec: func(s *job.Spec) { s.ACP.Modes = map[job.Access]string{job.AccessAsk: "none"} },
			why: job.EndFailed, words: `stand-in has no mode "none", which agents.acp.stand-in.modes.ask names: it offers auto, ask, plan`,
		},
		{name: "a mode that it leaves", env: "STANDIN_STRAYS", why: job.EndDenied, words: "left the mode"},
		{name: "a model", spec: func(s *job.Spec) { s.Model = "large" }, why: job.EndAnswer},
		{name: "a model that it does not know", spec: func(s *job.Spec) { s.Model = "huge" }, why: job.EndFailed, words: `no model "huge": it offers small, large`},
		{name: "an effort", spec: func(s *job.Spec) { s.Effort = "high" }, why: job.EndFailed, words: "no setting for the effort"},
		{name: "a session that it cannot continue", env: "STANDIN_OLD", spec: func(s *job.Spec) { s.Session = "s" }, why: job.EndFailed, words: "does not declare session/resume"},
		{name: "another version", env: "STANDIN_VERSION", why: job.EndFailed, words: "speaks version 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bench := newStage(job.ACP)(t)
			bench.Script("answer", drivertest.Step{Say: "done"})
			if tt.env == "STANDIN_STRAYS" {
				bench.Script("answer", drivertest.Step{Say: "never", Gate: "held"})
			}
			spec := bench.Spec(t)
			spec.Prompt, spec.Env = drivertest.Prompt("answer"), append(spec.Env, tt.env+"=1")
			if tt.spec != nil {
				tt.spec(&spec)
			}
			j := drivertest.Start(t, bench, spec)
			end := drivertest.Until[job.TurnEnded](j, nil)
			if end.Why != tt.why || !strings.Contains(end.Message, tt.words) {
				t.Errorf("the turn ended with %+v, want %s and %q", end, tt.why, tt.words)
			}
			opened := drivertest.Of[job.Opened](j)
			if tt.why == job.EndAnswer && (len(opened) != 1 || opened[0].Model != first(spec.Model, "small") || opened[0].Capabilities.LiveMessage) {
				t.Errorf("opened = %+v", opened)
			}
			if tt.why == job.EndFailed && bench.Shown("answer") != 0 {
				t.Error("the model was asked")
			}
		})
	}
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// Nothing is ever allowed for good.
func TestJOB_07_AnACPAgentThatAllowsForGoodAlone(t *testing.T) {
	bench := newStage(job.ACP)(t)
	bench.Script("touch", drivertest.Step{Run: "touch made"}, drivertest.Step{Say: "done"})
	spec := bench.Spec(t)
	spec.Prompt, spec.Env = drivertest.Prompt("touch"), append(spec.Env, "STANDIN_ALWAYS=1")
	j := drivertest.Start(t, bench, spec)
	question := drivertest.Until[job.Asked](j, nil).Question
	err := j.Run.Answer(t.Context(), job.Answer{Question: question.ID, Allow: true})
	if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "no way to allow this once") {
		t.Errorf("Answer: %v", err)
	}
	if ended := drivertest.Until[job.StepEnded](j, nil); ended.State != job.StepRefused {
		t.Errorf("the step ended with %+v", ended)
	}
}

// An agent may end its turn at the withdrawn question, before it reads that it is to
// stop: that is no empty answer.
func TestJOB_06_AnACPAgentThatEndsWithoutAWordWhenStopped(t *testing.T) {
	bench := newStage(job.ACP)(t)
	bench.Script("touch", drivertest.Step{Run: "touch made"}, drivertest.Step{Say: "done"})
	spec := bench.Spec(t)
	spec.Prompt, spec.Env = drivertest.Prompt("touch"), append(spec.Env, "STANDIN_CURT=1")
	j := drivertest.Start(t, bench, spec)
	drivertest.Until[job.Asked](j, nil)
	if err := j.Run.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndInterrupted {
		t.Errorf("the turn ended with %+v, want it interrupted", end)
	}
}

func (a *acpStand) child() {
	say(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": "child", "update": object{
		"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": "of-a-child"},
	}}})
}

// A stop takes back the questions that are open, and no answer that was given.
func TestJOB_07_AnAnswerToAnACPAgentIsSentOnce(t *testing.T) {
	bench := newStage(job.ACP)(t)
	bench.Script("touch", drivertest.Step{Run: "true"}, drivertest.Step{Say: "never", Gate: "held"})
	j := drivertest.Begin(t, bench, "touch")
	question := drivertest.Until[job.Asked](j, nil).Question
	err := errors.Join(j.Run.Answer(t.Context(), job.Answer{Question: question.ID, Allow: true}),
		bench.AtGate(t.Context(), "held"), j.Run.Interrupt(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if end := drivertest.Until[job.TurnEnded](j, nil); end.Why != job.EndInterrupted {
		t.Errorf("the turn ended with %+v, want it interrupted", end)
	}
	bench.Open("held")
}
