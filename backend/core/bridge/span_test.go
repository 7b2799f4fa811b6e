package bridge

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPageAndProgramSayTheSame keeps Go and the page in step: the page's tests
// read the same tables.
func TestPageAndProgramSayTheSame(t *testing.T) {
	for file, say := range map[string]func(int64) string{
		"spans.json":  func(ms int64) string { return Span(time.Duration(ms) * time.Millisecond) },
		"sizes.json":  Size,
		"counts.json": func(n int64) string { return Counted(int(n), "message") },
	} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var rows []row
		if err := json.Unmarshal(data, &rows); err != nil || len(rows) == 0 {
			t.Fatalf("%s: %d rows, %v", file, len(rows), err)
		}
		for _, r := range rows {
			if got := say(r.given); got != r.want {
				t.Errorf("%s: %d is said as %q, want %q", file, r.given, got, r.want)
			}
		}
	}
}

// row is [given, want] in the tables.
type row struct {
	given int64
	want  string
}

func (r *row) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &[]any{&r.given, &r.want}); err != nil {
		return fmt.Errorf("%s: %w", data, err)
	}
	return nil
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Hour:                     "just now",
		time.Minute - time.Millisecond: "just now",
		time.Minute:                    "1 min ago",
		72 * time.Hour:                 "3 d ago",
	} {
		if got := Ago(now.Add(-d).UnixMilli(), now); got != want {
			t.Errorf("Ago of %v = %q, want %q", d, got, want)
		}
	}
	if got := Span(-time.Second); got != "0 s" {
		t.Errorf("Span of a time to come = %q", got)
	}
}
