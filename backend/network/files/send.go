package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// sending is an outgoing transfer.
type sending struct {
	t      *Transfers
	record *record // only run changes its Sources
	stop   context.CancelCauseFunc
	ended  chan struct{}

	mu       sync.Mutex // guards the received state below
	acked    int64
	window   *window // of the present attempt
	accepted *int64  // where the last offer resumes; nil while it is unanswered
	done     bool
	refused  error
	received lifecycle.Signal // check again
}

// startLocked starts or resumes an outgoing transfer.
func (t *Transfers) startLocked(r *record) {
	if t.tasks.HasEnded() {
		return
	}
	ctx, stop := context.WithCancelCause(t.tasks.Context())
	s := &sending{t: t, record: r, stop: stop, ended: make(chan struct{}), received: lifecycle.NewSignal(), window: newWindow()}
	t.out[r.ID] = s
	state := api.TransferPreparing
	if r.Offer.SHA256 != "" {
		state = api.TransferWaiting
	}
	t.moved[r.ID] = &progress{revision: 1, state: state}
	t.tasks.Go(func() {
		defer stop(nil)
		err := s.run(ctx)
		if !errors.Is(err, errEnding) {
			if err != nil && s.refusedBy() == nil {
				t.sendRefusal(r.PC.ID, r.ID, err)
			}
			if err := t.close(r, err); err != nil {
				t.opts.Log.Error("the end of a transfer was not recorded", "transfer", r.ID, "err", err)
			}
		}
		t.mu.Lock()
		delete(t.out, r.ID)
		t.mu.Unlock()
		close(s.ended)
	})
}

// errEnding reports that this program ends, and the next one resumes.
var errEnding = errors.New("this Bridge is ending")

// run sends the files to the other PC, across any number of lost links.
func (s *sending) run(ctx context.Context) error {
	select {
	case s.t.slots <- struct{}{}:
		defer func() { <-s.t.slots }()
	case <-ctx.Done():
		return s.cause(ctx)
	}
	manifest, err := s.prepare(ctx)
	for err == nil {
		if err = s.linked(ctx); err != nil {
			break
		}
		err = s.attempt(ctx, manifest)
		if err == nil {
			return nil
		}
		if pause, retry := s.again(err); retry {
			s.t.report(s.record, api.TransferWaiting, s.ackedNow())
			err = pauseFor(ctx, pause)
		}
	}
	if ctx.Err() != nil {
		return s.cause(ctx)
	}
	return err
}

func (s *sending) cause(ctx context.Context) error {
	if s.t.tasks.HasEnded() {
		return errEnding
	}
	return context.Cause(ctx)
}

func pauseFor(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errSilent reports that the other PC does not answer.
var errSilent = errors.New("the other PC does not answer")

// again returns whether to retry after an error, and after which pause.
func (s *sending) again(err error) (time.Duration, bool) {
	switch {
	case errors.Is(err, errSilent), errors.Is(err, errNoLink):
		return s.t.opts.Timing.PollInterval, true
	case s.refusedBy() != nil && bridge.CodeOf(s.refusedBy()) == bridge.Busy:
		return s.t.opts.Timing.Busy, true
	}
	return 0, false
}

func (s *sending) refusedBy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *sending) ackedNow() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// prepare computes the checksums of the files, once, and returns the encoded manifest.
func (s *sending) prepare(ctx context.Context) ([]byte, error) {
	r := s.record
	if r.Offer.SHA256 != "" {
		return manifestOf(r.Sources).Encode()
	}
	sources, err := weigh(ctx, r.Sources, func(done int64) { s.t.report(r, api.TransferPreparing, done) })
	if err != nil {
		return nil, err
	}
	manifest := manifestOf(sources)
	encoded, err := manifest.Encode()
	if err != nil {
		return nil, err
	}
	next := *r
	next.Sources, next.Offer = sources, manifest.Offer(encoded)
	if err := s.t.write(&next); err != nil {
		return nil, err
	}
	s.t.mu.Lock()
	*r = next
	s.t.mu.Unlock()
	s.t.report(r, api.TransferWaiting, 0)
	return encoded, nil
}

// linked waits until the other PC is connected.
func (s *sending) linked(ctx context.Context) error {
	for {
		status, err := s.t.opts.Transport.Of(s.record.PC.ID)
		if err != nil {
			return errForsaken(s.record.PC.Name)
		}
		if status.Up && !status.Can(remote.FilesCapability) {
			return remote.ErrUpdate(status, remote.FilesCapability)
		}
		if status.Up {
			return nil
		}
		if err := pauseFor(ctx, s.t.opts.Timing.PollInterval); err != nil {
			return err
		}
	}
}

// errNoLink reports that the link was lost.
var errNoLink = errors.New("the link was cut")

func (s *sending) send(ctx context.Context, frame remote.FileFrame, body []byte) error {
	payload, err := frame.Encode()
	if err != nil {
		return err
	}
	carry := s.t.opts.Transport.Send
	if body != nil {
		carry = s.t.opts.Transport.SendBulk
	}
	err = carry(ctx, s.record.PC.ID, remote.Frame{Type: remote.FilesFrameType, Payload: payload, Body: body})
	if bridge.CodeOf(err) == bridge.Unavailable || bridge.CodeOf(err) == bridge.Internal && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", errNoLink, err)
	}
	return err
}

