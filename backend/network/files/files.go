// Package files transfers files between paired PCs (RMT-20). It offers what the owner
// sends, in chunks, and accepts what another PC's owner sends, as this owner's policy
// allows. After a lost link or the end of a program, a transfer resumes from the data on
// the receiver's disk. When all files are there and their checksums are right, one rename
// moves them into the inbox; they are never opened. The rules are in remote.
package files

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// Options configures [Transfers]. All fields except Disk, Timing and MarkEvery are required.
type Options struct {
	Home      config.Home
	Transport pairing.Transport
	// Policy returns what the owner of this PC allows now.
	Policy func() (remote.Policy, error)
	// Changed is called after something that is shown has changed.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
	// Disk writes the files; tests make single steps fail.
	Disk   disk.Files
	Timing Timing
	// MarkEvery is how many bytes are received before they are made durable; 0 means 16 MiB.
	MarkEvery int64
}

// Timing sets the intervals and timeouts between the two sides.
type Timing struct {
	PollInterval time.Duration // how often to poll for an unavailable PC
	Timeout      time.Duration // a sender without an answer for this time offers again
	Idle         time.Duration // a receiver without a chunk for this time frees its slot
	Busy         time.Duration // the pause until a busy receiver is asked again
}

var usualTiming = Timing{PollInterval: 500 * time.Millisecond, Timeout: 20 * time.Second, Idle: time.Minute, Busy: 5 * time.Second}

const (
	// sendAtOnce is how many transfers are sent at a time; others wait.
	sendAtOnce = 4
	// offersAtOnce is how many offers of one PC are processed at a time. Further offers
	// get no answer.
	offersAtOnce = 8
	// shownTransfers is how many transfers are listed.
	shownTransfers = 200
	// shownNames is how many names are shown for a transfer.
	shownNames = 5
	// worthShowing is how many bytes must have moved before watchers are notified.
	worthShowing = 4 << 20
	// keepFree is how many bytes of a disk received files leave free.
	keepFree = 16 << 20
	// abandonedAfter is when an incomplete transfer is given up.
	abandonedAfter = 7 * 24 * time.Hour
)

// Transfers manages the files that this PC sends and receives.
type Transfers struct {
	opts  Options
	slots chan struct{} // capacity sendAtOnce: each outgoing transfer holds one

	mu      sync.Mutex
	records map[string]*record    // all records, by id
	out     map[string]*sending   // outgoing ones that have not ended
	in      map[string]*receiving // incoming ones that have a slot now
	offers  map[string]int        // offers in processing, by PC
	moved   map[string]*progress
	changed chan struct{} // closed, and replaced, with every change

	tasks *lifecycle.Tasks
}

// progress is the progress of a transfer, for watchers.
type progress struct {
	revision      int64
	state         string
	done          int64 // bytes of its total, with the manifest
	reportedBytes int64 // done at the last revision
}

// Open reads the transfer records; Run resumes the transfers. It fails if the folder of records
// cannot be read. It skips single records that cannot be read.
func Open(opts Options) (*Transfers, error) {
	if opts.Timing == (Timing{}) {
		opts.Timing = usualTiming
	}
	if opts.MarkEvery == 0 {
		opts.MarkEvery = usualMark
	}
	t := &Transfers{
		opts: opts, slots: make(chan struct{}, sendAtOnce), out: map[string]*sending{}, in: map[string]*receiving{},
		offers: map[string]int{}, moved: map[string]*progress{}, changed: make(chan struct{}),
	}
	t.tasks = lifecycle.NewTasks(context.Background())
	var err error
	if t.records, err = loadRecords(t.recordsFolder()); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Transfers) recordsFolder() string {
	return filepath.Join(t.opts.Home.Dir(), "network", "transfers")
}

func (t *Transfers) partial(id string) string {
	return filepath.Join(t.opts.Home.Dir(), "network", "incoming", id)
}

