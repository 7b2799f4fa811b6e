package paired

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/jobs/landing"
)

const (
	// readPause is how long a completed read of another PC's log counts as current.
	// However many readers there are, its PC gets one request a second, and one more
	// when the run has ended.
	readPause = time.Second
	// maxDiffBytes is the size limit of a diff from another PC.
	maxDiffBytes = 32 << 20
)

// lastRead is when a log had no new data, and the state of its job then.
type lastRead struct {
	at    time.Time
	run   int
	ended bool
}

// ReadLog continues to read the log of a job on another PC. It stores the data here, so
// that it is readable without that PC. While the job is active, a broken link is no
// error: the rest comes later.
func (j *Jobs) ReadLog(ctx context.Context, entry job.Job, from int64) (jobfiles.Log, error) {
	j.reading.Lock()
	defer j.reading.Unlock()
	here, err := jobfiles.ReadLog(entry.Name, from, j.opts.Files.Home, j.opts.Files.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
		if from > 0 {
			err = bridge.Errorf(bridge.Invalid, "from must be 0, for nothing of it was read yet")
		}
	}
	last, present := j.readAt[entry.Name], lastRead{at: j.opts.Now(), run: entry.Run, ended: entry.State.IsEnded()}
	paused := present.at.Sub(last.at) < readPause && last.run == present.run && last.ended == present.ended
	if err != nil || here.Next < here.Size || paused {
		return here, err
	}
	value, err := j.ask(ctx, entry, remote.Request{Operation: remote.ReadLog, From: here.Size}, nil)
	if err != nil {
		if here.Size > 0 || !present.ended && bridge.CodeOf(err) == bridge.Unavailable { // return the known part
			return here, nil
		}
		return here, err
	}
	j.readAt[entry.Name] = present
	if len(value.Part.Data) > 0 {
		if err := j.opts.Files.AppendLog(entry.Name, value.Part.Data); err != nil {
			return here, err
		}
		delete(j.readAt, entry.Name) // there may be more data
	}
	here, err = jobfiles.ReadLog(entry.Name, from, j.opts.Files.Home, j.opts.Files.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	here.Size = max(here.Size, value.Part.Size)
	return here, err
}

// Diff reads the changes of a job on another PC. It fails with that PC's error, with TooLarge
// if the changes exceed the limit, and with Invalid if they cannot be decoded.
func (j *Jobs) Diff(ctx context.Context, entry job.Job) (diff landing.Diff, err error) {
	var full []byte
	for version := ""; ; {
		value, err := j.ask(ctx, entry, remote.Request{Operation: remote.ReadDiff, From: int64(len(full)), Of: version}, nil)
		switch {
		case err != nil:
			return diff, err
		case value.Part.Size > maxDiffBytes:
			return diff, bridge.Errorf(bridge.TooLarge, "what %s changed needs %s: look at it on %s", entry.Name, bridge.Size(value.Part.Size), entry.Remote.Host)
		case len(value.Part.Data) == 0 && value.Part.Size > int64(len(full)):
			return diff, bridge.Errorf(bridge.Internal, "%s sent an empty part", entry.Remote.Host)
		}
		if full, version = append(full, value.Part.Data...), value.Part.Of; int64(len(full)) >= value.Part.Size {
			break
		}
	}
	if err := json.Unmarshal(full, &diff); err != nil {
		return diff, bridge.WithCause(bridge.Invalid, err, "what "+entry.Remote.Host+" says that "+entry.Name+" changed cannot be read")
	}
	return diff, nil
}
