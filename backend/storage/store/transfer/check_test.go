package transfer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"bridge/backend/platform/sqlitex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// makerDSN is sqlitex.WriterDSN for a file that may have to be made.
func makerDSN(path string) string {
	return strings.Replace(sqlitex.WriterDSN(path), "&mode=rw&", "&", 1)
}

// filesOf describes every file of a folder: name, mode, size, time and bytes.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		seen[entry.Name()] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), hex.EncodeToString(sum[:8]))
	}
	return seen
}

// abandoned makes a database whose last commits are in a log that its dead
// writer left, as a copy of the files of a live one.
func abandoned(t *testing.T, rows int, withIndex bool) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "live.db")
	pool, err := sql.Open("sqlite", makerDSN(source))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec("CREATE TABLE words (word TEXT); PRAGMA user_version = 7; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	for n := range rows {
		if _, err := pool.Exec("INSERT INTO words VALUES (?)", n); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "words.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if suffix == "-shm" && !withIndex {
			continue
		}
		data, err := os.ReadFile(source + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestSTO_01_ALookThroughADatabaseLeavesNoTrace(t *testing.T) {
	tests := []struct {
		name string
		path func(t *testing.T) string
		rows int
	}{
		{"a log and its index left by a dead writer", func(t *testing.T) string { return abandoned(t, 5, true) }, 5},
		{"a log alone", func(t *testing.T) string { return abandoned(t, 5, false) }, 5},
		{"an empty log", func(t *testing.T) string { return abandoned(t, 0, true) }, 0},
		{"a log of rubbish", func(t *testing.T) string {
			path := abandoned(t, 0, false)
			if err := os.WriteFile(path+"-wal", []byte("rubbish that is no log, but long enough to be looked at as one"), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, 0},
		{"no log", func(t *testing.T) string {
			path := abandoned(t, 0, false)
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			return path
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path(t)
			before := filesOf(t, filepath.Dir(path))
			seen, err := Inspect(context.Background(), path, false)
			if err != nil || seen.Version != 7 || len(seen.Problems)+len(seen.References) > 0 || seen.Foreign == nil {
				t.Errorf("Inspect = %+v, %v", seen, err)
			}
			counts, err := Counts(context.Background(), path, false)
			if diff := cmp.Diff(map[string]int{"words": tt.rows}, counts); diff != "" || err != nil {
				t.Errorf("Counts: %s%v", diff, err)
			}
			if diff := cmp.Diff(before, filesOf(t, filepath.Dir(path))); diff != "" {
				t.Errorf("the folder changed:\n%s", diff)
			}
		})
	}
}

func TestSTO_01_ALookBesideALiveWriterSeesItsLastCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.db")
	pool, err := sql.Open("sqlite", makerDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec("CREATE TABLE words (word TEXT); INSERT INTO words VALUES ('one')"); err != nil {
		t.Fatal(err)
	}
	counts, err := Counts(context.Background(), path, true)
	if err != nil || counts["words"] != 1 {
		t.Errorf("Counts = %v, %v", counts, err)
	}
}

func TestSTO_01_DamageIsSeen(t *testing.T) {
	path := abandoned(t, 0, false)
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "_pragma=foreign_keys(0)", "_pragma=journal_mode(DELETE)"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(`CREATE TABLE parents (id INTEGER PRIMARY KEY); CREATE TABLE children (parent REFERENCES parents(id));
		INSERT INTO children VALUES (42); CREATE INDEX by_word ON words (word);
		WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO words SELECT 'word ' || i FROM n`); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	seen, err := Inspect(context.Background(), path, false)
	if err != nil || len(seen.Problems) > 0 || len(seen.References) != 1 {
		t.Fatalf("Inspect of a broken reference = %+v, %v", seen, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 3000), 5*4096+100); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if seen, err := Inspect(context.Background(), path, false); err == nil && len(seen.Problems) == 0 {
		t.Errorf("Inspect of a damaged page = %+v, %v", seen, err)
	}
}
