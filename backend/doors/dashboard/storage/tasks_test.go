package storage

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain"
)

func TestDSK_06_TheLastTenWorksAreRemembered(t *testing.T) {
	s := &Tasks{now: time.Now, changed: func() {}}
	for n := range keptTasks + 2 {
		if err := s.begin(t.Context(), maintain.TaskCheck, func(context.Context) (string, error) { return fmt.Sprint(n), nil }); err != nil {
			t.Fatal(err)
		}
		s.group.Wait()
	}
	if ended := s.wire().Ended; len(ended) != 10 || ended[0].Result != "11" || ended[9].Result != "2" {
		t.Errorf("remembered: %+v", ended)
	}
}

func TestDSK_06_NewsOfARunningWorkIsPaced(t *testing.T) {
	at, changed, release := time.UnixMilli(0), 0, make(chan struct{})
	s := &Tasks{now: func() time.Time { return at }, changed: func() { changed++ }}
	s.progress("nothing runs", 1, 2)
	if err := s.begin(t.Context(), maintain.TaskBackup, func(context.Context) (string, error) { <-release; return "", nil }); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after   time.Duration
		changed int // since the work was asked for, its beginning included
	}{{0, 2}, {0, 2}, {progressPace - 1, 2}, {1, 3}, {0, 3}} {
		at = at.Add(step.after)
		s.progress("copying", int64(step.after), 10)
		if changed != step.changed || s.wire().Running.Done != int64(step.after) {
			t.Errorf("after %v more: %d pieces of news, %+v", step.after, changed, s.wire().Running)
		}
	}
	close(release)
	s.Close()
	if changed != 4 {
		t.Errorf("%d pieces of news: the end is told at once", changed)
	}
}

func TestDSK_06_ClosingWaitsForTheRunningWorkAndLetsNoneBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Tasks{now: time.Now, changed: func() {}}
		ctx, stop := context.WithCancel(t.Context())
		err := s.begin(ctx, maintain.TaskBackup, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			<-time.After(time.Second) // it tidies up
			return "", ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		s.Close()
		if tasks := s.wire(); tasks.Running != nil || len(tasks.Ended) != 1 {
			t.Errorf("closed while it ran: %+v", tasks)
		}
		err = s.begin(t.Context(), maintain.TaskCheck, func(context.Context) (string, error) { return "", nil })
		if bridge.CodeOf(err) != bridge.Unavailable {
			t.Errorf("a work after the end: %v", err)
		}
	})
}
