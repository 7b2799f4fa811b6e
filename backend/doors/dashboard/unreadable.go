package dashboard

import (
	"fmt"
	"time"

	"bridge/backend/core/bridge"
)

// unreadable collects what an answer of several parts cannot read. A damaged table must not
// take the other parts (STO-18).
type unreadable struct {
	sentences []string // about parts of the store
	err       error    // the first error that is not about the store; the answer fails with it
}

// readPart returns what read returns, also if the store cannot be read: then what says so,
// as the beginning of a sentence.
func readPart[T any](u *unreadable, what string, read func() (T, error)) T {
	part, err := read()
	switch {
	case bridge.CodeOf(err) == bridge.Storage:
		u.sentences = append(u.sentences, what+": "+err.Error())
	case err != nil && u.err == nil:
		u.err = fmt.Errorf("%s: %w", what, err)
	}
	return part
}

// unreadableSince returns since when parts of the store cannot be read, in Unix
// milliseconds; 0 if all of them can be.
func (s *states) unreadableSince(u unreadable, now time.Time) int64 {
	if len(u.sentences) == 0 {
		s.badSince.Store(0)
		return 0
	}
	s.badSince.CompareAndSwap(0, now.UnixMilli())
	return s.badSince.Load()
}
