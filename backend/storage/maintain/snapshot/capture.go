package snapshot

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store/fulltext"
	"bridge/backend/storage/store/transfer"
)

// capture fills a pending set with verified copies of every managed file.
type capture struct {
	Maker
	pending  string
	live     bool                 // a process may be writing
	gathered []*inventory.File    // one without a checksum is omitted
	copied   chan *inventory.File // the databases, in copy order
	toVerify atomic.Int64         // bytes of the databases, 0 before all are copied
	counts   map[string]map[string]int
}

// gather copies and verifies everything and adds it to the manifest. While the processor
// verifies one database, the disk copies the next.
func (c *capture) gather(ctx context.Context, manifest *inventory.Manifest) error {
	c.copied, c.counts = make(chan *inventory.File, len(inventory.Databases)), manifest.Counts
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(c.copied)
		err := c.copyAll(ctx)
		var bytes int64
		for _, file := range c.gathered {
			if inventory.IsDatabase(file.Path) {
				bytes += file.Bytes
			}
		}
		c.toVerify.Store(bytes)
		return err
	})
	group.Go(func() error {
		var verified, reported int64
		show := func() {
			if all := c.toVerify.Load(); all > 0 && verified > reported { // before that the copying is shown
				c.Worker.Progress(fmt.Sprintf("verifying the copies, %s of %s", bridge.Size(verified), bridge.Size(all)), verified, all)
				reported = verified
			}
		}
		for file := range c.copied {
			if err := c.verify(ctx, file); err != nil {
				return fmt.Errorf("%s: %w", file.Path, err)
			}
			verified += file.Bytes
			show()
		}
		show() // the last copy may have been verified before it was known to be the last
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, file := range c.gathered {
		if file.SHA256 != "" {
			manifest.Files = append(manifest.Files, *file)
		}
	}
	if len(manifest.Files) == 0 {
		return bridge.Errorf(bridge.NotFound, "there is nothing to back up in %s yet", c.Worker.Home.Dir())
	}
	return nil
}

// copyAll repeats until there are no new files: copied data may have moved on to a new
// file, such as the first archive.
func (c *capture) copyAll(ctx context.Context) error {
	copied := map[string]bool{}
	for {
		paths, err := inventory.Managed(ctx, c.Worker.Home.Dir())
		if err != nil {
			return err
		}
		paths = slices.DeleteFunc(paths, func(path string) bool { return copied[path] || !inventory.Belongs(c.Worker.Home.Dir(), path) })
		if len(paths) == 0 {
			return nil
		}
		for _, path := range paths {
			copied[path] = true
			if err := c.copyOne(ctx, path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
}

// copyOne copies one file, if it still exists, and queues a database for verification.
func (c *capture) copyOne(ctx context.Context, path string) (err error) {
	if err := inventory.MakeDirs(c.pending, path); err != nil {
		return err
	}
	file := &inventory.File{Path: path}
	if inventory.IsDatabase(path) {
		err = c.copyDatabase(ctx, file)
	} else {
		file.SHA256, file.Bytes, err = inventory.CopyInto(c.Worker.Files(), c.Worker.Home.Dir(), path, inventory.JoinHome(c.pending, path))
	}
	switch {
	case inventory.IsGone(err) && (path == inventory.Sidecar || !inventory.IsDatabase(path)):
		return nil // its data has moved: to a store, or to where a broker retires it
	case err != nil:
		return c.omitIfRebuildable(ctx, file, err)
	}
	c.gathered = append(c.gathered, file)
	if inventory.IsDatabase(path) {
		c.copied <- file
	}
	return nil
}

func (c *capture) copyDatabase(ctx context.Context, file *inventory.File) (err error) {
	target := inventory.JoinHome(c.pending, file.Path)
	if err := c.Worker.At("copy " + file.Path); err != nil {
		return err
	}
	size := inventory.SizeOf(inventory.JoinHome(c.Worker.Home.Dir(), file.Path))
	pages := func(done, all int) {
		bytes := size * int64(done) / int64(max(all, 1))
		c.Worker.Progress(fmt.Sprintf("copying %s, %s of %s", file.Path, bridge.Size(bytes), bridge.Size(size)), int64(done), int64(all))
	}
	if err := transfer.CopyDatabase(ctx, inventory.JoinHome(c.Worker.Home.Dir(), file.Path), target, c.live, pages); err != nil {
		return err
	}
	if err := c.Worker.At("checksum " + file.Path); err != nil {
		return err
	}
	if file.SHA256, file.Bytes, err = disk.Checksum(target); err != nil {
		return err
	}
	return c.Worker.At("verify " + file.Path)
}

// verify reads a copied database whole.
func (c *capture) verify(ctx context.Context, file *inventory.File) error {
	counts, err := check.VerifyDatabase(ctx, inventory.JoinHome(c.pending, file.Path))
	if err != nil {
		return c.omitIfRebuildable(ctx, file, err)
	}
	c.counts[file.Path] = counts
	return nil
}

// omitIfRebuildable omits a damaged history.db that could not be captured, if it holds
// only the search index. The broker rebuilds that, so it must not prevent a snapshot.
func (c *capture) omitIfRebuildable(ctx context.Context, file *inventory.File, failure error) error {
	if file.Path != inventory.History {
		return failure
	}
	from := inventory.JoinHome(c.Worker.Home.Dir(), inventory.History)
	seen, err := transfer.Inspect(ctx, from, c.live)
	isDamaged := err != nil || len(seen.Problems) > 0
	if !isDamaged || ctx.Err() != nil || fulltext.HoldsMore(ctx, from, c.live) {
		return failure
	}
	file.SHA256 = ""
	return dropCopy(inventory.JoinHome(c.pending, inventory.History))
}

// dropCopy removes what this call captured of a damaged index.
func dropCopy(path string) error { return os.RemoveAll(path) }
