package proc

import (
	"os"
	"runtime"
	"strconv"
	"strings"
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

func TestCAN_02_TheLoadOfThisPC(t *testing.T) {
	first := func() string {
		data, _ := os.ReadFile("/proc/loadavg")
		word, _, _ := strings.Cut(string(data), " ")
		return word
	}
	for {
		before := first()
		load := Load()
		if first() != before {
			continue // the system measured anew
		}
		if want, _ := strconv.ParseFloat(before, 64); load*float64(runtime.NumCPU()) != want {
			t.Errorf("the load of %d processors is %v each, the system says %q", runtime.NumCPU(), load, before)
		}
		return
	}
}
