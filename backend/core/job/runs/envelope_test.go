package runs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

func TestJOB_03_AResultHasOneIdentityForEachRun(t *testing.T) {
	first := NewEnvelope(named(1), 1, answered, "42", Evidence{}, noon)
	again := NewEnvelope(named(1), 1, answered, "42", Evidence{}, noon.Add(time.Hour))
	next := NewEnvelope(named(1), 2, answered, "43", Evidence{}, noon)
	other := NewEnvelope(named(2), 1, answered, "42", Evidence{}, noon)
	if first.MessageID != "result-codex-job-00000001-1" || again.MessageID != first.MessageID || next.MessageID == first.MessageID || other.MessageID == first.MessageID {
		t.Errorf("ids: %q, %q, %q, %q", first.MessageID, again.MessageID, next.MessageID, other.MessageID)
	}
	r := job.NewRegistry(job.Limits{}, []job.Job{{Name: named(1), State: job.Running, Run: 1}})
	if first, err := r.MarkSent(named(1), 1); first || err != nil {
		t.Errorf("a result of a running job counted: %v, %v", first, err)
	}
	apply(t, r, named(1), job.End(1, answered, noon))
	for i, want := range []bool{true, false, false} {
		if first, err := r.MarkSent(named(1), 1); first != want || err != nil {
			t.Errorf("sent for the %d. time: %v, %v", i+1, first, err)
		}
	}
	if _, err := r.Message(named(1), "more", job.Settings{}, noon); err != nil {
		t.Fatal(err)
	}
	r.StartNext(noon)
	if _, err := r.Apply(named(1), job.End(1, answered, noon)); err == nil {
		t.Error("a late end of the first run ended the second")
	}
	apply(t, r, named(1), job.End(2, answered, noon))
	if first, _ := r.MarkSent(named(1), 1); first {
		t.Error("the first run's result, sent again, counted for the second")
	}
	if first, err := r.MarkSent(named(1), 2); !first || err != nil {
		t.Errorf("the second run's result: %v, %v", first, err)
	}
}

func TestJOB_03_AnEnvelopeComesBackWhole(t *testing.T) {
	exit := 1
	outcome := job.Outcome{State: job.Limit, Ended: job.EndLimit, Until: noon.Add(time.Hour)}
	want := NewEnvelope(named(1), 3, outcome, "part \xff", Evidence{
		Base: "b", Head: "h", Files: []Changed{{Path: "new.go", From: "old.go", Status: "renamed", Added: 1, Removed: 2}},
		Commands: []Command{{Command: "go test", Exit: &exit}, {Command: "ls"}}, Tokens: 5, CostUSD: 0.25, DurationMs: 7,
	}, noon)
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeEnvelope(data, named(1))
	if err != nil || !reflect.DeepEqual(got, want) || got.Outcome().State != job.Limit || !got.Outcome().Until.Equal(outcome.Until) || got.Evidence.Ended != job.EndLimit {
		t.Errorf("DecodeEnvelope = %+v, %v; want %+v", got, err, want)
	}
	for old, replaced := range map[string]string{
		`"run":3`: `"run":4`, `"messageId":"result`: `"messageId":"other`, `"state":"limit"`: `"state":"running"`, `"state":"limit","ended":"limit","until"`: `"state":"odd","ended":"limit","until"`,
	} {
		if _, err := DecodeEnvelope([]byte(strings.Replace(string(data), old, replaced, 1)), named(1)); err == nil {
			t.Errorf("an envelope with %s was accepted", replaced)
		}
	}
	if _, err := DecodeEnvelope(data, named(2)); err == nil {
		t.Error("an envelope of another job was accepted")
	}
	empty, _ := NewEnvelope(named(1), 1, answered, " ", Evidence{}, noon).Encode()
	if _, err := DecodeEnvelope(empty, named(1)); err == nil {
		t.Error("JOB-15: an envelope that is finished without an answer was accepted")
	}
}

