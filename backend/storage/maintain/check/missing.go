package check

import (
	"context"
	"os"

	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store/transfer"
)

// Why bridge.db is no store.
const (
	StoreGone  = "is gone"
	StoreEmpty = "is empty"
	StoreBare  = "is a database without tables"
)

// MissingStore says in words why bridge.db is no store, "" where there is something
// in it or in its place: whether that can be used is not decided here.
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
