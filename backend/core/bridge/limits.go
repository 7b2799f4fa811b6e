package bridge

import "time"

// Limits of the specification (seed 8) and of requirements.md.
const (
	MaxBodyChars      = 100_000 // MSG-10: Unicode characters of a message
	MaxOwnerBodyChars = 32_000  // CHT-01
	MaxNameChars      = 64      // MSG-10
	MaxTopicChars     = 200     // DEC-03
	MaxDecisionChars  = 8_000   // DEC-03
	MaxQueryChars     = 1_000   // DEC-20
	MaxScopeSessions  = 100     // ours: addresses in one scope
	MaxPathChars      = 4_096   // ours: PATH_MAX
	MaxIDChars        = 128     // ours: message, conversation and host session ids

	DecisionHop    = 100 // DEC-11: the highest hop limit, so it never wakes
	DefaultMaxHops = 6   // MSG-07
	HighestMaxHops = 100

	DefaultWakesPerHour   = 30          // QUI-03
	DefaultBetweenWakes   = time.Minute // QUI-03
	HighestWakesPerHour   = 3600        // ours
	HighestSecondsBetween = 3600        // ours
	DefaultExchange       = 8           // QUI-02
	HighestExchange       = 1000        // ours

	NoteTopics      = 5   // DEC-15
	NoteTextChars   = 160 // DEC-15
	RecentMessages  = 200 // contract: newest rows in GET /api/state
	MaxHistoryLimit = 1000

	// MaxFrameBytes limits one frame on the local socket: the largest body as the
	// longest JSON escapes, and the envelope.
	MaxFrameBytes = 4 << 20

	// StoreVersion is the newest schema step of bridge.db that this build knows. It is
	// in this package for code that writes next to a store without opening it.
	StoreVersion = 9

	MaxWait = 110 * time.Second // contract: wait_for_message timeout_sec
)
