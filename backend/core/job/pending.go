package job

import (
	"bytes"
	"encoding/json"
	"slices"

	"bridge/backend/core/bridge"
)

// PendingFile is the name of the file with changes that wait for jobs.json.
const PendingFile = "jobs.json"

// pendingVersion is the version of Pending that this program writes.
const pendingVersion = 1

// Pending has the changes of jobs since older programs use jobs.json too: the
// differences from that file (VER-05).
type Pending struct {
	Version    int               `json:"version"`
	RecordedAt Millis            `json:"recordedAt"`
	Jobs       []PendingJob      `json:"jobs"`
	Handoffs   []json.RawMessage `json:"handoffs,omitempty"` // those that jobs.json lacks
}

// PendingJob is one pending entry of jobs.json, and the entry that it is based on; a
// new job has none.
type PendingJob struct {
	Job  json.RawMessage `json:"job"`
	Base json.RawMessage `json:"baseJob,omitempty"`
}

// DecodePending reads an encoded Pending. It fails with Unsupported for a newer
// version.
func DecodePending(data []byte) (Pending, error) {
	var p Pending
	if err := json.Unmarshal(data, &p); err != nil {
		return Pending{}, bridge.Errorf(bridge.Unsupported, "it is not readable: %s", err)
	}
	if p.Version > pendingVersion {
		return Pending{}, bridge.Errorf(bridge.Unsupported, "it has version %d and this Bridge knows version %d", p.Version, pendingVersion)
	}
	return p, nil
}

// Since returns the changes of the file from an earlier one. No entry leaves a file
// while older programs use it. It fails if an entry cannot be encoded.
func (f File) Since(before File, at Millis) (Pending, error) {
	p := Pending{Version: pendingVersion, RecordedAt: at, Jobs: []PendingJob{}, Handoffs: lacking(before.Handoffs, f.Handoffs)}
	known := map[string]json.RawMessage{}
	for _, job := range before.Jobs {
		raw, err := job.MarshalJSON()
		if err != nil {
			return Pending{}, err
		}
		known[job.Name] = raw
	}
	for _, job := range f.Jobs {
		raw, err := job.MarshalJSON()
		if err != nil {
			return Pending{}, err
		}
		if base := known[job.Name]; !bytes.Equal(raw, base) {
			p.Jobs = append(p.Jobs, PendingJob{raw, base})
		}
	}
	return p, nil
}

// lacking returns the elements of list that are not in has.
func lacking(has, list []json.RawMessage) (missing []json.RawMessage) {
	for _, message := range list {
		if !slices.ContainsFunc(has, func(known json.RawMessage) bool { return bytes.Equal(known, message) }) {
			missing = append(missing, message)
		}
	}
	return missing
}

// Merge returns the file with the pending changes. If both changed an entry, it takes
// each changed member; an ended job stays ended. A repeat has no effect. It fails if a
// pending entry is not a JSON object.
func (f File) Merge(p Pending) (File, error) {
	f.Jobs = slices.Clone(f.Jobs)
	for _, waiting := range p.Jobs {
		var ours, base Job
		if err := json.Unmarshal(waiting.Job, &ours); err != nil {
			return File{}, err
		}
		if len(waiting.Base) > 0 {
			if err := json.Unmarshal(waiting.Base, &base); err != nil {
				return File{}, err
			}
		}
		at := slices.IndexFunc(f.Jobs, func(job Job) bool { return job.Name == ours.Name && job.ID == ours.ID })
		if at < 0 {
			f.Jobs = append(f.Jobs, ours)
			continue
		}
		merged, err := mergeEntry(f.Jobs[at], ours, base)
		if err != nil {
			return File{}, err
		}
		f.Jobs[at] = merged
	}
	f.Handoffs = append(slices.Clone(f.Handoffs), lacking(f.Handoffs, p.Handoffs)...)
	data, err := f.Encode()
	if err != nil {
		return File{}, err
	}
	return DecodeFile(data) // finds names that are now duplicates
}

// mergeEntry returns theirs with the changes from base to ours.
func mergeEntry(entry, ours, base Job) (merged Job, err error) {
	if entry.State.IsEnded() && !ours.State.IsEnded() && !base.State.IsEnded() {
		return entry, nil
	}
	var out, changed, from members
	for job, into := range map[*Job]*members{&entry: &out, &ours: &changed, &base: &from} {
		raw, err := job.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return Job{}, err
		}
	}
	for name, raw := range changed {
		if !bytes.Equal(raw, from[name]) {
			out[name] = raw
		}
	}
	for name := range from {
		if _, has := changed[name]; !has {
			delete(out, name)
		}
	}
	raw, err := out.object(nil)
	if err == nil {
		err = json.Unmarshal(raw, &merged)
	}
	return merged, err
}
