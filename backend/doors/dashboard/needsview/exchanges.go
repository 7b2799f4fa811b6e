package needsview

import (
	"context"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/needs"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
)

// Exchanges are the pairs of sessions that write each other; *exchanges.Service
// implements it. All methods are safe for concurrent use.
type Exchanges interface {
	// Facts returns the pairs that need the owner, and those that are paused, also with an
	// error: then what waits is unknown.
	Facts(ctx context.Context) ([]needs.ExchangeFact, error)
	// Holds reports whether a message waits because the owner paused the pair.
	Holds(m bridge.Message) bool
	// Decide pauses or resumes a pair and returns its new state.
	Decide(ctx context.Context, args api.ExchangeArgs) (api.Exchange, error)
}

// Exchanged returns the pairs for the list of needs, also with an error: then what waits
// for a paused pair is unknown, because the store cannot be read.
func (q *Queue) Exchanged(ctx context.Context) ([]needs.ExchangeFact, error) {
	if q.opts.Exchanges == nil {
		return nil, nil
	}
	return q.opts.Exchanges.Facts(ctx)
}

// Overdue returns the rows without the deliveries that wait because the owner paused
// their pair: such mail is not left unread.
func (q *Queue) Overdue(rows []mail.HistoryRow) []mail.HistoryRow {
	if q.opts.Exchanges == nil {
		return rows
	}
	copied := make([]mail.HistoryRow, len(rows))
	for i, row := range rows {
		copied[i] = row
		copied[i].Deliveries = nil
		for _, d := range row.Deliveries {
			m := bridge.Message{ID: row.ID, From: row.From, To: row.To, ConversationID: row.ConversationID, ReplyTo: row.ReplyTo, Hop: row.Hop, Recipient: d.Recipient}
			if !q.opts.Exchanges.Holds(m) {
				copied[i].Deliveries = append(copied[i].Deliveries, d)
			}
		}
	}
	return copied
}

// exchangeRequest is the body of POST /api/exchanges: two sessions by name or id.
type exchangeRequest struct {
	A      string             `json:"a"`
	B      string             `json:"b"`
	Action api.ExchangeAction `json:"action"`
}

// Exchange answers POST /api/exchanges: it pauses or resumes the messages of two sessions
// to each other (QUI-02).
func (q *Queue) Exchange(w http.ResponseWriter, r *http.Request) error {
	var request exchangeRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if q.opts.Exchanges == nil {
		return bridge.Errorf(bridge.Unavailable, "no broker runs: sessions exchange no messages")
	}
	state, err := q.opts.Exchanges.Decide(r.Context(), api.ExchangeArgs{A: request.A, B: request.B, Action: request.Action})
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Exchange{A: state.A, B: state.B, Paused: state.Paused, Waiting: state.Waiting})
}
