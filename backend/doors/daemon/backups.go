package daemon

import "time"

// backupLook bounds the time between two looks at whether a backup is due: a
// timer stands still while the computer sleeps.
const backupLook = 10 * time.Minute

// startBackups begins the loop where the settings ask for it.
func (d *Daemon) startBackups() {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil || !settings.AutoBackup || settings.BackupInterval == 0 || d.opts.BackUpMessages == nil {
		return // settings that cannot be read have kept the daemon from starting
	}
	d.tasks.Go(func() { d.backupLoop(settings.BackupInterval) })
}

// backupLoop starts a process that backs the messages up, once in each interval
// counted from the newest set (STO-10). A failed one is tried again an interval
// later: every attempt stays on the disk.
func (d *Daemon) backupLoop(interval time.Duration) {
	var tried time.Time
	for {
		wait := d.untilBackup(interval, tried)
		if wait == 0 {
			tried = d.opts.Now()
			d.backUpMessages()
		}
		select {
		case <-time.After(min(wait, backupLook)):
		case <-d.tasks.Done():
			return
		}
	}
}

// untilBackup is how long no backup is due, at most an interval: a clock that
// was put back must not keep the backup away for longer.
func (d *Daemon) untilBackup(interval time.Duration, tried time.Time) time.Duration {
	now := d.opts.Now()
	due, err := d.maintenance().Snapshots().NextMessageBackup(interval)
	if err != nil {
		d.opts.Log.Warn("it cannot be told when the messages were last backed up", "err", err)
	}
	if again := tried.Add(interval); !tried.IsZero() && again.After(due) {
		due = again
	}
	return max(0, min(due.Sub(now), interval))
}

// backUpMessages starts the process and waits for its end; it goes on when the
// daemon ends.
func (d *Daemon) backUpMessages() {
	done, err := d.opts.BackUpMessages()
	if err != nil {
		d.opts.Log.Error("the backup of the messages could not be started", "err", err)
		return
	}
	select {
	case <-done:
	case <-d.tasks.Done():
	}
}
