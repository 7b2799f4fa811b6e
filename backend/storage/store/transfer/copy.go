package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"

	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
)

// pagesPerStep is how many pages are copied before the disk is asked to write them:
// four megabytes of the usual pages. A commit of somebody else waits for what the
// disk has to write before it, which is never more than that.
const pagesPerStep = 1024

// CopyDatabase writes one consistent state of the database at from into the
// new file to and syncs it; others may read and write meanwhile. The source is
// read like Inspect reads it. told, when not nil, hears how many pages are
// done. What is left after an error is the caller's to keep or drop.
func CopyDatabase(ctx context.Context, from, to string, live bool, told func(done, all int)) (err error) {
	if err := sqlitex.CreateEmpty(to); err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = sqlitex.Quietly(ctx, from, live, func(pool *sql.DB) error {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		// An open transaction holds the state still: without it every commit of
		// somebody else would make the copy begin anew.
		if _, err := conn.ExecContext(ctx, "BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
			return err
		}
		err = conn.Raw(func(driver any) error { return copyPages(ctx, driver, file, told) })
		_, endErr := conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
		return errors.Join(err, endErr)
	})
	if err != nil {
		return sqlitex.CopyError(from, to, err)
	}
	return file.Sync()
}

func copyPages(ctx context.Context, driver any, to *os.File, told func(done, all int)) error {
	source, ok := driver.(interface {
		NewBackup(string) (*sqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("the driver %T cannot copy a database", driver)
	}
	backup, err := source.NewBackup("file:" + sqlitex.EscapePath(to.Name()))
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = backup.Step(pagesPerStep); err == nil && told != nil {
			told(backup.PageCount()-backup.Remaining(), backup.PageCount())
		}
		err = errors.Join(err, disk.StartSync(to), ctx.Err())
	}
	return errors.Join(err, backup.Finish())
}
