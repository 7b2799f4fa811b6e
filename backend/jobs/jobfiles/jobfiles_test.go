package jobfiles

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/storage/store"
)

// kept keeps what is kept of a transcript.
type kept struct {
	upto  int64
	lines []store.TranscriptLine
}

func (k *kept) TranscriptUpto(context.Context, string) (int64, bool, error) { return k.upto, true, nil }

func (k *kept) KeepTranscript(_ context.Context, piece store.Transcript) error {
	k.upto, k.lines = piece.Upto, append(k.lines, piece.Lines...)
	return nil
}

// TestSEC_11_ALineThatIsTooLongIsPassedOver: the lines around it are found at their places.
func TestSEC_11_ALineThatIsTooLongIsPassedOver(t *testing.T) {
	home := t.TempDir()
	line := func(text string) string {
		data, err := runs.Said{Kind: runs.SaidText, Text: text}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first, long := line("first"), `{"kind":"text","text":"`+strings.Repeat("x", maxLineBytes)+"\"}\n"
	old := `{"kind":"text","text":"` + strings.Repeat("o", 3<<20) + "\"}\n" // of a runner that wrote words whole
	text := first + long + old + line("last") + "not finished"
	if err := os.MkdirAll(filepath.Join(home, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "runs", "claude-job-0a1b2c3d.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var to kept
	if err := Keep(t.Context(), &to, home, job.Job{Name: "claude-job-0a1b2c3d"}); err != nil {
		t.Fatal(err)
	}
	if len(to.lines) != 3 || to.lines[0].Body != "first" || to.lines[0].Offset != 0 || len(to.lines[1].Body) != 3<<20 ||
		to.lines[2].Body != "last" || to.lines[2].Offset != int64(len(first)+len(long)+len(old)) || to.upto != int64(len(text)-len("not finished")) {
		t.Errorf("%d lines are kept, up to %d of %d", len(to.lines), to.upto, len(text))
	}
}
