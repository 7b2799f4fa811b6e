package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/testing/testkit"
)

// TestSTO_18_AStartThatCannotReadItsStoreChangesNothing: it fails with three lines, the last
// of them with the newest snapshot's name; a store that it can read is served.
func TestSTO_18_AStartThatCannotReadItsStoreChangesNothing(t *testing.T) {
	for name, refused := range map[string]bool{"messages": true, "peer_names": true, "decisions": false, "delivery_stages": false} {
		t.Run("STO-18 "+name, func(t *testing.T) {
			home := newHome(t)
			opts := options(home, "serve")
			end(t, start(t, opts))
			d := &Daemon{opts: opts, tasks: lifecycle.NewTasks(t.Context())}
			made, err := d.maintenance().Snapshots().Backup(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			testkit.DamagePage(t, home.DB(), name, testkit.RootPage)
			before, err := os.ReadFile(home.DB())
			if err != nil {
				t.Fatal(err)
			}
			running, err := Start(t.Context(), opts)
			if !refused {
				if err != nil {
					t.Fatal(err)
				}
				if err := running.Close(); err != nil {
					t.Logf("its end: %v", err)
				}
				return
			}
			var damage *check.DamageError
			if !errors.As(err, &damage) || bridge.CodeOf(err) != bridge.Storage {
				t.Fatalf("Start = %v", err)
			}
			lines := damage.Lines()
			if len(lines) != 3 || !strings.Contains(lines[0], home.DB()) || !strings.Contains(lines[2], "--restore "+filepath.Base(made.Path)) {
				t.Errorf("the lines are %q", lines)
			}
			if checked := Check(t.Context(), home, opts.Getenv); checked == nil || checked.Error() != err.Error() {
				t.Errorf("Check = %v", checked)
			}
			after, err := os.ReadFile(home.DB())
			if beside, _ := filepath.Glob(home.DB() + "*"); err != nil || !bytes.Equal(before, after) || len(beside) != 1 {
				t.Errorf("the store was changed: %v, %v", beside, err)
			}
		})
	}
}
