package wake

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/storage/store"
)

// scan is how many of a session's unread messages are searched for those that a wake gave
// to the host.
const scan = 50

// Ledger reads and records wakes in the store.
type Ledger struct {
	DB  *store.DB
	Log *slog.Logger
	Now func() time.Time
	// Spent counts a text that became part of a session's context; nil counts nothing.
	Spent func(peerID string, cost session.Cost)
}

// Asked records requested wakes. If that fails, it logs the error and the wakes continue.
func (l Ledger) Asked(ctx context.Context, marks []mail.Mark) {
	if len(marks) == 0 {
		return
	}
	if err := l.DB.Record(ctx, bridge.StageWoken, marks); err != nil {
		l.Log.Warn("a wake was asked for but not noted", "err", err)
	}
}

// HandedByHooks returns the unread mail that wake hooks or the channel gave to the host.
// The values are times in Unix milliseconds.
func (l Ledger) HandedByHooks(ctx context.Context, peerID string) (map[string]int64, error) {
	byWake := func(d mail.Delivery) bool { return d.Handed.Via.IsWake() }
	unread, err := l.DB.Unread(ctx, peerID, scan, byWake)
	times := map[string]int64{}
	for _, d := range unread {
		if byWake(d) {
			times[d.ID] = d.Handed.At
		}
	}
	return times, err
}

// HandedToMod returns the unread mail that was given to a mod and whose outcome is
// unknown.
func (l Ledger) HandedToMod(ctx context.Context, peerID string) ([]mail.Delivery, error) {
	byMod := func(d mail.Delivery) bool { return d.Handed.Via == mail.ViaMod }
	unread, err := l.DB.Unread(ctx, peerID, scan, byMod)
	return slices.DeleteFunc(unread, func(d mail.Delivery) bool { return !byMod(d) }), err
}

// Entered records that a mod's message became a prompt, with the evidence.
func (l Ledger) Entered(ctx context.Context, peerID string, d mail.Delivery, via mail.Via, evidence string) error {
	mark := mail.Mark{MessageID: d.ID, Recipient: peerID, At: l.Now().UnixMilli(), Via: via, Evidence: evidence}
	err := l.DB.Record(ctx, bridge.StageConsumed, []mail.Mark{mark})
	if err == nil && l.Spent != nil {
		l.Spent(peerID, session.Cost{Mail: int64(len(d.Body))})
	}
	return err
}

// GiveUp makes a mod's message ordinary mail again. It records the reason and that a wake
// was tried, so that no mod gets it a second time.
func (l Ledger) GiveUp(ctx context.Context, peerID, message, reason string) error {
	mark := mail.Mark{MessageID: message, Recipient: peerID, At: l.Now().UnixMilli(), Via: mail.ViaMod, Evidence: short(reason)}
	if err := l.DB.Record(ctx, bridge.StageWoken, []mail.Mark{mark}); err != nil {
		return err
	}
	return l.Unseen(ctx, peerID, message)
}

// Unseen makes mail unread again that was not seen.
func (l Ledger) Unseen(ctx context.Context, peerID string, messages ...string) error {
	for _, message := range messages {
		if err := l.DB.Unhand(ctx, message, peerID); err != nil {
			return err
		}
	}
	return nil
}

// maxReasonChars limits the stored length of a mod's reason.
const maxReasonChars = 200

func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return string(runes[:min(len(runes), maxReasonChars)])
}
