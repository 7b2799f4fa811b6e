package sharing

import (
	"context"
	"slices"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
)

// A PC of the team that was away receives its messages from the hub when it returns
// (HUB-05). Both ways carry the letters in order from the first unanswered one, and each
// counts once by its id. So the other PC always stores a prefix of what was sent,
// whichever way is faster. While letters are at the hub and the PC takes them, new ones
// follow there; if it takes none, they are sent directly.

// Keeps implements broker.Pairs.
func (s *Sharing) Keeps() []string {
	if s.opts.Spool == nil {
		return nil
	}
	return s.opts.Spool.Keeps()
}

// spool gives the hub what cannot be sent now.
func (p *pair) spool() {
	p.atHub = 0
	if p.opts.Spool == nil {
		return
	}
	ctx := p.tasks.Context()
	var err error
	if !p.noneThere {
		p.atHub, err = p.opts.DB.Remote().AtHub(ctx, p.pc.ID)
		p.noneThere = err == nil && p.atHub == 0
	}
	if err == nil && p.atHub > 0 {
		err = p.recall(ctx)
	}
	if err != nil {
		p.spoolFailed(ctx, err)
		return
	}
	if p.status.Up && p.atHub == 0 || !slices.Contains(p.opts.Spool.Keeps(), p.pc.ID) {
		p.spooled = flight{}
		return
	}
	if p.spooled.isOut(p.opts.Now()) {
		return
	}
	err = p.spoolLetters(ctx)
	if err == nil && !p.status.Up {
		err = p.spoolReceipts(ctx)
	}
	if err != nil {
		p.spoolFailed(ctx, err)
		return
	}
	p.spooled = flight{}
}

// recall makes letters at the hub wait here again. It does so if a connected PC takes
// none there, or if the hub will soon delete them.
func (p *pair) recall(ctx context.Context) error {
	now := p.opts.Now()
	last := p.status.Since
	if p.news.After(last) {
		last = p.news
	}
	if at := time.UnixMilli(p.atHub); at.After(last) {
		last = at
	}
	ignored := p.status.Up && now.Sub(last) > p.opts.Timing.Recall
	if !ignored && now.Sub(time.UnixMilli(p.atHub)) < subject.KeepMessages {
		return nil
	}
	p.atHub = 0
	return p.opts.DB.Remote().Recall(ctx, p.pc.ID)
}

func (p *pair) spoolLetters(ctx context.Context) error {
	letters, payload, err := p.nextLetters(ctx)
	if err != nil || len(letters) == 0 {
		return err
	}
	if err := p.opts.Spool.Store(ctx, p.pc.ID, remote.Frame{Type: remote.MessagesFrame, Payload: payload}); err != nil {
		return err
	}
	p.noneThere = false
	ids := make([]string, len(letters))
	for i, letter := range letters {
		ids[i] = letter.ID
	}
	if err := p.opts.DB.Remote().RecordAtHub(ctx, p.pc.ID, ids); err != nil {
		return err
	}
	p.opts.Broker.Changed()
	p.notify() // there may be more
	return nil
}

func (p *pair) spoolReceipts(ctx context.Context) error {
	if p.allows(remote.ShareMessages, p.pc.Name) != nil {
		return nil //nolint:nilerr // nothing may be told now
	}
	news, payload, err := p.nextReceipts(ctx)
	if err != nil || len(news) == 0 {
		return err
	}
	if err := p.opts.Spool.Store(ctx, p.pc.ID, remote.Frame{Type: remote.MessagesFrame, Payload: payload}); err != nil {
		return err
	}
	p.notify()
	return p.opts.DB.Remote().Noted(ctx, p.pc.ID, news) // the spool has it durably
}

// notTaken reports whether the hub refused something, or this PC may not give it to the
// hub for that PC.
func notTaken(err error) bool {
	return slices.Contains([]bridge.Code{bridge.Busy, bridge.TooLarge, bridge.Unsupported}, bridge.CodeOf(err))
}

// spoolFailed schedules a retry. Senders see the reason if the hub gave one.
func (p *pair) spoolFailed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.hold(&p.spooled)
	reason := ""
	if notTaken(err) {
		reason = err.Error() + "; it is tried again"
		p.spooled.retryAt = p.opts.Now().Add(p.opts.Timing.Held)
		p.opts.Log.Warn("the team's hub did not take what waits for a PC", "peer", p.pc.Name, "err", err)
	}
	p.reportHeld(ctx, reason)
}

// reportHeld shows senders why their messages for the PC wait; "" means that it is away.
func (p *pair) reportHeld(ctx context.Context, reason string) {
	changed, err := p.opts.DB.Remote().RecordHeld(ctx, p.pc.ID, reason)
	if err != nil && ctx.Err() == nil {
		p.opts.Log.Warn("why messages wait could not be stored", "peer", p.pc.Name, "err", err)
	}
	if changed > 0 {
		p.opts.Broker.Changed()
	}
}

// storedMail is a frame that was stored at the hub.
type storedMail struct {
	in   remote.Mail
	at   time.Time // when it was stored there
	done chan error
}

// ProcessStored processes a frame that the hub has stored since then, and returns after its content is
// stored here. It may be old, so only messages count. It fails with Invalid or Unavailable.
func (s *Sharing) ProcessStored(ctx context.Context, from remote.PC, frame remote.Frame, since time.Time) error {
	if frame.Type != remote.MessagesFrame {
		return bridge.Errorf(bridge.Invalid, "%q is nothing that may lie in a hub", frame.Type)
	}
	in, err := remote.ParseMail(frame.Payload)
	if err != nil {
		return err
	}
	ending := bridge.Errorf(bridge.Unavailable, "this Bridge is ending")
	p := s.pair(remote.PC{ID: from.ID, Name: from.Name})
	if p == nil {
		return ending
	}
	mail := storedMail{in: in, at: since, done: make(chan error, 1)}
	select {
	case p.lay <- mail:
	case <-s.tasks.Done():
		return ending
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-mail.done:
		return err
	case <-s.tasks.Done():
		return ending
	case <-ctx.Done():
		return ctx.Err()
	}
}

// processStored processes stored mail. It answers letters through the hub before they are
// removed there: otherwise their sender would never get an answer.
func (p *pair) processStored(mail storedMail) error {
	ctx, in := p.tasks.Context(), mail.in
	p.news = p.opts.Now()
	shift := in.Shift(mail.at.UnixMilli())
	switch {
	case len(in.Letters) > 0:
		out, later, err := p.storeLetters(ctx, in.Letters, shift)
		if err == nil {
			err = later
		}
		if err != nil {
			return err
		}
		return p.answerStored(ctx, out)
	case len(in.Arrivals) > 0:
		_, err := p.recordArrivals(ctx, in.Arrivals)
		return err
	case len(in.Receipts) > 0:
		_, err := p.recordReceipts(ctx, in, shift)
		return err
	}
	return nil // nothing else goes through the hub
}

// answerStored stores an answer at the hub. It ignores a refusal: when both PCs are
// connected, the sender asks again.
func (p *pair) answerStored(ctx context.Context, out remote.Mail) error {
	payload, err := remote.EncodeMail(out)
	if err == nil {
		err = p.opts.Spool.Store(ctx, p.pc.ID, remote.Frame{Type: remote.MessagesFrame, Payload: payload})
	}
	if notTaken(err) {
		p.opts.Log.Warn("the team's hub did not take an answer", "peer", p.pc.Name, "err", err)
		return nil
	}
	return err
}
