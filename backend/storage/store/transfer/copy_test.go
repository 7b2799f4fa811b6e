package transfer

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSTO_04_ACopyHoldsOneStateAlthoughWritersGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live.db")
	pool, err := sql.Open("sqlite", makerDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(`CREATE TABLE pairs (a TEXT, b TEXT);
		WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO pairs SELECT hex(randomblob(100000)), 'x' FROM n`); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	told := 0
	err = CopyDatabase(context.Background(), path, to, true, func(done, all int) {
		if told++; done > all {
			t.Errorf("%d of %d pages", done, all)
		}
		if _, err := pool.Exec("INSERT INTO pairs VALUES ('later', 'later'); DELETE FROM pairs WHERE rowid = 1"); err != nil {
			t.Error(err)
		}
	})
	if err != nil || told < 2 {
		t.Fatalf("CopyDatabase = %v after %d steps", err, told)
	}
	seen, err := Inspect(context.Background(), to, false)
	if err != nil || len(seen.Problems) > 0 {
		t.Errorf("the copy: %+v, %v", seen, err)
	}
	counts, err := Counts(context.Background(), to, false)
	if diff := cmp.Diff(map[string]int{"pairs": 60}, counts); diff != "" || err != nil {
		t.Errorf("counts of the copy: %s%v", diff, err)
	}
	if files := filesOf(t, filepath.Dir(to)); len(files) != 1 {
		t.Errorf("beside the copy: %v", files)
	}
}

func TestSTO_04_ACopyTakesTheLogOfADeadWriterInAndChangesNothing(t *testing.T) {
	path := abandoned(t, 5, true)
	before := filesOf(t, filepath.Dir(path))
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := CopyDatabase(context.Background(), path, to, false, nil); err != nil {
		t.Fatal(err)
	}
	counts, err := Counts(context.Background(), to, false)
	if err != nil || counts["words"] != 5 {
		t.Errorf("counts of the copy: %v, %v", counts, err)
	}
	if diff := cmp.Diff(before, filesOf(t, filepath.Dir(path))); diff != "" {
		t.Errorf("the source changed:\n%s", diff)
	}
}
