package app

import "time"

// Notice is what a desktop notification says. Its text is fixed: no agent's
// words, and nothing about the owner's work, show up on a locked or shared
// screen (DSK-07).
type Notice struct {
	Title, Text string
	Place       string // what a click opens
}

// texts are all that a notice may say.
var texts = map[Kind]Notice{
	SessionWaits:  {"A session waits for you", "Open Bridge to see which one.", "#/needs"},
	StorageBroken: {"Bridge's storage needs attention", "Open Bridge to see what was found.", storagePlace},
	WorkFailed:    {"A backup or check failed", "Open Bridge to see the storage.", storagePlace},
}

// Limits of notices, all ours: more would be a nuisance, and everything is on
// the tray besides.
const (
	noticesAtMost = 5
	noticesWithin = 10 * time.Minute
)

// announcer decides which needs are told. The zero value has told nothing.
type announcer struct {
	told map[string]bool // needs that are there and were told
	at   []time.Time     // of the notices within noticesWithin
}

// due returns one notice for each kind of which a new need came up since the
// last call. A need that went away and comes back is new. Beyond the limit it
// stays silent, and tells nothing of it later.
func (a *announcer) due(needs []Need, now time.Time) []Notice {
	there := map[string]bool{}
	fresh := map[Kind]bool{}
	var kinds []Kind
	for _, need := range needs {
		id := string(need.Kind) + " " + need.ID
		there[id] = true
		if !a.told[id] && !fresh[need.Kind] {
			fresh[need.Kind] = true
			kinds = append(kinds, need.Kind)
		}
	}
	a.told = there
	var notices []Notice
	for _, kind := range kinds {
		if a.take(now) {
			notices = append(notices, texts[kind])
		}
	}
	return notices
}

// take counts one notice and reports whether there was room for it.
func (a *announcer) take(now time.Time) bool {
	for len(a.at) > 0 && now.Sub(a.at[0]) >= noticesWithin {
		a.at = a.at[1:]
	}
	if len(a.at) == noticesAtMost {
		return false
	}
	a.at = append(a.at, now)
	return true
}
