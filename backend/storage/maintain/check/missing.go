package check

import (
	"context"
	"os"

	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store/transfer"
)

// The reasons for which bridge.db is no store.
const (
	StoreGone  = "is gone"
	StoreEmpty = "is empty"
	StoreBare  = "is a database without tables"
)

// MissingStore returns why bridge.db is no store, "" if it or another file has content
// there: it does not check whether that is usable.
func MissingStore(ctx context.Context, home config.Home, live bool) string {
	info, err := os.Lstat(home.DB())
	switch {
	case inventory.IsGone(err):
		return StoreGone
	case err != nil || !info.Mode().IsRegular():
		return ""
	case info.Size() == 0:
		return StoreEmpty
	}
	seen, err := transfer.QuickInspect(ctx, home.DB(), live)
	if err == nil && seen.Version == 0 && len(seen.Tables) == 0 {
		return StoreBare
	}
	return ""
}
