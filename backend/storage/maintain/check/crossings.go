package check

import (
	"context"
	"fmt"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store"
)

// stuckAfter is how long a message may wait for a paired PC before the doctor reports it.
// It equals the default time that mail waits for a session that is away.
const stuckAfter = 24 * time.Hour

// checkCrossings checks the mail to and from paired PCs.
func checkCrossings(ctx context.Context, k *checker) error {
	database := inventory.Database{Name: inventory.Primary}
	if k.quick || k.report.isDamaged(database.Name) || inventory.IsMissing(inventory.JoinHome(k.dir, database.Name)) {
		return nil
	}
	found, err := store.InspectCrossings(ctx, inventory.JoinHome(k.dir, database.Name), k.live)
	if err != nil {
		if ctx.Err() == nil && !k.found(database.Name) {
			k.findUnreadable(ctx, database, err)
		}
		return ctx.Err()
	}
	for _, row := range found.Odd {
		code := CrossingDamaged
		if row.Newer {
			code = RowNewer
		}
		k.find(code, database.Name, fmt.Sprintf("%s: %s is passed over: %s", row.Table, row.Key, row.Why))
	}
	for _, queue := range found.Waiting {
		if waits := k.worker.Now().Sub(time.UnixMilli(queue.Since)); waits > stuckAfter {
			k.find(OutboxStuck, database.Name, fmt.Sprintf("%s for the paired PC %s, the oldest for %s", waiting(queue.Count), queue.Host, bridge.Span(waits)))
		}
	}
	return nil
}

func waiting(count int) string {
	if count == 1 {
		return "a message waits"
	}
	return fmt.Sprintf("%d messages wait", count)
}
