package daemon

import "time"

// backupLook bounds the time between two checks for a due backup: a timer pauses while
// the computer sleeps, and the owner may change the settings meanwhile.
const backupLook = time.Minute

// startBackups starts the loop of the automatic backups.
func (d *Daemon) startBackups() {
	if d.opts.BackUpMessages != nil {
		d.tasks.Go(d.backupLoop)
	}
}

// backupLoop starts a process that backs up the messages, once per interval since
// the newest set (STO-10). It retries a failed one an interval later, because every
// attempt stays on the disk. It reads the settings before each look.
func (d *Daemon) backupLoop() {
	var tried time.Time
	for {
		wait := backupLook
		if interval := backupInterval(d.opts); interval > 0 {
			if wait = d.untilBackup(interval, tried); wait == 0 {
				tried = d.opts.Now()
				d.backUpMessages()
			}
		}
		select {
		case <-time.After(min(wait, backupLook)):
		case <-d.tasks.Done():
			return
		}
	}
}

// backupInterval returns the time between two automatic backups, or 0 for none. While the
// settings cannot be read there is none.
func backupInterval(opts Options) time.Duration {
	settings, err := opts.Home.Settings(opts.Getenv)
	if err != nil || !settings.AutoBackup {
		return 0
	}
	return settings.BackupInterval
}

// untilBackup returns the time until the next backup, at most an interval. A clock
// that was set back must not delay the backup longer.
func (d *Daemon) untilBackup(interval time.Duration, tried time.Time) time.Duration {
	now := d.opts.Now()
	due, err := d.maintenance().Snapshots().NextMessageBackup(interval)
	if err != nil {
		d.opts.Log.Warn("it cannot be told when the messages were last backed up", "err", err)
	}
	if retryAt := tried.Add(interval); !tried.IsZero() && retryAt.After(due) {
		due = retryAt
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
