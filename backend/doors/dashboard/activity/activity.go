// Package activity is the dashboard's part about recent events: the sessions'
// working times, the ways of messages and wakes, and hourly counts (row DSK-06). It
// is bounded in time and number, and marks omissions.
package activity

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

const (
	// longest is how far back a picture goes; hours is the number of hourly counts.
	longest = 8 * time.Hour
	hours   = 24
	// maxMessages and maxWays bound an answer: a message to all sessions has a way to each.
	maxMessages = 2000
	maxWays     = 4000
	// cachedFor is how long counts are cached.
	cachedFor = time.Minute
)

// Reader is the source of the messages. All methods are safe for concurrent use.
type Reader interface {
	// Since returns the newest messages sent at a time or later, newest first.
	Since(ctx context.Context, since int64, limit int) ([]mail.HistoryRow, error)
	// Hours returns counts for each of the last hours.
	Hours(ctx context.Context, now int64, hours int) ([]store.Hour, error)
}

// Options configures an Activity. All fields are required.
type Options struct {
	Reader func(context.Context) (Reader, error)
	// Names says who is who, and Work when they were at work: nil without a broker.
	Names func(context.Context) (name func(peerID string) string, err error)
	Work  func(since int64) *api.Work
	Now   func() time.Time
}

// Activity serves the recent events.
type Activity struct {
	opts Options

	mu      sync.Mutex // guards counted, and serializes counting
	counted dto.Hours
	at      time.Time
}

// New returns an Activity with these options.
func New(opts Options) *Activity { return &Activity{opts: opts} }

// Show answers GET /api/activity.
func (a *Activity) Show(w http.ResponseWriter, r *http.Request) error {
	values, err := httpjson.Params(r)
	if err != nil {
		return err
	}
	since, ok := httpjson.WholeNumber(values.Get("since"))
	if !ok {
		return bridge.Errorf(bridge.Invalid, "since must be a time in epoch milliseconds")
	}
	now := a.opts.Now()
	activity := dto.Activity{Since: max(since, now.Add(-longest).UnixMilli()), At: now.UnixMilli(), Work: map[string][]dto.Span{}}
	if err := a.messages(r.Context(), &activity); err != nil {
		return err
	}
	if work := a.opts.Work(activity.Since); work != nil {
		activity.Began = &work.Began
		for id, times := range work.Sessions {
			activity.Work[id] = dto.Each(times.Spans, spanShape)
			if times.Whole > *activity.Began {
				activity.Began = &times.Whole
			}
		}
	}
	return httpjson.WriteJSON(w, activity)
}

func (a *Activity) messages(ctx context.Context, activity *dto.Activity) error {
	reader, err := a.opts.Reader(ctx)
	if err != nil {
		return err
	}
	name, err := a.opts.Names(ctx)
	if err != nil {
		return err
	}
	rows, err := reader.Since(ctx, activity.Since, maxMessages+1)
	if err != nil {
		return fmt.Errorf("read the last messages: %w", err)
	}
	rows, activity.Complete = bounded(rows)
	activity.Messages = dto.Each(rows, func(row mail.HistoryRow) dto.Mark { return markShape(row, name) })
	return nil
}

// bounded omits the oldest messages over the limits.
func bounded(rows []mail.HistoryRow) (newest []mail.HistoryRow, complete bool) {
	ways := 0
	for i, row := range rows {
		if ways += len(row.Deliveries); i == maxMessages || ways > maxWays {
			return rows[:i], false
		}
	}
	return rows, true
}

func markShape(row mail.HistoryRow, name func(string) string) dto.Mark {
	return dto.Mark{
		ID: row.ID, From: row.From.Name, Agent: row.From.Agent, To: row.To, Kind: dto.KindOf(row), At: row.CreatedAt, Words: row.Body,
		Ways: dto.Each(row.Deliveries, func(d mail.Delivery) dto.Way {
			way := dto.Way{Name: name(d.Recipient), Stage: d.Stage()}
			if d.Woken.Happened() {
				way.Woken = &d.Woken.At
			}
			if read := d.Read(); read.Happened() {
				way.Read = &read.At
			}
			return way
		}),
	}
}

func spanShape(s api.Span) dto.Span {
	span := dto.Span{From: s.From}
	if s.To != 0 {
		span.To = &s.To
	}
	return span
}

// Hours answers GET /api/activity/hours.
func (a *Activity) Hours(w http.ResponseWriter, r *http.Request) error {
	counted, err := a.count(r.Context())
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, counted)
}

// count reads each message of a day, so its result is cached.
func (a *Activity) count(ctx context.Context) (dto.Hours, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opts.Now()
	if age := now.Sub(a.at); !a.at.IsZero() && age >= 0 && age < cachedFor {
		return a.counted, nil
	}
	reader, err := a.opts.Reader(ctx)
	if err != nil {
		return dto.Hours{}, err
	}
	totals, err := reader.Hours(ctx, now.UnixMilli(), hours)
	if err != nil {
		return dto.Hours{}, fmt.Errorf("count the last hours' messages: %w", err)
	}
	a.counted = dto.Hours{Hours: dto.Each(totals, func(h store.Hour) dto.Hour { return dto.Hour(h) })}
	a.at = now
	return a.counted, nil
}
