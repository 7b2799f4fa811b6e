package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bridge/backend/platform/ipc"
	"bridge/build/bench/chromium"
)

// page measures the Overview of 56 sessions and 2,500 messages in Chromium: its first
// paint, the processor time of the page for an event and at rest, and how often it asks for
// the state when it is loaded (PGE-12). It needs node and the packages of the page.
func (l *lab) page(ctx context.Context) (err error) {
	b, err := l.start(ctx, "page")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	const members, stored = 56, 2500
	names := make([]string, members)
	for i := range names {
		names[i] = fmt.Sprintf("member-%d", i)
	}
	sessions, err := b.session(ctx, names...)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, stored); err != nil {
		return err
	}
	view, err := chromium.Open(ctx, b.launch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	loads, idle, events := 15, 30, 150
	if l.quick {
		loads, idle, events = 5, 10, 30
	}
	loaded, err := view.Ask(chromium.Request{Do: "load", Times: loads})
	if err != nil {
		return err
	}
	rested, err := view.Ask(chromium.Request{Do: "idle", Seconds: idle})
	if err != nil {
		return err
	}
	if _, err := view.Ask(chromium.Request{Do: "begin"}); err != nil {
		return err
	}
	began := time.Now()
	for i := range events {
		if err := sendTo(ctx, sessions[i%members], names[(i+1)%members]); err != nil {
			return err
		}
		ipc.Pause(ctx, 300*time.Millisecond) // each event is drawn by itself
	}
	busy, err := view.Ask(chromium.Request{Do: "end"})
	if err != nil {
		return err
	}
	slices.Sort(loaded.Paints)
	paint, share := loaded.Paints[len(loaded.Paints)/2], rested.CPU/float64(idle*10)
	event := (busy.CPU - rested.CPU/float64(idle)*time.Since(began).Seconds()) / float64(events)
	l.add(row{what: "page of 56 sessions: first contentful paint", measured: fmt.Sprintf("%.0f ms, the median of %d", paint, loads), value: paint, goal: "<= 150 ms", bound: 150})
	l.add(row{what: "page of 56 sessions: processor an event", measured: fmt.Sprintf("%.1f ms, the mean of %d", event, events), value: event, goal: "<= 30 ms", bound: 30})
	l.add(row{what: "page of 56 sessions: processor at rest", measured: fmt.Sprintf("%.2f %% of a core over %d s", share, idle), value: share, goal: "<= 1 %", bound: 1})
	l.add(row{what: "page of 56 sessions: state fetched on load", measured: fmt.Sprintf("%d times", loaded.States), value: float64(loaded.States), goal: "<= 1", bound: 1})
	return nil
}
