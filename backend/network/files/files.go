// Package files carries files between paired PCs (RMT-20): it offers what the owner
// sends, chunk after chunk, and takes what another PC's owner sends, as far as this
// one's allows it. A transfer goes on after a cut, or after the end of either program,
// from what its receiver has on the disk. What arrives is put into the inbox by one
// rename, when all of it is there and its checksums are right; it is never opened. The
// rules are those of remote.
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

// Options say what it works with. All are required but Disk, Pace and MarkEvery.
type Options struct {
	Home      config.Home
	Transport pairing.Transport
	// Policy is what the owner of this PC allows now.
	Policy func() (remote.Policy, error)
	// Changed is told that something that is shown is different now.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
	// Disk is how files are written; tests let single steps of it fail.
	Disk disk.Files
	Pace Pace
	// MarkEvery is how many bytes are taken before they are made durable; 0 is 16 MiB.
	MarkEvery int64
}

// Pace is how long one side waits for the other.
type Pace struct {
	Look     time.Duration // how often a PC that is away is looked for
	Patience time.Duration // without a word, after which a sender offers again
	Idle     time.Duration // without a chunk, after which a receiver makes room for others
	Busy     time.Duration // until a receiver that had no room is asked again
}

var usualPace = Pace{Look: 500 * time.Millisecond, Patience: 20 * time.Second, Idle: time.Minute, Busy: 5 * time.Second}

const (
	// sendAtOnce is how many transfers go out at a time; others wait for them.
	sendAtOnce = 4
	// offersAtOnce is how many offers of one PC are looked at together. What comes
	// above is not answered.
	offersAtOnce = 8
	// shownTransfers is how many are listed.
	shownTransfers = 200
	// shownNames is how many names stand for all that was sent.
	shownNames = 5
	// worthShowing is how much has to have moved before somebody who watches is told.
	worthShowing = 4 << 20
	// keepFree is how much of a disk files of others never take.
	keepFree = 16 << 20
	// abandonedAfter is when what never arrived whole is given up.
	abandonedAfter = 7 * 24 * time.Hour
)

// Transfers are the files that this PC sends and takes.
type Transfers struct {
	opts  Options
	slots chan struct{} // capacity sendAtOnce: a transfer that goes out holds one

	mu      sync.Mutex
	records map[string]*record    // all there are, by id
	out     map[string]*sending   // those that have not ended
	in      map[string]*receiving // those that have room here now
	offers  map[string]int        // that are looked at, by PC
	moved   map[string]*progress
	changed chan struct{} // closed, and replaced, with every change

	tasks *lifecycle.Tasks
}

// progress is how far a transfer is, for whoever watches.
type progress struct {
	revision int64
	state    string
	done     int64 // of its total, the manifest included
	told     int64 // done, when the revision grew last
}

// Open reads what there is of transfers; Run goes on with them.
func Open(opts Options) (*Transfers, error) {
	if opts.Pace == (Pace{}) {
		opts.Pace = usualPace
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

// Run goes on with the transfers of before.
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

// Close breaks off what goes on; the next one goes on with it.
func (t *Transfers) Close() {
	t.mu.Lock() // nothing is begun after
	t.tasks.Cancel()
	t.mu.Unlock()
	t.tasks.Wait()
}

// Busy reports whether files are on their way.
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

// Send begins to send files and folders of this PC to a paired one.
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

// receiver is the paired PC of that name, if it can be sent files now.
func (t *Transfers) receiver(host string) (remote.Status, error) {
	for _, status := range t.opts.Transport.Status() {
		if status.Name != host {
			continue
		}
		switch {
		case !status.Up:
			return status, bridge.Errorf(bridge.Unavailable, "there is no link to %s now: is it on, and is Bridge running there?", host)
		case !status.Can(remote.FilesCapability):
			return status, remote.ErrUpdate(status, remote.FilesCapability)
		}
		return status, nil
	}
	return remote.Status{}, bridge.Errorf(bridge.NotFound, "there is no PC named %q: bridge network lists those that are paired", host)
}

// List lists the transfers, the newest first.
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

// Await returns when the transfer has gone on since the revision that was seen.
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

// Cancel ends a transfer that goes on, on both sides.
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
	default: // of one that comes in, and is not coming now
		t.tellRefused(r.PC.ID, id, why)
		t.dropPartial(r, why)
	}
	return t.Await(context.Background(), id, 0)
}

