package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
)

// said reads the job's transcript; a line that is none fails the test.
func (b *bench) transcript() (lines []runs.Said) {
	b.Helper()
	for line := range strings.Lines(readFile(b.T, b.home, "runs", jobName+".jsonl")) {
		statement, ok := runs.DecodeSaid([]byte(line))
		if !ok || !strings.HasSuffix(line, "\n") {
			b.Fatalf("the transcript has %q", line)
		}
		lines = append(lines, statement)
	}
	return lines
}

func words(lines []runs.Said) string {
	var text []string
	for _, line := range lines {
		text = append(text, strings.TrimSpace(string(line.Kind)+" "+line.Tool+string(line.State)+string(line.Answer)+": "+strings.TrimSpace(line.Text)))
	}
	return strings.Join(text, "\n")
}

// What was said in a job's runs is kept with the run, apart from the CLI's own store.
func TestJOB_25_WhatWasSaidIsInTheTranscript(t *testing.T) {
	b := newBench(t)
	gate := b.work + "/gate"
	b.spec("run echo hello\nwait " + gate + "\nsay first")
	done := b.begin()
	approval := b.broker.asked(b, 1)
	if refused := b.broker.order(b, api.Order{ID: "0a1b2c3d-0000-4000-8000-000000000002", Kind: api.OrderMessage, Text: "say second"}); refused != nil {
		t.Fatal(refused)
	}
	if refused := b.broker.order(b, api.Order{ID: "o1", Kind: api.OrderAnswer, Approval: approval.ID, Decision: job.Allow, By: "boss", Reason: "go on"}); refused != nil {
		t.Fatal(refused)
	}
	b.touch(gate)
	b.ended(done)
	want := strings.Join([]string{
		"prompt : run echo hello\nwait " + gate + "\nsay first", "call Bash: echo hello", "question Bash: echo hello", "message : say second",
		"answer allow: go on", "result done: hello", "text : first", "text : second",
	}, "\n")
	if got := words(b.transcript()); got != want {
		t.Errorf("the transcript says\n%s\nwant\n%s", got, want)
	}
	first := len(b.transcript())
	if err := os.Rename(filepath.Join(b.folder, "envelope.json"), filepath.Join(b.folder, "envelope-1.json")); err != nil {
		t.Fatal(err)
	}
	lines := b.transcript()
	if len(lines) != first || lines[0].Run != 1 || lines[0].By != "boss" || lines[0].At == 0 {
		t.Errorf("the transcript is %+v", lines)
	}
	b.spec("say third", func(s *runs.SpecFile) { s.Run = 2 })
	b.run()
	if more := b.transcript()[first:]; words(more) != "prompt : say third\ntext : third" || more[0].Run != 2 {
		t.Errorf("the second run adds %+v", more)
	}
}

// A line that a crash or a full disk cut off spoils none that come after it.
func TestJOB_25_ATornLineIsClosedBeforeTheNext(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x.jsonl")
	if err := os.WriteFile(path, []byte(`{"kind":"text"}`+"\n"+`{"kind":"te`), 0o600); err != nil {
		t.Fatal(err)
	}
	transcript, err := openTranscript(folder, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := transcript.add(runs.Said{Kind: runs.SaidText, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := transcript.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for line := range strings.Lines(string(data)) {
		if statement, ok := runs.DecodeSaid([]byte(line)); ok {
			texts = append(texts, statement.Text)
		}
	}
	if strings.Join(texts, "|") != "|one|two" {
		t.Errorf("the lines are %q", data)
	}
}

// fitful is a file of which some writes take a part only.
type fitful struct {
	*os.File
	takes []int // of the next writes, in bytes; less than nothing is all
}

func (f *fitful) Write(data []byte) (int, error) {
	if len(f.takes) == 0 {
		return f.File.Write(data)
	}
	most := f.takes[0]
	if f.takes = f.takes[1:]; most < 0 || most >= len(data) {
		return f.File.Write(data)
	}
	n, err := f.File.Write(data[:most])
	return n, errors.Join(err, syscall.ENOSPC)
}

// Whatever part of a line the disk takes, every line is there once, whole and in order,
// as soon as it takes more.
func TestJOB_25_ALineThatIsCutComesAgainWhole(t *testing.T) {
	long := strings.Repeat("a", 500)
	line, err := runs.Said{Kind: runs.SaidText, Text: "0" + long}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for what, takes := range map[string][]int{
		"nothing":                        {0},
		"nothing for long":               {0, 0, 0},
		"a byte":                         {1},
		"all but the newline":            {len(line) - 1},
		"a line and a part of the next":  {0, len(line) + 7},
		"two lines and nothing more":     {0, 0, 2 * len(line)},
		"a part, then not the newline":   {9, 0, 0},
		"a part, then the newline alone": {9, -1, 0},
		"parts, again and again":         {9, -1, 9, -1, 9, -1, 9},
		"the end alone":                  {-1, -1, -1, 30},
	} {
		folder := t.TempDir()
		transcript, err := openTranscript(folder, "x")
		if err != nil {
			t.Fatal(err)
		}
		transcript.file = &fitful{File: transcript.file.(*os.File), takes: takes}
		failed := 0
		for i := range 4 {
			if transcript.add(runs.Said{Kind: runs.SaidText, Text: strconv.Itoa(i) + long}) != nil {
				failed++
			}
		}
		if err := transcript.close(); err != nil || failed == 0 {
			t.Errorf("%s: %d were refused, and at the end %v", what, failed, err)
		}
		data, err := os.ReadFile(filepath.Join(folder, "x.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		texts := ""
		for line := range strings.Lines(string(data)) {
			statement, ok := runs.DecodeSaid([]byte(line))
			if !ok || len(statement.Text) != 1+len(long) {
				t.Errorf("%s: a line is %.60q", what, line)
				continue
			}
			texts += statement.Text[:1]
		}
		if texts != "0123" {
			t.Errorf("%s: the lines are %s", what, texts)
		}
	}
}

func TestJOB_25_WhatWaitsForADiskIsBounded(t *testing.T) {
	transcript, err := openTranscript(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	file := &fitful{File: transcript.file.(*os.File)}
	transcript.file = file
	long, lost := strings.Repeat("a", 1<<20), 0
	for range 40 {
		file.takes = []int{0}
		if errors.Is(transcript.add(runs.Said{Kind: runs.SaidText, Text: long}), errLost) {
			lost++
		}
	}
	if len(transcript.waiting) > 16<<20 || len(transcript.waiting) < 15<<20 || lost != 24 {
		t.Errorf("%d bytes wait, and %d lines are lost", len(transcript.waiting), lost)
	}
	if err := transcript.close(); err != nil {
		t.Fatal(err)
	}
}

func TestJOB_25_WordsAreNeverCutAndWhatToolsGiveIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 300<<10)
	for kind, want := range map[runs.SaidKind]int{runs.SaidText: len(long), runs.SaidPrompt: len(long), runs.SaidResult: 262_144} {
		data, err := runs.Said{Kind: kind, Text: long}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		statement, ok := runs.DecodeSaid(data)
		if !ok || len(statement.Text) != want || statement.Cut != (want < len(long)) {
			t.Errorf("%s keeps %d of %d bytes, cut %t", kind, len(statement.Text), len(long), statement.Cut)
		}
	}
}
