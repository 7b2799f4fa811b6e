// Package clidata reads the agent CLIs' own stores of their sessions (Store): a session's
// native children (Children) and messages (Holds), the start of its idle state
// (IdleSince), and the prompts of Claude Code (ClaudeEntered). It only reads, within
// bounds, and creates no file. Package kinds has the table of the stores.
package clidata

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// The bounds of one read of a CLI's own store. Data beyond them is ignored, so no
// store content can make a read long or large.
const (
	maxStoredChildren = 200
	maxStoredEntries  = 5_000    // of one folder
	maxStoredBytes    = 64 << 10 // of one part: a description, a message, the end of a log
	maxChildTitle     = 160      // characters
	maxChildDepth     = 8        // generations below the session
	maxStoredFamily   = 2_000    // of all generations; the newest maxStoredChildren are shown
	storeTimeout      = 2 * time.Second
)

// conversation is one session in the store of its CLI.
type conversation struct{ folder, sessionID, cwd string }

// Store reads the store of one kind. Each kind has a value. A function is nil if the store
// does not have that data. The zero value has none.
type Store struct {
	Kind bridge.AgentKind

	// children returns the native children, as [Store.Children] does.
	children func(ctx context.Context, from conversation) ([]session.Child, error)
	// records calls look with the newest parts of a conversation.
	records func(ctx context.Context, from conversation, look func([]byte)) error
	// busySince and idleSince return the time since which the CLI's registry of processes
	// reports the session as at work or as idle, in Unix epoch milliseconds, or 0.
	busySince, idleSince func(folder string, pid int, sessionID string) int64
}

// BusySince returns the time since which the CLI's registry reports a session of process
// pid as at work, in Unix epoch milliseconds. It returns 0 without a report.
func (s Store) BusySince(folder string, pid int, sessionID string) int64 {
	if s.busySince != nil {
		return s.busySince(folder, pid, sessionID)
	}
	return 0
}

// IdleSince is [Store.BusySince] for an idle session.
func (s Store) IdleSince(folder string, pid int, sessionID string) int64 {
	if s.idleSince != nil {
		return s.idleSince(folder, pid, sessionID)
	}
	return 0
}

// isStoredID reports whether id is a valid session or child id, because it becomes
// a part of file names.
func isStoredID(id string) bool {
	if id == "" || len(id) > bridge.MaxIDChars || id[0] == '-' || id[0] == '_' {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return r > unicode.MaxASCII || r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0
}

// unknownForm returns the Unsupported error for a store in an unknown form.
func unknownForm(kind bridge.AgentKind, what string) error {
	return bridge.Errorf(bridge.Unsupported, "%s keeps its sessions in a form that this Bridge does not know (%s)", kind, what)
}

// readStored reads at most limit bytes of a regular file below root, from its end
// if tail is set. changed is the time of its last write.
func readStored(root *os.Root, name string, tail bool) (data []byte, changed time.Time, err error) {
	// A pipe would block the open call. A pipe that replaces the file after the
	// check is opened without waiting and refused by its type.
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, time.Time{}, errors.Join(fs.ErrNotExist, err)
	}
	file, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, time.Time{}, errors.Join(fs.ErrNotExist, err)
	}
	from := int64(0)
	if tail {
		from = max(0, info.Size()-maxStoredBytes)
	}
	data, err = io.ReadAll(io.NewSectionReader(file, from, maxStoredBytes))
	return data, info.ModTime(), err
}

// readDatabase queries a CLI's SQLite database, which the CLI may be writing. With
// a live log it reads through the log's index, opened read-only. Without a log
// there is no writer, and it opens the file as immutable. Neither takes a write
// lock or creates a file, with one exception: the CLI may end and remove its log
// between the check and SQLite's own. SQLite then leaves an empty log, which the
// CLI's next start removes.
func readDatabase(path string, ask func(*sql.DB) error) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return bridge.Errorf(bridge.Unsupported, "%s is not a regular file", filepath.Base(path))
	}
	params := "?mode=ro&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=busy_timeout(200)&"
	if isFile(path+"-shm") && isFile(path+"-wal") {
		params += "readonly_shm=1"
	} else {
		params += "immutable=1"
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()+params)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	return ask(db)
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// hasTable reports whether the database has an ordinary table with all of the
// columns, given as one text.
func hasTable(ctx context.Context, db *sql.DB, table, columns string) (bool, error) {
	wanted := strings.Fields(columns)
	var found int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema s, pragma_table_info(s.name) c
		WHERE s.type = 'table' AND s.name = ?1 AND instr(' ' || ?2 || ' ', ' ' || c.name || ' ') > 0 AND s.sql NOT LIKE 'CREATE VIRTUAL%'`,
		table, columns).Scan(&found)
	return found == len(wanted), err
}
