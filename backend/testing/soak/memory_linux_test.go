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

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/testing/testkit"
)

const (
	// floodAgent is the argument by which this program is an agent that says too much.
	floodAgent = "acp-flood"
	// floodChunk is how much of its answer the agent says at a time, in bytes.
	floodChunk = 64 << 10
	// mostAboveIdle is what such an answer may cost a process of Bridge, in bytes.
	mostAboveIdle = 64 << 20
)

// runFlood is an agent that speaks the Agent Client Protocol. Its prompt has
// how many bytes it says, how many of them in a line, and the file that it waits for.
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
			total, _ := strconv.Atoi(words[0])
			atOnce, _ := strconv.Atoi(words[1])
			for _, err := os.Stat(words[2]); err != nil; _, err = os.Stat(words[2]) {
				time.Sleep(10 * time.Millisecond)
			}
			chunk := strings.Repeat("a text of sixteen", atOnce/17+1)[:atOnce]
			for left := total; left > 0; left -= atOnce {
				say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}`, chunk[:min(left, atOnce)])
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

// TestSEC_11_MuchTextCostsLittle: an agent says more in one turn than Bridge keeps, in
// short lines and in long ones. Neither the runner nor the broker needs much memory for it,
// and the result says what was cut.
func TestSEC_11_MuchTextCostsLittle(t *testing.T) {
	tests := []struct {
		name          string
		total, atOnce int    // in bytes
		wants         string // in the result; "" for a result that is whole
	}{
		{"short lines", testkit.Rounds(t, 40, 300) * mib, floodChunk, "cut this answer"},
		{"lines of 60 MB", testkit.Rounds(t, 1, 5) * 60e6, 60e6, "cut this"},
		{"31 MiB in short lines", 31 * mib, floodChunk, ""},
		{"31 MiB in a line", 31 * mib, 31 * mib, "cut this"},
	}
	if !testkit.IsLong() {
		tests = tests[:3]
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := startFlood(t, tt.total, tt.atOnce)
			f.measure()
			f.checkResult(tt.total, tt.wants)
			f.checkTranscript()
		})
	}
}

// flood is a job of the agent that says too much.
type flood struct {
	*world
	boss           *actor
	job            string
	gate           string // the file that the agent waits for
	runner, broker int    // process ids
}

// startFlood starts such a job of its own broker, and returns when the agent is at work.
func startFlood(t *testing.T, total, atOnce int) *flood {
	t.Helper()
	f := &flood{world: emptyWorld(t)}
	self, err := os.Executable()
	if err == nil {
		err = f.home.Ensure()
	}
	work := filepath.Join(f.dir, "work")
	f.gate = filepath.Join(f.dir, "gate")
	if err == nil {
		err = os.Mkdir(work, 0o700)
	}
	if err == nil {
		settings := fmt.Sprintf(`{"jobs":{"enabled":true,"allowToolLevelOnly":true},"agents":{"acp":{"flood":{"command":%q,"args":[%q]}}}}`, self, floodAgent)
		err = os.WriteFile(filepath.Join(f.home.Dir(), "config.json"), []byte(settings), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.boss = &actor{w: f.world, name: "boss", kind: bridge.Claude, killed: map[int]time.Time{}}
	f.boss.start()
	s, _ := f.boss.server()
	var spawned struct{ Job string }
	prompt := fmt.Sprintf("%d %d %s", total, atOnce, f.gate)
	if err := s.call(t.Context(), "spawn_acp", map[string]any{"agent": "flood", "prompt": prompt, "cwd": work, "access": "read"}, &spawned); err != nil {
		t.Fatal(err)
	}
	f.job = spawned.Job
	var state runs.StateFile
	f.await("the agent is at work", settle, func() bool {
		data, err := os.ReadFile(f.file("state.json"))
		return err == nil && json.Unmarshal(data, &state) == nil && state.State == job.Running
	})
	f.runner, f.broker = state.Runner.PID, f.world.broker()
	return f
}

// file is the path of a file in the job's folder.
func (f *flood) file(name string) string { return filepath.Join(f.home.Dir(), "jobs", f.job, name) }

// measure lets the agent say everything, and returns when its result has been read. It
// fails the test where a process's memory grows too far.
func (f *flood) measure() {
	f.Helper()
	time.Sleep(300 * time.Millisecond) // idle
	idle := map[int]int64{f.runner: memoryOf(f.runner, "VmRSS"), f.broker: memoryOf(f.broker, "VmRSS")}
	peak := map[int]int64{}
	look := func() {
		for pid := range idle {
			peak[pid] = max(peak[pid], memoryOf(pid, "VmHWM"))
		}
	}
	if err := os.WriteFile(f.gate, nil, 0o600); err != nil {
		f.Fatal(err)
	}
	f.await("the job has ended", 2*testkit.Patience, func() bool {
		look()
		_, err := os.Stat(f.file("envelope.json"))
		return err == nil && memoryOf(f.runner, "VmHWM") == 0
	})
	s, _ := f.boss.server()
	var inbox struct{ Messages []struct{ Body string } }
	f.await("the result has come", settle, func() bool {
		look()
		return s.call(f.Context(), "inbox", map[string]any{}, &inbox) == nil && len(inbox.Messages) > 0
	})
	for name, pid := range map[string]int{"runner": f.runner, "broker": f.broker} {
		cost := peak[pid] - idle[pid]
		f.Logf("the %s idles at %s, and needs %s more at most", name, bridge.Size(idle[pid]), bridge.Size(cost))
		if cost > mostAboveIdle {
			f.Errorf("the %s needs %s more than at rest, and may need %s", name, bridge.Size(cost), bridge.Size(mostAboveIdle))
		}
	}
}

// checkResult reads what was kept of so many bytes. Where text is missing it says so.
func (f *flood) checkResult(total int, wants string) {
	f.Helper()
	kept, err := os.ReadFile(f.file("envelope.json"))
	if err != nil {
		f.Fatal(err)
	}
	var envelope runs.Envelope
	if err := json.Unmarshal(kept, &envelope); err != nil || envelope.State != job.Finished {
		f.Fatalf("it is %s, %v", envelope.State, err)
	}
	result := envelope.Result
	end := result[max(0, len(result)-200):]
	switch {
	case len(result) > job.MaxAnswerBytes+200, wants == "" && len(result) != total:
		f.Errorf("it kept %d of %d bytes, that end %q", len(result), total, end)
	case !strings.Contains(end, wants):
		f.Errorf("it kept %d of %d bytes, and does not say %q at the end: %q", len(result), total, wants, end)
	}
}

// checkTranscript expects no long line there.
func (f *flood) checkTranscript() {
	f.Helper()
	said, err := os.ReadFile(filepath.Join(f.home.Dir(), "runs", f.job+".jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(said) {
		if len(line) > runs.MaxLineBytes {
			f.Errorf("a line of the transcript has %d bytes", len(line))
		}
	}
	f.actors = append(f.actors, f.boss)
	f.quiet()
}
