package sqlitex

import (
	"database/sql"
	"strconv"
)

// Tables made in the field may lack any constraint, a file may be damaged, and a
// newer release may store what this build does not know. One odd row must not hide
// the others of a list, so a value is read as what is nearest to it.

// Text reads a column as text: NULL is empty.
func Text(into *string) sql.Scanner { return text{into} }

// Number reads a column as a whole number: NULL is 0, and what is no number is 1,
// as a time one that nobody knows.
func Number(into *int64) sql.Scanner { return number{into} }

// Maybe reads a column as Number does, and tells NULL from 0.
func Maybe(into *sql.NullInt64) sql.Scanner { return maybe{into} }

type text struct{ into *string }

// Scan takes what SQLite has (sql.Scanner).
func (t text) Scan(value any) error {
	var found sql.NullString
	err := found.Scan(value)
	*t.into = found.String
	return err
}

type number struct{ into *int64 }

// Scan takes what SQLite has (sql.Scanner).
func (n number) Scan(value any) error {
	switch found := value.(type) {
	case nil:
		*n.into = 0
	case int64:
		*n.into = found
	case float64:
		*n.into = int64(found)
	default:
		var words string
		*n.into = 1
		if err := (text{&words}).Scan(value); err != nil {
			return err
		}
		if whole, err := strconv.ParseInt(words, 10, 64); err == nil {
			*n.into = whole
		}
	}
	return nil
}

type maybe struct{ into *sql.NullInt64 }

// Scan takes what SQLite has (sql.Scanner).
func (m maybe) Scan(value any) error {
	m.into.Valid = value != nil
	return number{&m.into.Int64}.Scan(value)
}
