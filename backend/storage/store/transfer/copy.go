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

// pagesPerStep is how many pages are copied before the disk is told to write them: four
// megabytes of normal pages. Another process's commit waits for the pending disk writes,
// which never exceed that.
const pagesPerStep = 1024

// CopyDatabase writes one consistent state of the database at from into the new file to
// and syncs it; others may read and write meanwhile. It reads the source like Inspect.
// progress, if not nil, is called with the number of copied pages. It fails with Storage if
// to exists or the disk refuses one of the two. The caller then keeps or deletes the
// file.
func CopyDatabase(ctx context.Context, from, to string, live bool, progress func(done, all int)) (err error) {
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
		// An open transaction fixes the state: without it every commit of another process
		// would restart the copy.
		if _, err := conn.ExecContext(ctx, "BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
			return err
		}
		err = conn.Raw(func(driver any) error { return copyPages(ctx, driver, file, progress) })
		_, endErr := conn.ExecContext(context.WithoutCancel(ctx), "COMMIT")
		return errors.Join(err, endErr)
	})
	if err != nil {
		return sqlitex.CopyError(from, to, err)
	}
	return file.Sync()
}

func copyPages(ctx context.Context, driver any, file *os.File, progress func(done, all int)) error {
	source, ok := driver.(interface {
		NewBackup(string) (*sqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("the driver %T cannot copy a database", driver)
	}
	backup, err := source.NewBackup("file:" + sqlitex.EscapePath(file.Name()))
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = backup.Step(pagesPerStep); err == nil && progress != nil {
			progress(backup.PageCount()-backup.Remaining(), backup.PageCount())
		}
		err = errors.Join(err, disk.StartSync(file), ctx.Err())
	}
	return errors.Join(err, backup.Finish())
}
