package remote

import (
	"time"

	"bridge/backend/core/bridge"
)

// The limits of one pair's requests in any minute (RMT-14).
const (
	MaxRequests = 600
	MaxSpawns   = 10
	windowSpan  = time.Minute
)

// Window counts one pair's requests in the last minute, as a sliding window. It is not
// safe for concurrent use.
type Window struct {
	requests, spawns []time.Time // of the last minute, oldest first
}

// Take counts a request, or refuses it with Busy without counting it. Each spawn
// attempt counts, regardless of its outcome.
func (w *Window) Take(operation Operation, now time.Time) error {
	w.requests, w.spawns = recent(w.requests, now), recent(w.spawns, now)
	if len(w.requests) >= MaxRequests {
		return busy(MaxRequests, "requests", w.requests[0], now)
	}
	if operation == Spawn && len(w.spawns) >= MaxSpawns {
		return busy(MaxSpawns, "jobs", w.spawns[0], now)
	}
	w.requests = append(w.requests, now)
	if operation == Spawn {
		w.spawns = append(w.spawns, now)
	}
	return nil
}

func busy(limit int, what string, oldest, now time.Time) error {
	return bridge.Errorf(bridge.Busy, "a paired PC may ask for %d %s a minute: try again in %s", limit, what, bridge.Span(oldest.Add(windowSpan).Sub(now)))
}

// recent removes times older than a minute. After a clock moved back, no time counts
// for longer than a minute.
func recent(times []time.Time, now time.Time) []time.Time {
	newer := times[:0]
	for _, at := range times {
		if age := now.Sub(at); age >= 0 && age < windowSpan {
			newer = append(newer, at)
		}
	}
	return newer
}
