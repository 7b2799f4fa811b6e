package lifecycle

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestTasksOutliveTheirParentAndEndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, end := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		tasks := NewTasks(parent)
		var ended atomic.Int64
		for range 2 {
			tasks.Go(func() {
				<-tasks.Done()
				ended.Add(1)
			})
			synctest.Wait()
		}
		end()
		synctest.Wait()
		if ended.Load() > 0 || tasks.HasEnded() || tasks.Context().Value(key{}) != "value" {
			t.Fatalf("%d tasks ended with the parent's context, ended = %v", ended.Load(), tasks.HasEnded())
		}
		tasks.Cancel()
		synctest.Wait()
		if !tasks.HasEnded() {
			t.Error("Cancel did not end the context")
		}
		tasks.Stop()
		if ended.Load() != 2 {
			t.Errorf("%d of 2 tasks had ended when Stop returned", ended.Load())
		}
	})
}

func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks(t.Context())
		release, stopped := make(chan struct{}), make(chan struct{})
		tasks.Go(func() { <-release })
		go func() {
			defer close(stopped)
			tasks.Stop()
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("Stop did not wait for a task")
		default:
		}
		close(release)
		<-stopped
	})
}

func TestASignalKeepsOneNotification(t *testing.T) {
	s := NewSignal()
	s.Notify()
	s.Notify() // would block a sender
	<-s
	select {
	case <-s:
		t.Error("two notifications were received: they must not add up")
	default:
	}
	s.Notify()
	<-s
}
