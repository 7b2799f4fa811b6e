package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// told is a reader that has so many messages, each to so many sessions.
type told struct {
	messages, ways int
	since          int64 // what was asked for last
	counts         int   // how often was counted
}

func (r *told) Since(_ context.Context, since int64, limit int) (rows []mail.HistoryRow, err error) {
	r.since = since
	for i := range min(limit, r.messages) {
		row := mail.HistoryRow{ID: fmt.Sprint("m", i), To: "*"}
		for w := range r.ways {
			row.Deliveries = append(row.Deliveries, mail.Delivery{Message: bridge.Message{Recipient: fmt.Sprint("p", w)}})
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (r *told) Hours(context.Context, int64, int) ([]store.Hour, error) {
	r.counts++
	return []store.Hour{{From: 1, Messages: r.counts, Wakes: 2}}, nil
}

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func activityOf(reader *told, work *api.Work, now *time.Time) *Activity {
	return New(Options{
		Reader: func(context.Context) (Reader, error) { return reader, nil },
		Names: func(context.Context) (func(string) string, error) {
			return func(id string) string { return "name of " + id }, nil
		},
		Work: func(int64) *api.Work { return work },
		Now:  func() time.Time { return *now },
	})
}

func ask[T any](t *testing.T, serve func(http.ResponseWriter, *http.Request) error, query string) (answer T, err error) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/activity"+query, nil)
	if err = serve(w, r); err != nil {
		return answer, err
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer, nil
}

func TestDSK_06_ActivityIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name           string
		messages, ways int
		want           int
		complete       bool
	}{
		{"as many as there may be", 2000, 1, 2000, true},
		{"one more", 2001, 1, 2000, false},
		{"as many ways", 40, 100, 40, true},
		{"too many ways", 41, 100, 40, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ask[dto.Activity](t, activityOf(&told{messages: tt.messages, ways: tt.ways}, nil, &noon).Show, "?since=0")
			if err != nil || len(got.Messages) != tt.want || got.Complete != tt.complete {
				t.Errorf("%d messages, complete %v, %v; want %d, %v", len(got.Messages), got.Complete, err, tt.want, tt.complete)
			}
			if got.Began != nil || got.Messages[0].Ways[0].Name != "name of p0" {
				t.Errorf("without a broker, by names: %v %v", got.Began, got.Messages[0].Ways[0])
			}
		})
	}
}

func TestDSK_06_ActivityGoesBackForEightHours(t *testing.T) {
	eight := noon.Add(-8 * time.Hour).UnixMilli()
	for query, want := range map[string]int64{"?since=0": eight, fmt.Sprint("?since=", eight-1): eight, fmt.Sprint("?since=", eight+1): eight + 1} {
		reader := &told{}
		got, err := ask[dto.Activity](t, activityOf(reader, nil, &noon).Show, query)
		if err != nil || got.Since != want || reader.since != want {
			t.Errorf("%s: answered since %d, read since %d, %v; want %d", query, got.Since, reader.since, err, want)
		}
	}
	for _, query := range []string{"", "?since=", "?since=-1", "?since=x"} {
		if _, err := ask[dto.Activity](t, activityOf(&told{}, nil, &noon).Show, query); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%q: %v", query, err)
		}
	}
}

func TestDSK_06_WorkIsToldFromWhenOnItIsWhole(t *testing.T) {
	work := &api.Work{Began: 100, Sessions: map[string]api.WorkTimes{
		"a": {Spans: []api.Span{{From: 300, To: 400}, {From: 500}}, Whole: 250}, "b": {Spans: []api.Span{{From: 150}}},
	}}
	got, err := ask[dto.Activity](t, activityOf(&told{}, work, &noon).Show, "?since=0")
	if err != nil || *got.Began != 250 || len(got.Work["b"]) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if spans := got.Work["a"]; *spans[0].To != 400 || spans[1].To != nil {
		t.Errorf("the spans are %v", spans)
	}
}

func TestDSK_06_HoursAreCountedOnceAMinute(t *testing.T) {
	now := noon
	a := activityOf(&told{}, nil, &now)
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {-time.Second, 3}} {
		now = now.Add(step.pass)
		got, err := ask[dto.Hours](t, a.Hours, "/hours")
		if err != nil || got.Hours[0] != (dto.Hour{From: 1, Messages: step.want, Wakes: 2}) {
			t.Errorf("after %v: %+v, %v; want count %d", step.pass, got, err, step.want)
		}
	}
}
