package mcpserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/brokertest"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
)

// endsWith is a runner that ends at once with those words, and is gone then.
func endsWith(t *testing.T, words string) func(folder string) (int, error) {
	return func(folder string) (int, error) {
		outcome := job.Outcome{State: job.Finished, Ended: job.EndAnswer}
		envelope := job.NewEnvelope(filepath.Base(folder), 1, outcome, words, job.Evidence{Tokens: 42}, time.Now())
		data, err := envelope.Encode()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "envelope.json"), data, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
		return 1 << 22, err // no process has that number
	}
}

func openJobs(t *testing.T, start func(string) (int, error)) *wire {
	t.Helper()
	w := openOn(t, brokertest.ServeJobs(t, start), Options{Register: api.Register{Kind: bridge.Claude, SessionID: "h1"}, Jobs: true})
	w.begin()
	return w
}

// object is the answer of a call.
func (w *wire) object(id int) (answer map[string]any) {
	w.t.Helper()
	if text := w.text(id); json.Unmarshal([]byte(text), &answer) != nil {
		w.t.Fatalf("it answers %s", text)
	}
	return answer
}

func TestJOB_01_ASpawnAnswersAtOnceAndItsResultIsMail(t *testing.T) {
	w := openJobs(t, endsWith(t, "There are 12."))
	w.call(3, "spawn_opencode", `{"prompt":"Count.","title":"Count","access":"edit","cwd":"/"}`)
	got := w.object(3)
	name, _ := got["job"].(string)
	if kind, waits, ok := job.ParseName(name); !ok || waits || kind != bridge.OpenCode || got["title"] != "Count" || got["workdir"] != "/" {
		t.Errorf("it answers %v", got)
	}
	w.call(4, "wait_for_message", `{"timeout_sec":60}`)
	if body, _ := w.object(4)["body"].(string); !strings.Contains(body, "There are 12.") {
		t.Errorf("the message is %q", body)
	}
	w.call(5, "message_subagent", `{"job":"`+name+`","message":"And the folders?"}`)
	if got := w.object(5); got["delivery"] != "continued" || got["job"] != name {
		t.Errorf("message_subagent answers %v", got)
	}
	w.call(6, "max_subagents", `{"limit":3}`)
	if got := w.object(6); got["limit"] != 3.0 {
		t.Errorf("max_subagents answers %v", got)
	}
}

func TestJOB_01_AnAskWaitsForTheAnswerWhichIsNoMailThen(t *testing.T) {
	w := openJobs(t, endsWith(t, "There are 12."))
	w.call(3, "ask_codex", `{"prompt":"Count.","cwd":"/"}`)
	got := w.object(3)
	evidence, _ := got["evidence"].(map[string]any)
	if got["status"] != "finished" || got["result"] != "There are 12." || evidence["tokens"] != 42.0 {
		t.Errorf("it answers %v", got)
	}
	if name, _ := got["job"].(string); !strings.HasPrefix(name, "codex-ask-") {
		t.Errorf("the job is called %q", name)
	}
	w.call(4, "inbox", `{}`)
	if got := w.object(4); len(got["messages"].([]any)) != 0 {
		t.Errorf("it is told again: %v", got)
	}
}

func TestJOB_01_WhoGivesUpAnAskHasItsResultAsMail(t *testing.T) {
	begun, end := make(chan string, 1), make(chan struct{})
	w := openJobs(t, func(folder string) (int, error) {
		begun <- folder
		<-end
		return endsWith(t, "There are 12.")(folder)
	})
	w.call(3, "ask_codex", `{"prompt":"Count.","cwd":"/"}`)
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("no runner was started")
	}
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	close(end)
	w.call(4, "wait_for_message", `{"timeout_sec":60}`)
	if body, _ := w.object(4)["body"].(string); !strings.Contains(body, "There are 12.") {
		t.Errorf("the message is %q", body)
	}
}

func TestJOB_20_AJobHasItsOwnToolsAlone(t *testing.T) {
	names := func(s *Server) (names []string) {
		for _, t := range s.tools() {
			names = append(names, t.tool.Name)
		}
		return names
	}
	inside := strings.Join(names(&Server{opts: Options{Job: "codex-job-00000001"}}), " ")
	if inside != "peers send send_status inbox wait_for_message decisions search_history report_progress" {
		t.Errorf("a job has %s", inside)
	}
	if outside := strings.Join(names(&Server{opts: Options{Jobs: true}}), " "); strings.Contains(outside, "report_progress") || !strings.Contains(outside, "ask_claude") {
		t.Errorf("a session has %s", outside)
	}
}

// TestJOB_01_TheToolsOfJobs are offered where the owner allows jobs, and nowhere else.
func TestJOB_01_TheToolsOfJobs(t *testing.T) {
	for allowed, file := range map[bool]string{true: "tools-jobs.json", false: "tools.json"} {
		w := openOn(t, brokertest.Serve(t), Options{Register: api.Register{Kind: bridge.Claude}, Jobs: allowed})
		w.begin()
		w.say(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		result, _ := w.answer(9)["result"].(map[string]any)
		checkTools(t, file, result["tools"])
	}
}
