package bridge

// Choice is one question of a model to its user, from its agent.
type Choice struct {
	Question string         `json:"question"`
	Header   string         `json:"header,omitempty"`
	Options  []ChoiceOption `json:"options"`           // none for a free-text answer
	Several  bool           `json:"several,omitempty"` // more than one may be chosen
	Words    bool           `json:"words,omitempty"`   // a free-text answer is also valid
}

// ChoiceOption is one of the offered answers.
type ChoiceOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Preview     string `json:"preview,omitempty"`
}
