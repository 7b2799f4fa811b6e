package job

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decodeJobs is a jobs.json with these entries.
func decodeJobs(t *testing.T, entries string) File {
	t.Helper()
	file, err := DecodeFile([]byte(`{"version":4,"theirs":true,"jobs":[` + entries + `],"handoffs":[{"id":"h1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestVER_05_WhatWaitsIsMergedByMembers(t *testing.T) {
	const before = `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"running","percent":1}`
	for _, test := range []struct{ name, ours, theirs, want string }{
		{
			"nobody else wrote", `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"done"}`, before,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"done"}`,
		},
		{
			"each changed another member", `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"us","status":"running","percent":1}`,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"running","percent":1,"queuedMessages":["m"],"x":[2]}`,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"us","status":"running","percent":1,"queuedMessages":["m"],"x":[2]}`,
		},
		{
			"a job that has ended there stays so", `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"us","status":"running","percent":9}`,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"failed"}`,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"failed"}`,
		},
		{
			"one that has ended here stays so", `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"done","percent":1}`,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"running","percent":7}`,
			`{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"done","percent":7}`,
		},
		{"it is gone there", `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"us","status":"done"}`, "", `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"us","status":"done"}`},
	} {
		t.Run("VER-05 "+test.name, func(t *testing.T) {
			waiting := since(t, decodeJobs(t, before), decodeJobs(t, test.ours))
			merged := merge(t, decodeJobs(t, test.theirs), waiting)
			if diff := cmp.Diff(entriesOf(t, decodeJobs(t, test.want)), entriesOf(t, merged)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(entriesOf(t, merged), entriesOf(t, merge(t, merged, waiting))); diff != "" {
				t.Errorf("done again: %s", diff)
			}
		})
	}
}

func TestVER_05_WhatWaitsIsOnlyWhatDiffers(t *testing.T) {
	const a, b = `{"id":"1","name":"a","agent":"codex","prompt":"p","owner":"o","status":"done","x":1}`, `{"id":"2","name":"b","agent":"codex","prompt":"p","owner":"o","status":"running"}`
	before, now := decodeJobs(t, a), decodeJobs(t, a+","+b)
	now.Handoffs = append(now.Handoffs, json.RawMessage(`{"id":"h2"}`))
	waiting := since(t, before, now)
	if len(waiting.Jobs) != 1 || waiting.Jobs[0].Base != nil || len(waiting.Handoffs) != 1 {
		t.Errorf("it holds %+v", waiting)
	}
	// Another job has got the name meanwhile: nobody can tell which is meant, and both stay.
	merged := merge(t, decodeJobs(t, `{"id":"9","name":"b","agent":"claude","prompt":"q","owner":"o","status":"done"},`+a), waiting)
	if diff := cmp.Diff([]string{"b"}, merged.Twofold()); diff != "" || len(entriesOf(t, merged)) != 3 {
		t.Errorf("%s; it has %v", diff, entriesOf(t, merged))
	}
	if len(merged.Handoffs) != 2 || len(merge(t, merged, waiting).Handoffs) != 2 {
		t.Errorf("hand-offs: %s", merged.Handoffs)
	}
}

func TestVER_06_WhatANewerProgramLeftWaiting(t *testing.T) {
	for _, text := range []string{`{"version":2,"jobs":[]}`, `{"version":1,"jobs":{}}`, `{`} {
		if got, err := DecodePending([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}

// since gives what waits as it is read back.
func since(t *testing.T, before, now File) Pending {
	t.Helper()
	waiting, err := now.Since(before, 5)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(waiting)
	if err != nil {
		t.Fatal(err)
	}
	if waiting, err = DecodePending(data); err != nil {
		t.Fatal(err)
	}
	return waiting
}

func merge(t *testing.T, file File, waiting Pending) File {
	t.Helper()
	merged, err := file.Merge(waiting)
	if err != nil {
		t.Fatal(err)
	}
	return merged
}

// entriesOf are the entries of the file as it is written, by name and id.
func entriesOf(t *testing.T, file File) map[string]any {
	t.Helper()
	data, err := file.Encode()
	var written struct {
		Jobs   []map[string]any
		Theirs bool
	}
	if err == nil {
		err = json.Unmarshal(data, &written)
	}
	if err != nil || !written.Theirs {
		t.Fatalf("%s, %v", data, err)
	}
	entries := map[string]any{}
	for _, job := range written.Jobs {
		delete(job, "state") // ours says the same beside the field's status
		entries[job["name"].(string)+" "+job["id"].(string)] = job
	}
	return entries
}
