package daemon

import (
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/platform/config"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/maintain/check"
)

func TestDSK_06_TheHomesSizeIsRecordedOnceADay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	synctest.Test(t, func(t *testing.T) {
		home, err := config.ResolveHome(dir, noEnv)
		if err != nil {
			t.Fatal(err)
		}
		if err := home.Ensure(); err != nil {
			t.Fatal(err)
		}
		d := &Daemon{opts: Options{Home: home, Getenv: noEnv, Host: "serve", Now: time.Now, Log: slog.New(slog.DiscardHandler)}, tasks: lifecycle.NewTasks(t.Context())}
		d.tasks.Go(d.sizesLoop)
		points := func() int {
			t.Helper()
			synctest.Wait()
			recorded, err := check.Sizes(d.opts.Home)
			if err != nil {
				t.Fatal(err)
			}
			return len(recorded)
		}
		time.Sleep(sizesRest / 2)
		if n := points(); n != 0 {
			t.Errorf("a daemon that has just started recorded %d points", n)
		}
		time.Sleep(sizesRest)
		if n := points(); n != 1 {
			t.Errorf("%d points after the first minute, want 1", n)
		}
		time.Sleep(3 * 24 * time.Hour)
		if n := points(); n < 3 || n > 4 {
			t.Errorf("%d points after three days", n)
		}
		d.tasks.Stop()
	})
}