func (t *Transfers) inbox(id string) string {
	return filepath.Join(t.opts.Home.Dir(), "inbox", id)
}

// Run resumes earlier transfers.
func (t *Transfers) Run() {
	t.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.records {
		if !r.Incoming && !r.hasEnded() && t.out[r.ID] == nil {
			t.startLocked(r)
		}
	}
}

// Close interrupts the transfers; the next process resumes them.
func (t *Transfers) Close() {
	t.mu.Lock() // no goroutine starts after this
	t.tasks.Cancel()
	t.mu.Unlock()
	t.tasks.Wait()
}

// Busy reports whether transfers are running.
func (t *Transfers) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.out)+len(t.in) > 0
}

// Register serves the operations about files. The broker lets only the owner call them.
func (t *Transfers) Register(m *mux.Mux) {
	mux.Handle(m, api.OpSendFiles, func(_ context.Context, _ *ipc.Conn, a api.SendFilesArgs) (api.Transfer, error) {
		return t.Send(a.Host, a.Paths)
	})
	mux.Handle(m, api.OpTransfer, func(ctx context.Context, _ *ipc.Conn, a api.TransferArgs) (api.Transfer, error) {
		return t.Await(ctx, a.ID, a.Seen)
	})
	mux.Handle(m, api.OpTransfers, func(context.Context, *ipc.Conn, api.Empty) (api.Transfers, error) { return t.List(), nil })
	mux.Handle(m, api.OpCancelTransfer, func(_ context.Context, _ *ipc.Conn, a api.TransferArgs) (api.Transfer, error) {
		return t.Cancel(a.ID)
	})
}

