package proc

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Size returns the number of goroutines of this process, and the size of its live objects
// in bytes after the last garbage collection. The size is 0 before the first collection.
func Size() (goroutines int, heapBytes uint64) {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(heap)
	return runtime.NumGoroutine(), heap[0].Value.Uint64()
}

// Load returns how many processes wanted a processor in the last minute, for each
// processor. It returns 0 on a system that does not say so as Linux does.
func Load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load / float64(runtime.NumCPU())
}
