package storage

import (
	"testing"
	"time"
)

func TestSTO_03_AReportThatTookLongIsKeptLonger(t *testing.T) {
	at := time.UnixMilli(1)
	for _, tt := range []struct {
		took, since time.Duration
		fresh       bool
	}{{0, reportAge - 1, true}, {0, reportAge, false}, {time.Minute, 19 * time.Minute, true}, {time.Minute, 20 * time.Minute, false}} {
		known := &Checked{at: at, took: tt.took}
		if fresh := known.fresh(at.Add(tt.since), reportAge); fresh != tt.fresh {
			t.Errorf("took %s, %s ago: fresh = %v", tt.took, tt.since, fresh)
		}
	}
}
