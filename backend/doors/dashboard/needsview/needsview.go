// Package needsview is the dashboard's part about the owner's needs: the list,
// dismissing its news, and the sessions' questions (rows NED-01, NED-03). The
// dashboard admits requests; package needs decides the content of the list.
package needsview

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/config"
)

// PutAway stores the news that the owner dismissed; config.NeedsFile implements it.
// Callers must serialize calls.
type PutAway interface {
	PutAway() (config.PutAway, error)
	SetPutAway(id string, away bool) error
}

// Options configures a Queue. All fields are required unless the comment says
// otherwise.
type Options struct {
	PutAway PutAway // nil if news cannot be dismissed
	// Questions are the sessions' questions; nil without any.
	Questions Questions
	// Rules are the owner's standing rules; nil without any.
	Rules Rules
	// Exchanges are the pairs of sessions that write each other; nil without a broker.
	Exchanges Exchanges
	// Gather returns the facts for the list.
	Gather func(context.Context) (needs.Facts, error)
	// Changed invalidates all views.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
}

// Queue serves the owner's needs.
type Queue struct {
	opts     Options
	changing sync.Mutex // held while news is dismissed
}

// New returns a Queue with these options.
func New(opts Options) *Queue { return &Queue{opts: opts} }

// PutAway returns the ids of the dismissed news, as far as they are readable.
func (q *Queue) PutAway() []string {
	if q.opts.PutAway == nil {
		return nil
	}
	stored, err := q.opts.PutAway.PutAway()
	if err != nil { // then all is shown: too much rather than too little
		q.opts.Log.Warn("what was put away cannot be read", "err", err)
	}
	return stored.IDs
}

// putAwayRequest is the body of POST /api/needs/<id>.
type putAwayRequest struct {
	Away bool `json:"away"`
}

// Put answers POST /api/needs/<id>: it dismisses news, or restores it, on every
// page and in the tray. Needs that require action cannot be dismissed.
func (q *Queue) Put(w http.ResponseWriter, r *http.Request) error {
	var request putAwayRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if q.opts.PutAway == nil {
		return bridge.Errorf(bridge.Unavailable, "nothing can be put away from here")
	}
	q.changing.Lock()
	defer q.changing.Unlock()
	facts, err := q.opts.Gather(r.Context())
	if err != nil {
		return err
	}
	id, before := r.PathValue("id"), facts.PutAway
	facts.PutAway = nil // include dismissed news
	list := needs.List(facts, q.opts.Now())
	at := slices.IndexFunc(list, func(i needs.Item) bool { return i.ID == id })
	switch {
	case at < 0:
		return bridge.Errorf(bridge.NotFound, "nothing that needs you has the id %q any more", id)
	case !list[at].News:
		return bridge.Errorf(bridge.Conflict, "this cannot be put away: it stays until it is dealt with")
	}
	if slices.Contains(before, id) != request.Away {
		if err := q.opts.PutAway.SetPutAway(id, request.Away); err != nil {
			return err
		}
		q.opts.Changed()
	}
	facts.PutAway = q.PutAway()
	return httpjson.WriteJSON(w, dto.Needs{Needs: needs.List(facts, q.opts.Now())})
}
