package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/rule"
)

// Rules is the answer of GET /api/rules: the rules in force, in the order of
// creation.
type Rules struct {
	Rules []Rule `json:"rules"`
}

// Rule is a standing rule of the owner.
type Rule struct {
	ID      string             `json:"id"`
	Agent   bridge.AgentKind   `json:"agent"`
	Kind    string             `json:"kind"` // command, edit or tool
	Tool    string             `json:"tool"`
	Match   rule.Match         `json:"match"`
	Text    string             `json:"text"`   // for an exact rule: everything it allows
	Words   []string           `json:"words"`  // for a prefix rule
	Folder  string             `json:"folder"` // "" means every folder
	Says    string             `json:"says"`   // one sentence
	Until   *bridge.UnixMillis `json:"until"`  // null until it is revoked
	MadeAt  bridge.UnixMillis  `json:"madeAt"`
	Uses    int                `json:"uses"`
	LastUse *bridge.UnixMillis `json:"lastUse"` // null if it was never used
	LastFor string             `json:"lastFor"` // the job or session of the last use
}

// RuleOf returns a rule in the page's form.
func RuleOf(r rule.Rule) Rule {
	return Rule{
		ID: r.ID, Agent: r.Agent, Kind: r.Kind, Tool: r.Tool, Match: r.Match, Text: r.Text, Words: List(r.Words), Folder: r.Folder, Says: r.Sentence(),
		Until: known(int64(r.Until)), MadeAt: int64(r.MadeAt), Uses: r.Uses, LastUse: known(int64(r.LastUse)), LastFor: r.LastFor,
	}
}

func known(at int64) *int64 {
	if at == 0 {
		return nil
	}
	return &at
}

// TakenBack is the answer of DELETE /api/rules/<id>.
type TakenBack struct {
	Rule   Rule     `json:"rule"`
	Asked  []string `json:"asked"`  // approvals that are asked again
	Handed []string `json:"handed"` // approvals whose agent may have acted already
}

// FromNowOn describes the standing rules that an answer can create.
type FromNowOn struct {
	Exact  bool     `json:"exact"`
	Words  []string `json:"words"` // possible words of a prefix; none if only the whole can be allowed
	Least  int      `json:"least"` // the minimum number of these words
	Folder string   `json:"folder"`
	Why    string   `json:"why"` // why there is no rule, or no prefix
}

// FromNowOnOf returns an offer for work in that folder.
func FromNowOnOf(offer rule.Offer, folder string) *FromNowOn {
	return &FromNowOn{Exact: offer.Exact, Words: List(offer.Words), Least: offer.Least, Folder: folder, Why: offer.Why}
}
