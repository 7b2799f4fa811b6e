package jobfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

func TestPGE_05_EachTurnKeepsItsMessageAndItsAnswer(t *testing.T) {
	const name = "claude-job-0a1b2c3d"
	at := time.UnixMilli(1_750_000_000_000)
	by := map[string][]string{"go": {"api"}, "more": {"you"}, "last": {"you", "web"}}
	answer := func(run int, message, text string) string {
		envelope := runs.NewEnvelope(name, run, job.Outcome{State: job.Finished, Ended: job.EndAnswer}, text, runs.Evidence{}, at)
		envelope.Message, envelope.MessageBy = message, by[message]
		data, err := envelope.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	failure := func(run int, message string) string {
		envelope := runs.NewEnvelope(name, run, job.Outcome{State: job.Failed, Ended: job.EndFailed}, "", runs.Evidence{}, at)
		envelope.Message, envelope.MessageBy, envelope.Error = message, by[message], "no account"
		data, err := envelope.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	spec := func(run int, prompt string) string {
		data, err := runs.SpecFile{Job: name, Run: run, Kind: "claude", PromptID: "p", Prompt: prompt, PromptBy: by[prompt], Folder: "/app", Access: job.AccessRead, Token: "t"}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	long := strings.Repeat("x", MaxTurnAnswer+1)
	for _, tt := range []struct {
		name  string
		run   int
		files map[string]string
		want  []string // each turn's message and answer
	}{
		{"before its first end", 1, map[string]string{"spec.json": spec(1, "go")}, []string{"go: -"}},
		{"one turn", 1, map[string]string{"spec.json": spec(1, "go"), "envelope.json": answer(1, "go", "done")}, []string{"go: done"}},
		{"of an older runner", 1, map[string]string{"spec.json": spec(1, "go"), "envelope.json": answer(1, "", "done")}, []string{"go: done"}},
		{
			"a failed turn hides no answer", 2,
			map[string]string{"spec.json": spec(2, "more"), "envelope-1.json": answer(1, "go", "done"), "envelope.json": failure(2, "more")},
			[]string{"go: done", "more: ! no account"},
		},
		{
			"the next turn works", 2,
			map[string]string{"spec.json": spec(2, "more"), "envelope-1.json": answer(1, "go", "done")},
			[]string{"go: done", "more: -"},
		},
		{
			"the broker died before it moved the envelope", 2,
			map[string]string{"spec.json": spec(1, "go"), "envelope.json": answer(1, "go", "done")},
			[]string{"go: done", ": -"},
		},
		{
			"an unreadable one between", 3,
			map[string]string{"envelope-1.json": answer(1, "go", "one"), "envelope-2.json": "{", "envelope.json": answer(3, "last", "three")},
			[]string{"go: one", ": ? cannot be read", "last: three"},
		},
		{"a long answer", 1, map[string]string{"envelope.json": answer(1, "go", long)}, []string{"go: " + long[:MaxTurnAnswer] + "…"}},
	} {
		t.Run("PGE-05 "+tt.name, func(t *testing.T) {
			home := t.TempDir()
			folder := filepath.Join(home, "jobs", name)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, text := range tt.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := []string{}
			for i, turn := range (Files{Home: home, Archive: filepath.Join(home, "archive")}).Turns(job.Job{Name: name, Run: tt.run, Prompt: "go", Owner: "api"}) {
				if turn.Run != i+1 {
					t.Errorf("turn %d is run %d", i, turn.Run)
				}
				if diff := cmp.Diff(by[turn.Message], turn.By, cmpopts.EquateEmpty()); diff != "" && tt.name != "of an older runner" {
					t.Errorf("the authors of turn %d (-want +got):\n%s", turn.Run, diff)
				}
				got = append(got, turn.Message+": "+endOf(turn))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the turns (-want +got):\n%.2000s", diff)
			}
		})
	}
}

// endOf returns the end of a turn in a few words.
func endOf(turn Turn) string {
	switch {
	case strings.Contains(turn.Problem, "cannot be read"):
		return "? cannot be read"
	case turn.Result == nil:
		return "-"
	case turn.Result.Error != "":
		return "! " + turn.Result.Error
	}
	text, _, cut := strings.Cut(turn.Result.Result, "\n\n[Bridge shows ")
	if cut {
		text += "…"
	}
	return text
}

func TestPGE_05_TheNewestTurnsOfManyAreShown(t *testing.T) {
	turns := Files{Home: t.TempDir(), Archive: t.TempDir()}.Turns(job.Job{Name: "claude-job-0a1b2c3d", Run: 120, Prompt: "go"})
	if first, last := turns[0].Run, turns[len(turns)-1].Run; len(turns) != MaxTurns || first != 71 || last != 120 {
		t.Error(fmt.Sprint(len(turns), first, last))
	}
}
