package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
)

// decisions serves the decisions. It reads only the store (DEC-19), except for the
// delivery of notices. The owner's decisions go to the broker.
type decisions struct{ *sources }

// list answers GET /api/decisions (DEC-17): the decisions in force, for no
// particular session.
func (d decisions) list(w http.ResponseWriter, r *http.Request) error {
	lookup, err := readLookup(r)
	if err != nil {
		return err
	}
	found, err := d.find(r.Context(), lookup)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, found)
}

// history answers GET /api/decisions/<topic>/history (DEC-18): every revision of
// exactly that topic, newest first.
func (d decisions) history(w http.ResponseWriter, r *http.Request) error {
	topic, err := readTopic(r)
	if err != nil {
		return err
	}
	lookup, err := readLookup(r)
	if err != nil {
		return err
	}
	lookup.Topic, lookup.History = topic, true
	found, err := d.find(r.Context(), lookup)
	if err != nil {
		return err
	}
	reader, err := d.reader(r.Context())
	if err != nil {
		return err
	}
	together, err := reader.Together(r.Context(), topic)
	if err != nil {
		return fmt.Errorf("read the team's order of a topic: %w", err)
	}
	return httpjson.WriteJSON(w, dto.History{Topic: topic, Decisions: found, AtOnce: together})
}

// notices answers GET /api/decisions/<topic>/notices: the messages about the
// topic's revisions, newest first, with their deliveries.
func (d decisions) notices(w http.ResponseWriter, r *http.Request) error {
	topic, err := readTopic(r)
	if err != nil {
		return err
	}
	now, err := d.askBroker(r.Context())
	if err != nil {
		return err
	}
	reader, err := d.reader(r.Context())
	if err != nil {
		return err
	}
	rows, err := reader.DecisionNotices(r.Context(), topic)
	if err != nil {
		return fmt.Errorf("read a topic's notices: %w", err)
	}
	people, err := d.directory(r.Context(), reader, now)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Messages{Messages: people.messages(rows)})
}

// decisionRequest is the body of POST /api/decisions.
type decisionRequest struct {
	ID         string          `json:"id"` // "" lets the broker choose
	Topic      string          `json:"topic"`
	Text       string          `json:"text"`
	Scope      *decision.Scope `json:"scope"`
	Supersedes string          `json:"supersedes"` // the revision that the owner saw; "" for any
}

// pin answers POST /api/decisions: the owner pins a decision, or revises one (PGE-04).
func (d decisions) pin(w http.ResponseWriter, r *http.Request) error {
	var request decisionRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if request.Scope == nil {
		return bridge.Errorf(bridge.Invalid, "the member scope must say for whom the decision is")
	}
	if d.broker == nil {
		return noBroker()
	}
	pinned, err := d.broker.DecideOwner(r.Context(), "", api.DecideArgs{
		ID: request.ID, Topic: request.Topic, Text: request.Text, Scope: request.Scope, Supersedes: request.Supersedes,
	})
	if err != nil {
		return fmt.Errorf("pin a decision: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Decided{Decision: pinned.Decision, DeliveredTo: dto.List(pinned.DeliveredTo)})
}

// withdrawRequest is the body of POST /api/decisions/<topic>/withdraw.
type withdrawRequest struct {
	ID         string `json:"id"` // "" lets the broker choose
	Reason     string `json:"reason"`
	Supersedes string `json:"supersedes"` // the revision that the owner saw; "" for any
}

// withdraw answers POST /api/decisions/<topic>/withdraw: afterwards the topic has
// no decision in force (PGE-04).
func (d decisions) withdraw(w http.ResponseWriter, r *http.Request) error {
	topic, err := readTopic(r)
	if err != nil {
		return err
	}
	var request withdrawRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if d.broker == nil {
		return noBroker()
	}
	ended, err := d.broker.WithdrawOwner(r.Context(), api.WithdrawDecisionArgs{
		ID: request.ID, Topic: topic, Reason: request.Reason, Supersedes: request.Supersedes,
	})
	if err != nil {
		return fmt.Errorf("withdraw a decision: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Decided{Decision: ended.Decision, DeliveredTo: dto.List(ended.DeliveredTo)})
}

// readTopic parses the topic of the address.
func readTopic(r *http.Request) (string, error) {
	if !utf8.ValidString(r.PathValue("topic")) { // lower case would turn other bytes into a character
		return "", bridge.Errorf(bridge.Invalid, "the topic is not valid UTF-8")
	}
	topic, err := decision.NormalizeTopic(r.PathValue("topic"))
	if err != nil {
		return "", malformed(err)
	}
	return topic, nil
}

// find returns the decisions that match lookup, and the unreadable ones.
func (d decisions) find(ctx context.Context, lookup decision.Lookup) (dto.Decisions, error) {
	reader, err := d.reader(ctx)
	if err != nil {
		return dto.Decisions{}, err
	}
	found, err := reader.Decisions(ctx, lookup)
	if err != nil {
		return dto.Decisions{}, fmt.Errorf("read decisions: %w", err)
	}
	wire := dto.Decisions{Decisions: dto.List(found)}
	unreadable, err := reader.UnreadableDecisions(ctx, lookup.Topic)
	if err != nil {
		return dto.Decisions{}, fmt.Errorf("read decisions: %w", err)
	}
	for _, row := range unreadable {
		wire.Unreadable = append(wire.Unreadable, dto.Unreadable{ID: row.Key, Topic: row.Topic, Why: row.Why, Newer: row.Newer})
	}
	return wire, nil
}

// readLookup parses q and scope. Without scope it matches every scope.
func readLookup(r *http.Request) (decision.Lookup, error) {
	params, err := httpjson.Params(r)
	if err != nil {
		return decision.Lookup{}, err
	}
	lookup := decision.Lookup{Query: params.Get("q")}
	if err := decision.CheckQuery(lookup.Query); err != nil {
		return decision.Lookup{}, malformed(err)
	}
	if !params.Has("scope") {
		return lookup, nil
	}
	scope, err := parseScope(params.Get("scope"))
	if err != nil {
		return decision.Lookup{}, malformed(err)
	}
	lookup.Scope = &scope
	return lookup, nil
}

// parseScope parses "all" or a scope's JSON.
func parseScope(raw string) (decision.Scope, error) {
	if raw == "all" {
		return decision.AllSessions(), nil
	}
	return decision.ParseScope([]byte(raw))
}

// malformed turns every error of an address's parameter into a 400, even a too long
// one (DEC-20): 413 is for bodies.
func malformed(err error) error {
	return bridge.Errorf(bridge.Invalid, "%s", err.Error())
}