func TestJOB_04_AResultOver32MiBIsKeptWholeAndReported(t *testing.T) {
	const limit = 32 * 1024 * 1024
	large := NewEnvelope(named(1), 1, answered, strings.Repeat("x", limit), Evidence{}, noon)
	data, err := large.Encode()
	if err != nil || len(data) <= limit || strings.Count(string(data), "x") < limit {
		t.Fatalf("the envelope has %d bytes, %v", len(data), err)
	}
	if _, err := DecodeEnvelope(data, named(1)); !errors.Is(err, ErrManual) {
		t.Errorf("DecodeEnvelope = %v", err)
	}
	fits := NewEnvelope(named(1), 1, answered, strings.Repeat("x", limit-(len(data)-limit)), Evidence{}, noon)
	data, err = fits.Encode()
	if err != nil || len(data) != limit {
		t.Fatalf("the envelope has %d bytes, %v", len(data), err)
	}
	if got, err := DecodeEnvelope(data, named(1)); err != nil || len(got.Result) != len(fits.Result) {
		t.Errorf("at the limit: %v", err)
	}
	if body := ManualBody(named(1), "/home/envelope.json", limit+1); !strings.Contains(body, "/home/envelope.json") || !strings.Contains(body, "by hand") {
		t.Errorf("ManualBody = %q", body)
	}
}

func TestJOB_04_AResultThatFitsNoMessageSaysWhereItIsWhole(t *testing.T) {
	short := NewEnvelope(named(1), 1, answered, "the answer", Evidence{}, noon)
	if got, want := short.Body("/e.json"), "codex-job-00000001 has finished.\n\nthe answer"; got != want {
		t.Errorf("Body = %q, want %q", got, want)
	}
	long := NewEnvelope(named(1), 1, answered, strings.Repeat("ä", 100_000), Evidence{}, noon)
	body := long.Body("/e.json")
	if utf8.RuneCountInString(body) != 100_000 || !strings.Contains(body, "kept whole in /e.json") || !strings.Contains(body, "has 100000 characters") {
		t.Errorf("a long result's body has %d characters: %.200s", utf8.RuneCountInString(body), body)
	}
}

func TestJOB_15_TheMessageSaysWhyItEnded(t *testing.T) {
	for want, outcome := range map[string]job.Outcome{
		"usage limit until 2027-01-15T08:00:00Z": {State: job.Limit, Ended: job.EndLimit, Until: noon},
		"nobody said until when":                 {State: job.Limit, Ended: job.EndLimit},
		"was refused":                            {State: job.Refused, Ended: job.EndRefusal},
		"without an answer":                      {State: job.Failed, Ended: job.EndEmpty},
		"does not fit":                           {State: job.Failed, Ended: job.EndContext},
		"was cancelled":                          {State: job.Cancelled, Ended: job.EndedCancelled},
		"could not be started":                   {State: job.Failed, Ended: job.EndedNotStarted},
		"can be continued":                       {State: job.Interrupted, Ended: job.EndedRunnerGone},
	} {
		if body := NewEnvelope(named(1), 1, outcome, "", Evidence{}, noon).Body("/e"); !strings.Contains(body, want) || strings.Contains(body, "finished") {
			t.Errorf("%+v says %q, want %q in it", outcome, body, want)
		}
	}
}

func TestJOB_08_TheMessageOfAWorktreeJobSaysHowToLandIt(t *testing.T) {
	envelope := NewEnvelope(named(1), 1, answered, "done", Evidence{}, noon)
	envelope.Branch, envelope.Workdir = "bridge/"+named(1), "/home/worktrees/r"
	for _, part := range []string{"bridge/codex-job-00000001", "/home/worktrees/r", "git -C /home/worktrees/r diff", "bridge finish codex-job-00000001 --merge", "--discard"} {
		if body := envelope.Body("/e"); !strings.Contains(body, part) {
			t.Errorf("%q is not in %q", part, body)
		}
	}
}

func TestJOB_04_AResultOfExactlyAMessageIsWhole(t *testing.T) {
	room := bridge.MaxBodyChars - utf8.RuneCountInString("codex-job-00000001 has finished.\n\n")
	for chars, whole := range map[int]bool{room: true, room + 1: false} {
		result := strings.Repeat("ä", chars)
		body := NewEnvelope(named(1), 1, answered, result, Evidence{}, noon).Body("/e.json")
		if strings.HasSuffix(body, "finished.\n\n"+result) != whole || utf8.RuneCountInString(body) > bridge.MaxBodyChars {
			t.Errorf("%d characters: %d in the message, that begins %.80q", chars, utf8.RuneCountInString(body), body)
		}
	}
}

func TestMSG_06_WordsThatMayNotHaveBeenHeardAreRepeated(t *testing.T) {
	if got := UnclearBody(nil); got != "" {
		t.Errorf("none: %q", got)
	}
	if got := UnclearBody([]string{"stop", "go on"}); !strings.HasSuffix(got, "said again:\n\nstop\n\ngo on") {
		t.Errorf("two: %q", got)
	}
}
