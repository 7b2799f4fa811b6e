package store

import (
	"database/sql"
	"strconv"
)

// Tables made in the field may lack any constraint, a file may be damaged, and a
// newer release may store what this build does not know. One odd row must not hide
// the others of a list: a value is read as what is nearest to it, by text and
// number, and a row that cannot mean anything is passed over with an errRow, left
// in the store byte for byte, and named by the doctor.

// text reads a column as text: NULL is empty.
type text struct{ into *string }

// Scan takes what SQLite has (sql.Scanner).
func (t text) Scan(value any) error {
	var found sql.NullString
	err := found.Scan(value)
	*t.into = found.String
	return err
}

// number reads a column as a whole number: NULL is 0, and what is no number is 1,
// as a time one that nobody knows.
type number struct{ into *int64 }

// maybe reads a column as number does, and tells NULL from 0.
type maybe struct{ into *sql.NullInt64 }

// Scan takes what SQLite has (sql.Scanner).
func (m maybe) Scan(value any) error {
	m.into.Valid = value != nil
	return number{&m.into.Int64}.Scan(value)
}

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
