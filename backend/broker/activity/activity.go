// Package activity records when sessions were at work, as spans of the last hours for a
// chart. It keeps them in memory only, limited in age and number, and states for each
// session since when they are complete. Turns has no lock: its owner has one.
package activity

import (
	"slices"

	"bridge/backend/platform/ipc/api"
)

const (
	// keep is how long a span is reported after its end, in milliseconds.
	keep = 8 * 60 * 60 * 1000
	// maxSpans limits the spans of one session, maxSessions the sessions. Sessions no
	// longer at work are removed first.
	maxSpans    = 500
	maxSessions = 1000
)

// Turns holds the spans by peer id. The zero value is empty.
type Turns struct{ lines map[string]*line }

// line holds one session's spans, oldest first; only the last may be open.
type line struct {
	spans        []api.Span
	completeFrom int64 // since when none is missing
}

// Note records that a session is at work, or idle, from a time on. Without a change it
// records nothing.
func (t *Turns) Note(id string, busy bool, at int64) {
	l := t.lines[id]
	if l == nil {
		if !busy {
			return
		}
		l = t.open(id, at)
	}
	last := len(l.spans) - 1
	switch atWork := last >= 0 && l.spans[last].To == 0; {
	case busy && !atWork:
		l.spans = append(l.spans, api.Span{From: at})
		l.bound(at)
	case !busy && atWork:
		l.spans[last].To = max(at, l.spans[last].From+1)
	}
}

func (t *Turns) open(id string, now int64) *line {
	if t.lines == nil {
		t.lines = map[string]*line{}
	}
	if len(t.lines) >= maxSessions {
		t.makeRoom(now)
	}
	l := &line{}
	t.lines[id] = l
	return l
}

// makeRoom removes sessions too old to report, else the one that has been idle longest.
func (t *Turns) makeRoom(now int64) {
	oldest, since := "", int64(0)
	for id, l := range t.lines {
		end := l.end()
		if end != 0 && end < now-keep {
			delete(t.lines, id)
		} else if end != 0 && (oldest == "" || end < since) {
			oldest, since = id, end
		}
	}
	if len(t.lines) >= maxSessions {
		delete(t.lines, oldest)
	}
}

// end returns when the last span ended, 0 while it is open.
func (l *line) end() int64 { return l.spans[len(l.spans)-1].To }

func (l *line) bound(now int64) {
	l.spans = slices.DeleteFunc(l.spans, func(s api.Span) bool { return s.To != 0 && s.To < now-keep })
	if over := len(l.spans) - maxSpans; over > 0 {
		l.completeFrom = l.spans[over-1].To
		l.spans = slices.Delete(l.spans, 0, over)
	}
}

// Move gives a session's spans to its new id. Spans of another session that had this id
// come before them.
func (t *Turns) Move(old, id string) {
	l := t.lines[old]
	if l == nil || old == id {
		return
	}
	delete(t.lines, old)
	if had := t.lines[id]; had != nil {
		had.closeAt(l.spans[0].From)
		l.spans, l.completeFrom = slices.Concat(had.spans, l.spans), max(had.completeFrom, l.completeFrom)
		slices.SortStableFunc(l.spans, func(a, b api.Span) int { return int(a.From - b.From) })
		l.bound(l.spans[len(l.spans)-1].From)
	}
	t.lines[id] = l
}

func (l *line) closeAt(at int64) {
	if last := &l.spans[len(l.spans)-1]; last.To == 0 {
		last.To = max(at, last.From+1)
	}
}

// Since returns for each session the spans that end after a time, by peer id.
func (t *Turns) Since(at int64) map[string]api.WorkTimes {
	times := map[string]api.WorkTimes{}
	for id, l := range t.lines {
		spans := slices.Clone(l.spans)
		spans = slices.DeleteFunc(spans, func(s api.Span) bool { return s.To != 0 && s.To < at })
		if len(spans) > 0 {
			times[id] = api.WorkTimes{Spans: spans, Whole: l.completeFrom}
		}
	}
	return times
}
