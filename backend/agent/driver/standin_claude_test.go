package driver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/driver/drivertest"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// claudeStand speaks as `claude -p` with JSON lines does; the lines are cut to
// what was seen of it.
type claudeStand struct {
	*agent
	ok bool // there is a session
}

func claudeFront(a *agent, args []string) front {
	c := &claudeStand{agent: a, ok: true}
	for _, arg := range args {
		if id, found := strings.CutPrefix(arg, "--session-id="); found {
			a.session = id
		}
		if id, found := strings.CutPrefix(arg, "--resume="); found {
			c.ok = a.load(id)
		}
	}
	return c
}

func (c *claudeStand) listen() {
	if !c.ok {
		say(object{"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": []string{"No conversation found with session ID: " + c.session}})
		os.Exit(1)
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var line struct {
			Type, UUID string
			ID         string `json:"request_id"`
			Message    struct{ Content string }
			Request    struct{ Subtype string }
			Response   struct {
				ID       string `json:"request_id"`
				Response struct{ Behavior, Message string }
			}
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			panic(err)
		}
		switch line.Type {
		case "user":
			say(object{"type": "command_lifecycle", "command_uuid": line.UUID, "state": "queued"})
			c.messages <- message{line.UUID, line.Message.Content}
		case "control_request":
			say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": line.ID, "response": object{}}})
			if line.Request.Subtype == "interrupt" {
				c.interrupt <- struct{}{}
			}
		case "control_response":
			answer := line.Response.Response
			c.verdicts <- verdict{line.Response.ID, answer.Behavior == "allow", answer.Message}
		}
	}
}

func (c *claudeStand) inserted(m message) {
	if os.Getenv("STANDIN_MUTE") != "" {
		return
	}
	say(object{"type": "user", "uuid": m.id, "isReplay": true, "message": object{"role": "user", "content": m.text}})
	say(object{"type": "command_lifecycle", "command_uuid": m.id, "state": "started"})
}

func (c *claudeStand) turnBegan() {
	say(object{"type": "system", "subtype": "init", "session_id": c.session, "model": "fake", "claude_code_version": "2.1.329"})
}

func (c *claudeStand) assistant(block object, more object) {
	line := object{"type": "assistant", "message": object{"role": "assistant", "content": []object{block}, "usage": object{"input_tokens": 10, "output_tokens": 5}}, "parent_tool_use_id": nil}
	for k, v := range more {
		line[k] = v
	}
	say(line)
}

func (c *claudeStand) text(words string) { c.assistant(object{"type": "text", "text": words}, nil) }

func (c *claudeStand) stepBegan(id, command string) {
	c.assistant(object{"type": "tool_use", "id": id, "name": "Bash", "input": object{"command": command}}, nil)
}

func (c *claudeStand) asks(id, command string) {
	say(object{"type": "control_request", "request_id": "r-" + id, "request": object{
		"subtype": "can_use_tool", "tool_name": "Bash", "input": object{"command": command}, "tool_use_id": id,
		"permission_suggestions": []object{{"type": "addRules", "destination": "localSettings"}},
	}})
}

func (c *claudeStand) withdraws(id string) {
	say(object{"type": "control_cancel_request", "request_id": "r-" + id})
}

func (c *claudeStand) stepEnded(id string, end stepEnd) {
	meta := object{"id": id, "permission_decision": object{"decision": "accept"}}
	if end.refused {
		meta = object{"id": id, "permission_decision": object{"decision": "reject"}}
	}
	output := end.output
	if end.exit > 0 {
		output = fmt.Sprintf("Exit code %d\n%s", end.exit, output)
	}
	say(object{"type": "user", "message": object{"role": "user", "content": []object{{
		"type": "tool_result", "tool_use_id": id, "content": output, "is_error": end.exit != 0,
	}}}, "tool_result_meta": []object{meta}})
}

func (c *claudeStand) turnEnded(fault drivertest.Fault, words string) {
	result := object{
		"type": "result", "subtype": "success", "is_error": fault != "" && fault != drivertest.Empty, "result": words, "stop_reason": "end_turn",
		"terminal_reason": "completed", "queued_turn_count": len(c.messages), "total_cost_usd": 0.01 * float64(c.played),
		"usage": object{"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 2},
	}
	failed := func(kind string, status int) {
		limit := object{"status": "rejected", "resetsAt": time.Now().Add(time.Hour).Unix()}
		if set("STANDIN_CROWD") {
			limit = object{}
		}
		c.assistant(object{"type": "text", "text": "API Error"}, object{
			"error": kind, "is_api_error_message": true, "api_error_status": status,
			"api_error_params": object{"rate_limit_info": limit},
		})
		result["terminal_reason"], result["api_error_status"], result["result"] = "api_error", status, "API Error"
	}
	switch fault {
	case interrupted:
		result["subtype"], result["terminal_reason"] = "error_during_execution", "aborted_tools"
		delete(result, "result")
	case drivertest.Unauthorized:
		failed("authentication_failed", 401)
	case drivertest.UsageLimit:
		if set("STANDIN_RETRIES") {
			say(object{"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 10, "error_status": 429, "error": "rate_limit"})
		}
		failed("rate_limit", 429)
	case drivertest.ServerError:
		say(object{"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 10, "error_status": 500, "error": "server_error"})
		failed("server_error", 500)
	case drivertest.Refusal:
		result["stop_reason"], result["terminal_reason"], result["result"] = "refusal", "api_error", "API Error: safeguards"
	case drivertest.Context:
		result["terminal_reason"], result["result"] = "prompt_too_long", "Prompt is too long"
	default: // no fault of the model
	}
	say(result)
}

func (c *claudeStand) junk() {
	fmt.Println("warning: something is deprecated")
	fmt.Println(`{"type":"something_new","state":{"a":1}}`)
	fmt.Println(`{"type":"assistant","message":"words where an object was"}`)
	fmt.Println(`{"half":`)
	fmt.Println(strings.Repeat("x", 1<<20))
}

func (c *claudeStand) child() {
	c.assistant(object{"type": "text", "text": "of-a-child"}, object{"parent_tool_use_id": "t"})
}

// A 429 is a used-up account where it says when that is over, however often claude has
// asked again, and a crowd where claude asked again and nobody says so.
func TestJOB_16_WhatClaudesTooManyRequestsMean(t *testing.T) {
	tests := map[string]struct {
		env  []string
		want job.EndReason
	}{
		"it did not ask again":                 {nil, job.EndLimit},
		"it did not ask again, without a time": {[]string{"STANDIN_CROWD=1"}, job.EndLimit},
		"it asked again, and a time is told":   {[]string{"STANDIN_RETRIES=1"}, job.EndLimit},
		"it asked again, without a time":       {[]string{"STANDIN_RETRIES=1", "STANDIN_CROWD=1"}, job.EndOverload},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bench := newStage(bridge.Claude)(t)
			bench.Script("fault", drivertest.Step{Fault: drivertest.UsageLimit})
			spec := bench.Spec(t)
			spec.Prompt, spec.Env = drivertest.Prompt("fault"), append(spec.Env, tt.env...)
			if end := drivertest.Until[job.TurnEnded](drivertest.Start(t, bench, spec), nil); end.Why != tt.want {
				t.Errorf("the turn ended with %+v, want %s", end, tt.want)
			}
		})
	}
}
