package maintain

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/check"
)

// sizedHome is a home with some files and maintenance whose clock the test moves.
func sizedHome(t *testing.T, now *time.Time) Maintenance {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"bridge.db": 1000, "bridge.db-wal": 200, "jobs.json": 3} {
		if err := os.WriteFile(filepath.Join(home.Dir(), name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Maintenance{Home: home, Program: "a test", Now: func() time.Time { return *now }}
}

func TestDSK_06_SizesAreRecordedOnceADayAndBounded(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := sizedHome(t, &now)
	if due := check.NextSizes(c.Home); !due.IsZero() {
		t.Errorf("the first point is due at %s, not at once", due)
	}
	if err := check.RecordSizes(t.Context(), c.Worker()); err != nil {
		t.Fatal(err)
	}
	if due := check.NextSizes(c.Home); !due.Equal(now.Add(24 * time.Hour)) {
		t.Errorf("the next point is due at %s", due)
	}
	points, err := check.Sizes(c.Home)
	if err != nil || len(points) != 1 {
		t.Fatalf("%v, %v", points, err)
	}
	parts := map[string]int64{"bridge.db": 1200, "jobs.json": 3}
	for name := range points[0].Parts {
		if _, ours := parts[name]; !ours {
			parts[name] = points[0].Parts[name] // what the home itself makes
		}
	}
	if diff := cmp.Diff(parts, points[0].Parts); diff != "" {
		t.Error(diff)
	}

	now = now.Add(time.Hour) // the same day: the later point stands for it
	if err := check.RecordSizes(t.Context(), c.Worker()); err != nil {
		t.Fatal(err)
	}
	if points, _ := check.Sizes(c.Home); len(points) != 1 || points[0].At != now.UnixMilli() {
		t.Errorf("points of one day: %v", points)
	}
}

func TestDSK_06_TheRecordOfSizesIsBoundedAndSurvivesATornLine(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := sizedHome(t, &now)
	if err := os.MkdirAll(c.Home.Logs(), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Home.Logs(), "sizes.jsonl")
	var lines strings.Builder
	for i := range 800 {
		day := now.AddDate(0, 0, i-800)
		lines.WriteString(`{"at":` + strconv.FormatInt(day.UnixMilli(), 10) + `,"total":1,"parts":{}}` + "\n")
	}
	lines.WriteString(`{"at":17`) // a crash cut it off
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check.RecordSizes(t.Context(), c.Worker()); err != nil {
		t.Fatal(err)
	}
	points, err := check.Sizes(c.Home)
	if err != nil || len(points) != 400 || points[len(points)-1].At != now.UnixMilli() {
		t.Fatalf("%d points, %v", len(points), err)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "\n") != 400 {
		t.Errorf("%d lines are kept, %v", strings.Count(string(data), "\n"), err)
	}
}
