package bridge

import (
	"fmt"
	"time"
)

// Span says how long d is for a glance, in the largest unit that fits; less than
// a minute is "a moment".
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "a moment"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
