// Package standin imitates a `claude -p` with JSON lines, for tests of agent
// drivers. It needs no account and no model, and executes the script in its prompt.
// Only tests import it.
package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// standIn is one running stand-in.
type standIn struct {
	session   string
	messages  chan [2]string // id, text
	verdicts  chan bool
	interrupt chan struct{}
	steps     int
	mu        sync.Mutex // guards standard output
}

type object = map[string]any

// Run runs the whole process, with the arguments of the CLI. Each message is a
// script with one step per line:
//
//	say WORDS    the answer
//	run COMMAND  a command that it asks about
//	do COMMAND   a command that it does not ask about
//	wait FILE    nothing, until the file is there
//	fault NAME   429, 500, refusal or empty in place of an answer
//	die          the end of the process
func Run(args []string) {
	s := &standIn{messages: make(chan [2]string, 100), verdicts: make(chan bool, 100), interrupt: make(chan struct{}, 100)}
	for _, arg := range args {
		for _, flag := range []string{"--session-id=", "--resume="} {
			if id, has := strings.CutPrefix(arg, flag); has {
				s.session = id
			}
		}
	}
	go s.listen()
	for message := range s.messages {
		s.say(object{"type": "system", "subtype": "init", "session_id": s.session, "model": "fake", "claude_code_version": "2.1.329"})
		s.hear(message)
		s.turn(message[1])
	}
}

func (s *standIn) say(line object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(os.Stdout, string(raw)); err != nil {
		panic(err)
	}
}

func (s *standIn) listen() {
	lines := bufio.NewReader(os.Stdin)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var line struct {
			Type, UUID string
			ID         string `json:"request_id"`
			Message    struct{ Content string }
			Request    struct{ Subtype string }
			Response   struct{ Response struct{ Behavior string } }
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			panic(err)
		}
		switch line.Type {
		case "user":
			s.say(object{"type": "command_lifecycle", "command_uuid": line.UUID, "state": "queued"})
			s.messages <- [2]string{line.UUID, line.Message.Content}
		case "control_request":
			s.say(object{"type": "control_response", "response": object{"subtype": "success", "request_id": line.ID, "response": object{}}})
			if line.Request.Subtype == "interrupt" {
				s.interrupt <- struct{}{}
			}
		case "control_response":
			s.verdicts <- line.Response.Response.Behavior == "allow"
		}
	}
}

func (s *standIn) hear(message [2]string) {
	s.say(object{"type": "user", "uuid": message[0], "isReplay": true, "message": object{"role": "user", "content": message[1]}})
	s.say(object{"type": "command_lifecycle", "command_uuid": message[0], "state": "started"})
}

func (s *standIn) assistant(block object) {
	s.say(object{"type": "assistant", "message": object{"role": "assistant", "content": []object{block}, "usage": object{"input_tokens": 10, "output_tokens": 5}}, "parent_tool_use_id": nil})
}

// turn runs a script; later messages continue with it.
func (s *standIn) turn(script string) {
	words := ""
	lines := strings.Split(script, "\n")
	for len(lines) > 0 {
		verb, rest, _ := strings.Cut(lines[0], " ")
		lines = lines[1:]
		switch verb {
		case "say":
			words = rest
			s.assistant(object{"type": "text", "text": rest})
		case "run", "do":
			if !s.tool(rest, verb == "run") {
				s.end("interrupted", "")
				return
			}
		case "wait":
			if !s.await(rest) {
				s.end("interrupted", "")
				return
			}
		case "fault":
			s.end(rest, "")
			return
		case "die":
			os.Exit(3)
		}
		for len(s.messages) > 0 {
			message := <-s.messages
			s.hear(message)
			lines = append(lines, strings.Split(message[1], "\n")...)
		}
	}
	s.end("", words)
}

func (s *standIn) await(file string) bool {
	for {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		select {
		case <-s.interrupt:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// tool runs a command; it returns false if the turn was stopped.
func (s *standIn) tool(command string, asks bool) bool {
	s.steps++
	id := fmt.Sprint("step", s.steps)
	s.assistant(object{"type": "tool_use", "id": id, "name": "Bash", "input": object{"command": command}})
	allowed := true
	if asks {
		s.say(object{"type": "control_request", "request_id": "r-" + id, "request": object{"subtype": "can_use_tool", "tool_name": "Bash", "input": object{"command": command}, "tool_use_id": id}})
		select {
		case allowed = <-s.verdicts:
		case <-s.interrupt:
			s.say(object{"type": "control_cancel_request", "request_id": "r-" + id})
			return false
		}
	}
	output, code, decision := "refused", 1, "reject"
	if allowed {
		decision, code = "accept", 0
		cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", command)
		out, err := cmd.CombinedOutput()
		if output = string(out); err != nil {
			code = cmd.ProcessState.ExitCode()
			output = fmt.Sprintf("Exit code %d\n%s", code, out)
		}
	}
	s.say(object{
		"type": "user", "message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": id, "content": output, "is_error": code != 0}}},
		"tool_result_meta": []object{{"id": id, "permission_decision": object{"decision": decision}}},
	})
	return true
}

func (s *standIn) end(fault, words string) {
	result := object{
		"type": "result", "subtype": "success", "is_error": fault != "" && fault != "empty", "result": words, "stop_reason": "end_turn",
		"terminal_reason": "completed", "queued_turn_count": len(s.messages), "total_cost_usd": 0.01,
		"usage": object{"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 2},
	}
	switch fault {
	case "interrupted":
		result["subtype"], result["terminal_reason"] = "error_during_execution", "aborted_tools"
		delete(result, "result")
	case "429", "500":
		kind, status := "rate_limit", 429
		if fault == "500" {
			kind, status = "server_error", 500
		}
		s.say(object{
			"type": "assistant", "message": object{"role": "assistant", "content": []object{{"type": "text", "text": "API Error"}}}, "error": kind,
			"is_api_error_message": true, "api_error_status": status,
			"api_error_params": object{"rate_limit_info": object{"status": "rejected", "resetsAt": 1_900_000_000}},
		})
		result["terminal_reason"], result["api_error_status"], result["result"] = "api_error", status, "API Error"
	case "refusal":
		result["stop_reason"], result["terminal_reason"], result["result"] = "refusal", "api_error", "API Error: safeguards"
	}
	s.say(result)
}
