package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bridge/backend/core/bridge"
)

// fieldFile is a jobs.json as the field writes it, with members and forms that are
// not ours.
const fieldFile = `{"version":4,"savedBy":{"pid":7},"jobs":[` +
	`{"id":"0a1b2c3d","name":"codex-job-0a1b2c3d","agent":"codex","prompt":"go","owner":"alice","status":"running","startedAt":"2027-01-15T08:00:00.123Z",` +
	`"args":{"prompt":"go","sandbox":"read-only"},"allowedServers":["x"],"queuedMessages":[{"cid":"c1","body":"later"}],"forwarded":[{"cid":"a","body":"b"}],` +
	`"host":{"pid":42,"peer":"job:0a1b2c3d","startedAt":1800000000000},"percent":12.5,"worktree":{"repoRoot":"/r","path":"/w","branch":"b"},"deliveryHistory":[1e3],"executionOwner":"zoe"},` +
	`{"name":"claude-job-00000002","agent":"claude","prompt":"","owner":"bob","status":"done","finishedAt":1800000000001,"startedAt":1800000000000}` +
	`],"handoffs":[{"id":"h","odd":[1,2]}]}`

func TestAFileOfTheFieldKeepsEverythingThatIsNotOurs(t *testing.T) {
	file, err := DecodeFile([]byte(fieldFile))
	if err != nil {
		t.Fatal(err)
	}
	if file.Jobs[0].State != Running || file.Jobs[1].State != Finished || file.Jobs[0].Host.PID != 42 || file.Jobs[0].Worktree.Branch != "b" {
		t.Errorf("read as %+v", file.Jobs)
	}
	if at := file.Jobs[0].StartedAt; at != 1_800_000_000_123 {
		t.Errorf("startedAt = %d", at)
	}
	file.Jobs[0].State, file.Jobs[0].SessionID = Waiting, "s1"
	out, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal([]byte(fieldFile), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	first, second := want["jobs"].([]any)[0].(map[string]any), want["jobs"].([]any)[1].(map[string]any)
	first["state"], first["sessionId"] = "waiting", "s1"
	second["state"] = "finished"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written: %s", diff)
	}
	if !strings.Contains(string(out), `"startedAt":"2027-01-15T08:00:00.123Z"`) || !strings.Contains(string(out), `[1e3]`) {
		t.Errorf("unchanged members are written in another form: %s", out)
	}
}

func TestEveryMemberOfAnEntryComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := rapid.Make[Job]().Draw(t, "job")
		job.rest = nil
		job.State = rapid.SampledFrom(append(append([]State{Queued}, activeStates...), endedStates...)).Draw(t, "state")
		data, err := json.Marshal(job)
		if err != nil {
			t.Skip("it cannot be written: ", err)
		}
		var back Job
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(data) {
			t.Fatalf("written %s, again %s (%v)", data, again, err)
		}
		if back.State != job.State || back.Name != strings.ToValidUTF8(job.Name, "\uFFFD") {
			t.Fatalf("%s of %q came back as %s of %q", job.State, job.Name, back.State, back.Name)
		}
	})
}

func TestTheFieldsStatusAndOursAgree(t *testing.T) {
	tests := []struct {
		status string
		state  State
		want   State
	}{
		{"running", "waiting", Waiting},
		{"running", "queued", Queued},
		{"failed", "limit", Limit},
		{"failed", "refused", Refused},
		{"done", "waiting", Finished},           // an older program wrote the end
		{"interrupted", "running", Interrupted}, // and this
		{"cancelled", "", Cancelled},
		{"failed", "", Failed},
		{"done", "", Finished},
		{"running", "", Running},
		{"running", "dreaming", Running},
		{"paused", "", Interrupted},
		{"", "", Interrupted},
	}
	for _, tt := range tests {
		if got := stateOf(tt.status, tt.state); got != tt.want {
			t.Errorf("stateOf(%q, %q) = %s, want %s", tt.status, tt.state, got, tt.want)
		}
	}
	for _, state := range append(append([]State{Queued}, activeStates...), endedStates...) {
		if got := stateOf(state.FieldStatus(), state); got != state {
			t.Errorf("%s is written as %q and read as %s", state, state.FieldStatus(), got)
		}
	}
}

func TestWhatIsNoJobsFileIsLeftAlone(t *testing.T) {
	for _, text := range []string{`{"version":5,"jobs":[]}`, `{"version":4,"jobs":{}}`, `[]`, `{`, `{"jobs":[1]}`} {
		if _, err := DecodeFile([]byte(text)); bridge.CodeOf(err) != bridge.Unsupported {
			t.Errorf("DecodeFile(%s) = %v", text, err)
		}
	}
	file, err := DecodeFile([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := file.Encode(); err != nil || string(out) != `{"version":4,"jobs":[]}` {
		t.Errorf("an empty file: %s, %v", out, err)
	}
}
