package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// receiving is an incoming transfer.
type receiving struct {
	t      *Transfers
	record *record
	stop   context.CancelCauseFunc
	ended  chan struct{}
	// queue holds chunks that are not written yet. Its size is the widest window, and two
	// initial windows of an offer that resumes elsewhere.
	queue chan piece
	ready chan struct{} // closed when the position to resume at is known
	why   error         // why it cannot resume; read once ready

	store *store
}

// piece is a chunk with its position. Without data it requests the receiver's position.
type piece struct {
	at   int64
	data []byte
	tell chan<- int64
}

// consider answers an offer: accepted from a position on, done, or refused.
func (t *Transfers) consider(from remote.PC, id string, offer remote.FileOffer) remote.FileFrame {
	at, done, err := t.open(from, id, offer)
	switch {
	case err != nil:
		return remote.FileFrame{Kind: remote.RefuseFiles, ID: id, Error: publicError(err)}
	case done:
		return remote.FileFrame{Kind: remote.FilesDone, ID: id}
	}
	return remote.FileFrame{Kind: remote.AcceptFiles, ID: id, At: at}
}

func (t *Transfers) policy() (remote.Policy, error) {
	policy, err := t.opts.Policy()
	if err != nil {
		return policy, bridge.WithCause(bridge.Denied, err, "the settings of this PC cannot be read: nothing is allowed")
	}
	return policy, nil
}

// allow checks the owner's present policy.
func (t *Transfers) allow(name string, offer remote.FileOffer) (remote.Files, error) {
	policy, err := t.policy()
	if err == nil {
		err = policy.AllowFiles(name)
	}
	if err == nil {
		err = policy.Files.AllowOffer(offer)
	}
	return policy.Files.WithDefaults(), err
}

// open gives a transfer a slot, or returns the one that it has.
func (t *Transfers) open(from remote.PC, id string, offer remote.FileOffer) (at int64, done bool, err error) {
	limits, err := t.allow(from.Name, offer)
	if err != nil {
		return 0, false, err
	}
	t.mu.Lock()
	r, in := t.records[id], t.in[id]
	switch {
	case r != nil && (!r.Incoming || r.PC.ID != from.ID || r.Offer != offer):
		err = bridge.Errorf(bridge.Conflict, "another transfer has this id")
	case r != nil && r.State == stateFailed:
		err = &bridge.Error{Code: bridge.Code(r.Code), Message: r.Error}
	case r != nil && r.State == stateDone:
		done = true
	case in == nil && len(t.in) >= limits.AtOnce:
		err = bridge.Errorf(bridge.Busy, "no more than %s at a time (network.files.atOnce)", bridge.Counted(limits.AtOnce, "transfer"))
	case in == nil && t.tasks.HasEnded():
		err = bridge.Errorf(bridge.Busy, "Bridge is ending there")
	case in == nil:
		in = t.beginLocked(from, id, offer, r)
	}
	t.mu.Unlock()
	if err != nil || done {
		return 0, done, err
	}
	return in.where()
}

// beginLocked gives a transfer a slot. Its goroutine finds the data on the disk.
func (t *Transfers) beginLocked(from remote.PC, id string, offer remote.FileOffer, r *record) *receiving {
	isNew := r == nil
	if isNew {
		r = &record{
			Version: recordVersion, ID: id, Incoming: true, PC: api.PCName{Name: from.Name, ID: from.ID}, State: stateOpen,
			Offer: offer, Started: t.opts.Now().UnixMilli(),
		}
	}
	ctx, stop := context.WithCancelCause(t.tasks.Context())
	in := &receiving{
		t: t, record: r, stop: stop, ended: make(chan struct{}), queue: make(chan piece, remote.MaxChunkWindow+2*remote.ChunkWindow), ready: make(chan struct{}),
	}
	t.in[id] = in
	t.tasks.Go(func() {
		defer stop(nil)
		in.serve(ctx, isNew)
		t.mu.Lock()
		delete(t.in, id)
		t.mu.Unlock()
		close(in.ended)
	})
	return in
}

