package needsview

import (
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/storage/rules"
)

// Rules are the owner's standing rules; *rules.Rules implements it. All methods are
// safe for concurrent use.
type Rules interface {
	// Live returns the rules in force in the order of creation, or none with an
	// error.
	Live() ([]rule.Rule, error)
	// Revoke revokes a rule immediately and returns the effects on its answers.
	Revoke(id string) (rule.Rule, rules.Undone, error)
}

// ListRules answers GET /api/rules (NED-04).
func (q *Queue) ListRules(w http.ResponseWriter, _ *http.Request) error {
	if q.opts.Rules == nil {
		return httpjson.WriteJSON(w, dto.Rules{Rules: []dto.Rule{}})
	}
	live, err := q.opts.Rules.Live()
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Rules{Rules: dto.Each(live, dto.RuleOf)})
}

// Revoke answers DELETE /api/rules/<id>: the rule allows nothing any more. Its
// answers that no agent has received yet are asked again.
func (q *Queue) Revoke(w http.ResponseWriter, r *http.Request) error {
	if q.opts.Rules == nil {
		return bridge.Errorf(bridge.Unavailable, "no standing rules are kept here")
	}
	revoked, undone, err := q.opts.Rules.Revoke(r.PathValue("id"))
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.TakenBack{
		Rule: dto.RuleOf(revoked), Asked: dto.List(undone.Asked), Handed: dto.List(undone.Handed),
	})
}
