package runs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// Words returns the runner's observation in one line, to help judge the answer, or ""
// for a run without one. It counts files if there was a base to compare with.
func (e Evidence) Words() string {
	if e.DurationMs == 0 && e.Tokens == 0 && len(e.Commands) == 0 && len(e.Files) == 0 {
		return ""
	}
	did := []string{"ran " + countedOrNo(len(e.Commands), "command")}
	failed := 0
	for _, command := range e.Commands {
		if command.Exit != nil && *command.Exit != 0 {
			failed++
		}
	}
	if failed > 0 {
		did[0] += fmt.Sprintf(", %d failed,", failed)
	}
	if e.Base != "" {
		did = append(did, "changed "+countedOrNo(len(e.Files), "file"))
	}
	var spent []string
	if e.Tokens > 0 {
		unit := " tokens"
		if e.Tokens == 1 {
			unit = " token"
		}
		spent = append(spent, grouped(e.Tokens)+unit)
	}
	if e.CostUSD > 0 {
		spent = append(spent, dollars(e.CostUSD))
	}
	spent = append(spent, bridge.Span(time.Duration(e.DurationMs)*time.Millisecond))
	return "It " + strings.TrimSuffix(strings.Join(did, " and "), ",") + "; " + strings.Join(spent, ", ") + "."
}

func countedOrNo(n int, noun string) string {
	if n == 0 {
		return "no " + noun + "s"
	}
	return bridge.Counted(n, noun)
}

// grouped returns n with a comma at each thousand.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// dollars returns the cost as text, as the agent computes it.
func dollars(usd float64) string {
	if usd < 0.01 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}