// where returns the position to resume at; done is set if all has arrived meanwhile.
func (in *receiving) where() (at int64, done bool, err error) {
	<-in.ready
	if in.why != nil {
		return 0, false, in.why
	}
	answer := make(chan int64, 1)
	select {
	case in.queue <- piece{tell: answer}:
	case <-in.ended:
	case <-in.t.tasks.Done():
	}
	select {
	case at = <-answer:
		return at, false, nil
	case <-in.ended:
	}
	in.t.mu.Lock()
	defer in.t.mu.Unlock()
	switch r := in.record; r.State {
	case stateDone:
		return 0, true, nil
	case stateFailed:
		return 0, false, &bridge.Error{Code: bridge.Code(r.Code), Message: r.Error}
	}
	return 0, false, bridge.Errorf(bridge.Busy, "it was about to wait for you: offer it again")
}

// serve receives chunks until the transfer is complete or must stop.
func (in *receiving) serve(ctx context.Context, isNew bool) {
	in.why = in.begin(isNew)
	close(in.ready)
	err := in.why
	if err == nil {
		err = in.writeChunks(ctx)
	}
	if err == nil {
		err = in.publish()
	}
	if in.store != nil {
		err = errors.Join(err, in.store.close())
	}
	switch {
	case err == nil:
		in.t.send(ctx, in.record.PC.ID, remote.FileFrame{Kind: remote.FilesDone, ID: in.record.ID})
		in.t.opts.Log.Info("files have arrived", "peer", in.record.PC.Name, "transfer", in.record.ID, "files", in.record.Offer.Entries)
	case errors.Is(err, errAway), errors.Is(err, errEnding):
		in.t.report(in.record, api.TransferWaiting, in.reached())
	default:
		in.t.opts.Log.Warn("a transfer that came in has failed", "peer", in.record.PC.Name, "transfer", in.record.ID, "err", err)
		in.t.dropPartial(in.record, err)
		in.t.sendRefusal(in.record.PC.ID, in.record.ID, err)
	}
}

func (in *receiving) reached() int64 {
	if in.store == nil {
		return 0
	}
	return in.store.at
}

// begin records the transfer and opens its data on the disk.
func (in *receiving) begin(isNew bool) error {
	r := in.record
	if isNew {
		free, err := disk.Free(in.t.opts.Home.Dir())
		if err == nil && free < r.Offer.Total()+keepFree {
			return bridge.Errorf(bridge.Storage, "the disk has not enough room for %s", bridge.Size(r.Offer.Bytes))
		}
		if err := in.t.write(r); err != nil {
			return err
		}
		in.t.mu.Lock()
		in.t.records[r.ID] = r
		in.t.mu.Unlock()
	}
	var err error
	if in.store, err = openStore(in.t.opts.Disk, in.t.partial(r.ID), r.Offer); err != nil {
		return stored("what was sent cannot be written", err)
	}
	in.t.report(r, api.TransferMoving, in.store.at)
	return nil
}

// errAway reports that nothing arrives any more, for now.
var errAway = errors.New("nothing comes any more")

// writeChunks writes chunks in order.
func (in *receiving) writeChunks(ctx context.Context) error {
	idle := time.NewTimer(in.t.opts.Timing.Idle)
	defer idle.Stop()
	for in.store.at < in.record.Offer.Total() {
		select {
		case piece := <-in.queue:
			idle.Reset(in.t.opts.Timing.Idle)
			if err := in.writeChunk(ctx, piece); err != nil {
				return err
			}
		case <-idle.C:
			return errors.Join(errAway, in.store.mark())
		case <-ctx.Done():
			if in.t.tasks.HasEnded() {
				return errors.Join(errEnding, in.store.mark())
			}
			return context.Cause(ctx)
		}
	}
	return nil
}

func (in *receiving) writeChunk(ctx context.Context, item piece) error {
	if item.tell != nil {
		item.tell <- in.store.at
		return nil
	}
	if item.at == in.store.at {
		if err := in.store.write(item.data); err != nil {
			return stored("what was sent cannot be written", err)
		}
		if in.store.at-in.store.marked >= in.t.opts.MarkEvery {
			if _, err := in.t.allow(in.record.PC.Name, in.record.Offer); err != nil {
				return err
			}
			if err := in.store.mark(); err != nil {
				return stored("what was sent cannot be written", err)
			}
		}
		in.t.report(in.record, api.TransferMoving, in.store.at)
	}
	// Chunks from before a resuming offer are not written again, or not yet.
	in.t.send(ctx, in.record.PC.ID, remote.FileFrame{Kind: remote.FileAck, ID: in.record.ID, At: in.store.at})
	return nil
}

