package daemon

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/platform/config"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/testing/testkit"
)

// backups is what a daemon was asked to start.
type backups chan struct{}

func (b backups) start() (<-chan struct{}, error) {
	b <- struct{}{}
	return nil, errors.New("it could not be started")
}

func TestSTO_10_TheDaemonBacksUpOnlyWhenAskedTo(t *testing.T) {
	for _, tt := range []struct {
		auto, interval string
		want           bool
	}{{"1", "", true}, {"", "", false}, {"yes", "", false}, {"1", "0", false}, {"1", "-3", true}} {
		t.Run("STO-11 "+tt.auto+" every "+tt.interval, func(t *testing.T) {
			asked := make(backups, 10)
			opts := options(newHome(t), "serve")
			opts.BackUpMessages = asked.start
			opts.Getenv = func(name string) string {
				return map[string]string{"BRIDGE_AUTO_BACKUP": tt.auto, "BRIDGE_BACKUP_INTERVAL_MS": tt.interval}[name]
			}
			d := start(t, opts)
			if tt.want {
				select {
				case <-asked:
				case <-time.After(testkit.Patience):
					t.Error("no backup was started")
				}
			}
			end(t, d)
			if len(asked) > 0 {
				t.Errorf("%d more backups were started", len(asked))
			}
		})
	}
}

func TestSTO_10_AFailedBackupWaitsForItsInterval(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	opts := options(newHome(t), "serve")
	opts.Now = func() time.Time { return now }
	d := &Daemon{opts: opts}
	for _, tt := range []struct {
		tried time.Time
		want  time.Duration
	}{{time.Time{}, 0}, {now, time.Hour}, {now.Add(-time.Minute), 59 * time.Minute}, {now.Add(-2 * time.Hour), 0}, {now.Add(5 * time.Hour), time.Hour}} {
		if got := d.untilBackup(time.Hour, tt.tried); got != tt.want {
			t.Errorf("tried %v: %v, want %v", tt.tried, got, tt.want)
		}
	}
}

// The setting turns backups on and off while the broker runs; the variables win.
func TestDOC_11_TheBackupLoopReadsTheSettingAgain(t *testing.T) {
	home := newHome(t)
	if err := os.MkdirAll(home.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	var forbidden atomic.Bool
	asked := make(backups, 10)
	opts := options(home, "serve")
	opts.BackUpMessages = asked.start
	opts.Getenv = func(name string) string {
		if name == "BRIDGE_AUTO_BACKUP" && forbidden.Load() {
			return "0"
		}
		return ""
	}
	set := func(key, value string) {
		t.Helper()
		if err := (config.File{Home: home}).SetMember(key, value); err != nil {
			t.Error(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		opts.Now = time.Now
		d := &Daemon{opts: opts, tasks: lifecycle.NewTasks(context.Background())}
		d.startBackups()
		started := func() int {
			time.Sleep(2 * backupLook)
			synctest.Wait()
			n := len(asked)
			for range n {
				<-asked
			}
			return n
		}
		if n := started(); n != 0 {
			t.Errorf("%d were started while backups are off", n)
		}
		set("backups.auto", "true")
		if n := started(); n != 1 {
			t.Errorf("%d were started after they were switched on, want 1", n)
		}
		set("backups.everyHours", "2")
		time.Sleep(2 * time.Hour)
		if n := started(); n != 1 {
			t.Errorf("%d were started two hours later, want 1", n)
		}
		forbidden.Store(true)
		time.Sleep(2 * time.Hour)
		if n := started(); n != 0 {
			t.Errorf("%d were started although the variable forbids it", n)
		}
		d.tasks.Stop()
	})
}
