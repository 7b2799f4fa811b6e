// Package drafts is the dashboard's part that keeps what the owner typed and did not
// send (PGE-03). The desktop app's page may have another port after a restart, and then
// another storage of the browser.
package drafts

import (
	"encoding/json"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/config"
)

// Store keeps the drafts; *config.DraftsFile implements it. All methods are safe for
// concurrent use.
type Store interface {
	Drafts() ([]config.Draft, error)
	SetDraft(key string, value json.RawMessage) error
}

// Drafts answers the requests for drafts.
type Drafts struct{ store Store }

// New returns the part. store may be nil: then nothing is kept.
func New(store Store) *Drafts { return &Drafts{store} }

// List answers GET /api/drafts with all drafts.
func (d *Drafts) List(w http.ResponseWriter, _ *http.Request) error {
	answer := dto.Drafts{Drafts: []dto.Draft{}}
	if d.store != nil {
		stored, err := d.store.Drafts()
		if err != nil {
			return err
		}
		answer.Drafts = dto.Each(stored, func(d config.Draft) dto.Draft { return dto.Draft(d) })
	}
	return httpjson.WriteJSON(w, answer)
}

// setRequest is the body of POST /api/drafts. The value null removes the draft.
type setRequest struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Set answers POST /api/drafts: it stores one draft, or removes it. It fails with
// Unavailable where nothing is kept.
func (d *Drafts) Set(w http.ResponseWriter, r *http.Request) error {
	var request setRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if d.store == nil {
		return bridge.Errorf(bridge.Unavailable, "no drafts are kept here")
	}
	if err := d.store.SetDraft(request.Key, request.Value); err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.DraftSet{Key: request.Key})
}
