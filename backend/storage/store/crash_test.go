package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func logSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestMSG_04_AnAcknowledgedMessageSurvivesAKill kills a process that appends
// from several goroutines, again and again, and looks for everything it had
// acknowledged.
func TestMSG_04_AnAcknowledgedMessageSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	acknowledged := map[string]bool{}
	for round := range 15 {
		child := helper(t, "append", fmt.Sprintf("%s\n%d", path, round))
		for range 1 + rand.IntN(80) {
			acknowledged[child.line(t)] = true
		}
		for _, line := range child.kill(t) { // printed before the kill
			acknowledged[line] = true
		}
		db := openAt(t, path)
		for id := range acknowledged {
			if row, err := db.Find(t.Context(), id); err != nil || len(row.Deliveries) != 2 {
				t.Errorf("round %d: %s was acknowledged: %v, %+v", round, id, err, row)
			}
		}
		checkWhole(t, path)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) < 15 {
		t.Errorf("only %d messages were acknowledged", len(acknowledged))
	}
}

func init() {
	helperParts["append"] = func(ctx context.Context, args string) error {
		var path string
		var round int
		if _, err := fmt.Sscan(args, &path, &round); err != nil {
			return err
		}
		db, err := Open(ctx, path, testOptions())
		if err != nil {
			return err
		}
		var group sync.WaitGroup
		for sender := range 6 {
			group.Go(func() {
				for i := 0; err == nil; i++ {
					id := fmt.Sprintf("m-%d-%d-%d", round, sender, i)
					if _, _, err := db.Append(ctx, note(id, "a", "body ✓", int64(i), "b", "c")); err != nil {
						fmt.Fprintln(os.Stderr, err)
						return
					}
					fmt.Println(id)
				}
			})
		}
		group.Wait()
		return nil
	}
}
