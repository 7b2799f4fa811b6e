package daemon

import "time"

// backupLook bounds the time between two checks for a due backup, because a timer
// pauses while the computer sleeps.
const backupLook = 10 * time.Minute

// startBackups starts the backup loop if the settings enable it.
func (d *Daemon) startBackups() {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	if err != nil || !settings.AutoBackup || settings.BackupInterval == 0 || d.opts.BackUpMessages == nil {
		return // unreadable settings have prevented the start of the daemon
	}
	d.tasks.Go(func() { d.backupLoop(settings.BackupInterval) })
}

// backupLoop starts a process that backs up the messages, once per interval since
// the newest set (STO-10). It retries a failed one an interval later, because every
// attempt stays on the disk.
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

// untilBackup returns the time until the next backup, at most an interval. A clock
// that was set back must not delay the backup longer.
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

// backUpMessages starts the backup process and waits for it. The process continues
// if the daemon ends.
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
