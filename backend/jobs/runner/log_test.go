package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// TestSEC_11_TheLogSaysWhatWasCutOfALine: with sizes.
func TestSEC_11_TheLogSaysWhatWasCutOfALine(t *testing.T) {
	for want, cut := range map[string]job.LineCut{
		"! A line of the agent has 60 MB: Bridge cut its long texts, and keeps 4.0 MB of it.": {Bytes: 60e6, Kept: 4e6},
		"! A line of the agent has 60 MB, more than Bridge reads: Bridge left it out.":        {Bytes: 60e6},
	} {
		if got := cutSentence(cut); got != want {
			t.Errorf("%+v says %q, want %q", cut, got, want)
		}
	}
}

// TestSEC_11_ARunWritesSoMuchIntoItsLog: the log says where it ends, once, and the next
// run has room of its own.
func TestSEC_11_ARunWritesSoMuchIntoItsLog(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x.log")
	for run := 1; run <= 2; run++ {
		log, err := openLog(folder, "x", 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			log.line(strings.Repeat("é", 499)) // 999 bytes
		}
		if err := log.close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if len(text) > run*10_300 || len(text) < run*9_000 || strings.Count(text, "(jobs.maxLogBytes)") != run || !strings.HasSuffix(text, "nothing more of this run is written here.\n") {
			t.Errorf("after run %d the log has %d bytes, which end %q", run, len(text), text[max(0, len(text)-120):])
		}
	}
}

func TestSEC_11_ALongTextIsWrittenWhole(t *testing.T) {
	folder := t.TempDir()
	log, err := openLog(folder, "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("日本語x", 100_000)
	log.line(text)
	log.line("broken \xff end\n\n")
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "x.log"))
	if err != nil || string(data) != text+"\nbroken \uFFFD end\n" || !utf8.Valid(data) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestSEC_11_ARunWritesSoMuchIntoItsTranscript(t *testing.T) {
	folder := t.TempDir()
	transcript, err := openTranscript(folder, "x")
	if err != nil {
		t.Fatal(err)
	}
	transcript.room = newRoom(10_000)
	for range 100 {
		if err := transcript.add(runs.Said{Kind: runs.SaidText, Run: 3, Text: strings.Repeat("x", 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := transcript.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "x.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var last runs.Said
	lines := 0
	for line := range strings.Lines(string(data)) {
		last, _ = runs.DecodeSaid([]byte(line))
		lines++
	}
	if len(data) > 10_500 || lines != 10 || last.Kind != runs.SaidEnd || last.Run != 3 || !strings.Contains(last.Text, "jobs.maxLogBytes") {
		t.Errorf("%d bytes in %d lines, at last %+v", len(data), lines, last)
	}
}

func TestSEC_11_TheCommandsOfARunAreBounded(t *testing.T) {
	saw := newEvidence()
	for range 40 {
		saw.ran(runs.Command{Command: strings.Repeat("x", 1<<20)})
	}
	if n := len(saw.commands); n != 8 || !strings.Contains(saw.commands[n-1].Command, "not listed") {
		t.Errorf("%d commands are listed, at last %.80q", n, saw.commands[n-1].Command)
	}
}