// Send starts to send files and folders of this PC to a paired one. It fails with NotFound for
// an unknown PC or a missing path, and with Unavailable without a link. It fails with Invalid
// for a relative path or a symbolic link, and with TooLarge for too many files.
func (t *Transfers) Send(host string, paths []string) (api.Transfer, error) {
	peer, err := t.receiver(host)
	if err != nil {
		return api.Transfer{}, err
	}
	sources, err := gather(paths)
	if err != nil {
		return api.Transfer{}, err
	}
	r := &record{
		Version: recordVersion, ID: uuid.NewString(), PC: api.PCName{Name: peer.Name, ID: peer.ID}, State: stateOpen,
		Names: namesOf(sources), Sources: sources, Started: t.opts.Now().UnixMilli(), Offer: remote.FileOffer{Entries: len(sources)},
	}
	for _, source := range sources {
		r.Offer.Bytes += source.Bytes
	}
	if err := t.write(r); err != nil {
		return api.Transfer{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records[r.ID] = r
	t.startLocked(r)
	return t.viewLocked(r), nil
}

// receiver returns the paired PC with that name, if it can receive files now.
func (t *Transfers) receiver(host string) (remote.Status, error) {
	for _, status := range t.opts.Transport.Status() {
		if status.Name != host {
			continue
		}
		switch {
		case !status.Up && t.linksAreOff():
			return status, bridge.Errorf(bridge.Unavailable, "links are off on this PC, so nothing was sent: turn them on with `bridge network on`")
		case !status.Up:
			return status, bridge.Errorf(bridge.Unavailable, "there is no link to %s now: is it on, and is Bridge running there?", host)
		case !status.Can(remote.FilesCapability):
			return status, remote.ErrUpdate(status, remote.FilesCapability)
		}
		return status, nil
	}
	return remote.Status{}, bridge.Errorf(bridge.NotFound, "there is no PC named %q: bridge network lists those that are paired", host)
}

// linksAreOff reports whether the owner of this PC switched links off.
func (t *Transfers) linksAreOff() bool {
	policy, err := t.opts.Policy()
	return err == nil && !policy.Enabled
}

// List returns the transfers, newest first.
func (t *Transfers) List() api.Transfers {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := api.Transfers{Transfers: []api.Transfer{}}
	for _, r := range t.records {
		list.Transfers = append(list.Transfers, t.viewLocked(r))
	}
	slices.SortFunc(list.Transfers, func(a, b api.Transfer) int {
		return cmp.Or(cmp.Compare(b.Started, a.Started), cmp.Compare(a.ID, b.ID))
	})
	list.Transfers = list.Transfers[:min(len(list.Transfers), shownTransfers)]
	return list
}

// Await returns when the transfer has a newer revision than seen, or has ended. It fails with
// NotFound for an unknown transfer, with Unavailable after Close, and if ctx ends.
func (t *Transfers) Await(ctx context.Context, id string, seen int64) (api.Transfer, error) {
	for {
		t.mu.Lock()
		r := t.records[id]
		if r == nil {
			t.mu.Unlock()
			return api.Transfer{}, errNoTransfer(id)
		}
		view, changed := t.viewLocked(r), t.changed
		t.mu.Unlock()
		if view.Revision > seen || view.HasEnded() {
			return view, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return api.Transfer{}, ctx.Err()
		case <-t.tasks.Done():
			return api.Transfer{}, bridge.Errorf(bridge.Unavailable, "this broker is ending: the next one goes on with the transfer")
		}
	}
}

func errNoTransfer(id string) error {
	return bridge.Errorf(bridge.NotFound, "there is no transfer %q: bridge files lists them", id)
}

// Cancel ends a transfer on both sides. It fails with NotFound, or Conflict if it has ended.
func (t *Transfers) Cancel(id string) (api.Transfer, error) {
	t.mu.Lock()
	r := t.records[id]
	if r == nil {
		t.mu.Unlock()
		return api.Transfer{}, errNoTransfer(id)
	}
	out, in := t.out[id], t.in[id]
	ended := r.hasEnded()
	t.mu.Unlock()
	why := bridge.Errorf(bridge.Conflict, "it was cancelled")
	switch {
	case ended:
		return api.Transfer{}, bridge.Errorf(bridge.Conflict, "the transfer has ended already")
	case out != nil:
		out.stop(errCancelled)
		<-out.ended
	case in != nil:
		in.stop(why)
		<-in.ended
	default: // incoming, but not being received now
		t.sendRefusal(r.PC.ID, id, why)
		t.dropPartial(r, why)
	}
	return t.Await(context.Background(), id, 0)
}

// Forsake ends the transfers with PCs that are unpaired, or no longer in the team
// (HUB-03), and deletes their partial files. It does not block.
func (t *Transfers) Forsake(knows func(pc string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks.HasEnded() {
		return
	}
	for id, r := range t.records {
		if r.hasEnded() || knows(r.PC.ID) {
			continue
		}
		why := errForsaken(r.PC.Name)
		switch out, in := t.out[id], t.in[id]; {
		case out != nil:
			out.stop(why)
		case in != nil:
			in.stop(why)
		case r.Incoming:
			t.tasks.Go(func() { t.dropPartial(r, why) })
		}
	}
}

func errForsaken(pc string) error {
	return bridge.Errorf(bridge.Conflict, "%s is neither paired with this PC nor in its team any more", pc)
}

var errCancelled = bridge.Errorf(bridge.Conflict, "it was cancelled")

// Take processes a frame of that PC from the transport. It does not block.
func (t *Transfers) Take(from remote.PC, frame remote.Frame) {
	fileFrame, err := remote.ParseFileFrame(frame.Payload, len(frame.Body))
	if err != nil {
		t.opts.Log.Warn("a paired PC sent what is no part of a transfer", "peer", from.Name, "err", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, in := t.out[fileFrame.ID], t.in[fileFrame.ID]
	switch {
	case t.tasks.HasEnded():
	case fileFrame.Kind == remote.OfferFiles:
		t.handleOfferLocked(from, fileFrame)
	case out != nil && out.record.PC.ID == from.ID:
		out.hear(fileFrame)
	case in != nil && in.record.PC.ID == from.ID:
		in.take(fileFrame, frame.Body)
	case fileFrame.Kind == remote.RefuseFiles:
		t.cancelIncomingLocked(from, fileFrame)
	}
}

// cancelIncomingLocked ends an incoming transfer without a slot when its sender cancels it.
func (t *Transfers) cancelIncomingLocked(from remote.PC, frame remote.FileFrame) {
	r := t.records[frame.ID]
	if r != nil && r.Incoming && r.PC.ID == from.ID && !r.hasEnded() {
		t.tasks.Go(func() { t.dropPartial(r, frame.Error) })
	}
}

// handleOfferLocked processes an offer in a separate goroutine.
func (t *Transfers) handleOfferLocked(from remote.PC, frame remote.FileFrame) {
	if t.offers[from.ID] == offersAtOnce {
		return
	}
	t.offers[from.ID]++
	t.tasks.Go(func() {
		answer := t.consider(from, frame.ID, *frame.Offer)
		if answer.Error != nil {
			t.opts.Log.Info("files of a paired PC were refused", "peer", from.Name, "transfer", frame.ID, "err", answer.Error)
		}
		t.send(t.tasks.Context(), from.ID, answer)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.offers[from.ID]--
	})
}

// send sends a frame without a body. It only logs a failure, because the protocol recovers.
func (t *Transfers) send(ctx context.Context, pc string, frame remote.FileFrame) {
	payload, err := frame.Encode()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, t.opts.Timing.Timeout)
		defer cancel()
		err = t.opts.Transport.Send(ctx, pc, remote.Frame{Type: remote.FilesFrameType, Payload: payload})
	}
	if err != nil {
		t.opts.Log.Debug("a paired PC was not told about a transfer", "transfer", frame.ID, "err", err)
	}
}

func (t *Transfers) sendRefusal(pc, id string, why error) {
	t.send(context.WithoutCancel(t.tasks.Context()), pc, remote.FileFrame{Kind: remote.RefuseFiles, ID: id, Error: publicError(why)})
}

// publicError returns what the other PC may read of an error: a sentence for people.
func publicError(err error) *bridge.Error {
	var public *bridge.Error
	if errors.As(err, &public) && public.Code != bridge.Internal {
		return &bridge.Error{Code: public.Code, Message: public.Message}
	}
	return bridge.Errorf(bridge.Internal, "something went wrong there: its log says what")
}

// report stores the progress of a transfer and notifies watchers.
func (t *Transfers) report(r *record, state string, done int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.moved[r.ID]
	if p == nil {
		p = &progress{}
		t.moved[r.ID] = p
	}
	isWorthReporting := p.state != state || done < p.reportedBytes || done-p.reportedBytes >= worthShowing
	p.state, p.done = state, done
	if isWorthReporting {
		p.reportedBytes = done
		t.changedLocked(p)
	}
}

func (t *Transfers) changedLocked(p *progress) {
	p.revision++
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *Transfers) viewLocked(r *record) api.Transfer {
	view := api.Transfer{
		ID: r.ID, Incoming: r.Incoming, PC: r.PC, Names: append([]string{}, r.Names...), Files: r.Offer.Entries, Bytes: r.Offer.Bytes,
		Started: r.Started, Ended: r.Ended, State: api.TransferWaiting,
	}
	if p := t.moved[r.ID]; p != nil {
		view.Revision, view.State = p.revision, p.state
		view.Done = p.done
		if p.state == api.TransferMoving || p.state == api.TransferWaiting {
			view.Done = max(0, p.done-int64(r.Offer.ManifestBytes))
		}
	}
	switch r.State {
	case stateDone:
		view.State, view.Done = api.TransferDone, r.Offer.Bytes
		if r.Incoming {
			view.Folder = t.inbox(r.ID)
		}
	case stateFailed:
		view.State, view.Error, view.Code = api.TransferFailed, r.Error, r.Code
	case stateOpen:
	}
	return view
}
