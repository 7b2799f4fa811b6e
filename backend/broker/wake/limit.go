package wake

import "time"

// together is how long after a wake further wakes belong to it (QUI-03).
const together = time.Minute

// Limit bounds how often one session is woken within an hour (QUI-03). The zero value has
// seen no wake. The owner's messages are not bounded: the caller does not ask for them.
type Limit struct {
	wakes []int64 // when each wake of the last hour began, Unix epoch milliseconds
}

// Allows reports whether a wake at now is one of at most an hour. A wake within a minute of
// the last one belongs to that one. most 0 means no limit.
func (l *Limit) Allows(now int64, most int) bool {
	l.forget(now)
	return most == 0 || l.belongs(now) || len(l.wakes) < most
}

// Woken records a wake at now.
func (l *Limit) Woken(now int64) {
	l.forget(now)
	if !l.belongs(now) {
		l.wakes = append(l.wakes, now)
	}
}

// FreeAt returns when the next wake is allowed, in Unix epoch milliseconds: now if it is.
func (l *Limit) FreeAt(now int64, most int) int64 {
	if l.Allows(now, most) {
		return now
	}
	return l.wakes[len(l.wakes)-most] + time.Hour.Milliseconds()
}

// belongs reports whether the last wake began less than a minute ago.
func (l *Limit) belongs(now int64) bool {
	return len(l.wakes) > 0 && now-l.wakes[len(l.wakes)-1] < together.Milliseconds()
}

// forget drops the wakes that are an hour old. A clock that was set back forgets those of
// the future: otherwise it would silence the session for long.
func (l *Limit) forget(now int64) {
	kept := l.wakes[:0]
	for _, at := range l.wakes {
		if at <= now && now-at < time.Hour.Milliseconds() {
			kept = append(kept, at)
		}
	}
	l.wakes = kept
}
