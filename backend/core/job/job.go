package job

import (
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// ACP is the kind of a job whose agent speaks the Agent Client Protocol (JOB-24). It is
// only for jobs: no session has this kind.
const ACP bridge.AgentKind = "acp"

// Kinds lists the kinds of jobs.
func Kinds() []bridge.AgentKind { return append(bridge.Kinds(), ACP) }

// The middle of a name shows whether a caller waits for the answer.
const (
	spawned  = "-job-"
	askedFor = "-ask-"
	hexLen   = 8
)

// Name returns a job's name: `<agent>-job-<8 hex>`, or `<agent>-ask-<8 hex>` if a
// caller waits for the answer (JOB-01). Only the first four bytes of random count.
func Name(kind bridge.AgentKind, ask bool, random [4]byte) string {
	const digits = "0123456789abcdef"
	middle := spawned
	if ask {
		middle = askedFor
	}
	name := []byte(string(kind) + middle)
	for _, b := range random {
		name = append(name, digits[b>>4], digits[b&15])
	}
	return string(name)
}

// ParseName splits a job's name. ok is false for any other name.
func ParseName(name string) (kind bridge.AgentKind, ask, ok bool) {
	for _, middle := range []string{spawned, askedFor} {
		before, hex, has := strings.Cut(name, middle)
		kind = bridge.AgentKind(before)
		if has && slices.Contains(Kinds(), kind) && isHex(hex) {
			return kind, middle == askedFor, true
		}
	}
	return "", false, false
}

// IsName reports whether name is the name of a job.
func IsName(name string) bool {
	_, _, ok := ParseName(name)
	return ok
}

// IsReporter reports whether from is the address in which Bridge reports the result, the
// questions and the progress of a job, also of one on a paired PC. The agent of the job
// sends its own messages from another id.
func IsReporter(from bridge.Address) bool {
	return IsName(from.ID[strings.LastIndexByte(from.ID, '/')+1:])
}

func isHex(text string) bool {
	return len(text) == hexLen && strings.Trim(text, "0123456789abcdef") == ""
}

// ParseAccess returns the level of that name. It fails with Invalid for any other name,
// and lists the choices.
func ParseAccess(raw string) (Access, error) {
	access := Access(raw)
	if slices.Contains([]Access{AccessRead, AccessAsk, AccessEdit}, access) {
		return access, nil
	}
	return "", bridge.Errorf(bridge.Invalid, "unknown access %q: use read, ask or edit", raw)
}

// The limits of jobs. Those that the owner can set have a range.
const (
	DefaultMaxJobs = 8  // JOB-09: running at once
	HighestMaxJobs = 50 // contract: max_subagents
	KeepFinished   = 200
	DefaultDepth   = 2 // JOB-22: a job of a session is at depth 1
	HighestDepth   = 3

	MaxTitleChars  = 120
	MaxModelChars  = 200     // ours
	MaxPromptChars = 100_000 // the limit of a message
	MaxNoteChars   = 200     // of report_progress
	MaxReasonChars = 4_000   // of an answer to an approval and of a hand-off
	MaxSendTo      = 100     // ours: grants of one job
	MaxHandoff     = 1_000   // jobs named in one hand-off

	MinTimeout = 10 * time.Second
	MaxTimeout = 24 * time.Hour
	MaxETA     = 24 * time.Hour
)
