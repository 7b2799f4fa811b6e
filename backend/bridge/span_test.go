package bridge

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                   "a moment",
		time.Minute - 1:                "a moment",
		time.Minute:                    "1 min",
		time.Hour - 1:                  "59 min",
		time.Hour:                      "1 h",
		48*time.Hour - 1:               "47 h",
		48 * time.Hour:                 "2 days",
		10*24*time.Hour + 23*time.Hour: "10 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
	}
}
