package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/core/proof"
	"bridge/backend/doors/dashboard/activity"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// sources are the sources of answers: the store's read side, and the broker.
type sources struct {
	open    func(context.Context) (Reader, error) // Options.Reader
	broker  Broker                                // nil without a broker
	maxHops int
	now     func() time.Time
}

// live is the broker's state at the start of a request.
type live struct {
	status api.Status
	on     bool // a broker runs
}

// askBroker returns the broker's state. A missing broker is not an error.
func (s *sources) askBroker(ctx context.Context) (live, error) {
	if s.broker == nil {
		return live{}, nil
	}
	status, err := s.broker.Status(ctx)
	if bridge.CodeOf(err) == bridge.Unavailable {
		return live{}, nil
	}
	if err != nil {
		return live{}, fmt.Errorf("ask the broker for its status: %w", err)
	}
	return live{status: status, on: true}, nil
}

// proofs returns what is known of the routes into the agents; nothing without a broker.
func (s *sources) proofs(ctx context.Context) ([]proof.Summary, error) {
	now, err := s.askBroker(ctx)
	return now.status.Proofs, err
}

// reader returns the store's read side, or an empty one if nothing was ever stored.
func (s *sources) reader(ctx context.Context) (Reader, error) {
	reader, err := s.open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return noStore{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the store to read: %w", err)
	}
	return reader, nil
}

// activity returns the recent events from these sources.
func (s *sources) activity() *activity.Activity {
	return activity.New(activity.Options{
		Reader: func(ctx context.Context) (activity.Reader, error) { return s.reader(ctx) },
		Names: func(ctx context.Context) (func(string) string, error) {
			now, err := s.askBroker(ctx)
			if err != nil {
				return nil, err
			}
			reader, err := s.reader(ctx)
			if err != nil {
				return nil, err
			}
			var unreadable unreadable
			known := readPart(&unreadable, "The earlier sessions cannot be read", func() ([]store.Peer, error) { return reader.Peers(ctx) })
			if unreadable.err != nil {
				return nil, unreadable.err
			}
			people := s.directoryOf(known, now)
			return func(id string) string { return people.lookup(id).name }, nil
		},
		Work: func(since int64) *api.Work {
			if s.broker == nil {
				return nil
			}
			work := s.broker.Work(since)
			return &work
		},
		Now: s.now,
	})
}

// noStore is the read side of a missing store.
type noStore struct{}

func (noStore) Recent(context.Context, int) ([]mail.HistoryRow, error) { return nil, nil }
func (noStore) Conversation(context.Context, string, int64, int) ([]mail.HistoryRow, error) {
	return nil, nil
}

func (noStore) Search(context.Context, string, int64, int) ([]mail.HistoryRow, error) {
	return nil, nil
}

func (noStore) SearchWords(context.Context, store.WordQuery) ([]store.WordHit, int64, error) {
	return nil, 0, nil
}

func (noStore) Find(_ context.Context, id string) (mail.HistoryRow, error) {
	return mail.HistoryRow{}, bridge.Errorf(bridge.NotFound, "no message has the id %s", id)
}

func (noStore) Decisions(context.Context, decision.Lookup) ([]decision.Revision, error) {
	return nil, nil
}

func (noStore) DecisionNotices(context.Context, string) ([]mail.HistoryRow, error) { return nil, nil }

func (noStore) Since(context.Context, int64, int) ([]mail.HistoryRow, error) { return nil, nil }

func (noStore) Hours(context.Context, int64, int) ([]store.Hour, error) { return nil, nil }

func (noStore) CountSince(context.Context, int64) (int, error) { return 0, nil }

func (noStore) Together(context.Context, string) (map[string]string, error) { return nil, nil }

func (noStore) UnreadableDecisions(context.Context, string) ([]store.UnreadableRow, error) {
	return nil, nil
}

func (noStore) Peers(context.Context) ([]store.Peer, error) { return nil, nil }
