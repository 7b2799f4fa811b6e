package maintain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"bridge/backend/bridge"
	"bridge/backend/store"
)

// checkDatabases looks through every database that exists.
func (k *checker) checkDatabases(ctx context.Context) error {
	for _, one := range databases {
		if err := k.checkDatabase(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) checkDatabase(ctx context.Context, one database) error {
	path := in(k.dir, one.name)
	logged := sizeOf(path+"-wal") > 0
	info, ok := k.regular(one.name)
	switch {
	case !ok && k.found(one.name):
		return nil
	case !ok:
		k.checkMissing(one, logged)
		return nil
	case info.Size() == 0 && logged:
		k.find(DatabaseEmpty, one.name, "it is empty, but the log beside it is not")
		return nil
	case info.Size() == 0:
		k.find(DatabaseEmpty, one.name, "it is empty")
		return nil
	}
	seen, err := store.Inspect(ctx, path, k.live)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		k.find(DatabaseUnreadable, one.name, sentence(err))
		return nil
	}
	k.report.Schema = append(k.report.Schema, Schema{Path: one.name, Actual: seen.Version, Expected: one.version})
	k.judge(one, seen)
	return nil
}

// checkMissing reports a database that is not there although something says
// that it was.
func (k *checker) checkMissing(one database, logged bool) {
	switch {
	case logged:
		k.find(DatabaseMissing, one.name, "it is gone, but the log beside it is there")
	case one.name == primary && len(k.report.Backups) > 0:
		k.find(DatabaseMissing, one.name, "it is gone, but there are backups of it")
	}
}

// judge turns what was seen into findings.
func (k *checker) judge(one database, seen store.Inspection) {
	if len(seen.Problems) > 0 {
		k.find(DatabaseDamaged, one.name, "the integrity check says: "+some(seen.Problems))
	}
	if len(seen.References) > 0 {
		k.find(DatabaseReferences, one.name, some(seen.References))
	}
	isEmpty := seen.Version == 0 && len(seen.Tables) == 0
	switch {
	case one.name != primary && seen.Foreign == nil && !isEmpty:
		k.find(DatabaseForeign, one.name, "it is a primary store in the place of another database")
	case seen.Version > one.version:
		k.find(DatabaseNewer, one.name, fmt.Sprintf("it has schema version %d and this Bridge knows versions up to %d", seen.Version, one.version))
	case isEmpty:
	case one.name == primary && seen.Foreign != nil:
		k.find(DatabaseForeign, one.name, "it is a database, but no store of Bridge's")
	case one.table != "" && !slices.Contains(seen.Tables, one.table):
		k.find(DatabaseForeign, one.name, "it is a database, but has no table "+one.table)
	case one.name == primary && seen.Version < one.version:
		k.find(DatabaseOlder, one.name, fmt.Sprintf("it has schema version %d, the newest is %d", seen.Version, one.version))
	}
}

// some joins the first lines and counts the rest.
func some(lines []string) string {
	const most = 3
	if len(lines) <= most {
		return strings.Join(lines, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(lines[:most], "; "), len(lines)-most)
}

// sentence is what people may read of an error.
func sentence(err error) string {
	var known *bridge.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return reason(err)
}

// sizeOf is the file's size, 0 when it cannot be told.
func sizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
