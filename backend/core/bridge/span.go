package bridge

import (
	"fmt"
	"strings"
	"time"
)

// UnixMillis is a time in milliseconds since 1970-01-01 UTC. A JSON member of this type
// is a number.
type UnixMillis = int64

// Durations and sizes as short text. The page has the same functions: tests compare
// both with the tables in testdata.

// Span returns d as text in the largest unit that fits.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, d)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// Ago returns as text how long ago a time in Unix milliseconds was. The text stays
// visible for a while, so it omits seconds.
func Ago(at int64, now time.Time) string {
	age := now.Sub(time.UnixMilli(at))
	if age < time.Minute {
		return "just now"
	}
	return Span(age) + " ago"
}

// Size returns n bytes as text.
func Size(n int64) string {
	const step, units = 1000, "kMGT"
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/step, 0
	for value >= step-0.5 && unit < len(units)-1 { // 999.5 would be displayed as 1000
		value /= step
		unit++
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %cB", value, units[unit])
	}
	return fmt.Sprintf("%.0f %cB", value, units[unit])
}

// Counted returns "1 message" or "3 messages", "1 process" or "3 processes".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