// take queues a chunk without blocking. It ends the transfer of a sender that exceeds its
// window.
func (in *receiving) take(frame remote.FileFrame, body []byte) {
	switch frame.Kind {
	case remote.FileChunk:
		select {
		case in.queue <- piece{at: frame.At, data: body}:
		default:
			in.stop(bridge.Errorf(bridge.Invalid, "it was sent without waiting for what was taken"))
		}
	case remote.RefuseFiles:
		in.stop(frame.Error)
	case remote.OfferFiles, remote.AcceptFiles, remote.FileAck, remote.FilesDone:
	}
}

// publish moves the complete files into the inbox at once, if they are still allowed.
func (in *receiving) publish() error {
	r := in.record
	if _, err := in.t.allow(r.PC.Name, r.Offer); err != nil {
		return err
	}
	if err := in.store.finish(); err != nil {
		return stored("what was sent cannot be written", err)
	}
	final := in.t.inbox(r.ID)
	err := disk.MakeDir(filepath.Dir(final))
	if err == nil {
		err = in.t.opts.Disk.Publish(in.store.content(), final)
	}
	if err != nil {
		// The new name may not survive a power cut. A transfer that is reported as failed
		// must not be visible either.
		_ = os.Rename(final, in.store.content()) // usually it has no name yet
		return stored("what was sent cannot be put into the inbox", err)
	}
	in.t.mu.Lock()
	r.Names = namesIn(in.store.manifest)
	in.t.mu.Unlock()
	return in.t.arrived(r)
}

// arrived records a transfer whose files are in the inbox. The notes of its progress add
// nothing to the record.
func (t *Transfers) arrived(r *record) error {
	if err := t.close(r, nil); err != nil {
		t.opts.Log.Error("the end of a transfer was not recorded", "transfer", r.ID, "err", err) // the next start records it
		return nil
	}
	t.dropNotes(r.ID)
	return nil
}

// dropNotes deletes the partial files and notes of a transfer.
func (t *Transfers) dropNotes(id string) {
	if err := os.RemoveAll(t.partial(id)); err != nil {
		t.opts.Log.Warn("what was noted of a transfer stays", "transfer", id, "err", err)
	}
}

// dropPartial ends an incoming transfer that will not be completed: its sender has all of
// it. Files already in the inbox stay.
func (t *Transfers) dropPartial(r *record, why error) {
	if _, err := os.Lstat(t.inbox(r.ID)); err == nil {
		_ = t.arrived(r)
		return
	}
	t.dropNotes(r.ID) // first: an ended transfer leaves nothing behind
	t.mu.Lock()
	_, known := t.records[r.ID]
	t.mu.Unlock()
	if !known {
		return
	}
	if err := t.close(r, why); err != nil {
		t.opts.Log.Error("the end of a transfer was not recorded", "transfer", r.ID, "err", err)
	}
}

// dropNotesOfEnded deletes the notes of transfers that have ended since.
func (t *Transfers) dropNotesOfEnded() {
	entries, _ := os.ReadDir(filepath.Join(t.opts.Home.Dir(), "network", "incoming")) // without the folder there are none
	for _, entry := range entries {
		t.mu.Lock()
		r := t.records[entry.Name()]
		ended := r != nil && r.Incoming && r.hasEnded()
		t.mu.Unlock()
		if ended {
			t.dropNotes(entry.Name())
		}
	}
}

// settle completes steps that a crash interrupted, and gives up transfers that were idle
// too long.
func (t *Transfers) settle() {
	t.mu.Lock()
	var open []*record
	for _, r := range t.records {
		if r.Incoming && !r.hasEnded() {
			open = append(open, r)
		}
	}
	t.mu.Unlock()
	t.dropNotesOfEnded()
	for _, r := range open {
		if _, err := os.Lstat(t.inbox(r.ID)); err == nil {
			_ = t.arrived(r)
			continue
		}
		last := time.UnixMilli(r.Started)
		if info, err := os.Stat(filepath.Join(t.partial(r.ID), progressFile)); err == nil {
			last = info.ModTime()
		}
		if t.opts.Now().Sub(last) > abandonedAfter {
			t.dropPartial(r, bridge.Errorf(bridge.Conflict, "nothing of it came for %s: it was given up", strconv.Itoa(int(abandonedAfter/(24*time.Hour)))+" days"))
		}
	}
}
