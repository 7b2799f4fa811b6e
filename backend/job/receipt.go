package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"bridge/backend/bridge"
)

// Receipt is one entry of jobs.json that waits in pending-job-writes/v1 while older
// programs live that could not read the file if it were written now. It has the
// layout that is known in the field.
type Receipt struct {
	SchemaVersion int             `json:"schemaVersion"`
	Writer        Writer          `json:"writer"`
	Sequence      int64           `json:"sequence"`
	RecordedAt    Millis          `json:"recordedAt"`
	Job           json.RawMessage `json:"job"`
	BaseJob       json.RawMessage `json:"baseJob,omitempty"` // as the file had it
}

// Writer is the program that wrote a receipt.
type Writer struct {
	Name    string `json:"name"`
	Session string `json:"session"`
	Nonce   string `json:"nonce"`
}

// DecodeReceipt reads a receipt. ErrManual where it is larger than 32 MiB.
func DecodeReceipt(data []byte) (Receipt, error) {
	if len(data) > MaxEnvelopeBytes {
		return Receipt{}, ErrManual
	}
	var receipt Receipt
	if err := bridge.DecodeAdditive(data, MaxEnvelopeBytes, &receipt); err != nil {
		return Receipt{}, err
	}
	if receipt.SchemaVersion != 1 || len(receipt.Job) == 0 {
		return Receipt{}, bridge.Errorf(bridge.Unsupported, "the receipt is of version %d or holds no job", receipt.SchemaVersion)
	}
	return receipt, nil
}

// course are the members that tell where a job is; they go together.
var course = []string{
	"status", "state", "wait", "run", "startedAt", "finishedAt", "ended", "limitUntil", "delivered", "cancelAsked", "line", "queuedAt", "queuedMessages",
}

// Merge brings what a receipt wrote into the entry as it is: each member that the
// writer changed, and none that it left. Where a job is comes from one side as a
// whole: from the later run, else from the one that has ended, so that a late receipt
// takes back neither an end nor a continuation.
func (r Receipt) Merge(present json.RawMessage) (json.RawMessage, error) {
	base, written, now := members{}, members{}, members{}
	for _, one := range []struct {
		from json.RawMessage
		to   *members
	}{{r.BaseJob, &base}, {r.Job, &written}, {present, &now}} {
		if len(one.from) == 0 {
			continue
		}
		if err := json.Unmarshal(one.from, one.to); err != nil {
			return nil, bridge.Errorf(bridge.Unsupported, "a job's entry is no object: %w", err)
		}
	}
	merged := maps.Clone(now)
	names := slices.Concat(slices.Collect(maps.Keys(base)), slices.Collect(maps.Keys(written)))
	stays := present != nil && isFurther(now, written)
	for _, name := range names {
		if slices.Contains(course, name) && stays || equalJSON(base[name], written[name]) {
			continue
		}
		if value, has := written[name]; has {
			merged[name] = value
		} else {
			delete(merged, name)
		}
	}
	return merged.object(slices.Sorted(maps.Keys(merged)))
}

// isFurther reports whether the entry is further than what was written.
func isFurther(now, written members) bool {
	a, b := courseOf(now), courseOf(written)
	if a.Run != b.Run {
		return a.Run > b.Run
	}
	return a.State.IsEnded() && !b.State.IsEnded()
}

func courseOf(m members) (job Job) {
	data, err := m.object(slices.Sorted(maps.Keys(m)))
	if err == nil {
		err = json.Unmarshal(data, &job)
	}
	if err != nil {
		return Job{}
	}
	return job
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return len(a) == 0 && len(b) == 0
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
