package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
	"bridge/backend/testing/testkit"
)

// endsWith is a runner that ends at once with those words, and is gone then.
func endsWith(t *testing.T, words string) func(folder string) (int, error) {
	return func(folder string) (int, error) {
		outcome := job.Outcome{State: job.Finished, Ended: job.EndAnswer}
		envelope := runs.NewEnvelope(filepath.Base(folder), 1, outcome, words, runs.Evidence{Tokens: 42}, time.Now())
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
	work := t.TempDir()
	w.call(3, "spawn_opencode", fmt.Sprintf(`{"prompt":"Count.","title":"Count","access":"edit","cwd":%q}`, work))
	got := w.object(3)
	name, _ := got["job"].(string)
	if kind, waits, ok := job.ParseName(name); !ok || waits || kind != bridge.OpenCode || got["title"] != "Count" || got["workdir"] != work {
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
	case <-time.After(testkit.Patience):
		t.Fatal("no runner was started")
	}
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	close(end)
	w.call(4, "wait_for_message", `{"timeout_sec":60}`)
	if body, _ := w.object(4)["body"].(string); !strings.Contains(body, "There are 12.") {
		t.Errorf("the message is %q", body)
	}
}

// TestJOB_02_PeersShowsWhatASessionsJobsDo, and inbox what they ask and answer.
func TestJOB_02_PeersShowsWhatASessionsJobsDo(t *testing.T) {
	started := make(chan string, 1)
	b := brokertest.ServeJobs(t, func(folder string) (int, error) {
		started <- folder
		return os.Getpid(), nil
	})
	w := openOn(t, b, Options{Register: api.Register{Kind: bridge.Claude, SessionID: "h1"}, Jobs: true})
	w.begin()
	w.call(3, "peers", `{}`)
	if got := w.object(3)["jobs"]; !cmp.Equal(got, []any{}) {
		t.Errorf("before the first job they are %v", got)
	}
	work := t.TempDir()
	w.call(4, "spawn_codex", fmt.Sprintf(`{"prompt":"Count.","title":"Count","cwd":%q,"effort":"high","access":"ask"}`, work))
	name := w.object(4)["job"].(string)
	r := newRunner(t, b, <-started)
	r.says(api.RunnerReport{State: &runs.StateFile{
		Job: name, Run: 1, State: job.Running, Session: "thread-1", Model: "gpt-5", Step: "reads main.go", Tokens: 7, CostUSD: 0.25,
	}})
	r.asks("q1", "rm -rf build")
	w.call(5, "peers", `{}`)
	list, _ := w.object(5)["jobs"].([]any)
	if len(list) != 1 {
		t.Fatalf("the jobs are %v", list)
	}
	got, _ := list[0].(map[string]any)
	delete(got, "startedAt")
	want := map[string]any{
		"job": name, "agent": "codex", "title": "Count", "status": "running", "progress": map[string]any{"percent": nil, "etaMinutes": nil, "note": ""},
		"step": "reads main.go", "model": "gpt-5", "effort": "high", "access": "ask", "workdir": work, "session": "thread-1",
		"tokens": 7.0, "costUsd": 0.25, "endedAt": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the job (-want +got):\n%s", diff)
	}
	r.finishes("There are 12.")
	w.call(6, "inbox", `{}`)
	if mail := w.object(6)["messages"].([]any); len(mail) != 2 ||
		!strings.Contains(fmt.Sprint(mail[0]), "rm -rf build") || !strings.Contains(fmt.Sprint(mail[1]), "There are 12.") {
		t.Errorf("the inbox has %v", mail)
	}
	other := openOn(t, b, Options{Register: api.Register{Kind: bridge.Claude, SessionID: "h2"}, Jobs: true})
	other.begin()
	other.call(3, "peers", `{}`)
	if got := other.object(3)["jobs"]; !cmp.Equal(got, []any{}) {
		t.Errorf("another session sees %v", got)
	}
}

func TestJOB_02_PeersShowsTheLastOfManyEndedJobs(t *testing.T) {
	w := openJobs(t, endsWith(t, "done"))
	for i := range endedShown + 1 {
		w.call(10+i, "ask_codex", `{"prompt":"Count.","cwd":"/"}`)
		w.text(10 + i)
	}
	w.call(3, "peers", `{}`)
	if got := w.object(3)["jobs"].([]any); len(got) != endedShown {
		t.Errorf("peers shows %d ended jobs, want %d", len(got), endedShown)
	}
}

// scripted is the runner of a job, played by the test.
type scripted struct {
	*ipc.Client
	t      *testing.T
	target ipc.Target
	folder string
	spec   runs.SpecFile
}

func newRunner(t *testing.T, b brokertest.Running, folder string) *scripted {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "spec.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := &scripted{t: t, target: b.Target, folder: folder}
	if r.spec, err = runs.DecodeSpec(data, filepath.Base(folder)); err != nil {
		t.Fatal(err)
	}
	r.Client = brokertest.Dial(t, b.Target, api.RoleRunner)
	if _, err := r.RunnerHello(t.Context(), api.RunnerHello{Job: r.spec.Job, Run: r.spec.Run, Token: r.spec.Token}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *scripted) says(report api.RunnerReport) {
	r.t.Helper()
	if _, err := r.RunnerReport(r.t.Context(), report); err != nil {
		r.t.Fatal(err)
	}
}

func (r *scripted) asks(id, command string) {
	r.t.Helper()
	approval := job.NewApproval(job.Approval{ID: id, Job: r.spec.Job, Run: r.spec.Run, By: r.spec.Supervisor, Kind: "command", What: "shell", Detail: command}, time.Now())
	r.says(api.RunnerReport{Approvals: []job.Approval{approval}})
}

func (r *scripted) finishes(words string) {
	r.t.Helper()
	if _, err := endsWith(r.t, words)(r.folder); err != nil {
		r.t.Fatal(err)
	}
	r.says(api.RunnerReport{Result: &api.RunnerResult{Run: r.spec.Run, MessageID: runs.ResultID(r.spec.Job, r.spec.Run), State: job.Finished}})
}

func TestJOB_20_AJobHasItsOwnToolsAlone(t *testing.T) {
	names := func(options Options) (names []string) {
		for _, t := range (&Server{opts: options}).tools() {
			names = append(names, t.tool.Name)
		}
		return names
	}
	for _, tt := range []struct {
		delegates bool
		acp       []string
		further   string
	}{
		{},
		{acp: []string{"goose"}}, // it delegates nothing
		{delegates: true, further: " spawn_claude ask_claude spawn_codex ask_codex spawn_opencode ask_opencode spawn_antigravity ask_antigravity message_subagent cancel_subagent"},
		{delegates: true, acp: []string{"goose"}, further: " spawn_claude ask_claude spawn_codex ask_codex spawn_opencode ask_opencode spawn_antigravity ask_antigravity spawn_acp ask_acp message_subagent cancel_subagent"},
	} {
		want := "peers send send_status inbox wait_for_message decisions search_history report_progress" + tt.further
		if inside := strings.Join(names(Options{Job: "codex-job-00000001", Jobs: tt.delegates, ACP: tt.acp}), " "); inside != want {
			t.Errorf("%+v: a job has %s", tt, inside)
		}
		if told := strings.Join(job.Tools(tt.delegates, len(tt.acp) > 0), " "); told != want {
			t.Errorf("%+v: its CLI is told of %s", tt, told)
		}
	}
	if outside := strings.Join(names(Options{Jobs: true}), " "); strings.Contains(outside, "report_progress") || !strings.Contains(outside, "ask_claude") {
		t.Errorf("a session has %s", outside)
	}
}

// TestJOB_01_TheToolsOfJobs are offered where the owner allows jobs, and nowhere else.
func TestJOB_01_TheToolsOfJobs(t *testing.T) {
	for allowed, file := range map[bool]string{true: "tools.json", false: "tools-without-jobs.json"} {
		w := openOn(t, brokertest.Serve(t), Options{Register: api.Register{Kind: bridge.Claude}, Jobs: allowed, Remote: true, ACP: []string{"goose"}})
		w.begin()
		w.say(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		result, _ := w.answer(9)["result"].(map[string]any)
		checkTools(t, file, result["tools"])
	}
}

// Every tool of a session is one that an install lets it use without a question, or one
// that its CLI asks about: whoever adds a tool says which.
func TestJOB_01_EveryToolIsFreeOrAskedAbout(t *testing.T) {
	for _, tool := range (&Server{opts: Options{Jobs: true}}).tools() {
		free, asked := slices.Contains(setup.FreeTools(), tool.tool.Name), slices.Contains(setup.AskedTools(), tool.tool.Name)
		if free == asked {
			t.Errorf("%s is free: %t, asked about: %t", tool.tool.Name, free, asked)
		}
	}
}
