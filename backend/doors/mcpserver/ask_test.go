package mcpserver

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/brokertest"
)

// TestJOB_20_AnAskSaysHowFarItIsToAHostThatWantsToKnow by the protocol's notifications,
// under the token of the call, before its answer and never after it.
func TestJOB_20_AnAskSaysHowFarItIsToAHostThatWantsToKnow(t *testing.T) {
	for name, test := range map[string]struct{ meta, token string }{
		"claude and opencode":    {`{"progressToken":7}`, "7"},
		"codex":                  {`{"callId":"call_2_0","progressToken":"p-7"}`, "p-7"},
		"a host that wants none": {`{}`, ""},
	} {
		t.Run("JOB-20 "+name, func(t *testing.T) {
			started := make(chan string, 1)
			b := brokertest.ServeJobs(t, func(folder string) (int, error) {
				started <- folder
				return os.Getpid(), nil
			})
			w := openOn(t, b, Options{Register: api.Register{Kind: bridge.Claude, SessionID: "h1"}, Jobs: true, PollInterval: 5 * time.Millisecond})
			w.begin()
			w.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask_codex","arguments":{"prompt":"Count.","cwd":"/"},"_meta":` + test.meta + `}}`)
			r := newRunner(t, b, <-started)
			last := 0.0
			told := func(words string) {
				t.Helper()
				if test.token == "" {
					return
				}
				w.next("notice of "+words, func(line map[string]any) bool {
					params, _ := line["params"].(map[string]any)
					if line["method"] != "notifications/progress" {
						t.Errorf("the host is told %v", line)
					}
					if fmt.Sprint(params["progressToken"]) != test.token || params["progress"].(float64) <= last {
						t.Errorf("after %v the host is told %v", last, params)
					}
					last, _ = params["progress"].(float64)
					return strings.Contains(fmt.Sprint(params["message"]), words)
				})
			}
			told(r.spec.Job + " is queued")
			told("is starting")
			r.says(api.RunnerReport{State: &runs.StateFile{Job: r.spec.Job, Run: 1, State: job.Running, Session: "t", Step: "reads main.go"}})
			told("is running: reads main.go")
			told("still working: " + r.spec.Job + " is running: reads main.go")
			percent, left := 40.0, 3.0
			if err := r.reports(job.ProgressArgs{Percent: &percent, ETAMinutes: &left, Note: "half"}); err != nil {
				t.Fatal(err)
			}
			told("is running, 40 %, about 3 minutes left: half")
			r.says(api.RunnerReport{State: &runs.StateFile{Job: r.spec.Job, Run: 1, State: job.Waiting, Session: "t", Wait: &job.Wait{For: job.ForBudget}}})
			told("is waiting (budget), 40 %")
			r.finishes("There are 12.")
			answered := w.next("the answer", func(line map[string]any) bool {
				if test.token == "" && line["method"] != nil {
					t.Errorf("a host that wants none is told %v", line)
				}
				return line["id"] != nil
			})
			if !strings.Contains(fmt.Sprint(answered), "There are 12.") {
				t.Errorf("the answer is %v", answered)
			}
			w.call(4, "inbox", `{}`)
			for line := range w.lines {
				if line["method"] != nil {
					t.Errorf("after the answer the host is told %v", line)
				}
				if line["id"] == 4.0 {
					break
				}
			}
		})
	}
}

func (r *scripted) reports(args job.ProgressArgs) error {
	inside := brokertest.Dial(r.t, r.target, api.RoleSession)
	if _, err := inside.Register(r.t.Context(), api.Register{Kind: r.spec.Kind, Name: r.spec.Job, Runner: true, JobToken: r.spec.Token, Cwd: "/"}); err != nil {
		return err
	}
	return inside.JobProgress(r.t.Context(), api.JobProgressArgs{Job: r.spec.Job, Token: r.spec.Token, Args: args})
}
