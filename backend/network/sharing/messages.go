package sharing

import (
	"context"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
	"bridge/backend/storage/store"
)

// sendLetters sends the first waiting letters, unless some are in flight. Only the answer
// shows whether they arrived: until then they wait, and are sent again under the same
// ids.
func (p *pair) sendLetters(ctx context.Context) error {
	if p.letters.isOut(p.opts.Now()) || !p.status.Can(remote.MessagesCapability) {
		return nil
	}
	p.letters.retryAt = time.Time{}
	if p.atHub > 0 {
		return nil // letters at the hub go first
	}
	letters, payload, err := p.nextLetters(ctx)
	if err == nil && len(letters) == 0 {
		return nil
	}
	if err := p.send(ctx, remote.MessagesFrame, payload, err); err != nil {
		return err
	}
	p.begin(&p.letters)
	return nil
}

// nextLetters returns the first waiting letters, as many as fit into one frame.
func (p *pair) nextLetters(ctx context.Context) (letters []remote.Letter, payload []byte, err error) {
	waiting, err := p.opts.DB.Remote().Waiting(ctx, p.pc.ID, remote.MaxLetters, remote.MaxLetterBytes)
	if err != nil || len(waiting) == 0 {
		return nil, nil, err
	}
	out := remote.Mail{Now: p.now()}
	for _, message := range waiting {
		out.Letters = append(out.Letters, remote.LetterOf(message))
	}
	payload, err = remote.EncodeMail(out)
	for bridge.CodeOf(err) == bridge.TooLarge && len(out.Letters) > 1 {
		out.Letters = out.Letters[:len(out.Letters)/2]
		payload, err = remote.EncodeMail(out)
	}
	return out.Letters, payload, err
}

// sendReceipts sends the outcome of received letters, if their sender may still write
// here. Once the owner revokes that, no more receipts are sent.
func (p *pair) sendReceipts(ctx context.Context) error {
	mayWrite := p.allows(remote.ShareMessages, p.pc.Name) == nil
	if p.receipts.isOut(p.opts.Now()) || !p.status.Can(remote.MessagesCapability) || !mayWrite {
		return nil
	}
	p.receipts.retryAt = time.Time{}
	news, payload, err := p.nextReceipts(ctx)
	if err == nil && len(news) == 0 {
		return nil
	}
	if err := p.send(ctx, remote.MessagesFrame, payload, err); err != nil {
		return err
	}
	p.begin(&p.receipts)
	return nil
}

// nextReceipts returns the outcomes of received letters that were not sent yet.
func (p *pair) nextReceipts(ctx context.Context) (news []store.RemoteReceipt, payload []byte, err error) {
	news, err = p.opts.DB.Remote().News(ctx, p.pc.ID, remote.MaxReceipts)
	if err != nil || len(news) == 0 {
		return nil, nil, err
	}
	out := remote.Mail{Now: p.now()}
	for _, remoteReceipt := range news {
		receipt := remote.Receipt{ID: remoteReceipt.ID, News: remoteReceipt.News}
		for stage, fact := range remoteReceipt.Marks {
			receipt.Stages = append(receipt.Stages, remote.ReceiptStep{Stage: stage, At: fact.At, Evidence: fact.Evidence})
		}
		out.Receipts = append(out.Receipts, receipt)
	}
	payload, err = remote.EncodeMail(out)
	return news, payload, err
}

// handleMail processes a frame of messages.
func (p *pair) handleMail(ctx context.Context, data []byte) error {
	in, err := remote.ParseMail(data)
	if err != nil {
		return err
	}
	switch {
	case len(in.Letters) > 0:
		return p.handleLetters(ctx, in)
	case len(in.Arrivals) > 0:
		return p.handleArrivals(ctx, in.Arrivals)
	case len(in.Receipts) > 0:
		return p.handleReceipts(ctx, in)
	default:
		noted := make([]store.RemoteReceipt, len(in.Noted))
		for i, receipt := range in.Noted {
			noted[i] = store.RemoteReceipt{ID: receipt.ID, News: receipt.News}
		}
		if err := p.opts.DB.Remote().Noted(ctx, p.pc.ID, noted); err != nil {
			p.hold(&p.receipts)
			return err
		}
		p.receipts = flight{}
		return nil
	}
}

// handleLetters stores letters in order and answers for each that it is stored, or why not.
// A temporary failure also holds back the letters behind it.
func (p *pair) handleLetters(ctx context.Context, in remote.Mail) error {
	out, _, err := p.storeLetters(ctx, in.Letters, in.Shift(p.now()))
	if err != nil {
		return err
	}
	payload, err := remote.EncodeMail(out)
	return p.send(ctx, remote.MessagesFrame, payload, err)
}

