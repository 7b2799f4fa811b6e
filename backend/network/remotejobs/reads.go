package remotejobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

// Read returns a part of a job's log, changes or result to its owner. It fails with NotFound if
// owner has no such job or no such result here, and with Invalid for a bad offset. It fails
// with Conflict if the content has changed since the first part.
func (o Owned) Read(ctx context.Context, request remote.Request) (*remote.Part, error) {
	if _, err := o.Job(request.Job, request.Peer); err != nil {
		return nil, err
	}
	switch request.Operation {
	case remote.ReadLog:
		log, err := o.Jobs.ReadLog(request.Job, request.From)
		return &remote.Part{Data: []byte(log.Text), Size: log.Size}, err
	case remote.ReadResult:
		return o.reading.part(request, func() ([]byte, error) {
			job, err := o.withResult(request.Job, request.Peer, request.Control.Result)
			if err != nil {
				return nil, err
			}
			return o.Jobs.EncodedResult(job, request.Control.Result)
		})
	default:
		return o.reading.part(request, func() ([]byte, error) {
			diff, err := o.Jobs.Diff(ctx, request.Job)
			if err != nil {
				return nil, err
			}
			return json.Marshal(diff)
		})
	}
}

// wholes caches the data that is read in parts, so that it is built once and not for each
// part. It holds one item until its last part was read. A nil wholes caches nothing.
type wholes struct {
	mu      sync.Mutex // held while an item is built
	key     string
	data    []byte
	version string
}

func (w *wholes) part(request remote.Request, load func() ([]byte, error)) (*remote.Part, error) {
	if w == nil {
		w = &wholes{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(request.Peer.Owner(), " ", request.Operation, " ", request.Job, " ", request.Control.Result)
	isRepeat := request.From == 0 && request.Operation == remote.ReadDiff // the changes may differ by now; a result stays
	if key != w.key || isRepeat || request.Of != "" && request.Of != w.version {
		data, err := load()
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		w.key, w.data, w.version = key, data, hex.EncodeToString(sum[:])
	}
	part := &remote.Part{Size: int64(len(w.data)), Of: w.version}
	switch {
	case request.Of != "" && request.Of != part.Of:
		return nil, bridge.Errorf(bridge.Conflict, "what is read of %s is different by now: read it from its begin", request.Job)
	case request.From > part.Size:
		return nil, bridge.Errorf(bridge.Invalid, "from must be 0 to %d, not %d", part.Size, request.From)
	}
	end := min(part.Size, request.From+remote.MaxPartBytes)
	part.Data = w.data[request.From:end]
	if end == part.Size {
		w.key, w.data, w.version = "", nil, ""
	}
	return part, nil
}
