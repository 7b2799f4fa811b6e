package runs

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

var noon = time.UnixMilli(1_800_000_000_000)

var answered = job.Outcome{State: job.Finished, Ended: job.EndAnswer}

func named(n int) string { return fmt.Sprintf("codex-job-%08x", n) }

func apply(t *testing.T, r *job.Registry, name string, transition job.Transition) {
	t.Helper()
	if _, err := r.Apply(name, transition); err != nil {
		t.Fatal(err)
	}
}

func TestRunnerFiles(t *testing.T) {
	spec := SpecFile{Job: named(1), Run: 1, Kind: bridge.Codex, PromptID: "p", Prompt: "go", Folder: "/src", Access: job.AccessRead, TimeoutSec: 10, Supervisor: "alice", Depth: 1, Token: "t"}
	data, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSpec(data, named(1))
	spec.Version = 1
	if err != nil || !reflect.DeepEqual(got, spec) {
		t.Errorf("DecodeSpec = %+v, %v", got, err)
	}
	for old, replaced := range map[string]string{
		`"version": 1`: `"version": 2`, `"run": 1`: `"run": 0`, `"go"`: `""`, `"/src"`: `"src"`, `"read"`: `"root"`, `"token": "t"`: `"tokens": "t"`, `"job": "codex`: `"job": "claude`,
	} {
		if _, err := DecodeSpec([]byte(strings.Replace(string(data), old, replaced, 1)), named(1)); err == nil {
			t.Errorf("a spec with %s was accepted", replaced)
		}
	}
	state := StateFile{Job: named(1), Run: 2, State: job.Waiting, Wait: &job.Wait{For: job.ForApproval, ID: "a"}, Processes: []job.Process{{PID: 7, Identity: "b:1", Role: "cli"}}, UpdatedAt: 5}
	if data, err = state.Encode(); err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(data), `"version": 1`, `"version": 2, "later": true`, 1)
	read, err := DecodeState([]byte(newer), named(1))
	if err != nil || read.Processes[0].Identity != "b:1" || read.Wait.ID != "a" {
		t.Errorf("the state of a newer runner: %+v, %v", read, err)
	}
	if _, err := DecodeState(data, named(2)); err == nil {
		t.Error("the state of another job was accepted")
	}
}

func TestJOB_05_TheStateIsThatOfTheJobAndOfARun(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"job":"codex-job-00000001","run":1}`: true, `{"job":"codex-job-00000001","run":0}`: false, `{"job":"codex-job-00000001","run":-1}`: false, `{"job":"codex-job-00000002","run":1}`: false, `{`: false,
	} {
		if state, err := DecodeState([]byte(text), named(1)); (err == nil) != ok {
			t.Errorf("%s: %+v, %v", text, state, err)
		}
	}
}
