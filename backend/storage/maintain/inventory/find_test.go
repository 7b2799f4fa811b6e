package inventory

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

func TestDOC_12_SnapshotsAreFoundByShortNames(t *testing.T) {
	folder := t.TempDir()
	home, err := config.ResolveHome(folder, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	const first, second, third = "snapshot-1795788876872-35da24b1-1d87-444a-981c-8336477afe4a", "snapshot-1795788879872-35db24b1-1d87-444a-981c-8336477afe4a",
		"snapshot-1795875279872-e14b24b1-1d87-444a-981c-8336477afe4a"
	for _, name := range []string{first, second, third} {
		if err := os.MkdirAll(filepath.Join(home.Backups(), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	minute := time.UnixMilli(1795875279872).Format("2006-01-02-1504")
	if got := ShortName("backups/" + third); got != minute+"-e14b" {
		t.Errorf("the short name is %q", got)
	}
	if got := ShortName("snapshot-of-mine"); got != "snapshot-of-mine" {
		t.Errorf("another name is %q", got)
	}
	for typed, want := range map[string]string{
		"": third, "latest": third, first: first, minute: third, minute + "-e14b": third, ShortName(second): second, "35da": first, "e14b": third, "snapshot-1795788876": first,
	} {
		if got, err := FindSnapshot(home, typed); err != nil || filepath.Base(got) != want {
			t.Errorf("%q finds %q, %v", typed, got, err)
		}
	}
	for typed, code := range map[string]bridge.Code{"35d": bridge.Ambiguous, "20": bridge.Ambiguous, "snapshot-": bridge.Ambiguous, "zz": bridge.NotFound, "2001-": bridge.NotFound} {
		if got, err := FindSnapshot(home, typed); bridge.CodeOf(err) != code {
			t.Errorf("%q finds %q, %v", typed, got, err)
		}
	}
}
