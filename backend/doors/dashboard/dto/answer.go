// Package dto holds the JSON of the dashboard's answers, one file per noun. It is
// the page's contract. It depends only on the rules' types, not on the local link,
// the store or maintenance, so that their changes do not change an answer
// unintentionally. The dashboard's testdata has a golden file of each, which the
// page's tests also read. No list is null. Times are Unix epoch milliseconds.
package dto

// Answer is any answer of the dashboard: other types cannot be written.
type Answer interface {
	State | StateChanges | Activity | Hours | Messages | Message | Archive | Search | Decisions | History | Decided | Chat | Receipt | Sent |
		Agents | Connected | Change | Settings | Report | Drills | Sizes | Tasks | Progress | Done | Error |
		RunDetail | RunLog | Approvals | Approval | Prompting | AnsweredBefore | Said |
		Drafts | DraftSet | EndedSessions | Costs | RunDiff | RunTurns | Finished | Conflicting | Models | Usage |
		Network | Paired | NetworkPlan | NetworkLists | Needs | Exchange | Questions | Question | QuestionBefore | Rules | TakenBack
}

// Error is the body of every refusal.
type Error struct {
	Error string `json:"error"`
}

// Done is an answer without content.
type Done struct{}

// List returns items, never nil.
func List[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Each converts items to a list of shapes, never nil.
func Each[T, S any](items []T, convert func(T) S) []S {
	shapes := make([]S, len(items))
	for i, item := range items {
		shapes[i] = convert(item)
	}
	return shapes
}