// Forsake ends the transfers with PCs that are unpaired, or in the team no more (HUB-03):
// what came of them so far is gone. It waits for nothing.
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

// Take serves a frame that the transport has brought from that PC. It waits for
// nothing.
func (t *Transfers) Take(from remote.PC, frame remote.Frame) {
	said, err := remote.ParseFileFrame(frame.Payload, len(frame.Body))
	if err != nil {
		t.opts.Log.Warn("a paired PC sent what is no part of a transfer", "peer", from.Name, "err", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, in := t.out[said.ID], t.in[said.ID]
	switch {
	case t.tasks.HasEnded():
	case said.Kind == remote.OfferFiles:
		t.takeOfferLocked(from, said)
	case out != nil && out.record.PC.ID == from.ID:
		out.hear(said)
	case in != nil && in.record.PC.ID == from.ID:
		in.take(said, frame.Body)
	case said.Kind == remote.RefuseFiles:
		t.takeBackLocked(from, said)
	}
}

// takeBackLocked ends a transfer that has no room here now, on its sender's word.
func (t *Transfers) takeBackLocked(from remote.PC, said remote.FileFrame) {
	r := t.records[said.ID]
	if r != nil && r.Incoming && r.PC.ID == from.ID && !r.hasEnded() {
		t.tasks.Go(func() { t.dropPartial(r, said.Error) })
	}
}

// takeOfferLocked has an offer looked at, beside what else comes.
func (t *Transfers) takeOfferLocked(from remote.PC, said remote.FileFrame) {
	if t.offers[from.ID] == offersAtOnce {
		return
	}
	t.offers[from.ID]++
	t.tasks.Go(func() {
		answer := t.consider(from, said.ID, *said.Offer)
		if answer.Error != nil {
			t.opts.Log.Info("files of a paired PC were refused", "peer", from.Name, "transfer", said.ID, "err", answer.Error)
		}
		t.say(t.tasks.Context(), from.ID, answer)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.offers[from.ID]--
	})
}

// say sends a frame without a body; that it did not go out shows by itself.
func (t *Transfers) say(ctx context.Context, to string, frame remote.FileFrame) {
	payload, err := frame.Encode()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, t.opts.Pace.Patience)
		defer cancel()
		err = t.opts.Transport.Send(ctx, to, remote.Frame{Type: remote.FilesFrameType, Payload: payload})
	}
	if err != nil {
		t.opts.Log.Debug("a paired PC was not told about a transfer", "transfer", frame.ID, "err", err)
	}
}

func (t *Transfers) tellRefused(to, id string, why error) {
	t.say(context.WithoutCancel(t.tasks.Context()), to, remote.FileFrame{Kind: remote.RefuseFiles, ID: id, Error: publicError(why)})
}

// publicError is what the other PC is told: no more than a sentence for people.
func publicError(err error) *bridge.Error {
	var public *bridge.Error
	if errors.As(err, &public) && public.Code != bridge.Internal {
		return &bridge.Error{Code: public.Code, Message: public.Message}
	}
	return bridge.Errorf(bridge.Internal, "something went wrong there: its log says what")
}

// tell notes how far a transfer is.
func (t *Transfers) tell(r *record, state string, done int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.moved[r.ID]
	if p == nil {
		p = &progress{}
		t.moved[r.ID] = p
	}
	shown := p.state != state || done < p.told || done-p.told >= worthShowing
	p.state, p.done = state, done
	if shown {
		p.told = done
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