// storeLetters stores letters and returns the answer. A letter that was accepted before
// gets the same answer, whatever is allowed or reachable now. later is the temporary
// failure that holds back the last answered letter and those behind it.
func (p *pair) storeLetters(ctx context.Context, letters []remote.Letter, shift int64) (out remote.Mail, later, err error) {
	failed := make([]error, len(letters))
	var requests []remote.Letter
	var places []int // of asked in the frame
	remaining := p.written.Left(remote.MessageLimit, p.opts.Now())
	for i, letter := range letters {
		if failed[i] = p.checkLetter(letter); failed[i] == nil && len(requests) == remaining {
			failed[i] = remote.MessageLimit.Error()
		}
		if failed[i] == nil {
			requests, places = append(requests, letter), append(places, i)
		}
	}
	p.written.Take(len(requests))
	for i, err := range p.opts.Broker.StoreFrom(ctx, p.pc, requests, shift) {
		failed[places[i]] = err
	}
	for i, letter := range letters { // most are new and stored, and need no query
		if failed[i] != nil && letter.Check() == nil {
			if has, err := p.opts.DB.Remote().Has(ctx, letter.ID, p.pc.ID); err != nil || has {
				failed[i] = err
			}
		}
	}
	if ctx.Err() != nil {
		return out, nil, ctx.Err() // letters not stored because of the end get no answer
	}
	out.Now = p.now()
	for i, letter := range letters {
		arrival := remote.Answered(letter.ID, failed[i])
		out.Arrivals = append(out.Arrivals, arrival)
		if arrival.Later {
			p.opts.Log.Warn("a message from a paired PC cannot be stored now", "peer", p.pc.Name, "message", letter.ID, "err", failed[i])
			return out, failed[i], nil
		}
		p.refused(p.pc, remote.MessagesFrame, failed[i])
	}
	return out, nil, nil
}

// checkLetter fails if a letter is invalid or not allowed.
func (p *pair) checkLetter(letter remote.Letter) error {
	if err := letter.Check(); err != nil {
		return err
	}
	return p.allows(remote.ShareMessages, p.pc.Name)
}

// handleArrivals records the other PC's answers to letters. Letters that it could not store
// for a temporary reason keep waiting.
func (p *pair) handleArrivals(ctx context.Context, arrivals []remote.Arrival) error {
	later, err := p.recordArrivals(ctx, arrivals)
	if err != nil || later {
		p.hold(&p.letters)
	} else {
		p.letters = flight{}
	}
	return err
}

// recordArrivals stores the other PC's answers to letters. later is set if that PC could
// not store all.
func (p *pair) recordArrivals(ctx context.Context, arrivals []remote.Arrival) (later bool, err error) {
	var crossed []store.Crossed
	for _, arrival := range arrivals {
		switch {
		case arrival.Error == nil:
			crossed = append(crossed, store.Crossed{ID: arrival.ID})
		case arrival.Later:
			later = true
		default:
			crossed = append(crossed, store.Crossed{ID: arrival.ID, Refused: arrival.Error.Message})
		}
	}
	if err := p.opts.DB.Remote().RecordCrossed(ctx, p.pc.ID, crossed); err != nil {
		return later, err
	}
	if len(crossed) > 0 {
		p.opts.Broker.Changed()
	}
	return later, nil
}

// handleReceipts records the outcome of letters there, by this PC's clock.
func (p *pair) handleReceipts(ctx context.Context, in remote.Mail) error {
	out, err := p.recordReceipts(ctx, in, in.Shift(p.now()))
	if err != nil {
		return err
	}
	payload, err := remote.EncodeMail(out)
	return p.send(ctx, remote.MessagesFrame, payload, err)
}

// recordReceipts stores the outcome of letters there and returns the answer.
func (p *pair) recordReceipts(ctx context.Context, in remote.Mail, shift int64) (out remote.Mail, err error) {
	now := p.now()
	receipts := make([]store.RemoteReceipt, len(in.Receipts))
	for i, receipt := range in.Receipts {
		receipts[i] = store.RemoteReceipt{ID: receipt.ID, News: receipt.News, Marks: map[bridge.Stage]mail.Fact{}}
		for _, step := range receipt.Stages {
			receipts[i].Marks[step.Stage] = mail.Fact{At: max(min(step.At+shift, now), 1), Evidence: step.Evidence}
		}
		out.Noted = append(out.Noted, remote.Receipt{ID: receipt.ID, News: receipt.News})
	}
	if err := p.opts.DB.Remote().RecordReceipts(ctx, p.pc.ID, receipts); err != nil {
		return out, err
	}
	p.opts.Broker.Changed()
	out.Now = p.now()
	return out, nil
}