// attempt offers the transfer and sends what the receiver lacks. It returns nil if the
// receiver has everything.
func (s *sending) attempt(ctx context.Context, manifest []byte) error {
	s.mu.Lock()
	s.accepted, s.refused, s.window = nil, nil, newWindow()
	s.mu.Unlock()
	offer := s.record.Offer
	if err := s.send(ctx, remote.FileFrame{Kind: remote.OfferFiles, ID: s.record.ID, Offer: &offer}, nil); err != nil {
		return err
	}
	var from int64
	done, err := s.await(ctx, func() bool {
		if s.accepted == nil {
			return false
		}
		from = *s.accepted
		s.acked = from
		return true
	})
	if done || err != nil {
		return err
	}
	s.t.report(s.record, api.TransferMoving, from)
	if err := s.stream(ctx, manifest, from); err != nil {
		return err
	}
	done, err = s.await(ctx, func() bool { return false })
	if !done && err == nil {
		err = errSilent
	}
	return err
}

// stream sends everything from a position on, up to a window ahead of the
// acknowledgements. It reads the next chunk while one is sent.
func (s *sending) stream(ctx context.Context, manifest []byte, from int64) error {
	total := s.record.Offer.Total()
	if from > total {
		return bridge.Errorf(bridge.Invalid, "%s wants to have it from a place that is not in it", s.record.PC.Name)
	}
	ctx, stop := context.WithCancel(ctx)
	chunks := make(chan chunk, 2) // one is read while another is sent
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	reading.Go(func() { readChunks(ctx, manifest, s.record.Sources, from, chunks) })
	for at := from; at < total; {
		next, more := <-chunks
		if !more || next.err != nil {
			return errors.Join(next.err, ctx.Err())
		}
		end := at + int64(len(next.data))
		done, err := s.await(ctx, func() bool {
			isInWindow := end <= s.acked+s.window.bytes()
			if isInWindow {
				s.window.sent(end, s.t.opts.Now())
			}
			return isInWindow
		})
		if done || err != nil {
			return err
		}
		if err := s.send(ctx, remote.FileFrame{Kind: remote.FileChunk, ID: s.record.ID, At: at}, next.data); err != nil {
			return err
		}
		at = end
		s.t.report(s.record, api.TransferMoving, s.ackedNow())
	}
	return nil
}

type chunk struct {
	data []byte
	err  error
}

// readChunks reads the content from a position on until its context ends.
func readChunks(ctx context.Context, manifest []byte, sources []source, from int64, chunks chan<- chunk) {
	defer close(chunks)
	give := func(item chunk) bool {
		select {
		case chunks <- item:
			return item.err == nil
		case <-ctx.Done():
			return false
		}
	}
	all, err := openContent(manifest, sources, from)
	if err != nil {
		give(chunk{err: err})
		return
	}
	defer func() { _ = all.close() }() // of a file that was only read
	for ctx.Err() == nil {
		data := make([]byte, remote.ChunkBytes)
		n, err := io.ReadFull(all, data)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		if n == 0 && err == nil || !give(chunk{data[:n], err}) {
			return
		}
	}
}

// hear records a frame of the receiver.
func (s *sending) hear(frame remote.FileFrame) {
	s.mu.Lock()
	switch frame.Kind {
	case remote.AcceptFiles:
		s.accepted = &frame.At
	case remote.FileAck:
		s.acked = max(s.acked, min(frame.At, s.record.Offer.Total()))
		s.window.acked(s.acked, s.t.opts.Now())
	case remote.FilesDone:
		s.done = true
	case remote.RefuseFiles:
		s.refused = frame.Error
	case remote.OfferFiles, remote.FileChunk:
	}
	s.mu.Unlock()
	s.received.Notify()
}

// await waits for a condition over the received state, or for the transfer's end. Each
// received frame restarts its timeout.
func (s *sending) await(ctx context.Context, is func() bool) (done bool, err error) {
	patience := time.NewTimer(s.t.opts.Timing.Timeout)
	defer patience.Stop()
	for {
		s.mu.Lock()
		done, refused, right := s.done, s.refused, is()
		s.mu.Unlock()
		switch {
		case done:
			return true, nil
		case refused != nil:
			return false, remoteError(s.record.PC.Name, refused)
		case right:
			return false, nil
		}
		select {
		case <-s.received:
			patience.Reset(s.t.opts.Timing.Timeout)
		case <-patience.C:
			return false, errSilent
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// remoteError returns the other PC's refusal as an error for people.
func remoteError(name string, refused error) error {
	code := bridge.CodeOf(refused)
	if code == bridge.Unavailable || code == bridge.Internal || code == bridge.Invalid {
		code = bridge.Conflict // these codes concern programs of this PC
	}
	return bridge.Errorf(code, "%s refused it: %s", name, refused.Error())
}
