package soak

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/job"
	"bridge/backend/job/runs"
	"bridge/backend/trial"
)

const (
	// floodAgent is the argument by which this program is an agent that says too much.
	floodAgent = "acp-flood"
	// floodChunk is how much of its answer the agent says at a time, in bytes.
	floodChunk = 64 << 10
	// mostAboveIdle is what such an answer may cost a process of Bridge, in bytes.
	mostAboveIdle = 64 << 20
)

// runFlood is an agent that speaks the Agent Client Protocol. Once the file that its prompt
// names is there it says as many MiB as the prompt wants, and ends its turn.
func runFlood() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	say := func(line string, values ...any) {
		fmt.Fprintf(out, line+"\n", values...)
		_ = out.Flush() // nobody reads any more: it is ended
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var said struct {
			ID     json.RawMessage
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if json.Unmarshal(raw, &said) != nil {
			return
		}
		switch said.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`, said.ID)
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`, said.ID)
		case "session/prompt":
			words := strings.Fields(said.Params.Prompt[len(said.Params.Prompt)-1].Text)
			mib, _ := strconv.Atoi(words[0])
			for _, err := os.Stat(words[1]); err != nil; _, err = os.Stat(words[1]) {
				time.Sleep(10 * time.Millisecond)
			}
			chunk := strings.Repeat("a line of sixteen", floodChunk/17)
			for range mib << 20 / len(chunk) {
				say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}`, chunk)
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, said.ID)
		}
	}
}

// memoryOf is a figure of /proc/PID/status in bytes, 0 where the process has ended.
func memoryOf(pid int, figure string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == figure+":" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// TestSEC_11_AnAnswerWithoutAnEndCostsLittle: an agent says more than is kept. What is kept
// says so, and in a long run neither the runner nor the broker needs much memory for it.
func TestSEC_11_AnAnswerWithoutAnEndCostsLittle(t *testing.T) {
	size := trial.Rounds(t, 40, 300) // MiB
	w := emptyWorld(t)
	self, err := os.Executable()
	if err == nil {
		err = w.home.Ensure()
	}
	work, gate := filepath.Join(w.dir, "work"), filepath.Join(w.dir, "gate")
	if err == nil {
		err = os.Mkdir(work, 0o700)
	}
	if err == nil {
		settings := fmt.Sprintf(`{"jobs":{"enabled":true,"allowToolLevelOnly":true},"agents":{"acp":{"flood":{"command":%q,"args":[%q]}}}}`, self, floodAgent)
		err = os.WriteFile(filepath.Join(w.home.Dir(), "config.json"), []byte(settings), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	boss := &actor{w: w, name: "boss", kind: bridge.Claude, killed: map[int]time.Time{}}
	boss.start()
	s, _ := boss.server()
	var spawned struct{ Job string }
	prompt := fmt.Sprintf("%d %s", size, gate)
	if err := s.call(t.Context(), "spawn_acp", map[string]any{"agent": "flood", "prompt": prompt, "cwd": work, "access": "read"}, &spawned); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(w.home.Dir(), "jobs", spawned.Job)
	var state runs.StateFile
	w.await("the agent is at work", settle, func() bool {
		data, err := os.ReadFile(filepath.Join(folder, "state.json"))
		return err == nil && json.Unmarshal(data, &state) == nil && state.State == job.Running
	})
	time.Sleep(300 * time.Millisecond) // idle
	runner, broker := state.Runner.PID, w.broker()
	idle := map[int]int64{runner: memoryOf(runner, "VmRSS"), broker: memoryOf(broker, "VmRSS")}
	peak := map[int]int64{}
	began := time.Now()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.await("the job has ended", 2*trial.Patience, func() bool {
		for pid := range idle {
			peak[pid] = max(peak[pid], memoryOf(pid, "VmHWM"))
		}
		_, err := os.Stat(filepath.Join(folder, "envelope.json"))
		return err == nil && memoryOf(runner, "VmHWM") == 0
	})
	var inbox struct{ Messages []struct{ Body string } }
	w.await("the result has come", settle, func() bool {
		peak[broker] = max(peak[broker], memoryOf(broker, "VmHWM"))
		return s.call(t.Context(), "inbox", map[string]any{}, &inbox) == nil && len(inbox.Messages) > 0
	})
	for name, pid := range map[string]int{"runner": runner, "broker": broker} {
		cost := peak[pid] - idle[pid]
		t.Logf("an answer of %d MiB in %s: the %s idles at %s, and needs %s more at most", size, time.Since(began).Round(time.Second), name, bridge.Size(idle[pid]), bridge.Size(cost))
		if trial.IsLong() && cost > mostAboveIdle {
			t.Errorf("the %s needs %s more than at rest, and may need %s", name, bridge.Size(cost), bridge.Size(mostAboveIdle))
		}
	}
	kept, err := os.ReadFile(filepath.Join(folder, "envelope.json"))
	if err != nil {
		t.Fatal(err)
	}
	var envelope runs.Envelope
	if err := json.Unmarshal(kept, &envelope); err != nil || envelope.State != job.Finished {
		t.Fatalf("it is %s, %v", envelope.State, err)
	}
	end := envelope.Result[max(0, len(envelope.Result)-200):]
	if len(envelope.Result) > job.MaxAnswerBytes+200 || len(envelope.Result) < job.MaxAnswerBytes || !strings.Contains(end, "cut this answer") {
		t.Errorf("it kept %d bytes that end %q", len(envelope.Result), end)
	}
	said, err := os.ReadFile(filepath.Join(w.home.Dir(), "runs", spawned.Job+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(said) {
		if len(line) > runs.MaxLineBytes {
			t.Errorf("a line of the transcript has %d bytes", len(line))
		}
	}
	w.actors = append(w.actors, boss)
	w.quiet()
}
