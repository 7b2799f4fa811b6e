package bridge

// Choice is one question of a model's own, as its agent puts it to its user.
type Choice struct {
	Question string         `json:"question"`
	Header   string         `json:"header,omitempty"`
	Options  []ChoiceOption `json:"options"`           // none for an answer in words
	Several  bool           `json:"several,omitempty"` // more than one may be chosen
	Words    bool           `json:"words,omitempty"`   // words of one's own are an answer, too
}

// ChoiceOption is one of the answers that are offered.
type ChoiceOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Preview     string `json:"preview,omitempty"`
}
