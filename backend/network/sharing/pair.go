package sharing

import (
	"context"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/lifecycle"
)

// maxFrames is how many frames of one PC may wait for processing. At most one frame each
// of letters, receipts and lists is in flight, and an answer to each.
const maxFrames = 16

// pair handles one other PC in one goroutine, which processes its frames in order and
// sends what waits for it. Only that goroutine uses the fields, except the channels,
// overrun and views.
type pair struct {
	*Sharing
	pc    remote.PC
	in    chan remote.Frame
	awake lifecycle.Signal // check again
	lay   chan storedMail

	overrun overrun // of decisions

	status   remote.Status // at the last check
	letters  flight        // letters that were sent and not answered
	receipts flight        // receipts that were sent and not acknowledged
	sync     syncState
	upTo     int64 // the time there up to which all decisions are here; 0 at first
	views    *views
	decided  remote.Allowance // for its decisions that are new here
	written  remote.Allowance // for its messages

	atHub     int64     // since when the first letter is at the hub; 0 for none
	noneThere bool      // no letter is at the hub, and only this goroutine adds one
	spooled   flight    // what the spool did not accept
	news      time.Time // when the spool last brought something about letters
}

func newPair(s *Sharing, pc remote.PC) *pair {
	return &pair{Sharing: s, pc: pc, in: make(chan remote.Frame, maxFrames), awake: lifecycle.NewSignal(), lay: make(chan storedMail), views: newViews()}
}

func (p *pair) notify() {
	p.awake.Notify()
}

func (p *pair) run() {
	for {
		p.look()
		var due <-chan time.Time
		if pause := p.nextTry(); pause > 0 {
			due = time.After(pause)
		}
		select {
		case frame := <-p.in:
			p.refresh() // it may be the first of another link
			p.take(frame)
		case mail := <-p.lay:
			mail.done <- p.processStored(mail)
		case <-p.awake:
		case <-due:
		case <-p.tasks.Done():
			return
		}
	}
}

// refresh reads the state of the link. What was in flight on another link no longer is.
func (p *pair) refresh() {
	status, err := p.opts.Transport.Of(p.pc.ID)
	if err != nil || !status.Up {
		p.status, p.letters, p.receipts, p.sync = remote.Status{}, flight{}, flight{}, syncState{}
		return
	}
	if !status.Since.Equal(p.status.Since) || !p.status.Up { // another link: nothing is in flight on it
		p.letters, p.receipts, p.sync = flight{}, flight{}, syncState{}
	}
	p.status = status
	p.pc.Name = status.Name
}

// look sends what can be sent now.
func (p *pair) look() {
	p.refresh()
	p.spool()
	if !p.status.Up {
		return
	}
	ctx := p.tasks.Context()
	for _, part := range []struct {
		what   string
		send   func(context.Context) error
		flight *flight
	}{{"messages", p.sendLetters, &p.letters}, {"receipts", p.sendReceipts, &p.receipts}, {"decisions", p.sendDecisions, &p.sync.later}} {
		err := part.send(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if !part.flight.isOut(p.opts.Now()) {
				part.flight.retryAt = time.Time{} // nothing is in flight or to retry
			}
			continue
		}
		p.hold(part.flight)
		if bridge.CodeOf(err) == bridge.Unsupported && part.flight == &p.letters {
			p.reportHeld(ctx, err.Error()+"; it is tried again")
		}
		if bridge.CodeOf(err) != bridge.Unavailable {
			p.opts.Log.Warn("what waits for a paired PC could not be sent", "peer", p.pc.Name, "what", part.what, "err", err)
		}
	}
}

func (p *pair) take(frame remote.Frame) {
	do := map[string]func(context.Context, []byte) error{
		remote.MessagesFrame: p.handleMail, remote.DecisionsFrame: p.handleSync, remote.DashboardFrame: p.handleView,
	}[frame.Type]
	if do == nil {
		return
	}
	if err := do(p.tasks.Context(), frame.Payload); err != nil && !p.tasks.HasEnded() {
		p.opts.Log.Warn("a frame of another PC was dropped", "peer", p.pc.Name, "type", frame.Type, "err", err)
		p.refused(p.pc, frame.Type, err)
	}
}

func (p *pair) send(ctx context.Context, frameType string, payload []byte, err error) error {
	if err != nil {
		return err
	}
	return p.opts.Transport.Send(ctx, p.pc.ID, remote.Frame{Type: frameType, Payload: payload})
}

// nextTry returns how long until something unanswered is sent again; 0 for nothing.
func (p *pair) nextTry() time.Duration {
	next := time.Duration(0)
	for _, f := range []flight{p.letters, p.receipts, p.sync.question, p.sync.later, p.spooled} {
		if f.retryAt.IsZero() {
			continue
		}
		if pause := max(f.retryAt.Sub(p.opts.Now()), time.Millisecond); next == 0 || pause < next {
			next = pause
		}
	}
	return next
}

// flight is a frame that was sent on this link and is not answered. One at a time keeps
// the order.
type flight struct {
	retryAt time.Time     // when it is sent again; zero when nothing is in flight
	pause   time.Duration // the last backoff; zero if there was none
}

// isOut reports whether an answer is still awaited, or a retry is held back.
func (f flight) isOut(now time.Time) bool { return !f.retryAt.IsZero() && now.Before(f.retryAt) }

func (p *pair) begin(f *flight) { f.retryAt = p.opts.Now().Add(p.opts.Timing.Resend) }

// After a temporary failure, a retry waits for firstPause. The pause doubles with each
// failure up to longestPause.
const firstPause, longestPause = 500 * time.Millisecond, 5 * time.Second

// hold schedules a retry after a temporary failure on either side.
func (p *pair) hold(f *flight) {
	f.pause = min(max(2*f.pause, firstPause), longestPause)
	f.retryAt = p.opts.Now().Add(f.pause)
}
