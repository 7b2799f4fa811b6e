package snapshot

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestSTO_10_ABackupPausesWhileTheBrokerAnswersSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Minute, 2 * time.Millisecond, time.Millisecond}
		asked := 0
		pause := Throttle(time.Now, func(ctx context.Context) error {
			asked++
			select {
			case <-time.After(answers[asked-1]):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		for range 3 { // one question is enough for all three
			if err := pause(t.Context()); err != nil || asked != 1 {
				t.Fatalf("an idle broker: %d questions, %v", asked, err)
			}
		}
		<-time.After(time.Second)
		start := time.Now()
		if err := pause(t.Context()); err != nil || asked != 4 {
			t.Fatalf("a pressed broker: %d questions, %v", asked, err)
		}
		if waited := time.Since(start); waited < longAnswer {
			t.Errorf("it paused for %v only", waited)
		}
	})
}

func TestSTO_10_APauseEndsWithItsWorkerAndWithoutABroker(t *testing.T) {
	gone := Throttle(time.Now, func(context.Context) error { return fmt.Errorf("no broker answers: %w", context.DeadlineExceeded) })
	if err := gone(t.Context()); err != nil {
		t.Errorf("without a broker: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		stuck := Throttle(time.Now, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if err := stuck(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stuck broker: %v", err)
		}
	})
}
