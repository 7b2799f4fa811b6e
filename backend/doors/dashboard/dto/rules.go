package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/rule"
)

// Rules is the answer of GET /api/rules: those that hold, in the order in which they were
// made.
type Rules struct {
	Rules []Rule `json:"rules"`
}

// Rule is a standing rule of the owner's.
type Rule struct {
	ID      string             `json:"id"`
	Agent   bridge.AgentKind   `json:"agent"`
	Kind    string             `json:"kind"` // command, edit or tool
	Tool    string             `json:"tool"`
	Match   rule.Match         `json:"match"`
	Text    string             `json:"text"`   // of an exact one: all that it allows
	Words   []string           `json:"words"`  // of a prefix
	Folder  string             `json:"folder"` // "" is every folder
	Says    string             `json:"says"`   // in one sentence
	Until   *bridge.UnixMillis `json:"until"`  // null until it is taken back
	MadeAt  bridge.UnixMillis  `json:"madeAt"`
	Uses    int                `json:"uses"`
	LastUse *bridge.UnixMillis `json:"lastUse"` // null while it was not used
	LastFor string             `json:"lastFor"` // the job or session of the last use
}

// RuleOf is a rule as the answers have it.
func RuleOf(r rule.Rule) Rule {
	return Rule{
		ID: r.ID, Agent: r.Agent, Kind: r.Kind, Tool: r.Tool, Match: r.Match, Text: r.Text, Words: List(r.Words), Folder: r.Folder, Says: r.Says(),
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

// FromNowOn is what a standing rule may be made of beside an answer.
type FromNowOn struct {
	Exact  bool     `json:"exact"`
	Words  []string `json:"words"` // of which a prefix may be made; none where the whole alone can be allowed
	Least  int      `json:"least"` // how many of them it needs
	Folder string   `json:"folder"`
	Why    string   `json:"why"` // why there is no rule, or no prefix
}

// FromNowOnOf is an offer for work in that folder.
func FromNowOnOf(offer rule.Offer, folder string) *FromNowOn {
	return &FromNowOn{Exact: offer.Exact, Words: List(offer.Words), Least: offer.Least, Folder: folder, Why: offer.Why}
}
