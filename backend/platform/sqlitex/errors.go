package sqlitex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bridge/backend/core/bridge"
)

// Error turns an error of SQLite into a readable Storage error. It returns nil, a
// bridge error and a context error unchanged.
func Error(path string, err error) error {
	var own *bridge.Error
	var reported *sqlite.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &reported) && reported.Code()&0xff == sqlite3.SQLITE_CANTOPEN && len(path) > longestPath:
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s cannot be opened: a path of %s is too long for a database, choose a shorter home", path, bridge.Counted(len(path), "byte")))
	case errors.As(err, &reported):
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s %s", path, sqliteReason(reported)))
	}
	return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s refused the operation", path))
}

// longestPath is the longest path of a database, in bytes. SQLite's limit of 512
// bytes also covers the names of the log and the journal.
const longestPath = 500

// CopyError is [Error] for copying one database to another. If SQLite's code shows
// which of the two the disk refused, the error names that one.
func CopyError(from, to string, err error) error {
	var reported *sqlite.Error
	if errors.As(err, &reported) {
		switch reported.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY:
			return Error(to, err)
		case sqlite3.SQLITE_IOERR:
			return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s could not be copied to %s: the disk reports an error", from, to))
		}
	}
	return Error(from, err)
}

// sqliteReason returns the end of a sentence that begins with the store's name.
func sqliteReason(reported *sqlite.Error) string {
	switch reported.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "could not be written: the disk is full"
	case sqlite3.SQLITE_IOERR:
		return "could not be read or written: the disk reports an error"
	case sqlite3.SQLITE_CORRUPT:
		return "is damaged: restore a backup (`bridge doctor` names the newest)"
	case sqlite3.SQLITE_NOTADB:
		return "is not a SQLite database"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "is in use by another process"
	case sqlite3.SQLITE_READONLY:
		return "cannot be written: it is read-only"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "cannot be opened: check that its owner may read and write it"
	}
	return "refused the operation: " + reported.Error()
}

// IsDiskError reports whether the disk failed to read, write or sync.
func IsDiskError(err error) bool {
	var reported *sqlite.Error
	return errors.As(err, &reported) && reported.Code()&0xff == sqlite3.SQLITE_IOERR
}

// Reason returns the operating system's error without the path, which the
// surrounding sentence already names.
func Reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// IsDamage reports whether SQLite found the file damaged or not a database.
func IsDamage(err error) bool {
	var reported *sqlite.Error
	return errors.As(err, &reported) && (reported.Code()&0xff == sqlite3.SQLITE_CORRUPT || reported.Code()&0xff == sqlite3.SQLITE_NOTADB)
}
