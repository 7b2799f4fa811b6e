package sqlitex

import (
	"database/sql"
	"strconv"
)

// Existing tables may lack any constraint, a file may be damaged, and a newer
// release may store unknown values. One odd row must not hide the others of a list.
// Therefore each value is read as the nearest valid one.

// Text returns a scanner that reads a column as text; NULL becomes "".
func Text(into *string) sql.Scanner { return text{into} }

// Number returns a scanner that reads a column as a whole number. NULL becomes 0,
// and a value that is not a number becomes 1, which as a time means unknown.
func Number(into *int64) sql.Scanner { return number{into} }

// Maybe returns a scanner that reads a column as [Number] does and keeps NULL apart from 0.
func Maybe(into *sql.NullInt64) sql.Scanner { return maybe{into} }

type text struct{ into *string }

// Scan stores the column's value (sql.Scanner). It fails for a type that has no
// text form.
func (t text) Scan(value any) error {
	var found sql.NullString
	err := found.Scan(value)
	*t.into = found.String
	return err
}

type number struct{ into *int64 }

// Scan stores the column's value (sql.Scanner). It fails for a type that has no
// text form.
func (n number) Scan(value any) error {
	switch found := value.(type) {
	case nil:
		*n.into = 0
	case int64:
		*n.into = found
	case float64:
		*n.into = int64(found)
	default:
		var scanned string
		*n.into = 1
		if err := (text{&scanned}).Scan(value); err != nil {
			return err
		}
		if integer, err := strconv.ParseInt(scanned, 10, 64); err == nil {
			*n.into = integer
		}
	}
	return nil
}

type maybe struct{ into *sql.NullInt64 }

// Scan stores the column's value (sql.Scanner). It fails as [Number]'s scanner
// does.
func (m maybe) Scan(value any) error {
	m.into.Valid = value != nil
	return number{&m.into.Int64}.Scan(value)
}
