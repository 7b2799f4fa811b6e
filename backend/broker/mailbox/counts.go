package mailbox

import (
	"context"

	"bridge/backend/core/bridge"
)

// Counts are the numbers of unread messages by peer id.
type Counts struct {
	numbers map[string]int
	err     error // why they cannot be read; nil if they were
}

// CountUnread returns what read returns. If the store cannot be read, all counts are
// unknown, because a damaged table must not take an answer that consists of more. It fails
// with any other error of read.
func CountUnread(ctx context.Context, read func(context.Context) (map[string]int, error)) (Counts, error) {
	numbers, err := read(ctx)
	if err != nil && bridge.CodeOf(err) != bridge.Storage {
		return Counts{}, err
	}
	return Counts{numbers, err}, nil
}

// Of returns the count of a peer.
func (c Counts) Of(id string) bridge.Count {
	if c.err != nil {
		return bridge.UnknownCount
	}
	return bridge.Count(c.numbers[id])
}

// Unreadable returns a sentence about the counts if they cannot be read, or else none.
func (c Counts) Unreadable() []string {
	if c.err == nil {
		return nil
	}
	return []string{"Unread mail cannot be counted: " + c.err.Error()}
}
