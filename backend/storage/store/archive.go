package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// archiveName is the name of the archive's file in the store's folder.
const archiveName = "archive.db"

// withArchive merges the newest messages of the primary store with those of the archive:
// history covers both (STO-12, STO-15). A message may have deliveries in both. After an
// interrupted move to the archive, it may have the same one twice.
func (r *Reader) withArchive(ctx context.Context, limit int, own []mail.HistoryRow, ask func(*Reader) ([]mail.HistoryRow, error)) ([]mail.HistoryRow, error) {
	all, err := r.joinArchive(ctx, limit, own, ask)
	if errors.Is(err, schema.ErrArchive) {
		return own, nil
	}
	return all, err
}

func (r *Reader) joinArchive(ctx context.Context, limit int, own []mail.HistoryRow, ask func(*Reader) ([]mail.HistoryRow, error)) ([]mail.HistoryRow, error) {
	archive, err := r.archive(ctx)
	if archive == nil || err != nil {
		return own, err
	}
	old, err := ask(archive)
	if err != nil {
		return nil, err
	}
	has := make(map[string]bool, len(own))
	for _, row := range own {
		has[row.ID] = true
	}
	old = slices.DeleteFunc(old, func(row mail.HistoryRow) bool { return has[row.ID] })
	return r.whole(ctx, archive, mail.Newest(own, old, limit))
}

// whole sets the deliveries of each row from both stores, because the deliveries of one
// message may be in different stores.
func (r *Reader) whole(ctx context.Context, archive *Reader, rows []mail.HistoryRow) ([]mail.HistoryRow, error) {
	own, err := r.byID(ctx, rows)
	if err != nil {
		return nil, err
	}
	archived, err := archive.byID(ctx, rows)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		rows[i] = archived[row.ID]
		if local, has := own[row.ID]; has {
			rows[i] = local.With(archived[row.ID])
		}
	}
	return rows, r.read(ctx, func(v view) error { return v.cross(ctx, rows) })
}

// byID returns what this store alone has of the given messages.
func (r *Reader) byID(ctx context.Context, rows []mail.HistoryRow) (map[string]mail.HistoryRow, error) {
	found, err := r.history(ctx, func(view) ([]sqlitex.Stamp, error) {
		stamps := make([]sqlitex.Stamp, len(rows))
		for i, row := range rows {
			stamps[i] = sqlitex.Stamp{ID: row.ID}
		}
		return stamps, nil
	})
	byID := make(map[string]mail.HistoryRow, len(found))
	for _, row := range found {
		byID[row.ID] = row
	}
	return byID, err
}

// archive returns the reader of the archive in the store's folder, nil if there is none.
// It belongs to r and is closed with it.
func (r *Reader) archive(ctx context.Context) (*Reader, error) {
	path := filepath.Join(filepath.Dir(r.path), archiveName)
	if filepath.Base(r.path) == archiveName {
		return nil, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r.archiveMu.Lock()
	defer r.archiveMu.Unlock()
	if r.archived == nil {
		if err := schema.CheckArchive(ctx, path); err != nil {
			return nil, ofArchive(path, err)
		}
		r.archived = archiveReader(path)
	}
	return r.archived, nil
}

// archiveReader returns a reader of the archive at path.
func archiveReader(path string) *Reader {
	return &Reader{path: path, file: sqlitex.NewReadOnly(path, sqlitex.Attachment{}, false)}
}

// ofArchive marks an error of the archive's file with schema.ErrArchive.
func ofArchive(path string, err error) error {
	code := bridge.CodeOf(err)
	if err == nil || filepath.Base(path) != archiveName || code != bridge.Storage && code != bridge.Unsupported {
		return err
	}
	return fmt.Errorf("%w: %w", schema.ErrArchive, err)
}

// closeArchive closes the archive's reader, if there is one.
func (r *Reader) closeArchive() error {
	r.archiveMu.Lock()
	defer r.archiveMu.Unlock()
	if r.archived == nil {
		return nil
	}
	return r.archived.Close()
}
