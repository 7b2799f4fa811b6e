package proc

import (
	"runtime"
	"testing"
)

func TestSizeGrowsWithWhatAProcessHolds(t *testing.T) {
	runtime.GC()
	goroutines, heap := Size()
	wait := make(chan struct{})
	defer close(wait)
	go func() { <-wait }()
	held := make([]byte, 8<<20)
	runtime.GC()
	moreGoroutines, moreHeap := Size()
	if moreGoroutines <= goroutines || moreHeap < 8<<20 {
		t.Errorf("one more goroutine and 8 MiB: from %d, %d bytes to %d, %d bytes", goroutines, heap, moreGoroutines, moreHeap)
	}
	runtime.KeepAlive(held)
}
