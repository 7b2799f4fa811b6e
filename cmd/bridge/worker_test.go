package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// worker speaks as `claude -p` with JSON lines does: what it is told is a script for a
// shell, and what that prints is its answer.
func writingWorker() error {
	session := "worker"
	for _, arg := range os.Args {
		for _, flag := range []string{"--session-id=", "--resume="} {
			if id, has := strings.CutPrefix(arg, flag); has {
				session = id
			}
		}
	}
	say := func(line map[string]any) { _ = json.NewEncoder(os.Stdout).Encode(line) } // whoever reads may be gone
	for lines := bufio.NewReader(os.Stdin); ; {
		raw, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var line struct {
			Type, UUID string
			ID         string `json:"request_id"`
			Message    struct{ Content string }
		}
		if err == nil {
			err = json.Unmarshal(raw, &line)
		}
		if err != nil {
			return err
		}
		switch line.Type {
		case "control_request":
			say(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": line.ID, "response": map[string]any{}}})
		case "user":
			say(map[string]any{"type": "system", "subtype": "init", "session_id": session, "model": "worker", "claude_code_version": "2.1.329"})
			say(map[string]any{"type": "command_lifecycle", "command_uuid": line.UUID, "state": "queued"})
			say(map[string]any{"type": "user", "uuid": line.UUID, "isReplay": true, "message": map[string]any{"role": "user", "content": line.Message.Content}})
			say(map[string]any{"type": "command_lifecycle", "command_uuid": line.UUID, "state": "started"})
			output, err := exec.Command("/bin/sh", "-c", line.Message.Content).CombinedOutput()
			answer := fmt.Sprintf("%s(%v)", output, err)
			say(map[string]any{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []map[string]any{{"type": "text", "text": answer}}}})
			say(map[string]any{"type": "result", "subtype": "success", "result": answer, "stop_reason": "end_turn", "terminal_reason": "completed", "queued_turn_count": 0})
		}
	}
}
