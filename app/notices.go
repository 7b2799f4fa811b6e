package app

import (
	"maps"
	"slices"
	"time"

	"bridge/backend/core/needs"
)

// Notice is what a desktop notification says. Its text is fixed: no agent's
// words, and nothing about the owner's work, show up on a locked or shared
// screen (DSK-07).
type Notice struct {
	Title, Text string
	Place       string // what a click opens
}

// texts holds the texts of all notices. The page's notices have the same texts. A sort
// without a text has no notice: the notice of a finished job stands for its review.
var texts = map[needs.Sort]Notice{
	needs.Approval: {"An agent asks for permission", "Open Bridge to see the request.", needsPlace},
	needs.Question: {"A session has a question", "Open Bridge to answer it.", needsPlace},
	needs.JobAsks:  {"A job waits for you", "Open Bridge to see the reason.", needsPlace},
	needs.JobEnded: {"A job has failed", "Open Bridge to see the error.", needsPlace},
	needs.Mail:     {"A session waits for you", "Open Bridge to see which session.", needsPlace},
	needs.Exchange: {"Two sessions only write each other", "Open Bridge to let them go on, or to pause them.", needsPlace},
	needs.Expired:  {"A message expired unread", "Open Bridge to see which message.", needsPlace},
	needs.Storage:  {"Bridge's storage needs attention", "Open Bridge to see the finding.", "#/storage"},
	needs.Agent:    {"An agent is no longer connected", "Open Bridge to connect it again.", "#/settings"},
	needs.Routes:   {"A route into an agent is broken", "Open Bridge to see which route.", "#/settings"},
	jobFinished:    {"A job has finished", "Open Bridge to see its result.", "#/runs"},
	workFailed:     {"A backup or check failed", "Open Bridge to see the storage.", "#/storage"},
}

const needsPlace = "#/needs"

// Limits of notices, all ours: more would be a nuisance, and everything is on
// the tray besides.
const (
	noticesAtMost = 5
	noticesWithin = 10 * time.Minute
)

// announcer decides which changes are announced. The zero value has announced none.
type announcer struct {
	announced map[string]bool // what is there and was told
	at        []time.Time     // of the notices within noticesWithin
}

// due returns one notice for each sort with a new item since the last call. An item that was
// gone and came back is new, unless the list was incomplete meanwhile (complete is false). Notices
// beyond the limit are dropped. In quiet hours there are none; afterwards, items that are
// still in the list are announced (NED-05).
func (a *announcer) due(items []needs.Item, complete, quiet bool, now time.Time) []Notice {
	if quiet {
		return nil
	}
	var notices []Notice
	for _, sort := range a.fresh(items, complete) {
		if text, has := texts[sort]; has && a.take(now) {
			notices = append(notices, text)
		}
	}
	return notices
}

// fresh returns each sort with an item that was not announced yet. All items then count as
// announced.
func (a *announcer) fresh(items []needs.Item, complete bool) (sorts []needs.Sort) {
	now := map[string]bool{}
	if !complete {
		maps.Copy(now, a.announced)
	}
	for _, item := range items {
		id := string(item.Sort) + " " + item.ID
		now[id] = true
		if item.Exchange != nil && item.Exchange.Paused {
			continue // the owner did that
		}
		if !a.announced[id] && !slices.Contains(sorts, item.Sort) {
			sorts = append(sorts, item.Sort)
		}
	}
	a.announced = now
	return sorts
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
