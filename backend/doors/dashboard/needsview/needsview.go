// Package needsview is the part of the dashboard about what waits for the owner: the list
// of it, from which news can be put away, and what sessions ask (rows NED-01, NED-03). Who may ask is the dashboard's to
// decide; what is in the list, that of the rules.
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

// PutAway remembers which news the owner has put away; config.NeedsFile is one. Its
// callers take turns.
type PutAway interface {
	PutAway() (config.PutAway, error)
	SetPutAway(id string, away bool) error
}

// Options says what a Queue works with. All fields are required unless the comment says
// otherwise.
type Options struct {
	PutAway PutAway // nil where nothing can be put away
	// Questions are those of sessions; nil where there are none.
	Questions Questions
	// Rules are the owner's standing ones; nil where there are none.
	Rules Rules
	// Gather brings what the list is made of.
	Gather func(context.Context) (needs.Facts, error)
	// Changed has all that is shown built anew.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
}

// Queue serves what waits for the owner.
type Queue struct {
	opts     Options
	changing sync.Mutex // held while something is put away
}

// New serves what waits for the owner.
func New(opts Options) *Queue { return &Queue{opts: opts} }

// PutAway are the ids of the news that was put away, as far as that can be read.
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

// Put answers POST /api/needs/<id>: puts news away, or takes it back, on every page and
// in the tray. What has to be dealt with cannot be put away.
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
	facts.PutAway = nil // all that there is
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
