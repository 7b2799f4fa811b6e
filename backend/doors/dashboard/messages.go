package dashboard

import (
	"fmt"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
)

// messages serves the messages and their deliveries.
type messages struct{ *sources }

// list answers GET /api/messages: the conversation of one session, live or gone,
// newest first. The request also refreshes the session's native children, because a
// person views it.
func (m messages) list(w http.ResponseWriter, r *http.Request) error {
	params, err := httpjson.Params(r)
	if err != nil {
		return err
	}
	span, err := httpjson.ReadPage(params, bridge.RecentMessages, bridge.RecentMessages)
	if err != nil {
		return err
	}
	now, err := m.askBroker(r.Context())
	if err != nil {
		return err
	}
	reader, err := m.reader(r.Context())
	if err != nil {
		return err
	}
	people, err := m.directory(r.Context(), reader, now)
	if err != nil {
		return err
	}
	id, ok := people.idOf(params.Get("peer"))
	if !ok {
		return bridge.Errorf(bridge.NotFound, "no session of that name was ever seen")
	}
	if now.on {
		m.broker.CheckChildren(id)
	}
	rows, err := reader.Conversation(r.Context(), id, span.Before, span.Limit)
	if err != nil {
		return fmt.Errorf("read a session's messages: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Messages{Messages: people.messages(rows)})
}

// show answers GET /api/messages/<id>: one message of any store, with its
// deliveries.
func (m messages) show(w http.ResponseWriter, r *http.Request) error {
	now, err := m.askBroker(r.Context())
	if err != nil {
		return err
	}
	reader, err := m.reader(r.Context())
	if err != nil {
		return err
	}
	row, err := reader.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	people, err := m.directory(r.Context(), reader, now)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, people.messages([]mail.HistoryRow{row})[0])
}

// usualArchiveLimit is the seed's default (4.6).
const usualArchiveLimit = 100

// searchArchive answers GET /api/archive/messages (STO-12): messages of every store
// whose body contains the query literally, newest first.
func (m messages) searchArchive(w http.ResponseWriter, r *http.Request) error {
	params, err := httpjson.Params(r)
	if err != nil {
		return err
	}
	span, err := httpjson.ReadPage(params, usualArchiveLimit, bridge.MaxHistoryLimit)
	if err != nil {
		return err
	}
	query := params.Get("query")
	if query != "" {
		if err := bridge.CheckText("the query", query, bridge.MaxQueryChars); err != nil {
			return malformed(err)
		}
	}
	reader, err := m.reader(r.Context())
	if err != nil {
		return err
	}
	rows, err := reader.Search(r.Context(), query, span.Before, span.Limit)
	if err != nil {
		return err
	}
	people, err := m.directory(r.Context(), reader, live{})
	if err != nil {
		return err
	}
	found := make([]dto.Archived, len(rows))
	for i, row := range rows {
		found[i] = people.archive(row)
	}
	return httpjson.WriteJSON(w, dto.Archive{Messages: found})
}
