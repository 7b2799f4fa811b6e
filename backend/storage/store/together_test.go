package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheLogStaysBounded writes far more than LogBytes and looks at the
// log: without the checkpointer it would hold everything.
func TestTheLogStaysBounded(t *testing.T) {
	db := openTest(t)
	body := strings.Repeat("x", 60_000)
	var largest int64
	for i := range 1800 { // 108 MB
		appendAll(t, db, note(fmt.Sprint("m", i), "a", body, int64(i), "b"))
		largest = max(largest, logSize(t, db.path))
	}
	if largest > 98_304_000 {
		t.Errorf("the log grew to %d bytes", largest)
	}
	if row := mustFind(t, db.Reader, "m0"); row.Body != body {
		t.Error("the first message changed")
	}
}

func TestConcurrentReadersAndWriters(t *testing.T) {
	db := openTest(t)
	var group sync.WaitGroup
	for sender := range 4 {
		group.Go(func() {
			for i := range 25 {
				appendAll(t, db, note(fmt.Sprintf("m-%d-%d", sender, i), fmt.Sprint("s", sender), "x", int64(i), "b"))
			}
		})
		group.Go(func() {
			for range 25 {
				rows, err := db.Recent(context.Background(), 50)
				if err != nil {
					t.Errorf("Recent: %v", err)
				}
				seen := map[string]bool{}
				for _, row := range rows {
					if seen[row.ID] || len(row.Deliveries) != 1 {
						t.Errorf("Recent gives %+v", row)
					}
					seen[row.ID] = true
				}
			}
		})
	}
	group.Wait()
	rows, err := db.Recent(t.Context(), 1000)
	if diff := cmp.Diff(100, len(rows)); err != nil || diff != "" {
		t.Errorf("stored: %v (-want +got):\n%s", err, diff)
	}
}
